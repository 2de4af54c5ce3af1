"""What a broker keeps over a restart and a kill -9: retained messages, subscriptions and topic numbers.

The broker tells each change before it returns the ACK that promises it. The server sends that ACK only after
``commit``, one for all datagrams that it took from the socket together. A change that cannot be written is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import ip_address

from reference_broker.broker.core import Broker
from reference_broker.messages.sending import Endpoint
from reference_broker.server.journal import Journal, JournalError, Record

RETRY_NS = 1_000_000_000


class State:
    """The state of one broker in one file; from now on the broker's changes go there.

    >>> state = State("/tmp/broker.state", broker, say=print)      # doctest: +SKIP

    ``changes`` counts what was appended, so that a server can tell which datagrams changed something.
    """

    def __init__(self, path: str, broker: Broker, *, sync: bool = True, say: Callable[[str], None]) -> None:
        self.changes = 0
        self._broker = broker
        self._say = say
        self._failing = self._has_appended = False
        self._retry_ns = 0
        self._journal = Journal(path, broker.dialect.name, sync=sync)
        try:
            self._load()
        except JournalError:
            self._journal.close()
            raise
        broker.on_change = self._append

    def _load(self) -> None:
        journal, refused = self._journal, 0
        for record in journal.load():
            try:
                refused += not restore(self._broker, record)
            except (KeyError, ValueError):
                journal.damage = f"byte {journal.size}: a record that this version does not know"
                break
        if refused:
            self._say(f"{journal.path}: {refused} entries are over the limits and were left out")
        damage = journal.damage
        if damage or not journal.size:
            aside = journal.rewrite(changes_of(self._broker))
            if damage:
                self._say(f"{journal.path}: damaged at {damage}; what stood before is kept, the file is now {aside}")
        elif journal.wants_rewrite:
            self._rewrite()

    def _append(self, change: Record) -> None:
        try:
            self._journal.append(change)
        except JournalError as error:
            self._failed(error)
            raise
        self._has_appended = True
        self.changes += 1

    def commit(self) -> None:
        """Make the changes safe, or raise JournalError: then nothing that depends on them may be sent."""
        try:
            self._journal.commit()
        except JournalError as error:
            self._failed(error)
            raise
        if self._journal.wants_rewrite and not self._failing:
            self._rewrite()

    def tick(self, now: int) -> None:
        """Try to mend a file that could not be written. A rewrite needs room for a second file: where only that much
        is missing, a file that takes changes again is mended as well."""
        if not self._failing or abs(now - self._retry_ns) < RETRY_NS:
            return
        self._retry_ns = now
        if self._has_appended and not self._journal.is_broken:
            self._works_again()
        else:
            self._rewrite()

    def close(self) -> None:
        self._journal.close()

    def _rewrite(self) -> None:
        try:
            self._journal.rewrite(changes_of(self._broker))
        except JournalError as error:
            self._failed(error)
            return
        self._works_again()

    def _works_again(self) -> None:
        if self._failing:
            self._failing = False
            self._say(f"{self._journal.path}: can be written again")

    def _failed(self, error: JournalError) -> None:
        self._broker.counters["state: writes failed"] += 1
        self._has_appended = False
        if not self._failing:
            self._failing = True
            self._say(f"{error}. Changes that cannot be kept are refused until that is mended")


def changes_of(broker: Broker) -> Iterator[Record]:
    """The changes that would make an empty broker into this one. Sessions are not kept: their clients connect anew."""
    for topic, datagram in broker.retained:
        yield {"retain": topic.hex(), "datagram": datagram.hex(), "host": broker.retained.host_of(topic)}
    for source, number, name in broker.numbers:
        host, port = source or ("127.0.0.1", 0)  # numbers that all publishers share belong to nobody
        yield {"create": name.hex(), "number": str(number), "host": host, "port": str(port)}
    if broker.dialect.spec.broker.sessions == "none":
        for text, (host, port) in broker.subscriptions:
            yield {"subscribe": text.hex(), "host": host, "port": str(port)}


def restore(broker: Broker, change: Record) -> bool:
    """Do again what a change did; false if a limit now forbids it, KeyError or ValueError if it is none we know."""
    if "retain" in change:
        topic, datagram = bytes.fromhex(change["retain"]), bytes.fromhex(change["datagram"])
        return broker.retained.keep(topic, datagram, change.get("host", ""), fair=False)
    if "unretain" in change:
        broker.retained.drop(bytes.fromhex(change["unretain"]))
    elif "create" in change:
        broker.numbers.bind(_endpoint(change), int(change["number"]), bytes.fromhex(change["create"]))
    elif "subscribe" in change:
        return broker.subscriptions.add(bytes.fromhex(change["subscribe"]), _endpoint(change), fair=False)
    else:
        broker.subscriptions.remove(bytes.fromhex(change["unsubscribe"]), _endpoint(change))
    return True


def _endpoint(change: Record) -> Endpoint:
    """Only an address and a port: nothing that a socket would have to look up."""
    port = int(change["port"])
    if not 0 <= port <= 65535:
        raise ValueError(f"no port: {port}")
    ip_address(change["host"])
    return change["host"], port

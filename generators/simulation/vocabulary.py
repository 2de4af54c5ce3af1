"""Topics, filters and payloads that a dialect can carry.

Payloads contain a counter (``#000000042``), so that every publish is unique; large captures continue the count.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from pcap_tools.dialect import Dialect
from pcap_tools.errors import UsageError
from reference_broker import Client, client_for
from reference_broker.client.applications import reading_prefix

COUNTER_MARK = b"#"
COUNTER_DIGITS = 9
MAX_TOPICS = 1_000_000
KINDS = ("temperature", "humidity", "light", "door", "power")
SOMEWHERE = ("10.0.0.1", 50_000)
NO_TOPIC = "none"  # a code's name for no topic at all


class Vocabulary:
    """Tries each word on a client of the dialect, so that every word can be sent."""

    def __init__(self, dialect: Dialect, form: str | None = None, role: str | None = None) -> None:
        self.dialect = dialect
        self.counts = 0  # how many counters have been used
        self._form, self._role = form, role
        self._trial = self._client()  # takes all requests that can be made, and never sends one
        self._separator = (dialect.spec.topics.separator or "/").encode()
        self._name, self._payload = self._first_that_fit()

    # -- topics -----------------------------------------------------------------------------------------------------

    def topics(self, wanted: int) -> list[bytes]:
        """This many topics to publish to, or fewer if the dialect has fewer."""
        kind = self.dialect.spec.topics.kind
        if kind == "source-address":
            return [b""] * wanted
        candidates = iter(self._codes()) if kind == "code" else map(self._name, range(MAX_TOPICS))
        return list(islice(filter(self.can_publish, candidates), wanted))

    def look_alikes(self, topic: bytes) -> list[bytes]:
        """Topics that a careless broker confuses with this one: other case, or another character instead of a dot."""
        if self.dialect.spec.topics.kind not in ("text", "number"):
            return []
        alike = [topic.swapcase(), topic.replace(b".", b"x")]
        return [other for other in alike if other != topic and self.can_publish(other)]

    def _codes(self) -> list[bytes]:
        """The names of the dialect's topic codes, or numbers."""
        names: dict[bytes, None] = {}
        for layout in self.dialect.forms[0].layouts:
            step = layout.step(layout.topic or "") if layout.meaning == "publish" else None
            names |= {name.encode(): None for _, name in (step.names if step else ()) if name != NO_TOPIC}
        return list(names) or [str(number).encode() for number in range(1, 100)]

    def can_publish(self, topic: bytes, payload: bytes | None = None, retain: bool = False) -> bool:
        try:
            self._trial.publish(topic, self._payload(20, 1) if payload is None else payload, 0, retain)
        except UsageError:
            return False
        return True

    def can_retain(self) -> bool:
        """Whether publishers can request retention and the broker supports it."""
        keeps = self.dialect.spec.broker.retained != "none"
        return keeps and any(self.can_publish(topic, retain=True) for topic in self.topics(1))

    def datagram_bytes(self, topic: bytes, payload: bytes) -> int:
        """A lower bound of the length of the datagram that publishes this."""
        sends = self._client().publish(topic, payload, 0)  # where it must connect first: not yet the publish
        return max(len(payload), *(len(send.datagram) for send in sends))

    def _client(self) -> Client:
        return client_for(self.dialect, SOMEWHERE, self._form, role=self._role, listen_port=SOMEWHERE[1])

    # -- filters ----------------------------------------------------------------------------------------------------

    def filters(self, topics: list[bytes]) -> list[bytes]:
        """Filters that match some of these topics: exact ones, and wildcards of every kind in the dialect."""
        exact = [topic for topic in topics if topic]
        wild = [made for topic in exact for made in self._wild(topic)]
        seen = dict.fromkeys([*wild[:2], *exact[:1], *wild[2:], *exact[1:]])
        return [text for text in seen if self.can_subscribe(text)]

    def _wild(self, topic: bytes) -> list[bytes]:
        levels = topic.split(self._separator)
        made: list[bytes] = []
        for text, span in self.dialect.spec.topics.wildcards.items():
            sign = text.encode()
            if span == "all":
                made.append(sign)
            elif span == "one-level":
                made.append(self._separator.join([*levels[:-2], sign, levels[-1]]))
            elif span == "rest-levels":
                made.append(self._separator.join([*levels[:1], sign]))
            else:
                made += [self._separator.join([*levels[:1], sign]), self._separator.join([sign, levels[-1]])]
        return made

    def can_subscribe(self, text: bytes) -> bool:
        try:
            self._trial.subscribe(text, 0)
        except UsageError:
            return False
        return True

    def can_unsubscribe(self, text: bytes) -> bool:
        try:
            self._trial.unsubscribe(text, 0)
        except UsageError:
            return False
        return True

    # -- payloads ---------------------------------------------------------------------------------------------------

    def payload(self, reading: int, topic: bytes = b"", size: int = 0) -> bytes:
        """A reading and a counter, padded to ``size`` bytes."""
        self.counts += 1
        made = self._payload(reading, self.counts)
        return (reading_prefix(self.dialect, topic) + made).ljust(size, b".") if made else b""

    def _first_that_fit(self) -> tuple[Callable[[int], bytes], Callable[[int, int], bytes]]:
        """The longest kind of names and payloads that fits into a publish."""
        for name in (self._long_name, self._short_name, self._bare_name):
            for shape in (_reading_and_counter, _counter, _reading, _digit, _nothing):
                self._payload = shape
                some = iter(self._codes()) if self.dialect.spec.topics.kind == "code" else map(name, range(5))
                if any(map(self.can_publish, some)):
                    return name, shape
        raise UsageError(f"nothing that could be made up here fits into a publish of {self.dialect.name}")

    def _long_name(self, number: int) -> bytes:
        """home/room1/temperature and so on; every fourth room has a dot in its name."""
        room, kind = number // len(KINDS) + 1, KINDS[number % len(KINDS)].encode()
        return self._separator.join((b"home", b"room.%d" % room if number % 4 == 1 else b"room%d" % room, kind))

    def _short_name(self, number: int) -> bytes:
        return self._separator.join((b"h", b"r%d" % number))

    def _bare_name(self, number: int) -> bytes:
        return b"t%d" % number


def _reading_and_counter(reading: int, number: int) -> bytes:
    return b"%d %s%0*d" % (reading, COUNTER_MARK, COUNTER_DIGITS, number)


def _counter(reading: int, number: int) -> bytes:
    return b"%0*d" % (COUNTER_DIGITS, number)


def _reading(reading: int, number: int) -> bytes:
    return b"%d" % reading


def _digit(reading: int, number: int) -> bytes:
    return b"%d" % (reading % 10)


def _nothing(reading: int, number: int) -> bytes:
    return b""

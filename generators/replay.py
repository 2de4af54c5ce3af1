"""The clients of a capture play again, against a broker that is really there: what they sent, when they sent it.

>>> replay = plan_replay(read_datagrams("a.pcap"), {("10.0.0.1", 50000): load_dialect("colon")})     # doctest: +SKIP
>>> with LiveReplay(replay, ("127.0.0.1", 50000), recorder) as live:                                 # doctest: +SKIP
...     live.run()

Each endpoint of the capture gets a socket of its own. On loopback it has an address of its own and the port of the
capture; elsewhere ports may differ. The recording has the endpoints of the capture, so that both can be compared.

What a broker chooses is translated: an acknowledgement by a client goes out when the message that it answered has come
again, with that one's ids; and a topic number that the old broker gave is replaced by what the new one gave for it. A
resend is left out if the new broker has acknowledged the request: no client would send it then.
"""

from __future__ import annotations

import contextlib
import errno
import heapq
import selectors
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from types import TracebackType
from typing import Self

from generators.live import SO_TIMESTAMPNS, Came, waiting_at
from pcap_tools.capture import Datagram
from pcap_tools.codec import Codec
from pcap_tools.codec.answer_key import ECHO, answer_key, is_repeated, request_key_of
from pcap_tools.codec.message import Message
from pcap_tools.dialect import Dialect
from pcap_tools.dialect.program import Value
from pcap_tools.errors import TopicsharkError, UsageError
from reference_broker import Endpoint
from reference_broker.messages.sending import SECOND
from reference_broker.server.recorder import Recorder

MOST_DATAGRAMS = 1_000_000
PATIENCE_NS = 2 * SECOND  # for what a datagram waits for
LOOK_NS = 5_000_000

Signature = tuple[object, ...]  # the same for the same message of either broker to a client


@dataclass(slots=True)
class Planned:
    """A datagram of a client. ``answers``: the broker's message that it acknowledges, and the how manieth of its kind;
    ``number``: the topic number in it, and what the old broker gave it for; ``is_resend``: of an unanswered request."""

    at_ns: int
    client: Endpoint
    broker: Endpoint
    datagram: bytes
    message: Message
    answers: tuple[Signature, int] | None = None
    number: tuple[Signature, int] | None = None
    is_resend: bool = False


@dataclass
class Replay:
    """All that clients sent. ``dialects`` by broker."""

    dialects: dict[Endpoint, Dialect]
    planned: list[Planned] = field(default_factory=list)

    @property
    def clients(self) -> list[tuple[Endpoint, Endpoint]]:
        """Each with its broker, in the order in which they begin."""
        return list(dict.fromkeys((one.client, one.broker) for one in self.planned))


class _Outstanding:
    """Requests of one side that the other has not acknowledged yet, oldest first: each with its key and what it was."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._is_keyed = request_key_of(dialect) is not None
        self._requests: list[tuple[int | None, Message, Signature, int]] = []

    def holds(self, message: Message) -> bool:
        """Whether it is a resend: the same but for what marks resends."""
        own = _without_marks(self._dialect, message)
        return any(_without_marks(self._dialect, other) == own for _, other, *_ in self._requests)

    def add(self, key: int | None, message: Message, signature: Signature = (), place: int = 0) -> None:
        self._requests.append((key, message, signature, place))

    def acknowledged(self, key: int | None, ack: Message) -> tuple[Signature, int] | None:
        """Take out the request that an acknowledgement answers."""
        for at, (own, request, signature, place) in enumerate(self._requests):
            if _acknowledges(self._dialect, ack, request) and (own == key or not self._is_keyed):
                del self._requests[at]
                return signature, place
        return None


class _Side:
    """What a client and a broker have said to each other: the broker's messages by their signatures, the topic numbers
    that it gave, and what is not acknowledged yet."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect, self.codec = dialect, Codec(dialect)
        self.said: dict[Signature, list[Message]] = defaultdict(list)
        self.numbers: dict[Signature, int] = {}  # by what they were given for
        self.names: dict[int, Signature] = {}
        self.asked, self.told = _Outstanding(dialect), _Outstanding(dialect)
        self._named: dict[int, Signature] = {}

    def asks(self, message: Message, datagram: bytes) -> tuple[tuple[Signature, int] | None, bool]:
        """A datagram of the client: which of the broker's messages it acknowledges, and whether it is a resend."""
        key = answer_key(self.dialect, message, datagram)
        if message.meaning == "ack":
            return self.told.acknowledged(key, message), False
        if self.asked.holds(message):
            return None, True
        if message.error is None and message.message is not None and _is_acknowledged(self.dialect, message):
            self.asked.add(key, message)
        about = message.topic if message.topic is not None else message.filter
        if key is not None and about is not None and message.meaning in ("create", "subscribe"):
            self._named[key] = (message.meaning, about)
        return None, False

    def hears(self, message: Message, datagram: bytes) -> None:
        """A datagram of the broker."""
        key = answer_key(self.dialect, message, datagram)
        number = message.fields.get(self.dialect.spec.topics.number or "")
        if isinstance(number, int) and number:
            named = self._named.get(key) if key is not None and message.meaning == "ack" else None
            if message.meaning == "create" and message.topic is not None:
                named = ("named", message.topic)
            if named is not None:
                self.numbers[named] = number
                self.names[number] = named
        if message.meaning == "ack":
            self.asked.acknowledged(key, message)
            return
        about = self.names.get(number) if isinstance(number, int) else None
        signature = (message.message, about[1] if about is not None else message.topic, message.payload)
        found = self.said[signature]
        found.append(message)
        if message.message in self.dialect.spec.client.acks:
            self.told.add(key, message, signature, len(found) - 1)


def _without_marks(dialect: Dialect, message: Message) -> tuple[object, ...]:
    marks = dialect.spec.client.resend.marks if dialect.spec.client.resend is not None else {}
    return message.message, *((name, value) for name, value in message.fields.items() if name not in marks)


def _acknowledges(dialect: Dialect, ack: Message, request: Message) -> bool:
    wanted = {name for variant in dialect.spec.messages.get(ack.message or "", ()) for name in variant.acks}
    return "any" in wanted or request.message in wanted


def _is_acknowledged(dialect: Dialect, request: Message) -> bool:
    wanted = {name for variants in dialect.spec.messages.values() for one in variants for name in one.acks}
    return "any" in wanted or request.message in wanted


def plan_replay(datagrams: Iterable[Datagram], dialects: Mapping[Endpoint, Dialect]) -> Replay:
    """``dialects`` by the broker's endpoint in the capture. Raises `UsageError` for more than `MOST_DATAGRAMS`."""
    replay = Replay(dict(dialects))
    sides: dict[tuple[Endpoint, Endpoint], _Side] = {}
    brokers = {host for host, _ in dialects}
    for one in (one for one in datagrams if one.copy_of is None and one.length == len(one.payload)):
        source, target = (one.src, one.sport), (one.dst, one.dport)
        if target in dialects:
            side = sides.setdefault((source, target), _Side(dialects[target]))
            message = side.codec.decode(one.payload, one.length)
            answers, is_resend = side.asks(message, one.payload)
            number = _number_of(side, message)
            planned = Planned(one.time_ns, source, target, one.payload, message, answers, number, is_resend)
            replay.planned.append(planned)
            if len(replay.planned) > MOST_DATAGRAMS:
                raise UsageError(f"more than {MOST_DATAGRAMS:,} datagrams to play; choose some with topicshark extract")
        elif source[0] in brokers:
            for broker in (broker for broker in dialects if broker[0] == source[0]):
                side = sides.setdefault((target, broker), _Side(dialects[broker]))
                side.hears(side.codec.decode(one.payload, one.length), one.payload)
    replay.planned.sort(key=lambda one: one.at_ns)
    return replay


def _number_of(side: _Side, message: Message) -> tuple[Signature, int] | None:
    number = message.fields.get(side.dialect.spec.topics.number or "")
    if not isinstance(number, int) or number not in side.names:
        return None
    return side.names[number], number


# --- Live -----------------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """``unanswered``: acknowledgements that did not go out, since what they acknowledge never came; ``spared``: resends
    of requests that the new broker has acknowledged."""

    sent: int = 0
    received: int = 0
    spared: int = 0
    unanswered: int = 0
    is_cut: bool = False


class LiveReplay:
    """Plays once. ``speed`` 2 is twice as fast; it ends ``quiet_s`` after the last datagram, or after ``timeout_s``."""

    def __init__(
        self,
        replay: Replay,
        to: tuple[str, int | None],
        recorder: Recorder | None,
        speed: float = 1.0,
        quiet_s: float = 2.0,
        timeout_s: float = 600.0,
        progress: Callable[[int], None] = lambda sent: None,
    ) -> None:
        self._replay, self._to, self._recorder, self._speed = replay, to, recorder, speed
        self._quiet_ns, self._timeout_ns = int(quiet_s * SECOND), int(timeout_s * SECOND)
        self._progress = progress
        self.outcome = Outcome()
        self._selector = selectors.DefaultSelector()
        self._sides = {pair: _Side(replay.dialects[pair[1]]) for pair in replay.clients}
        self._sockets: dict[tuple[Endpoint, Endpoint], socket.socket] = {}
        self._clock = time.time_ns() - time.monotonic_ns()
        self._hosts: dict[str, str] = {}
        self._came: list[tuple[Came, tuple[Endpoint, Endpoint]]] = []
        try:
            for pair in replay.clients:
                self._open(pair)
            self._open_listeners()
        except OSError as error:
            self.__exit__(None, None, None)
            raise TopicsharkError(f"cannot open a socket towards {to[0]}: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._selector.close()
        for one in self._sockets.values():
            one.close()

    def run(self) -> Outcome:
        """Until all is sent and the broker has been quiet for a while."""
        planned = self._replay.planned
        begin, origin = self._now(), planned[0].at_ns if planned else 0
        queue = [(begin + int((one.at_ns - origin) / self._speed), order, one) for order, one in enumerate(planned)]
        due_of = {order: due for due, order, _ in queue}
        end, give_up = begin + self._quiet_ns, begin + self._timeout_ns
        while (queue or self._now() < end) and self._now() < give_up:
            wait = min(queue[0][0] if queue else end, give_up) - self._now()
            self._selector.select(max(0, wait) / SECOND)
            self._receive()
            while queue and queue[0][0] <= self._now():
                _, order, one = heapq.heappop(queue)
                if self._is_waiting(one) and self._now() < due_of[order] + PATIENCE_NS:
                    heapq.heappush(queue, (self._now() + LOOK_NS, order, one))
                    continue
                self._send(one)
                end = self._now() + self._quiet_ns
        self.outcome.is_cut = bool(queue)
        return self.outcome

    # --- Datagrams --------------------------------------------------------------------------------------------------

    def _is_waiting(self, one: Planned) -> bool:
        side = self._sides[one.client, one.broker]
        if one.answers is not None:
            return len(side.said[one.answers[0]]) <= one.answers[1]
        return one.number is not None and one.number[0] not in side.numbers

    def _send(self, one: Planned) -> None:
        side = self._sides[one.client, one.broker]
        datagram: bytes | None = one.datagram
        if one.is_resend and not side.asked.holds(one.message):
            self.outcome.spared += 1
            return
        if one.answers is not None:
            said = side.said[one.answers[0]]
            datagram = _answer_to(said[one.answers[1]], one, side) if len(said) > one.answers[1] else None
        elif one.number is not None and one.number[0] in side.numbers:
            name = side.dialect.spec.topics.number or ""
            datagram = _with_fields(one, side, {name: side.numbers[one.number[0]]})
        if datagram is None:
            self.outcome.unanswered += 1
            return
        datagram = self._with_port(one, datagram, side)
        side.asks(one.message, datagram)
        if self._recorder is not None:
            self._recorder.record(self._now(), one.client, one.broker, datagram)
        with contextlib.suppress(OSError):  # what the system will not take is as lost as any datagram can be
            self._sockets[one.client, one.broker].sendto(datagram, self._target(one.broker))
        self.outcome.sent += 1
        self._progress(self.outcome.sent)

    def _with_port(self, one: Planned, datagram: bytes, side: _Side) -> bytes:
        """The port that a message names is where the subscriber listens now."""
        name = side.dialect.spec.broker.subscriber_port
        port = one.message.fields.get(name or "")
        if name is None or not isinstance(port, int) or one.message.meaning != "subscribe":
            return datagram
        listening = self._sockets.get(((one.client[0], port), one.broker))
        return datagram if listening is None else _with_fields(one, side, {name: listening.getsockname()[1]})

    def _receive(self) -> None:
        """All that came, in the order in which the system took it in.

        What came while we were looking has to wait: before it something may have come to a socket looked at already.
        """
        seen_until = time.time_ns()
        for pair, one in self._sockets.items():
            self._came += [(came, pair) for came in waiting_at(one)]
        self._came.sort(key=lambda item: item[0].time_ns)
        while self._came and self._came[0][0].time_ns <= seen_until:
            came, (client, broker) = self._came.pop(0)
            target = self._target(broker)
            if came.source[0] != target[0]:
                continue
            port = broker[1] if came.source[1] == target[1] else came.source[1]
            if self._recorder is not None:
                time_ns = self._now() - max(0, time.time_ns() - came.time_ns)
                self._recorder.record(time_ns, (broker[0], port), client, came.datagram)
            self.outcome.received += 1
            side = self._sides.setdefault((client, broker), _Side(self._replay.dialects[broker]))
            side.hears(side.codec.decode(came.datagram), came.datagram)

    # --- Sockets ----------------------------------------------------------------------------------------------------

    def _open(self, pair: tuple[Endpoint, Endpoint]) -> None:
        client, broker = pair
        if pair in self._sockets:
            return
        host = self._target(broker)[0]
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        one = self._sockets[pair] = socket.socket(family, socket.SOCK_DGRAM)
        one.setblocking(False)
        with contextlib.suppress(OSError):  # where there are no stamps, our own clock must do
            one.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        own = self._own_address(client[0], host)
        try:
            one.bind((own, client[1]))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            one.bind((own, 0))
        self._selector.register(one, selectors.EVENT_READ, pair)

    def _open_listeners(self) -> None:
        """Where subscribers said that they listen."""
        for one in self._replay.planned:
            name = self._replay.dialects[one.broker].spec.broker.subscriber_port
            port = one.message.fields.get(name or "")
            if name is not None and isinstance(port, int) and 0 < port < 1 << 16 and one.message.meaning == "subscribe":
                self._open(((one.client[0], port), one.broker))

    def _own_address(self, client: str, target: str) -> str:
        """On IPv4 loopback each host of the capture has an address of its own."""
        address = ip_address(target)
        if address.version == 6 or not address.is_loopback:
            return "::" if address.version == 6 else "0.0.0.0"  # noqa: S104  # the system chooses one towards the broker
        if client not in self._hosts:
            number = len(self._hosts) + 1
            self._hosts[client] = f"127.0.{21 + number // 250 % 200}.{1 + number % 250}"
        return self._hosts[client]

    def _target(self, broker: Endpoint) -> Endpoint:
        return self._to[0], self._to[1] or broker[1]

    def _now(self) -> int:
        """Time that does not jump, counted from the epoch."""
        return time.monotonic_ns() + self._clock


# --- Translation ----------------------------------------------------------------------------------------------------


def _answer_to(said: Message, one: Planned, side: _Side) -> bytes:
    """The acknowledgement, with the ids of what the new broker said."""
    key, layout = request_key_of(side.dialect), one.message.layout
    if key is None or layout is None:
        return one.datagram
    if key.by == ECHO:
        names = [step.name for step in layout.steps if is_repeated(step)]
    else:
        names = [name for name in (key.by, side.dialect.spec.topics.number) if name is not None]
    return _with_fields(one, side, {name: said.fields[name] for name in names if name in said.fields})


def _with_fields(one: Planned, side: _Side, values: Mapping[str, Value]) -> bytes:
    """The datagram with other values in some fields; as it was if it cannot be built so."""
    message, codec = one.message, side.codec
    known = {name: value for name, value in values.items() if name in message.fields and message.fields[name] != value}
    if not known or message.error is not None or message.message is None:
        return one.datagram
    given = {**message.fields, **known}
    try:
        if codec.build(codec.message(message.message, message.fields, form=message.form)) != one.datagram:
            return one.datagram
        return codec.build(codec.message(message.message, given, form=message.form))
    except UsageError:
        return one.datagram

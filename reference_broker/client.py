"""A client without I/O: requests, datagrams and the time go in; what to send, and what happened, come out.

    >>> from pcap_tools import load_dialect
    >>> client = Client(load_dialect("colon"), ("127.0.0.1", 50000))
    >>> client.publish(b"home/fan", b"ON", now=0)
    [Send(datagram=b'\\x01\\x00home/fan:ON', to=('127.0.0.1', 50000), ephemeral=False)]
    >>> client.handle(b"\\x02", ("127.0.0.1", 50000), now=1_000_000)[1][0].kind
    <EventKind.ACKNOWLEDGED: 'acknowledged'>

One request is on its way at a time and is sent again until its ACK comes: ACKs of most dialects carry no id, so a
second request on its way could not be told from the first. What is an ACK, and of what, is the dialect's to say.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pcap_tools.dialect.program import Dialect, Value
from pcap_tools.errors import UsageError
from pcap_tools.message import Message
from reference_broker.composing import Composer
from reference_broker.limits import SECOND
from reference_broker.replies import Replies
from reference_broker.sending import Endpoint, Send

DEFAULT_RESEND_S = 1.0
DEFAULT_BACKOFF = 1.5
DEFAULT_LIMIT = 4


class ClientMistake(StrEnum):
    """Mistakes that running clients were seen to make: switches, off by default (see also ``mistakes.py``)."""

    RETAIN_ON_RESEND = "retain-on-resend"  # colon: the retain byte of a resend becomes 1
    NUMBER_ZERO = "number-zero"  # topicnumber: the topic number is never written


class EventKind(StrEnum):
    ACKNOWLEDGED = "acknowledged"  # our request was; `message` is the request
    REFUSED = "refused"  # it was answered, with a no
    RESENT = "resent"
    GAVE_UP = "gave-up"  # it was never acknowledged
    RECEIVED = "received"  # a message under a topic that we subscribed to
    STATUS = "status"  # a sentence of the broker's
    UNEXPECTED = "unexpected"  # an ACK that answers nothing, or no message of the dialect at all


@dataclass(frozen=True, slots=True)
class Event:
    """What happened. ``sends`` tells how often a request was sent; ``duplicate`` marks a message that came before."""

    kind: EventKind
    message: Message
    topic: bytes | None = None
    sends: int = 0
    duplicate: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Timing:
    """When to send again: after so long, then each time ``backoff`` times longer, at most ``limit`` times.

    ``settle_ns``: how long after an ACK another one that looks the same may still come, because the network doubles
    and delays. The next request that would take such an ACK for its own waits for so long.
    """

    resend_after_ns: int
    backoff: float = DEFAULT_BACKOFF
    limit: int = DEFAULT_LIMIT
    settle_ns: int = 0

    @classmethod
    def of(
        cls,
        dialect: Dialect,
        resend_after: float | None = None,
        limit: int | None = None,
        backoff: float = DEFAULT_BACKOFF,
        settle: float = 0.0,
    ) -> Timing:
        """The dialect's times in seconds, or those given."""
        policy = dialect.spec.client.resend
        after = resend_after or (policy.after if policy else DEFAULT_RESEND_S)
        if limit is None:
            limit = policy.limit if policy and policy.limit is not None else DEFAULT_LIMIT
        return cls(int(after * SECOND), backoff, limit, int(settle * SECOND))

    def wait_ns(self, sends: int) -> int:
        return int(self.resend_after_ns * self.backoff ** (sends - 1))


AckKey = tuple[str, object]


@dataclass(slots=True, eq=False)
class Request:
    """A request on its way or waiting for its turn; ``needs`` are those without which it makes no sense."""

    message: Message
    topic: bytes | None = None
    needs: list[Request] = field(default_factory=list)
    datagram: bytes = b""
    key: AckKey | None = None
    sends: int = 0
    due_ns: int = 0
    failed: bool = False


Outcome = tuple[list[Send], list[Event]]


class Client:
    """A publisher, a subscriber, or both, of one broker."""

    def __init__(
        self,
        dialect: Dialect,
        broker: Endpoint,
        form: str | None = None,
        *,
        role: str | None = None,
        listen_port: int | None = None,
        timing: Timing | None = None,
        mistakes: Iterable[ClientMistake] = (),
    ) -> None:
        self.dialect, self.broker = dialect, broker
        self.compose = Composer(dialect, form, role)
        self.timing = timing or Timing.of(dialect)
        self.mistakes = frozenset(mistakes)
        self.listen_port = listen_port
        self._replies = Replies(dialect)
        self._queue: deque[Request] = deque()
        self._current: Request | None = None
        self._last_key: AckKey | None = None
        self._quiet_until = 0  # another ACK of the last request may come until then
        self._missing_acks = 0
        self._status_until: int | None = None
        self._numbers: dict[bytes, tuple[int, Request]] = {}
        self._last_id = 0

    # -- what a user asks for -------------------------------------------------------------------------------------

    def publish(
        self, topic: bytes, payload: bytes, now: int, retain: bool = False, more: Mapping[str, Value] = {}
    ) -> list[Send]:
        """Publish; where topics have numbers and this one has none yet, create it first."""
        more = self._known("publish") | dict(more)
        if not self._is_numbered():
            return self.request(self.compose.publish(topic, payload, retain, more), now)
        sends = [] if topic in self._numbers else self.create(topic, now)
        number, creation = self._numbers[topic]
        message = self.compose.publish(str(number).encode(), payload, retain, more)
        return sends + self._enqueue(Request(message, topic, [creation]), now)

    def subscribe(self, text: bytes, now: int, more: Mapping[str, Value] = {}) -> list[Send]:
        return self.request(self.compose.subscribe(text, self._known("subscribe") | dict(more)), now)

    def unsubscribe(self, text: bytes, now: int, more: Mapping[str, Value] = {}) -> list[Send]:
        return self.request(self.compose.unsubscribe(text, self._known("unsubscribe") | dict(more)), now)

    def create(self, topic: bytes, now: int) -> list[Send]:
        """Bind the next number to a topic's name."""
        number = 0 if ClientMistake.NUMBER_ZERO in self.mistakes else len(self._numbers)
        creation = Request(self.compose.create(topic, {self.dialect.spec.topics.number or "": number}), topic)
        self._numbers[topic] = number, creation
        return self._enqueue(creation, now)

    def request(self, message: Message, now: int) -> list[Send]:
        """Send any message of the dialect, when its turn comes, until it is acknowledged."""
        return self._enqueue(Request(message), now)

    def close(self, now: int) -> list[Send]:
        """Say good-bye where the dialect has a word for it."""
        return []

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way or waiting for its turn. The broker's last sentence may still come."""
        return self._current is None and not self._queue

    @property
    def awaits_status(self) -> bool:
        return self._status_until is not None

    def expects_ack(self, message: Message) -> bool:
        """Whether the dialect has an ACK for this message."""
        return self._key_for(message, self._replies.codec.build(message)) is not None

    # -- what the world does --------------------------------------------------------------------------------------

    def handle(self, datagram: bytes, source: Endpoint, now: int) -> Outcome:
        """Take one datagram. Those that are not from the broker are not for us. Never raises, whatever the bytes."""
        if not self._is_broker(source):
            return [], []
        message = self._replies.codec.decode(datagram)
        if message.error is not None:
            return [], [Event(EventKind.UNEXPECTED, message, why=str(message.error))]
        if self._is_answer(message):
            return self._answered(message, now)
        try:
            sends, events = self._received(message, datagram, source)
        except UsageError as error:  # its ACK cannot be built: a copy that does not fit, say
            return [], [Event(EventKind.UNEXPECTED, message, why=str(error))]
        if message.meaning == "status":
            self._status_until = None
        more_sends, more_events = self._advance(now)
        return sends + more_sends, events + more_events

    def tick(self, now: int) -> Outcome:
        """Send again what is due, give up what has been sent often enough, and go on to the next."""
        if self._status_until is not None and self._status_until <= now:
            self._status_until = None
        request = self._current
        if request is None or request.due_ns > now:
            return self._advance(now)
        if request.sends <= self.timing.limit:
            request.datagram = self._marked(request)
            topic = request.topic or _about(request.message)
            event = Event(EventKind.RESENT, request.message, topic, request.sends + 1)
            return [self._sent(request, now)], [event]
        events = [self._fail(request)]
        self._current = None
        self._quiet(request.key, now, missing=request.sends)
        sends, more = self._advance(now)
        return sends, events + more

    def next_due(self) -> int | None:
        """When ``tick`` has something to do, if nothing comes before."""
        if self._current is not None:
            return self._current.due_ns
        waits = [self._status_until] if self._status_until is not None else []
        if self._queue:
            waits.append(self._quiet_until)
        return max(waits, default=None)

    # -- answers --------------------------------------------------------------------------------------------------

    def _is_answer(self, message: Message) -> bool:
        return message.meaning == "ack"

    def _answered(self, ack: Message, now: int) -> Outcome:
        request, key = self._current, self._key_of(ack)
        if request is None or key != request.key:
            return self._answered_late(ack, key, now)
        self._current = None
        event = self._settled(request, ack)
        self._quiet(key, now, missing=request.sends - 1)
        if request.message.message in self.dialect.spec.broker.status:
            self._status_until = now + self.timing.resend_after_ns
        sends, more = self._advance(now)
        return sends, [event, *more]

    def _answered_late(self, ack: Message, key: AckKey, now: int) -> Outcome:
        """One more ACK of a request that was sent more than once, or one that nobody asked for."""
        if key != self._last_key or now >= self._quiet_until:
            return [], [Event(EventKind.UNEXPECTED, ack, why="it answers nothing")]
        self._missing_acks -= 1
        if self._missing_acks <= 0 and not self.timing.settle_ns:
            self._quiet_until = now
        return self._advance(now)

    def _settled(self, request: Request, ack: Message) -> Event:
        return Event(EventKind.ACKNOWLEDGED, request.message, request.topic or _about(request.message), request.sends)

    def _received(self, message: Message, datagram: bytes, source: Endpoint) -> Outcome:
        ack = self._replies.ack(message, datagram) if message.message in self.dialect.spec.client.acks else None
        sends = [Send(ack, source)] if ack is not None else []
        kinds = {"status": EventKind.STATUS, "publish": EventKind.RECEIVED, "deliver": EventKind.RECEIVED}
        kind = kinds.get(message.meaning or "", EventKind.UNEXPECTED)
        return sends, [
            Event(kind, message, message.topic, why="" if kind is not EventKind.UNEXPECTED else "not for us")
        ]

    def _key_for(self, message: Message, datagram: bytes) -> AckKey | None:
        """How the ACK of a request will be known; None where there is none."""
        ack = self._replies.ack(message, datagram)
        return self._key_of(self._replies.codec.decode(ack)) if ack is not None else None

    def _key_of(self, ack: Message) -> AckKey:
        name = ack.message or ""
        by = self.dialect.spec.messages[name][0].acks_by
        if by == "order":
            return name, None
        if by in ("echo", "copy"):
            return name, tuple(ack.fields.items())
        return name, ack.fields.get(by)

    def _quiet(self, key: AckKey | None, now: int, missing: int) -> None:
        """After a request that was sent more than once its other ACKs may come late."""
        self._last_key, self._missing_acks = key, missing
        wait = max(self.timing.settle_ns, self.timing.resend_after_ns if missing else 0)
        self._quiet_until = now + wait

    # -- the queue ------------------------------------------------------------------------------------------------

    def _enqueue(self, request: Request, now: int) -> list[Send]:
        self._queue.append(request)
        return self._advance(now)[0]

    def _advance(self, now: int) -> Outcome:
        """Send what may go: all up to the first request that will be acknowledged."""
        sends: list[Send] = []
        events: list[Event] = []
        while self._queue and self._current is None and self._status_until is None:
            request = self._queue[0]
            if any(need.failed for need in request.needs):
                events.append(self._fail(self._queue.popleft()))
                continue
            self._prepare(request)
            request.datagram = self._replies.codec.build(request.message)
            request.key = self._key_for(request.message, request.datagram)
            if self._must_wait(request, now):
                break
            self._queue.popleft()
            self._current = request if request.key is not None else None
            sends.append(self._sent(request, now))
        return sends, events

    def _must_wait(self, request: Request, now: int) -> bool:
        return request.key is not None and request.key == self._last_key and now < self._quiet_until

    def _prepare(self, request: Request) -> None:
        """Write into a request what is known only now that its turn has come."""

    def _sent(self, request: Request, now: int) -> Send:
        request.sends += 1
        request.due_ns = now + self.timing.wait_ns(request.sends)
        return Send(request.datagram, self.broker)

    def _fail(self, request: Request) -> Event:
        request.failed = True
        if request.topic is not None and self._numbers.get(request.topic, (0, None))[1] is request:
            del self._numbers[request.topic]
        topic = request.topic or _about(request.message)
        return Event(EventKind.GAVE_UP, request.message, topic, request.sends)

    def _marked(self, request: Request) -> bytes:
        """A resend: byte for byte the same, but for what the dialect says marks one."""
        policy, layout = self.dialect.spec.client.resend, request.message.layout
        changes: dict[str, int] = {}
        if policy and layout and layout.meaning in ("publish", "subscribe"):
            changes |= policy.marks
        if policy and ClientMistake.RETAIN_ON_RESEND in self.mistakes:
            changes |= dict.fromkeys(policy.may_change, 1)
        changes = {name: value for name, value in changes.items() if name in request.message.fields}
        if not changes:
            return request.datagram
        request.message.fields |= changes
        return self._replies.codec.build(request.message)

    # -- the dialect's ways ---------------------------------------------------------------------------------------

    def _is_numbered(self) -> bool:
        topics = self.dialect.spec.topics
        return topics.kind == "number" and topics.named_by is not None

    def _known(self, meaning: str) -> dict[str, Value]:
        """The fields that are the client's business: an id by which the ACK is found, and where requests name a port,
        a subscriber's own; a publisher's is the broker's."""
        layout = self.compose.layout(meaning)
        known: dict[str, Value] = {}
        for step in layout.steps:
            if step.name == self.dialect.spec.broker.subscriber_port:
                is_own = meaning != "publish" and self.listen_port is not None
                known[step.name] = (self.listen_port if is_own else None) or self.broker[1]
            elif step.name == self._id_field(layout.message):
                known[step.name] = self._fresh_id(step.bits or step.size * 8)
        return known

    def _id_field(self, request: str) -> str | None:
        """The field by which the ACK of a request repeats it, where there is one."""
        for variants in self.dialect.spec.messages.values():
            for variant in variants:
                if request in variant.acks or "any" in variant.acks:
                    return variant.acks_by
        return None

    def _fresh_id(self, bits: int) -> int:
        self._last_id = self._last_id % ((1 << bits) - 1) + 1
        return self._last_id

    def _is_broker(self, source: Endpoint) -> bool:
        if self.dialect.spec.broker.forward_from == "ephemeral":
            return source[0] == self.broker[0]
        return source == self.broker


def _about(message: Message) -> bytes | None:
    return message.topic if message.topic is not None else message.filter

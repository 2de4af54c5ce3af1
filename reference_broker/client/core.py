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

from pcap_tools.codec.message import Message
from pcap_tools.dialect.program import Dialect, Value
from pcap_tools.errors import UsageError
from reference_broker.client.go_back_n import AckKey, Packet, Reassembly, Window, split
from reference_broker.client.requests import ClientMistake, Event, EventKind, Outcome, Request, Timing
from reference_broker.messages.composing import Composer
from reference_broker.messages.replies import Replies, is_refusal
from reference_broker.messages.sending import Endpoint, Send

SEQUENCE = "sequence"  # the field of a dialect by which long messages go


class Client:
    """A publisher, a subscriber, or both, of one broker. ``window`` above 0 lets long messages go in sequence, so many
    packets at once: see ``go_back_n.py``.

    ``follows_form``: requests go in the form in which the broker answers; while it does not answer, resends try the
    forms in turn. ``first_number`` is that of the first topic that is created.
    """

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
        window: int = 0,
        follows_form: bool = False,
        first_number: int = 0,
    ) -> None:
        self.dialect, self.broker = dialect, broker
        self.compose = Composer(dialect, form, role)
        self.timing = timing or Timing.of(dialect)
        self.mistakes = frozenset(mistakes)
        if window and self.compose.layout("publish").step(SEQUENCE) is None:
            raise UsageError(f"{dialect.name} has no sequence numbers for long messages")
        self.listen_port = listen_port
        self._replies = Replies(dialect)
        self._queue: deque[Request] = deque()
        self._current: Request | None = None
        self._window, self._reassembly = window, Reassembly()
        self._last_keys: frozenset[AckKey] = frozenset()
        self._last_filter: bytes | None = None
        self._quiet_until = 0  # another ACK of the last request may come until then
        self._missing_acks = 0
        self._status_until: int | None = None
        self._numbers: dict[bytes, tuple[int, Request]] = {}
        self._numbers_used = first_number
        self._subscribed: dict[bytes, None] = {}
        self._forms = [known.name for known in dialect.forms]
        self._follows_form = follows_form and len(self._forms) > 1
        self._form = form or self._forms[0]
        self._form_is_known = False
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
        first, *rest = self._in_packets(str(number).encode(), payload, retain, more)
        return sends + self._enqueue(Request(first, topic, [creation], rest), now)

    def _in_packets(self, topic: bytes, payload: bytes, retain: bool, more: Mapping[str, Value]) -> list[Message]:
        if not self._window:
            return [self.compose.publish(topic, payload, retain, more)]
        parts = split(payload, self.compose.room_for_payload(topic))
        return [
            self.compose.publish(topic, part, retain, {**more, SEQUENCE: number}) for number, part in enumerate(parts)
        ]

    def subscribe(self, text: bytes, now: int, more: Mapping[str, Value] = {}) -> list[Send]:
        return self.request(self.compose.subscribe(text, self._known("subscribe") | dict(more)), now)

    def unsubscribe(self, text: bytes, now: int, more: Mapping[str, Value] = {}) -> list[Send]:
        return self.request(self.compose.unsubscribe(text, self._known("unsubscribe") | dict(more)), now)

    def create(self, topic: bytes, now: int) -> list[Send]:
        """Bind the next number to a topic's name. A number is never used again: the broker may have bound it to a
        topic whose creation was given up here, and would then publish one topic's messages under the other."""
        number = 0 if ClientMistake.NUMBER_ZERO in self.mistakes else self._numbers_used
        self._numbers_used += 1
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

    # -- what the world does --------------------------------------------------------------------------------------

    def handle(self, datagram: bytes, source: Endpoint, now: int) -> Outcome:
        """Take one datagram. Those that are not from the broker are not for us. Never raises, whatever the bytes."""
        if not self._is_broker(source):
            return [], []
        message = self._replies.codec.decode(datagram)
        if message.error is not None:
            return [], [Event(EventKind.UNEXPECTED, message, why=str(message.error))]
        if self._is_answer(message):
            return self._answered_in_form(message, now) if self._follows_form else self._answered(message, now)
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
            if self._follows_form and not self._form_is_known and request.sends > 1:
                return self._try_next_form(request, now)
            self._mark(request)
            topic = request.topic or _about(request.message)
            event = Event(EventKind.RESENT, request.message, topic, request.sends + 1)
            return self._sent(request, request.window.again(), now), [event]
        events = [self._fail(request)]
        self._current = None
        self._quiet(request, now, missing=request.sends)
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

    def expects_ack(self, message: Message, datagram: bytes) -> bool:
        """Whether the dialect promises an ACK for this request."""
        return self._key_for(message, datagram) is not None

    # -- answers --------------------------------------------------------------------------------------------------

    def _is_answer(self, message: Message) -> bool:
        return message.meaning == "ack" or message.message == self.dialect.spec.broker.nak

    def _answered_in_form(self, ack: Message, now: int) -> Outcome:
        """An ACK in another form than the request's says that the broker speaks that, not that it understood."""
        request = self._current
        if request is None or ack.form == request.message.form:
            self._form_is_known = True
            return self._answered(ack, now)
        if self._form_is_known:
            return [], [Event(EventKind.UNEXPECTED, ack, why=f"it is in the form {ack.form!r}")]
        self._form_is_known = True
        sends = self._change_form(request, ack.form, now)
        return sends, [Event(EventKind.FORM, ack, why=f"the broker speaks the form {ack.form!r}")]

    def _try_next_form(self, request: Request, now: int) -> Outcome:
        form = self._forms[(self._forms.index(self._form) + 1) % len(self._forms)]
        sends = self._change_form(request, form, now)
        topic = request.topic or _about(request.message)
        return sends, [Event(EventKind.RESENT, request.message, topic, request.sends, why=f"in the form {form!r}")]

    def _change_form(self, current: Request, form: str, now: int) -> list[Send]:
        """Write all requests anew in another form, and send the current one again."""
        old, self._form = self.compose, form
        self.compose = Composer(self.dialect, form, old.role)
        for request in (current, *self._queue):
            request.message = old.in_form(request.message, form)
            request.more = [old.in_form(message, form) for message in request.more]
        packets = [self._packet(message) for message in (current.message, *current.more)]
        current.window = Window(packets, max(self._window, 1))
        return self._sent(current, current.window.open(), now)

    def _answered(self, ack: Message, now: int) -> Outcome:
        request, key = self._current, self._key_of(ack)
        if request is not None and ack.message == self.dialect.spec.broker.nak:
            key = self._key_of(self._replies.ack_in_place_of(ack, request.message.message or ""))
        if request is None or not request.window.acknowledge(key):
            return self._answered_late(ack, key, now)
        if not request.window.is_done:
            request.sends, request.due_ns = 1, now + self.timing.wait_ns(1)
            return [Send(datagram, self.broker) for datagram in request.window.open()], []
        self._current = None
        event = self._settled(request, ack)
        self._quiet(request, now, missing=request.sends - 1)
        if request.message.message in self.dialect.spec.broker.status:
            self._status_until = now + self.timing.resend_after_ns
        sends, more = self._advance(now)
        return sends, [event, *more]

    def _answered_late(self, ack: Message, key: AckKey, now: int) -> Outcome:
        """One more ACK of a request that was sent more than once, or one that nobody asked for."""
        if self._current is not None and key in self._current.window.keys:
            return [], []  # a packet of a long message that was sent again
        if key not in self._last_keys or now >= self._quiet_until:
            return [], [Event(EventKind.UNEXPECTED, ack, why="it answers nothing")]
        self._missing_acks -= 1
        if self._missing_acks <= 0 and not self.timing.settle_ns:
            self._quiet_until = now
        return self._advance(now)

    def _settled(self, request: Request, ack: Message) -> Event:
        kind = EventKind.REFUSED if ack.message == self.dialect.spec.broker.nak else EventKind.ACKNOWLEDGED
        text, layout = request.message.filter, request.message.layout
        if text is not None and layout is not None and kind is EventKind.ACKNOWLEDGED:
            if layout.meaning == "subscribe":
                self._subscribed[text] = None
            else:
                self._subscribed.pop(text, None)
        return Event(kind, request.message, request.topic or _about(request.message), request.sends)

    def _received(self, message: Message, datagram: bytes, source: Endpoint) -> Outcome:
        ack = self._replies.ack(message, datagram) if message.message in self.dialect.spec.client.acks else None
        sends = [Send(ack, source)] if ack is not None else []
        kinds = {"status": EventKind.STATUS, "publish": EventKind.RECEIVED, "deliver": EventKind.RECEIVED}
        kind = kinds.get(message.meaning or "", EventKind.UNEXPECTED)
        if kind is EventKind.UNEXPECTED:
            return sends, [Event(kind, message, message.topic, why="not a message for clients")]
        if kind is EventKind.STATUS and is_refusal(message.payload or b""):
            why = (message.payload or b"").decode(errors="replace")
            return sends, [Event(EventKind.REFUSED, message, message.topic, why=why)]
        if kind is not EventKind.RECEIVED or not self._window:
            return sends, [Event(kind, message, self._topic_of(message))]
        sequence = int(message.fields.get(SEQUENCE, 0))
        whole = self._reassembly.take(message.topic, sequence, message.payload or b"", message.padding)
        return sends, [Event(kind, message, self._topic_of(message), whole=whole)] if whole is not None else []

    def _topic_of(self, message: Message) -> bytes | None:
        """The topic of a forward. One that names its topic by the publisher's number is known by the subscription,
        where there is only one."""
        if self._is_numbered() and len(self._subscribed) == 1:
            return next(iter(self._subscribed))
        return message.topic

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

    def _quiet(self, request: Request, now: int, missing: int) -> None:
        """After a request that was sent more than once its other ACKs may come late."""
        self._last_keys, self._missing_acks = request.window.keys, missing
        self._last_filter = request.message.filter
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
            packets = [self._packet(message) for message in (request.message, *request.more)]
            request.window = Window(packets, max(self._window, 1))
            if self._must_wait(request, now):
                break
            self._queue.popleft()
            self._current = request if request.window.keys else None
            sends += self._sent(request, request.window.open(), now)
        return sends, events

    def _must_wait(self, request: Request, now: int) -> bool:
        """Packets in sequence always wait: a late one of the last message would be taken for one of the next. So do
        a subscription and its end: a late copy of the one would undo the other."""
        text = request.message.filter
        is_undone = text is not None and text == self._last_filter
        takes_late_ack = bool(request.window.keys & self._last_keys)
        return (bool(self._window) or takes_late_ack or is_undone) and now < self._quiet_until

    def _packet(self, message: Message) -> Packet:
        datagram = self._replies.codec.build(message)
        return Packet(datagram, self._key_for(message, datagram))

    def _prepare(self, request: Request) -> None:
        """Write into a request what is known only now that its turn has come."""

    def _sent(self, request: Request, datagrams: list[bytes], now: int) -> list[Send]:
        request.sends += 1
        request.due_ns = now + self.timing.wait_ns(request.sends)
        return [Send(datagram, self.broker) for datagram in datagrams]

    def _fail(self, request: Request) -> Event:
        request.failed = True
        if request.topic is not None and self._numbers.get(request.topic, (0, None))[1] is request:
            del self._numbers[request.topic]
        topic = request.topic or _about(request.message)
        return Event(EventKind.GAVE_UP, request.message, topic, request.sends)

    def _mark(self, request: Request) -> None:
        """A resend: byte for byte the same, but for what the dialect says marks one."""
        policy, layout = self.dialect.spec.client.resend, request.message.layout
        changes: dict[str, int] = {}
        if policy and layout and layout.meaning in ("publish", "subscribe"):
            changes |= policy.marks
        if policy and ClientMistake.RETAIN_ON_RESEND in self.mistakes:
            changes |= dict.fromkeys(policy.may_change, 1)
        changes = {name: value for name, value in changes.items() if name in request.message.fields}
        if changes:
            request.message.fields |= changes
            request.window.packets[0] = self._packet(request.message)

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

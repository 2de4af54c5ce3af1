"""The broker without I/O: a datagram and the time go in, datagrams to send come out. Deterministic.

What it does is the dialect's policy: which messages are acknowledged and how, in which order forwards and ACK leave,
how many copies a subscriber gets, what is retained. MQTT-SN's sessions are more than a policy; see ``mqttsn.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from pcap_tools.codec.message import Message
from pcap_tools.dialect import Dialect
from pcap_tools.errors import UsageError
from reference_broker.broker.limits import Accounts, Limits, Loops
from reference_broker.broker.mistakes import PADDED_BYTES, FilterFailure, Mistake, RegexIndex
from reference_broker.broker.numbers import TopicNumbers
from reference_broker.broker.retained import Retained
from reference_broker.broker.subscriptions import Subscriptions
from reference_broker.messages.replies import Replies
from reference_broker.messages.sending import Endpoint, Send

PRIVILEGED_PORTS = 1024
DEFAULT_ORDER = {
    "publish": ["forward", "ack", "status"],
    "subscribe": ["retained", "ack", "status"],
    "unsubscribe": ["ack", "status"],
    "create": ["ack", "status"],
}
Handler = Callable[[Message, bytes, Endpoint, int], list[Send]]


class Broker:
    """The broker of one dialect.

    ``naks`` refuses with the dialect's NAK, where it has one: not for clients that do not know it. ``counters`` tells
    what happened. ``on_change`` is told what must survive a restart before it is done; if it raises, it is not done
    and not acknowledged (see ``state.py``).
    """

    def __init__(
        self, dialect: Dialect, limits: Limits | None = None, mistakes: Iterable[Mistake] = (), naks: bool = False
    ) -> None:
        self.dialect = dialect
        self.naks = naks
        self.limits = limits or Limits()
        self.mistakes = frozenset(mistakes)
        self.counters: Counter[str] = Counter()
        self.replies = Replies(dialect)
        self.accounts = Accounts(self.limits)
        policy = dialect.spec.broker
        self._loops = Loops(by_host=policy.forward_from == "ephemeral")
        self.subscriptions = Subscriptions(dialect.spec.topics, policy, self.limits)
        matching = policy.retained == "matching"
        if Mistake.REGEX_FILTERS in self.mistakes:
            self.subscriptions.index = RegexIndex()
        self.retained = Retained(dialect.spec.topics, self.limits.retained_bytes, matching)
        self.numbers = TopicNumbers(dialect.spec.topics, shared=Mistake.SHARED_NUMBERS in self.mistakes)
        self.on_change: Callable[[dict[str, str]], None] = lambda change: None
        self._topics_kind = dialect.spec.topics.kind
        self._separator = (dialect.spec.topics.separator or "").encode()
        self._order = DEFAULT_ORDER | {kind: list(duties) for kind, duties in policy.order.items()}
        self._handlers: dict[str, Handler] = {
            "publish": self._publish,
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
            "create": self._create,
            "ack": self._acknowledged,
        }

    def handle(self, datagram: bytes, source: Endpoint, now: int) -> list[Send]:
        """Take one datagram; returns what to send, in order. Never raises, whatever the bytes."""
        self.counters["received"] += 1
        if len(datagram) > self.limits.datagram_bytes:
            self.counters["refused: too large"] += 1
            return []
        if not self.accounts.admit(source, len(datagram), now):
            self.counters["refused: too quick"] += 1
            return []
        message = self.replies.codec.decode_if_valid(datagram)
        if message is None or message.meaning is None:
            self.counters["malformed"] += 1
            return []
        self.counters[message.message or "?"] += 1
        if Mistake.SIGNED_LENGTH in self.mistakes and len(datagram) > 2 + 127:
            return []
        handler = self._handlers.get(message.meaning, self._other)
        try:
            return self._allowed(handler(message, datagram, source, now), now)
        except (UsageError, FilterFailure) as error:
            self.counters[f"refused: {type(error).__name__}"] += 1
            return []

    def tick(self, now: int) -> list[Send]:
        """What is due by now. The plain dialects' brokers never resend, so nothing is."""
        return []

    def topic_of(self, message: Message, source: Endpoint) -> bytes | None:
        """The topic by which a publish finds its subscribers: not always the one that stands in it."""
        if self._topics_kind == "number":
            return self.numbers.name(message, source)
        if self._topics_kind == "source-address":
            return source[0].encode()
        return self.replies.forward_topic(message)

    def _allowed(self, sends: list[Send], now: int) -> list[Send]:
        allowed = [send for send in sends if self.accounts.allow(send.to, len(send.datagram), now)]
        self.counters["sent"] += len(allowed)
        if len(allowed) < len(sends):
            self.counters["refused: amplification"] += len(sends) - len(allowed)
        return allowed

    # -- one handler a meaning ----------------------------------------------------------------------------------

    def _publish(self, message: Message, datagram: bytes, source: Endpoint, now: int) -> list[Send]:
        topic, forward = self.topic_of(message, source), self.replies.forward(message, datagram)
        if topic is None or not self._is_fit(topic) or self.subscriptions.index.is_wild(topic):
            self.counters["refused: topic"] += 1
            return self._answer("publish", message, datagram, source, now, "could not be published", topic, None)
        subscribers = self.subscriptions.subscribers(topic)
        if self._loops.closes(source, subscribers, datagram, now):
            self.counters["refused: loop"] += 1
            return []
        if message.retain and self.dialect.spec.broker.retained != "none":
            kept = self._retain(topic, datagram[: len(datagram) - message.padding])
            if not kept:  # an ACK would promise what cannot be kept
                return []
        ephemeral = self.dialect.spec.broker.forward_from == "ephemeral"
        forwards = [Send(forward, to, ephemeral) for to in subscribers]
        if self.dialect.spec.client.acks:
            for send in forwards:
                self.accounts.await_ack(send.to, now)
        return self._answer("publish", message, datagram, source, now, "was published", topic, {"forward": forwards})

    def _subscribe(self, message: Message, datagram: bytes, source: Endpoint, now: int) -> list[Send]:
        text, subscriber = message.filter, self._subscriber(message, source)
        if text is None or subscriber is None or not self._is_fit(text) or not self._is_known(text):
            self.counters["refused: filter"] += 1
            return self._answer("subscribe", message, datagram, source, now, "cannot be subscribed to", text, None)
        filed = self._filed_under(text)
        if self.subscriptions.adds(filed, subscriber):
            if self.subscriptions.is_full_for(subscriber):
                self.counters["refused: too many subscriptions"] += 1
                return []
            self.on_change({"subscribe": filed.hex(), "host": subscriber[0], "port": str(subscriber[1])})
            self.subscriptions.add(filed, subscriber)
        size = PADDED_BYTES if Mistake.PADDED_RETAINED in self.mistakes else 0
        retained = [Send(copy.ljust(size, b"\0"), subscriber) for _, copy in self.retained.for_filter(text)]
        return self._answer(
            "subscribe", message, datagram, source, now, "is subscribed to", text, {"retained": retained}
        )

    def _unsubscribe(self, message: Message, datagram: bytes, source: Endpoint, now: int) -> list[Send]:
        text, subscriber = message.filter, self._subscriber(message, source)
        if text is None or subscriber is None:
            return []
        filed = self._filed_under(text)
        removed = self.subscriptions.has(filed, subscriber)
        if removed:
            self.on_change({"unsubscribe": filed.hex(), "host": subscriber[0], "port": str(subscriber[1])})
            self.subscriptions.remove(filed, subscriber)
        elif Mistake.SILENT_UNSUBSCRIBE in self.mistakes:
            return []
        outcome = "is no longer subscribed to" if removed else "was not subscribed to"
        return self._answer("unsubscribe", message, datagram, source, now, outcome, text, {} if removed else None)

    def _create(self, message: Message, datagram: bytes, source: Endpoint, now: int) -> list[Send]:
        name, number = message.topic, message.fields.get(self.numbers.field)
        created = name is not None and self._is_fit(name) and self.numbers.can_bind(message, source)
        if created and name is not None and isinstance(number, int):
            change = {"create": name.hex(), "number": str(number), "host": source[0], "port": str(source[1])}
            self.on_change(change)
            self.numbers.bind(source, number, name)
        outcome = "was created" if created else "could not be created"
        return self._answer("create", message, datagram, source, now, outcome, message.topic, {} if created else None)

    def _acknowledged(self, message: Message, datagram: bytes, source: Endpoint, now: int) -> list[Send]:
        self.accounts.prove(source, now)
        return self._other(message, datagram, source, now) if Mistake.ACK_ACKS in self.mistakes else []

    def _other(self, message: Message, datagram: bytes, source: Endpoint, now: int) -> list[Send]:
        ack = self.replies.ack(message, datagram)
        return [Send(ack, source)] if ack is not None else []

    # -- parts of a handler -------------------------------------------------------------------------------------

    def _answer(
        self,
        kind: str,
        message: Message,
        datagram: bytes,
        source: Endpoint,
        now: int,
        outcome: str,
        topic: bytes | None,
        duties: dict[str, list[Send]] | None,
    ) -> list[Send]:
        """All duties that a request calls for, in the dialect's order; ``duties`` None refuses it.

        An ACK that comes first says that the request came, so a refused one gets it too. An ACK that comes after
        other duties says that they were done, and would be a lie.
        """
        sends: list[Send] = []
        for place, duty in enumerate(self._order[kind]):
            if duty == "ack":
                refusal = self.replies.nak(message) if self.naks and duties is None else None
                may_ack = duties is not None or place == 0
                ack = refusal or (self.replies.ack(message, datagram) if may_ack else None)
                sends += [Send(ack, source)] if ack is not None else []
            elif duty == "status":
                name = (topic or b"").decode(errors="replace")
                status = self.replies.status(message, f"The topic {name} {outcome}.")
                if status is not None:
                    self.accounts.await_ack(source, now)
                    sends.append(Send(status, source))
            else:
                sends += (duties or {}).get(duty, [])
        return sends

    def _retain(self, topic: bytes, datagram: bytes) -> bool:
        if not self.retained.has_room(topic, datagram):
            self.counters["refused: retained bytes"] += 1
            return False
        self.on_change({"retain": topic.hex(), "datagram": datagram.hex()})
        return self.retained.keep(topic, datagram)

    def _subscriber(self, message: Message, source: Endpoint) -> Endpoint | None:
        """Where forwards go: the source of the request, or its address with the port that the header names. Never
        another address, never a privileged port: a payload must not aim the broker at somebody else's service."""
        field = self.dialect.spec.broker.subscriber_port
        if field is None:
            return source
        port = message.fields.get(field)
        if not isinstance(port, int) or not PRIVILEGED_PORTS <= port <= 65535:
            return None
        return source[0], port

    def _is_fit(self, topic: bytes) -> bool:
        depth = topic.count(self._separator) + 1 if self._separator else 1
        return len(topic) <= self.limits.topic_bytes and depth <= self.limits.topic_depth

    def _is_known(self, text: bytes) -> bool:
        return self._topics_kind != "number" or self.numbers.is_created(text)

    def _filed_under(self, text: bytes) -> bytes:
        return b"temperature" if Mistake.ONE_TOPIC in self.mistakes and text == b"humidity" else text

"""The broker without I/O: a datagram and the time go in, datagrams to send come out. Deterministic.

What it does is the dialect's policy: which messages are acknowledged and how, in which order forwards and ACK leave,
how many copies a subscriber gets, what is retained. MQTT-SN's sessions are more than a policy; see ``mqttsn.py``.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from pcap_tools.codec.message import Message
from pcap_tools.dialect import Dialect
from pcap_tools.errors import UsageError
from reference_broker.broker.limits import Accounts, Limits, Loops
from reference_broker.broker.mistakes import PADDED_BYTES, FilterFailure, Mistake, RegexIndex
from reference_broker.broker.numbers import TopicNumbers
from reference_broker.broker.retained import Retained
from reference_broker.broker.subscriptions import Filter, Subscriptions
from reference_broker.broker.turns import SLICE, Turns, Work
from reference_broker.messages.replies import Replies, Sentence
from reference_broker.messages.sending import Endpoint, Send

PRIVILEGED_PORTS = 1024
REPLAY_SLICE = 64
REPLAY_NS = 1_000_000  # a replay of n retained messages is not repeated within n times this
MAX_REPLAYS_KNOWN = 65_536
DEFAULT_ORDER = {
    "publish": ["forward", "ack", "status"],
    "subscribe": ["retained", "ack", "status"],
    "unsubscribe": ["ack", "status"],
    "create": ["ack", "status"],
}
Handler = Callable[[Message, bytes, Endpoint, int], list[Send]]


class Broker:
    """The broker of one dialect.

    ``naks`` refuses with the dialect's NAK, where it has one: not for clients that do not know it. ``counters`` counts
    events. ``on_change`` is called with a change that must survive a restart before it is made; if it raises, the
    change is neither made nor acknowledged (see ``server/state.py``). ``on_refusal`` is called with the reason for each
    refusal and the address; ``limits.OPTIONS`` names the options that lift it.

    ``handle`` does at most a slice of the work that a datagram asks for. While ``turns`` holds work, call ``proceed``
    for the next slice: between datagrams, so that a long replay delays nobody.
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
        self.retained = Retained(dialect.spec.topics, self.limits, matching)
        self.turns = Turns()
        self._replayed: OrderedDict[tuple[Endpoint, bytes], int] = OrderedDict()
        self.numbers = TopicNumbers(dialect.spec.topics, shared=Mistake.SHARED_NUMBERS in self.mistakes)
        self.on_change: Callable[[dict[str, str]], None] = lambda change: None
        self.on_refusal: Callable[[str, str], None] = lambda reason, host: None
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
            return self._refuse("too large", source)
        if not self.accounts.admit(source, len(datagram), now):
            return self._refuse("too quick", source)
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
            return self._refuse(type(error).__name__, source)

    def proceed(self, now: int) -> list[Send]:
        """The next slice of work that waits in ``turns``."""
        return self._allowed(self.turns.take(), now)

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

    def _refuse(self, reason: str, source: Endpoint) -> list[Send]:
        self.counters[f"refused: {reason}"] += 1
        self.on_refusal(reason, source[0])
        return []

    def _allowed(self, sends: list[Send], now: int) -> list[Send]:
        if not self.limits.trust_silent:
            allowed = [send for send in sends if self.accounts.allow(send.to, len(send.datagram), now)]
            if len(allowed) < len(sends):
                for held_back in set(sends).difference(allowed):
                    self.on_refusal("amplification", held_back.to[0])
                self.counters["refused: amplification"] += len(sends) - len(allowed)
            sends = allowed
        self.counters["sent"] += len(sends)
        return sends

    # -- one handler a meaning ----------------------------------------------------------------------------------

    def _publish(self, message: Message, datagram: bytes, source: Endpoint, now: int) -> list[Send]:
        topic, forward = self.topic_of(message, source), self.replies.forward(message, datagram)
        if topic is None or not self._is_fit(topic) or self.subscriptions.index.is_wild(topic):
            self._refuse("unknown topic" if topic is None else "topic", source)
            return self._answer("publish", message, datagram, source, now, Sentence.NOT_PUBLISHED, topic, None)
        if self.turns.is_full_for(source[0]):
            return self._refuse("too much waiting", source)
        matching = self.subscriptions.matching(topic)
        if self._hears_itself(source, matching) and self._loops.closes(source, datagram, now):
            return self._refuse("loop", source)
        if message.retain and self.dialect.spec.broker.retained != "none":
            kept = self._retain(topic, datagram[: len(datagram) - message.padding], source)
            if not kept:  # an ACK would promise what cannot be kept
                return []
        subscribers = self.subscriptions.copies(matching)
        forwards, line = self._forwards(forward, subscribers, now), ("publish", source)
        if len(subscribers) > SLICE or self.turns.has(source[0], line):
            answer = self._duties(
                "publish", message, datagram, source, now, Sentence.PUBLISHED, topic, {"forward": forwards}
            )
            return self.turns.begin(source[0], line, chain.from_iterable(answer))
        duties = {"forward": list(forwards)}
        return self._answer("publish", message, datagram, source, now, Sentence.PUBLISHED, topic, duties)

    def _forwards(self, datagram: bytes, subscribers: list[Endpoint], now: int) -> Iterator[Send]:
        ephemeral = self.dialect.spec.broker.forward_from == "ephemeral"
        acknowledge = bool(self.dialect.spec.client.acks)
        for to in subscribers:
            if acknowledge:
                self.accounts.await_ack(to, now)
            yield Send(datagram, to, ephemeral)

    def _subscribe(self, message: Message, datagram: bytes, source: Endpoint, now: int) -> list[Send]:
        text, subscriber = message.filter, self._subscriber(message, source)
        if text is None or subscriber is None or not self._is_fit(text) or not self._is_known(text):
            is_too_long = text is not None and not self._is_fit(text)
            self._refuse("filter" if is_too_long else "port" if subscriber is None else "unknown topic", source)
            return self._answer("subscribe", message, datagram, source, now, Sentence.NO_SUCH_TOPIC, text, None)
        if self.turns.is_full_for(subscriber[0]):
            return self._refuse("too much waiting", source)
        filed = self._filed_under(text)
        is_repeat = self.subscriptions.has(filed, subscriber)
        if self.subscriptions.adds(filed, subscriber):
            reason = self.subscriptions.why_not(filed, subscriber)
            if reason is not None:
                return self._refuse(reason, source)
            self.on_change({"subscribe": filed.hex(), "host": subscriber[0], "port": str(subscriber[1])})
            self.subscriptions.add(filed, subscriber)
        size = PADDED_BYTES if Mistake.PADDED_RETAINED in self.mistakes else 0

        def retained() -> Work:
            for found in self._replay(text, filed, subscriber, now):
                yield Send(found[1].ljust(size, b"\0"), subscriber) if found is not None else None

        duties: dict[str, Iterable[Send | None]] = {"retained": retained()}
        if is_repeat and self._was_replayed(filed, subscriber, now):
            duties = {}
        answer = self._duties("subscribe", message, datagram, source, now, Sentence.SUBSCRIBED, text, duties)
        return self._in_turn(subscriber, chain.from_iterable(answer), text, now)

    def _in_turn(self, subscriber: Endpoint, answer: Work, text: bytes, now: int) -> list[Send]:
        """The answer to a SUBSCRIBE: at once as far as that is a slice and nothing else is on its way there."""
        is_search = len(self.retained) > 0 and self.subscriptions.index.is_wild(text)
        is_allowed = not is_search or self.accounts.charge(subscriber, REPLAY_SLICE, now)
        return self.turns.begin(subscriber[0], ("subscribe", subscriber), answer, REPLAY_SLICE if is_allowed else 0)

    def _replay(
        self, text: bytes, filed: bytes, subscriber: Endpoint, now: int
    ) -> Iterator[tuple[bytes, bytes] | None]:
        """The retained messages for a subscriber, as long as it is subscribed; a long replay is remembered."""
        count = 0
        for found in self.retained.for_filter(text):
            if not self.subscriptions.has(filed, subscriber):
                return
            yield found
            count += found is not None
            if count > REPLAY_SLICE:
                self._replayed[subscriber, filed] = now + count * REPLAY_NS
                if len(self._replayed) > MAX_REPLAYS_KNOWN:
                    self._replayed.popitem(last=False)

    def _was_replayed(self, filed: bytes, subscriber: Endpoint, now: int) -> bool:
        """Whether the answer to a repeat of a subscription is its ACK alone: a replay is on its way, or a long one was
        sent a short while ago."""
        if self.turns.has(subscriber[0], ("subscribe", subscriber)):
            return True
        until = self._replayed.get((subscriber, filed))
        if until is not None and 0 < until - now <= len(self.retained) * REPLAY_NS:
            return True
        self._replayed.pop((subscriber, filed), None)
        return False

    def _hears_itself(self, source: Endpoint, matching: list[Filter]) -> bool:
        """Whether the source of a publish subscribes to it; by address alone where forwards come from any port."""
        if not self.subscriptions.of_host(source[0]):
            return False
        if self._loops.by_host:
            return any(to[0] == source[0] for known in matching for to in known.subscribers)
        return any(source in known.subscribers for known in matching)

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
        outcome = Sentence.UNSUBSCRIBED if removed else Sentence.NOT_SUBSCRIBED
        return self._answer("unsubscribe", message, datagram, source, now, outcome, text, {} if removed else None)

    def _create(self, message: Message, datagram: bytes, source: Endpoint, now: int) -> list[Send]:
        name, number = message.topic, message.fields.get(self.numbers.field)
        created = name is not None and self._is_fit(name) and self.numbers.can_bind(message, source)
        if created and name is not None and isinstance(number, int):
            change = {"create": name.hex(), "number": str(number), "host": source[0], "port": str(source[1])}
            self.on_change(change)
            self.numbers.bind(source, number, name)
        outcome = Sentence.CREATED if created else Sentence.NOT_CREATED
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
        outcome: Sentence,
        topic: bytes | None,
        duties: Mapping[str, list[Send]] | None,
    ) -> list[Send]:
        """All duties that a request calls for, in the dialect's order; ``duties`` None refuses it."""
        answer = self._duties(kind, message, datagram, source, now, outcome, topic, duties)
        return [send for part in answer for send in part if send is not None]

    def _duties(
        self,
        kind: str,
        message: Message,
        datagram: bytes,
        source: Endpoint,
        now: int,
        outcome: Sentence,
        topic: bytes | None,
        duties: Mapping[str, Iterable[Send | None]] | None,
    ) -> Iterator[Iterable[Send | None]]:
        """The duties of a request one by one, each worked out when the one before is done.

        An ACK that comes first says that the request came, so a refused one gets it too. An ACK that comes after
        other duties says that they were done, and would be a lie.
        """
        for place, duty in enumerate(self._order[kind]):
            if duty == "ack":
                refusal = self.replies.nak(message) if self.naks and duties is None else None
                may_ack = duties is not None or place == 0
                ack = refusal or (self.replies.ack(message, datagram) if may_ack else None)
                if ack is not None:
                    yield [Send(ack, source)]
            elif duty == "status":
                status = self.replies.status(message, outcome.about(topic))
                if status is not None:
                    self.accounts.await_ack(source, now)
                    yield [Send(status, source)]
            else:
                yield (duties or {}).get(duty, [])

    def _retain(self, topic: bytes, datagram: bytes, source: Endpoint) -> bool:
        reason = self.retained.why_not(topic, datagram, source[0])
        if reason is not None:
            self._refuse(reason, source)
            return False
        self.on_change({"retain": topic.hex(), "datagram": datagram.hex(), "host": source[0]})
        return self.retained.keep(topic, datagram, source[0])

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

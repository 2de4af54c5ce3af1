"""The simulator's log as a judge reads it: who published what when, and who was sent and told what.

Taken from what was sent, what arrived and what clients told. The broker is not asked.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fuzzing.simulations.random_runs import Play
from generators.scenarios.building import must_create_first
from generators.simulation.activation import Purpose, Sent
from generators.simulation.parties import RESTART_NS
from generators.simulation.run import ClientEvent, Run
from generators.simulation.site import Node, Verb
from pcap_tools.codec.message import Message
from pcap_tools.dialect.spec import TopicsSpec
from reference_broker.client.requests import Event, EventKind


def takes(topics: TopicsSpec, text: bytes, topic: bytes) -> bool:
    """
    >>> takes(TopicsSpec(separator="/", wildcards={"#": "rest-levels"}), b"home/#", b"home/fan")
    True
    """
    if not topics.case_sensitive:
        text, topic = text.lower(), topic.lower()
    spans = {sign.encode(): span for sign, span in topics.wildcards.items()}
    if spans.get(text) == "all":
        return True
    runs = [sign for sign, span in spans.items() if span == "any-run"]
    if runs:
        literals = re.split(b"|".join(map(re.escape, runs)), text)
        return re.fullmatch(b".*".join(map(re.escape, literals)), topic, re.DOTALL) is not None
    if not topics.separator:
        return text == topic
    separator = topics.separator.encode()
    return _levels(spans, text.split(separator), topic.split(separator))


def _levels(spans: Mapping[bytes, str], text: list[bytes], topic: list[bytes]) -> bool:
    if not text:
        return not topic
    span = spans.get(text[0])
    if span == "rest-levels":
        return len(text) == 1
    if span == "any-levels":
        return any(_levels(spans, text[1:], topic[skipped:]) for skipped in range(len(topic) + 1))
    return bool(topic) and (span == "one-level" or text[0] == topic[0]) and _levels(spans, text[1:], topic[1:])


FOREVER = 1 << 63
Span = tuple[int, int]


@dataclass(slots=True)
class Wish:
    """A filter. ``asked_ns``: when each request for it that was acknowledged had first been sent."""

    text: bytes
    sure: list[Span] = field(default_factory=list)
    possible: list[Span] = field(default_factory=list)
    asked_ns: list[int] = field(default_factory=list)
    asking_ns: int = FOREVER

    def is_sure(self, begin: int, end: int) -> bool:
        """All the time from begin to end."""
        return any(first < begin and end < last for first, last in self.sure)

    def is_possible(self, begin: int, end: int) -> bool:
        """At any time from begin to end."""
        return any(first <= end and begin <= last for first, last in self.possible)


class Wishes:
    """All of one node. ``created`` tells when topics were created where they must be: a subscription to one that is not
    there is acknowledged and yet in vain."""

    def __init__(self, created: dict[bytes, int] | None) -> None:
        self.by_filter: dict[bytes, Wish] = {}
        self.session_ends: list[int] = []
        self._created = created

    def asked(self, message: Message, now: int, reached: list[int] | None) -> None:
        """The node sent a request. ``reached``: when it came to the broker, for those that nobody acknowledges."""
        if message.message in ("CONNECT", "DISCONNECT"):
            self.lose_session(now)
        if message.filter is None:
            return
        wish = self._wish(message.filter)
        if message.meaning == "subscribe":
            _begin(wish.possible, now)
            wish.asking_ns = min(wish.asking_ns, now)
            if reached:
                _begin(wish.sure, reached[0])
        elif message.meaning == "unsubscribe":
            _end(wish.sure, now)
            if reached:
                _end(wish.possible, reached[0])

    def told(self, event: Event, now: int) -> None:
        """The node was told how a request of its own ended."""
        name, is_acknowledged = event.message.message, event.kind is EventKind.ACKNOWLEDGED
        if name == "PINGREQ" and event.kind is EventKind.GAVE_UP:
            self.lose_session(now)
        if name == "DISCONNECT" and is_acknowledged:
            for wish in self.by_filter.values():
                _end(wish.possible, now)
        if event.message.filter is None or event.kind is EventKind.RESENT:
            return
        wish = self._wish(event.message.filter)
        if is_acknowledged and event.message.meaning == "unsubscribe":
            _end(wish.possible, now)
        if event.message.meaning == "subscribe":
            if is_acknowledged and self._is_created(wish):
                _begin(wish.sure, now)
                wish.asked_ns.append(wish.asking_ns)
            wish.asking_ns = FOREVER

    def lose_session(self, now: int) -> None:
        """A session ends when its client connects anew or closes, or with its broker; subscriptions end with it."""
        self.session_ends.append(now)
        for wish in self.by_filter.values():
            _end(wish.sure, now)

    def _wish(self, text: bytes) -> Wish:
        return self.by_filter.setdefault(text, Wish(text))

    def _is_created(self, wish: Wish) -> bool:
        return self._created is None or self._created.get(wish.text, FOREVER) < wish.asking_ns


def _begin(spans: list[Span], now: int) -> None:
    if not spans or spans[-1][1] != FOREVER:
        spans.append((now, FOREVER))


def _end(spans: list[Span], now: int) -> None:
    if spans and spans[-1][1] == FOREVER:
        spans[-1] = spans[-1][0], max(now, spans[-1][0])


@dataclass(slots=True, eq=False)
class Publish:
    """What one node said once, however often it was sent. ``arrived_ns``: when it reached a broker that was there."""

    node: Node
    topic: bytes
    payload: bytes
    retain: bool
    first_sent_ns: int = FOREVER
    arrived_ns: list[int] = field(default_factory=list)
    acknowledged_ns: int | None = None
    awaits_ack: bool = True


class Log:
    """One run, read."""

    def __init__(self, play: Play, run: Run) -> None:
        self.play, self.run = play, run
        self.dialect = play.site.dialect
        self.has_sessions = self.dialect.spec.broker.sessions != "none"
        self.publishes = self._publishes()
        self.messages: dict[Node, list[Sent]] = defaultdict(list)  # of the broker, by who is to get them
        self.subscribes: dict[Node, int] = defaultdict(int)  # how many of these have reached the broker
        self._read_sent()
        self.received = {(told.node, told.event.payload) for told in self._told(EventKind.RECEIVED)}
        self._wishes = {node: self._wishes_of(node) for node in play.site.nodes}

    def wishes(self, node: Node, topic: bytes) -> list[Wish]:
        """The wishes of a node that this topic is one of."""
        topics = self.dialect.spec.topics
        return [wish for wish in self._wishes[node].by_filter.values() if takes(topics, wish.text, topic)]

    def session_ends(self, node: Node) -> list[int]:
        return self._wishes[node].session_ends

    def reached(self, sent: Sent) -> list[int]:
        """When a datagram for the broker found it there."""
        restarts = self.play.restarts_ns()
        return [
            time
            for time in sent.transit.arrived_ns
            if not any(restart <= time < restart + RESTART_NS for restart in restarts)
        ]

    def _told(self, *kinds: EventKind) -> Iterator[ClientEvent]:
        return (told for told in self.run.told if told.event.kind in kinds)

    # -- publishes ------------------------------------------------------------------------------------------------

    def _publishes(self) -> dict[bytes, Publish]:
        by_address = self.dialect.spec.topics.kind == "source-address"
        made: dict[bytes, Publish] = {}
        for action in self.play.site.actions:
            if action.verb is Verb.PUBLISH:
                topic = action.node.source[0].encode() if by_address else action.text
                made[action.payload] = Publish(action.node, topic, action.payload, action.retain)
        for told in self._told(EventKind.ACKNOWLEDGED):
            if told.event.message.meaning == "publish":
                made[told.event.message.payload or b""].acknowledged_ns = told.time_ns
        return made

    def _read_sent(self) -> None:
        by_endpoint = {node.endpoint: node for node in self.play.site.nodes}
        for sent in self.run.sent:
            meaning = sent.message.meaning
            if sent.node is None:
                if meaning in ("publish", "deliver"):
                    self.messages[by_endpoint[sent.transit.dst]].append(sent)
            elif meaning == "publish" and sent.purpose is Purpose.REQUEST:
                self._read_publish(sent, sent.node)
            elif meaning == "subscribe":
                self.subscribes[sent.node] += len(self.reached(sent))

    def _read_publish(self, sent: Sent, node: Node) -> None:
        publish = self.publishes[sent.message.payload or b""]
        publish.first_sent_ns = min(publish.first_sent_ns, sent.transit.sent_ns)
        publish.arrived_ns += self.reached(sent)
        publish.awaits_ack = node.client.expects_ack(sent.message, sent.transit.datagram)

    # -- wishes ---------------------------------------------------------------------------------------------------

    def _wishes_of(self, node: Node) -> Wishes:
        """A node's own story in the order of time: what it asked for, and what it was told of it."""
        wishes = Wishes(self._created())
        story: list[tuple[int, int, Sent | ClientEvent | None]] = []
        for sent in self.run.sent:
            if sent.node is node and sent.purpose is Purpose.REQUEST:
                story.append((sent.transit.sent_ns, len(story), sent))
        story += [(told.time_ns, len(story), told) for told in self.run.told if told.node is node]
        if self.has_sessions:
            story += [(restart, 0, None) for restart in self.play.restarts_ns()]
        for now, _, part in sorted(story, key=lambda item: item[:2]):
            if part is None:
                wishes.lose_session(now)
            elif isinstance(part, Sent):
                is_acknowledged = node.client.expects_ack(part.message, part.transit.datagram)
                wishes.asked(part.message, now, None if is_acknowledged else self.reached(part))
            else:
                wishes.told(part.event, now)
        return wishes

    def _created(self) -> dict[bytes, int] | None:
        """When topics were first known to be created, where they must be."""
        if not must_create_first(self.dialect):
            return None
        made: dict[bytes, int] = {}
        for told in self._told(EventKind.ACKNOWLEDGED):
            if told.event.message.meaning == "create":
                made.setdefault(told.event.topic or b"", told.time_ns)
        return made

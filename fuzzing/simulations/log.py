"""The simulator's log as a judge reads it: who published what when, and who was sent and told what.

Taken from what was sent, what arrived and what clients told. The broker is not asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from fuzzing.simulations.play import Play
from fuzzing.simulations.topics import takes
from fuzzing.simulations.wishes import FOREVER, Wish, Wishes
from generators.scenarios.building import must_create_first
from generators.simulation.activation import Duty, Sent
from generators.simulation.parties import RESTART_NS
from generators.simulation.run import Run, Told
from generators.simulation.site import Node, Verb
from reference_broker.client.requests import EventKind


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
            for time in sent.crossing.arrived_ns
            if not any(restart <= time < restart + RESTART_NS for restart in restarts)
        ]

    def _told(self, *kinds: EventKind) -> Iterator[Told]:
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
                    self.messages[by_endpoint[sent.crossing.dst]].append(sent)
            elif meaning == "publish" and sent.duty is Duty.REQUEST:
                self._read_publish(sent, sent.node)
            elif meaning == "subscribe":
                self.subscribes[sent.node] += len(self.reached(sent))

    def _read_publish(self, sent: Sent, node: Node) -> None:
        publish = self.publishes[sent.message.payload or b""]
        publish.first_sent_ns = min(publish.first_sent_ns, sent.crossing.sent_ns)
        publish.arrived_ns += self.reached(sent)
        publish.awaits_ack = node.client.expects_ack(sent.message, sent.crossing.datagram)

    # -- wishes ---------------------------------------------------------------------------------------------------

    def _wishes_of(self, node: Node) -> Wishes:
        """A node's own story in the order of time: what it asked for, and what it was told of it."""
        wishes = Wishes(self._created())
        story: list[tuple[int, int, Sent | Told | None]] = []
        for sent in self.run.sent:
            if sent.node is node and sent.duty is Duty.REQUEST:
                story.append((sent.crossing.sent_ns, len(story), sent))
        story += [(told.time_ns, len(story), told) for told in self.run.told if told.node is node]
        if self.has_sessions:
            story += [(restart, 0, None) for restart in self.play.restarts_ns()]
        for now, _, part in sorted(story, key=lambda item: item[:2]):
            if part is None:
                wishes.lose_session(now)
            elif isinstance(part, Sent):
                is_acknowledged = node.client.expects_ack(part.message, part.crossing.datagram)
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

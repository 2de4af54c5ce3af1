"""What must hold in every simulated run, whatever the network does. Judged by the log alone (``simulation_log.py``).

delivered  A publish that was acknowledged, or where nobody acknowledges one that reached the broker, is received by
           each subscriber that was there all the while. Where nothing makes the broker send again (all dialects but
           MQTT-SN at QoS 1), the network may have eaten each forward: then at least one was sent.
left       Nobody is sent a message that it cannot have wanted: it had left before it was published, or never came.
retained   Who subscribes is sent the retained message of each topic whose retaining was acknowledged before: the one
           that came last.
sound      Every datagram is one of the dialect. Payloads are those of publishes.
bounded    No more copies than publishes that came times subscriptions that came; in the end nothing is on its way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from fuzzing.simulations.log import Log, Publish
from generators.simulation.engine import Simulation
from generators.simulation.site import Node
from reference_broker.messages.sending import SECOND

TRIES = 6  # of MQTT-SN: once, and N_retry = 5 times more
GIVES_UP_NS = 75 * SECOND  # T_retry = 10 s as often, and some seconds


@dataclass(frozen=True, slots=True)
class Failure:
    invariant: str
    text: str


class Judge:
    """``figures`` counts what was judged."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.figures: Counter[str] = Counter()

    def failures(self, simulation: Simulation) -> Iterator[Failure]:
        yield from self._sound()
        for publish in self.log.publishes.values():
            for node in self.log.play.site.nodes:
                yield from self._delivered(publish, node)
        for node in self.log.play.site.nodes:
            yield from self._left(node)
            yield from self._retained(node)
        yield from self._bounded(simulation)

    # -- delivered ------------------------------------------------------------------------------------------------

    def _delivered(self, publish: Publish, node: Node) -> Iterator[Failure]:
        if not self._is_due(publish, node):
            return
        self.figures["deliveries due"] += 1
        if (node, publish.payload) in self.log.received:
            self.figures["delivered"] += 1
        elif excuse := self._excuse(publish, node):
            self.figures[excuse] += 1
        else:
            yield Failure("delivered", f"{node.name} never got {_named(publish)} of {publish.node.name}")

    def _is_due(self, publish: Publish, node: Node) -> bool:
        """Whether a promise was given, and the node was there as long as it took to keep it."""
        wishes = self.log.wishes(node, publish.topic)
        if publish.awaits_ack:
            acknowledged = publish.acknowledged_ns
            return acknowledged is not None and any(w.is_sure(publish.first_sent_ns, acknowledged) for w in wishes)
        if self.log.has_sessions and self.log.play.restarts:
            return False  # the broker may not have known who published
        return any(wish.is_sure(time, time) for time in publish.arrived_ns for wish in wishes)

    def _excuse(self, publish: Publish, node: Node) -> str | None:
        sends = [sent for sent in self.log.messages[node] if sent.message.payload == publish.payload]
        is_lost = bool(sends) and not any(sent.transit.arrived_ns for sent in sends)
        if not self.log.has_sessions:
            return "forwards lost by the network" if is_lost else None
        done = publish.acknowledged_ns or max(publish.arrived_ns)
        if any(publish.first_sent_ns < end < done + GIVES_UP_NS for end in self.log.session_ends(node)):
            return "session ended before delivery"
        if is_lost and (len(sends) >= TRIES or not sends[0].message.fields["qos"]):
            return "forwards lost by the network"
        return "topic id never taken" if not sends and self._introduced(node, publish.topic) else None

    # -- left -----------------------------------------------------------------------------------------------------

    def _left(self, node: Node) -> Iterator[Failure]:
        for sent in self.log.messages[node]:
            self.figures["messages sent"] += 1
            publish = self.log.publishes.get(sent.message.payload or b"")
            if publish is None:
                yield Failure("sound", f"{node.name} was sent what nobody published: {sent.message.payload!r}")
                continue
            last = sent.transit.sent_ns if publish.retain else max(publish.arrived_ns)
            wishes = self.log.wishes(node, publish.topic)
            if not any(wish.is_possible(publish.first_sent_ns, last) for wish in wishes):
                yield Failure("left", f"{node.name} was sent {_named(publish)} that it did not want")

    # -- retained -------------------------------------------------------------------------------------------------

    def _retained(self, node: Node) -> Iterator[Failure]:
        policy, wildcards = self.log.dialect.spec.broker.retained, self.log.dialect.spec.topics.wildcards
        for topic, kept in self._kept_by_topic().items():
            for wish in self.log.wishes(node, topic) if policy != "none" else []:
                is_wild = any(sign in wish.text.decode() for sign in wildcards)
                for asked in wish.asked_ns if policy == "matching" or not is_wild else []:
                    if any(one.acknowledged_ns is not None and one.acknowledged_ns < asked for one in kept):
                        yield from self._retained_for(node, topic, kept, asked)

    def _kept_by_topic(self) -> dict[bytes, list[Publish]]:
        kept: dict[bytes, list[Publish]] = {}
        for publish in self.log.publishes.values():
            if publish.retain and publish.arrived_ns:
                kept.setdefault(publish.topic, []).append(publish)
        return kept

    def _retained_for(self, node: Node, topic: bytes, kept: list[Publish], asked: int) -> Iterator[Failure]:
        self.figures["retained due"] += 1
        payloads = {one.payload: one for one in kept}
        answers = [
            sent
            for sent in self.log.messages[node]
            if sent.message.payload in payloads and sent.transit.sent_ns >= asked
        ]
        if any(not self._is_stale(payloads[sent.message.payload or b""], kept, asked) for sent in answers):
            return
        ends = [end for end in self.log.session_ends(node) if asked < end < asked + GIVES_UP_NS]
        if self.log.has_sessions and (ends or self._introduced(node, topic)):
            self.figures["retained: session ended or topic id never taken"] += 1
        else:
            yield Failure("retained", f"{node.name} subscribed and was not sent the retained message of {topic!r}")

    def _introduced(self, node: Node, topic: bytes) -> bool:
        """Whether the broker told the id of a topic as often as it does: no answer came, so it gave up."""
        sends = [s for s in self.log.run.sent if s.node is None and s.transit.dst == node.endpoint]
        return sum(sent.message.topic == topic for sent in sends) >= TRIES

    @staticmethod
    def _is_stale(one: Publish, kept: list[Publish], asked: int) -> bool:
        """Whether another had wholly taken its place: each copy of that came after the last of this one, and before
        the subscription, and was acknowledged."""
        last, others = max(one.arrived_ns), [other for other in kept if other.acknowledged_ns is not None]
        return any(last < min(other.arrived_ns) and max(other.arrived_ns) < asked for other in others)

    # -- sound and bounded ----------------------------------------------------------------------------------------

    def _sound(self) -> Iterator[Failure]:
        for sent in self.log.run.sent:
            if sent.message.error is not None:
                who = sent.node.name if sent.node else "the broker"
                yield Failure("sound", f"{who} sent {sent.transit.datagram.hex()}: {sent.message.error}")

    def _bounded(self, simulation: Simulation) -> Iterator[Failure]:
        for node in self.log.play.site.nodes:
            copies = Counter(sent.message.payload for sent in self.log.messages[node])
            for payload, publish in self.log.publishes.items():
                most = self._most_copies(publish, self.log.subscribes[node])
                if copies[payload] > most:
                    yield Failure(
                        "bounded", f"{copies[payload]} copies of {_named(publish)} for {node.name}, not {most}"
                    )
            if not node.client.is_idle and not self._is_pinging(node):
                yield Failure("bounded", f"{node.name} is still waiting for an answer at the end")
        broker, topics = simulation.parties[0].broker, {publish.topic for publish in self.log.publishes.values()}
        held = len(broker.subscriptions), len(broker.retained)
        if held[0] > sum(self.log.subscribes.values()) or held[1] > len(topics) or len(broker.counters) > 60:
            yield Failure("bounded", f"the broker holds {held[0]} subscriptions and {held[1]} retained messages")

    def _is_pinging(self, node: Node) -> bool:
        """Sessions are kept alive for ever."""
        return [sent.message.message for sent in self.log.run.sent if sent.node is node][-1] == "PINGREQ"

    def _most_copies(self, publish: Publish, subscribes: int) -> int:
        came = len(publish.arrived_ns) + (subscribes if publish.retain else 0)
        return came * subscribes * (TRIES if self.log.has_sessions else 1)


def _named(publish: Publish) -> str:
    return f"{publish.topic.decode()} {publish.payload.decode()}"

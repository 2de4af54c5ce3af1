"""Faults of topic numbers, where publishers choose them: never written, or taken for another publisher's."""

from __future__ import annotations

from generators.faults.applicability import all_of, can_subscribe, numbers_topics
from generators.faults.delivery import put_with_forwards
from generators.faults.occasions import asked, forward_to
from generators.simulation.activation import Duty, Edit, Label, Out, Sent, Turn
from generators.simulation.fault import Place, fault
from reference_broker import Endpoint
from reference_broker.client.requests import ClientMistake


def _note_creations(turn: Turn) -> list[Label]:
    """A client that never writes the number shows it by creating a second topic with the number of its first."""
    labels: list[Label] = []
    for out in turn.of(Duty.REQUEST) if turn.node is not None and id(turn.node) in turn.memory else ():
        if out.message.meaning != "create" or out.resend_of is not None:
            continue
        first: Out = turn.memory.setdefault(("first", id(turn.node)), out)
        if out.message.topic != first.message.topic:
            labels.append(Label("N-ZERO", [first, out], "another topic has the same number", out.message.topic))
    return labels


@fault(
    "number-zero",
    "N-ZERO",
    Place.CLIENT,
    "a publisher writes 0 as the number of every topic; the rate is a share of the publishers",
    follow=_note_creations,
    fits=numbers_topics,
)
def number_zero(turn: Turn) -> Edit | None:
    """A publisher's first creation decides: it has the number 0 in any case."""
    node = turn.node
    creation = next((out for out in turn.of(Duty.REQUEST) if out.message.meaning == "create"), None)
    if node is None or creation is None or turn.memory.setdefault(("met", id(node)), creation) is not creation:
        return None

    def edit() -> list[Label]:
        node.client.mistakes |= {ClientMistake.NUMBER_ZERO}
        turn.memory[id(node)] = True
        turn.memory["first", id(node)] = creation
        return []

    return edit


@fault(
    "number-collision",
    "N-COLLISION",
    Place.BROKER,
    "two publishers' equal numbers are taken for one topic: a message goes to the subscribers of the other's",
    fits=all_of(numbers_topics, can_subscribe),
)
def number_collision(turn: Turn) -> Edit | None:
    publish = asked(turn, "publish")
    other = _other_topic(turn, publish) if publish else None
    if publish is None or other is None:
        return None
    wrong = _subscribers(turn, other)
    if not wrong or set(wrong) & set(_subscribers(turn, turn.topic or b"")):
        return None

    def edit() -> list[Label]:
        for out in turn.of(Duty.FORWARD):
            turn.drop(out)
        extras = [forward_to(turn, publish, to) for to in wrong]
        for extra in extras:
            put_with_forwards(turn, extra)
        text = "the number is taken for another publisher's topic"
        return [Label("N-COLLISION", [publish, *extras], text, turn.topic)]

    return edit


def _other_topic(turn: Turn, publish: Sent) -> bytes | None:
    """What another publisher calls by the same number: the newest such."""
    number = publish.message.fields.get(turn.site.dialect.spec.topics.number or "")
    others = [
        name
        for (source, known), name in turn.history.created.items()
        if known == number and source != publish.crossing.src and name != turn.topic
    ]
    return others[-1] if others else None


def _subscribers(turn: Turn, topic: bytes) -> list[Endpoint]:
    return [endpoint for endpoint, text in turn.history.subscribed if text == topic]

"""Faults of topic numbers, where publishers choose them: never written, or taken for another publisher's."""

from __future__ import annotations

from generators.faults.applicability import all_of, can_subscribe, numbers_topics
from generators.faults.delivery import put_with_forwards
from generators.faults.occasions import forward_to, new_request
from generators.simulation.activation import Activation, Edit, Label, Outgoing, Purpose, Sent
from generators.simulation.fault import Place, fault
from reference_broker import Endpoint
from reference_broker.client.requests import ClientMistake


def _note_creations(activation: Activation) -> list[Label]:
    """A client that never writes the number shows it by creating a second topic with the number of its first."""
    labels: list[Label] = []
    for out in (
        activation.of(Purpose.REQUEST)
        if activation.node is not None and id(activation.node) in activation.memory
        else ()
    ):
        if out.message.meaning != "create" or out.resend_of is not None:
            continue
        first: Outgoing = activation.memory.setdefault(("first", id(activation.node)), out)
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
def number_zero(activation: Activation) -> Edit | None:
    """A publisher's first creation decides: it has the number 0 in any case."""
    node = activation.node
    creation = next((out for out in activation.of(Purpose.REQUEST) if out.message.meaning == "create"), None)
    if node is None or creation is None or activation.memory.setdefault(("met", id(node)), creation) is not creation:
        return None

    def edit() -> list[Label]:
        node.client.mistakes |= {ClientMistake.NUMBER_ZERO}
        activation.memory[id(node)] = True
        activation.memory["first", id(node)] = creation
        return []

    return edit


@fault(
    "number-collision",
    "N-COLLISION",
    Place.BROKER,
    "two publishers' equal numbers are taken for one topic: a message goes to the subscribers of the other's",
    fits=all_of(numbers_topics, can_subscribe),
)
def number_collision(activation: Activation) -> Edit | None:
    publish = new_request(activation, "publish")
    other = _other_topic(activation, publish) if publish else None
    if publish is None or other is None:
        return None
    wrong = _subscribers(activation, other)
    if not wrong or set(wrong) & set(_subscribers(activation, activation.topic or b"")):
        return None

    def edit() -> list[Label]:
        for out in activation.of(Purpose.FORWARD):
            activation.drop(out)
        extras = [forward_to(activation, publish, to) for to in wrong]
        for extra in extras:
            put_with_forwards(activation, extra)
        text = "the number is taken for another publisher's topic"
        return [Label("N-COLLISION", [publish, *extras], text, activation.topic)]

    return edit


def _other_topic(activation: Activation, publish: Sent) -> bytes | None:
    """What another publisher calls by the same number: the newest such."""
    number = publish.message.fields.get(activation.site.dialect.spec.topics.number or "")
    others = [
        name
        for (source, known), name in activation.history.created.items()
        if known == number and source != publish.transit.src and name != activation.topic
    ]
    return others[-1] if others else None


def _subscribers(activation: Activation, topic: bytes) -> list[Endpoint]:
    return [endpoint for endpoint, text in activation.history.subscribed if text == topic]

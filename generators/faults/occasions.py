"""What faults look for in a activation, and what they do there in the same way: keep silent, alter, pass on.

A broker that keeps silent about something keeps silent about it whenever it is asked again: ``suppress`` remembers,
``keep_suppressing`` is the ``follow`` of such faults.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from generators.faults.applicability import REQUESTS
from generators.simulation.activation import Activation, Label, Outgoing, Purpose, Sent
from generators.simulation.site import Node, Verb
from pcap_tools.codec import Codec
from pcap_tools.codec.message import Message
from pcap_tools.dialect.program import Extent, Kind, Layout, Value
from pcap_tools.errors import UsageError
from reference_broker import Endpoint
from reference_broker.messages.replies import Replies
from reference_broker.topic_index import index_for

DIGITS = b"0123456789"
# Longer than anything that a capture shows twice, shorter than anything that clients wait for.
SOON_NS = 3_000_000


def new_request(activation: Activation, *meanings: str) -> Sent | None:
    """A request that reaches the broker for the first time."""
    cause = activation.came(*(meanings or REQUESTS))
    return (
        cause
        if cause is not None and cause.purpose is Purpose.REQUEST and activation.is_brokers and activation.is_first
        else None
    )


def ack_of(activation: Activation, request: Sent) -> Outgoing | None:
    """The broker's ACK of the request that came."""
    return next((out for out in activation.of(Purpose.ACK) if out.to == request.transit.src), None)


def new_forwards(activation: Activation) -> list[Outgoing]:
    """Forwards of a publish that the broker has not passed on before."""
    if not activation.is_brokers or activation.cause is None or not activation.is_first:
        return []
    return [out for out in activation.of(Purpose.FORWARD) if out.publish is not None]


def lone_forwards(activation: Activation) -> list[Outgoing]:
    """Those whose receiver gets no other copy."""
    forwards = new_forwards(activation)
    copies = Counter((out.to, out.publish) for out in forwards)
    return [out for out in forwards if copies[out.to, out.publish] == 1]


def publish_of(out: Outgoing) -> Sent:
    if out.publish is None:
        raise UsageError("a forward passes a publish on")
    return out.publish


def is_quiet(activation: Activation) -> bool:
    """Whether a client has nothing on its way: its last request was just answered in full, and no other waits."""
    node = activation.node
    if node is None or activation.reaction is not None or activation.came("ack", "status") is None:
        return False
    return (
        node.client.is_idle
        and not node.client.awaits_status
        and len(activation.of(Purpose.ACK)) == len(activation.outgoing)
    )


def acknowledged_request(activation: Activation) -> Sent | None:
    """The request of a client that was answered in this activation, which left the client with nothing on its way."""
    return answered_request(activation) if is_quiet(activation) else None


def answered_request(activation: Activation) -> Sent | None:
    """The request of a client that was answered in this activation."""
    request = activation.cause.cause if activation.cause is not None else None
    is_own = request is not None and activation.node is not None and request.node is activation.node
    return request if is_own and request is not None and request.message.meaning in REQUESTS else None


def other_idle_clients(activation: Activation, *not_these: Endpoint) -> list[Node]:
    """Clients that have nothing on its way, so that an ACK answers nothing there."""
    return [node for node in activation.others(*not_these) if node.client.is_idle and not node.client.awaits_status]


def waits_ns(request: Sent) -> int:
    """How long the sender of a request waits for its ACK."""
    return request.node.client.timing.resend_after_ns if request.node is not None else 0


def publishes_again(activation: Activation, publish: Sent, topic: bytes, within_ns: int) -> bool:
    """Whether the scenario has the same node publish to the same topic soon."""
    return any(
        action.node is publish.node
        and action.verb is Verb.PUBLISH
        and action.text in (topic, b"")  # where the topic is the sender's address
        and activation.since < action.time_ns < activation.since + within_ns
        for action in activation.site.actions
    )


def goes_on(activation: Activation, for_ns: int) -> bool:
    """Whether the scenario has something happen later than that, so that a capture shows what did not come."""
    return any(action.time_ns > activation.since + for_ns for action in activation.site.actions)


# -- who wants what -------------------------------------------------------------------------------------------------


def matches(activation: Activation, text: bytes, topic: bytes) -> bool:
    index = index_for(activation.site.dialect.spec.topics)
    index.add(text)
    return any(index.matching(topic))


def filters_of(activation: Activation, subscriber: Endpoint) -> list[bytes]:
    return [text for endpoint, text in activation.history.subscribed if endpoint == subscriber]


def non_subscribers(activation: Activation, publish: Sent) -> list[Node]:
    """Clients that a publish is not for and never was, and that did not publish it."""
    receivers = {out.to for out in activation.of(Purpose.FORWARD)}
    left = {endpoint for endpoint, _ in activation.history.unsubscribed}
    return [node for node in activation.others(publish.transit.src, *receivers) if node.endpoint not in left]


def forward_to(activation: Activation, publish: Sent, to: Endpoint) -> Outgoing:
    """What the broker passes on of a publish, to somebody who is not owed it."""
    if "replies" not in activation.memory:
        activation.memory["replies"] = Replies(activation.site.dialect)
    datagram: bytes = activation.memory["replies"].forward(publish.message, publish.transit.datagram)
    ephemeral = activation.site.dialect.spec.broker.forward_from == "ephemeral"
    return Outgoing(datagram, to, Purpose.FORWARD, activation.codec.decode(datagram), ephemeral, publish=publish)


# -- what is done ---------------------------------------------------------------------------------------------------


def suppress(activation: Activation, out: Outgoing, label: Label) -> list[Label]:
    """Leave something unsaid, now and whenever it is due again."""
    activation.drop(out)
    silenced: dict[object, list[Label]] = activation.memory.setdefault("silenced", {})
    for key in (_key(activation.cause, out), _key(None, out)):
        silenced.setdefault(key, []).append(label)
    return [label]


def keep_suppressing(activation: Activation) -> None:
    """Do not say what an earlier activation left unsaid; a request that is sent again shows it once more."""
    silenced: dict[object, list[Label]] = activation.memory.get("silenced", {})
    if not silenced or not activation.is_brokers:
        return
    used: Counter[object] = Counter()
    for out in list(activation.outgoing):
        key = _key(activation.cause, out)
        labels = silenced.get(key, [])[used[key] :]
        if labels:
            used[key] += 1
            activation.drop(out)
            if activation.cause is not None and activation.cause not in labels[0].shown_by:
                labels[0].shown_by.append(activation.cause)


def _key(cause: Sent | None, out: Outgoing) -> object:
    """What an answer is about: what caused it, or where the broker says it again by itself, its id."""
    about = out.publish.first.transit.number if out.publish is not None else None
    if cause is None:
        return out.purpose, out.to, about, out.message.fields.get("message_id"), "again"
    return out.purpose, out.to, about, cause.first.transit.number


def altered(codec: Codec, message: Message) -> bytes | None:
    """The message with another payload of the same length; None where it cannot have one.

    The first digit changes: a reading is another then, while a counter at the end still tells the messages apart.
    """
    name = message.layout.payload if message.layout is not None else None
    value = message.fields.get(name) if name is not None else None
    if name is None or value is None or value == b"":
        return None
    other = value + 1 if isinstance(value, int) else _other_text(value)
    return rebuilt(codec, message, **{name: other})


def filled(layout: Layout, word: bytes) -> dict[str, Value]:
    """A word in every field that takes words."""
    return {
        step.name: word.ljust(step.size)[: step.size] if step.extent is Extent.FIXED else word
        for step in layout.steps
        if step.kind in (Kind.TEXT, Kind.BYTES) and step.guard is None
    }


def rebuilt(codec: Codec, message: Message, **fields: int | bytes) -> bytes | None:
    """The message with other values in some fields, if that is valid."""
    try:
        return codec.build(replace(message, fields={**message.fields, **fields}))
    except UsageError:
        return None


def _other_text(text: bytes) -> bytes:
    at = next((index for index, byte in enumerate(text) if byte in DIGITS), 0)
    old = text[at]
    new = DIGITS[(old - DIGITS[0] + 5) % 10] if old in DIGITS else (ord("y") if old == ord("x") else ord("x"))
    return text[:at] + bytes([new]) + text[at + 1 :]

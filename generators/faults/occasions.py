"""What faults look for in a turn, and what they do there in the same way: keep silent, alter, pass on.

A broker that keeps silent about something keeps silent about it whenever it is asked again: ``silence`` remembers,
``stay_silent`` is the ``follow`` of such faults.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from generators.faults.applicability import REQUESTS
from generators.simulation.activation import Duty, Label, Out, Sent, Turn
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


def asked(turn: Turn, *meanings: str) -> Sent | None:
    """A request that reaches the broker for the first time."""
    cause = turn.came(*(meanings or REQUESTS))
    return cause if cause is not None and cause.duty is Duty.REQUEST and turn.is_brokers and turn.is_first else None


def ack_of(turn: Turn, request: Sent) -> Out | None:
    """The broker's ACK of the request that came."""
    return next((out for out in turn.of(Duty.ACK) if out.to == request.crossing.src), None)


def new_forwards(turn: Turn) -> list[Out]:
    """Forwards of a publish that the broker has not passed on before."""
    if not turn.is_brokers or turn.cause is None or not turn.is_first:
        return []
    return [out for out in turn.of(Duty.FORWARD) if out.publish is not None]


def lone_forwards(turn: Turn) -> list[Out]:
    """Those whose receiver gets no other copy."""
    forwards = new_forwards(turn)
    copies = Counter((out.to, out.publish) for out in forwards)
    return [out for out in forwards if copies[out.to, out.publish] == 1]


def publish_of(out: Out) -> Sent:
    if out.publish is None:
        raise UsageError("a forward passes a publish on")
    return out.publish


def is_quiet(turn: Turn) -> bool:
    """Whether a client has nothing on its way: its last request was just answered in full, and no other waits."""
    node = turn.node
    if node is None or turn.reaction is not None or turn.came("ack", "status") is None:
        return False
    return node.client.is_idle and not node.client.awaits_status and len(turn.of(Duty.ACK)) == len(turn.outs)


def acknowledged_request(turn: Turn) -> Sent | None:
    """The request of a client that was answered in this turn, which left the client with nothing on its way."""
    return answered_request(turn) if is_quiet(turn) else None


def answered_request(turn: Turn) -> Sent | None:
    """The request of a client that was answered in this turn."""
    request = turn.cause.cause if turn.cause is not None else None
    is_own = request is not None and turn.node is not None and request.node is turn.node
    return request if is_own and request is not None and request.message.meaning in REQUESTS else None


def idle_others(turn: Turn, *not_these: Endpoint) -> list[Node]:
    """Clients that have nothing on its way, so that an ACK answers nothing there."""
    return [node for node in turn.others(*not_these) if node.client.is_idle and not node.client.awaits_status]


def waits_ns(request: Sent) -> int:
    """How long the sender of a request waits for its ACK."""
    return request.node.client.timing.resend_after_ns if request.node is not None else 0


def publishes_again(turn: Turn, publish: Sent, topic: bytes, within_ns: int) -> bool:
    """Whether the scenario has the same node publish to the same topic soon."""
    return any(
        action.node is publish.node
        and action.verb is Verb.PUBLISH
        and action.text in (topic, b"")  # where the topic is the sender's address
        and turn.since < action.time_ns < turn.since + within_ns
        for action in turn.site.actions
    )


def goes_on(turn: Turn, for_ns: int) -> bool:
    """Whether the scenario has something happen later than that, so that a capture shows what did not come."""
    return any(action.time_ns > turn.since + for_ns for action in turn.site.actions)


# -- who wants what -------------------------------------------------------------------------------------------------


def matches(turn: Turn, text: bytes, topic: bytes) -> bool:
    index = index_for(turn.site.dialect.spec.topics)
    index.add(text)
    return any(index.matching(topic))


def filters_of(turn: Turn, subscriber: Endpoint) -> list[bytes]:
    return [text for endpoint, text in turn.history.subscribed if endpoint == subscriber]


def strangers(turn: Turn, publish: Sent) -> list[Node]:
    """Clients that a publish is not for and never was, and that did not publish it."""
    receivers = {out.to for out in turn.of(Duty.FORWARD)}
    left = {endpoint for endpoint, _ in turn.history.unsubscribed}
    return [node for node in turn.others(publish.crossing.src, *receivers) if node.endpoint not in left]


def forward_to(turn: Turn, publish: Sent, to: Endpoint) -> Out:
    """What the broker passes on of a publish, to somebody who is not owed it."""
    if "replies" not in turn.memory:
        turn.memory["replies"] = Replies(turn.site.dialect)
    datagram: bytes = turn.memory["replies"].forward(publish.message, publish.crossing.datagram)
    ephemeral = turn.site.dialect.spec.broker.forward_from == "ephemeral"
    return Out(datagram, to, Duty.FORWARD, turn.codec.decode(datagram), ephemeral, publish=publish)


# -- what is done ---------------------------------------------------------------------------------------------------


def silence(turn: Turn, out: Out, label: Label) -> list[Label]:
    """Leave something unsaid, now and whenever it is due again."""
    turn.drop(out)
    silenced: dict[object, list[Label]] = turn.memory.setdefault("silenced", {})
    for key in (_key(turn.cause, out), _key(None, out)):
        silenced.setdefault(key, []).append(label)
    return [label]


def stay_silent(turn: Turn) -> None:
    """Do not say what an earlier turn left unsaid; a request that is sent again shows it once more."""
    silenced: dict[object, list[Label]] = turn.memory.get("silenced", {})
    if not silenced or not turn.is_brokers:
        return
    used: Counter[object] = Counter()
    for out in list(turn.outs):
        key = _key(turn.cause, out)
        labels = silenced.get(key, [])[used[key] :]
        if labels:
            used[key] += 1
            turn.drop(out)
            if turn.cause is not None and turn.cause not in labels[0].shown_by:
                labels[0].shown_by.append(turn.cause)


def _key(cause: Sent | None, out: Out) -> object:
    """What an answer is about: what caused it, or where the broker says it again by itself, its id."""
    about = out.publish.first.crossing.number if out.publish is not None else None
    if cause is None:
        return out.duty, out.to, about, out.message.fields.get("message_id"), "again"
    return out.duty, out.to, about, cause.first.crossing.number


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

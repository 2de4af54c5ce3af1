"""Faults of retained messages: missing, out of date, out of order, or lost to a message that was not to be retained."""

from __future__ import annotations

from dataclasses import replace

from generators.faults.applicability import all_of, can_subscribe, has_payload, has_retained
from generators.faults.occasions import ack_of, keep_suppressing, matches, new_request, publish_of, rebuilt, suppress
from generators.simulation.activation import Activation, Edit, Label, Outgoing, Purpose, Sent
from generators.simulation.fault import Place, fault
from pcap_tools.dialect import Dialect

_RETAINS = all_of(can_subscribe, has_retained)


def _copies(activation: Activation) -> list[Outgoing]:
    """Retained messages that a new subscriber gets."""
    if not activation.is_brokers or activation.cause is None or not activation.is_first:
        return []
    return [
        out
        for out in activation.of(Purpose.RETAINED)
        if out.publish is not None and _subscription(activation, out) is not None
    ]


def _subscription(activation: Activation, out: Outgoing) -> Sent | None:
    """What asked for it: what came, or where the topic had to be introduced first, the subscription before that."""
    subscribe = activation.came("subscribe")
    if subscribe is not None:
        return subscribe
    topic = activation.topic_of(out) or b""
    asking = [
        sent
        for (endpoint, text), sent in activation.history.subscribed.items()
        if endpoint == out.to and matches(activation, text, topic)
    ]
    return max(asking, key=lambda sent: sent.transit.number, default=None)


def _later(activation: Activation, out: Outgoing) -> list[Sent]:
    """What was published to the topic after the message that is retained."""
    published = activation.history.published.get(activation.topic_of(out) or b"", [])
    number = publish_of(out).transit.number
    return [sent for sent in published if sent.transit.number > number]


def _leave_out(activation: Activation, rule: str, out: Outgoing, reason: str, *also: Sent) -> list[Label]:
    subscribe = _subscription(activation, out)
    shown_by: list[Outgoing | Sent] = [publish_of(out), *also, *([subscribe] if subscribe else [])]
    return suppress(activation, out, Label(rule, shown_by, reason, activation.topic_of(out)))


@fault(
    "retained-missing",
    "T-MISSING",
    Place.BROKER,
    "a new subscriber does not get the retained message",
    follow=keep_suppressing,
    fits=_RETAINS,
)
def retained_missing(activation: Activation) -> Edit | None:
    copies = [out for out in _copies(activation) if not _later(activation, out)]
    if not copies:
        return None
    text = "the subscriber does not get the retained message"
    return lambda: _leave_out(activation, "T-MISSING", activation.rng.pick(copies), text)


@fault(
    "retained-cleared",
    "T-CLEARED",
    Place.BROKER,
    "a message that was not to be retained has cleared the one that was: a new subscriber gets none",
    follow=keep_suppressing,
    fits=_RETAINS,
)
def retained_cleared(activation: Activation) -> Edit | None:
    copies = [out for out in _copies(activation) if _later(activation, out)]
    if not copies:
        return None

    def edit() -> list[Label]:
        out = activation.rng.pick(copies)
        return _leave_out(
            activation, "T-CLEARED", out, "a later message has cleared the retained one", _later(activation, out)[0]
        )

    return edit


@fault(
    "retained-stale",
    "T-STALE",
    Place.BROKER,
    "a new subscriber gets an older message than the one that is retained",
    fits=all_of(_RETAINS, has_payload),
)
def retained_stale(activation: Activation) -> Edit | None:
    copies = [(out, older) for out in _copies(activation) if (older := _older(activation, out)) is not None]
    if not copies:
        return None

    def edit() -> list[Label]:
        out, (publish, datagram) = activation.rng.pick(copies)
        stale = replace(out, datagram=datagram, message=activation.codec.decode(datagram), publish=publish)
        activation.outgoing[activation.outgoing.index(out)] = stale
        subscribe = _subscription(activation, out)
        shown_by: list[Outgoing | Sent] = [publish, publish_of(out), *([subscribe] if subscribe else []), stale]
        return [Label("T-STALE", shown_by, "a newer message is retained", activation.topic_of(out))]

    return edit


def _older(activation: Activation, out: Outgoing) -> tuple[Sent, bytes] | None:
    """The message that was retained before, and what a copy of it looks like here."""
    number = publish_of(out).transit.number
    published = activation.history.published.get(activation.topic_of(out) or b"", [])
    before = [sent for sent in published if sent.message.retain and sent.transit.number < number]
    name = out.message.layout.payload if out.message.layout is not None else None
    if not before or name is None or before[-1].message.payload == out.message.payload:
        return None
    changes = {key: value for key, value in before[-1].message.fields.items() if key == name}
    counted = {step.name for step in out.message.layout.steps if step.counts} if out.message.layout else set()
    fields = {key: value for key, value in out.message.fields.items() if key not in counted}
    datagram = rebuilt(activation.codec, replace(out.message, fields=fields, layout=None), **changes)
    return (before[-1], datagram) if datagram is not None else None


def _orders_retained(dialect: Dialect) -> str | None:
    if dialect.spec.broker.sessions != "none":
        return f"a client of {dialect.name} knows a topic's id only after the ACK, and could not take it before"
    purposes = dialect.spec.broker.order.get("subscribe", [])
    if "ack" in purposes and "retained" in purposes:
        return None
    return f"{dialect.name} does not say what comes first, the ACK or the retained message"


@fault(
    "retained-late",
    "T-ORDER",
    Place.BROKER,
    "retained message and ACK of a subscription leave in the other order than the dialect's",
    fits=all_of(_RETAINS, _orders_retained),
)
def retained_late(activation: Activation) -> Edit | None:
    subscribe, copies = new_request(activation, "subscribe"), activation.of(Purpose.RETAINED)
    ack = ack_of(activation, subscribe) if subscribe else None
    if subscribe is None or ack is None or not copies:
        return None

    def edit() -> list[Label]:
        was_first = activation.outgoing.index(ack) < activation.outgoing.index(copies[0])
        activation.drop(ack)
        activation.outgoing.insert(len(activation.outgoing) if was_first else 0, ack)
        text = f"the retained message comes {'before' if was_first else 'after'} the ACK"
        return [Label("T-ORDER", [subscribe, ack, *copies], text, activation.topic_of(copies[0]))]

    return edit

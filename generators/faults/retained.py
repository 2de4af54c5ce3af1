"""Faults of retained messages: missing, out of date, out of order, or lost to a message that was not to be retained."""

from __future__ import annotations

from dataclasses import replace

from generators.faults.applicability import all_of, can_subscribe, has_payload, has_retained
from generators.faults.occasions import ack_of, asked, matches, publish_of, rebuilt, silence, stay_silent
from generators.simulation.activation import Duty, Edit, Label, Out, Sent, Turn
from generators.simulation.fault import Place, fault
from pcap_tools.dialect import Dialect

_RETAINS = all_of(can_subscribe, has_retained)


def _copies(turn: Turn) -> list[Out]:
    """Retained messages that a new subscriber gets."""
    if not turn.is_brokers or turn.cause is None or not turn.is_first:
        return []
    return [out for out in turn.of(Duty.RETAINED) if out.publish is not None and _subscription(turn, out) is not None]


def _subscription(turn: Turn, out: Out) -> Sent | None:
    """What asked for it: what came, or where the topic had to be introduced first, the subscription before that."""
    subscribe = turn.came("subscribe")
    if subscribe is not None:
        return subscribe
    topic = turn.topic_of(out) or b""
    asking = [
        sent
        for (endpoint, text), sent in turn.history.subscribed.items()
        if endpoint == out.to and matches(turn, text, topic)
    ]
    return max(asking, key=lambda sent: sent.crossing.number, default=None)


def _later(turn: Turn, out: Out) -> list[Sent]:
    """What was published to the topic after the message that is retained."""
    published = turn.history.published.get(turn.topic_of(out) or b"", [])
    number = publish_of(out).crossing.number
    return [sent for sent in published if sent.crossing.number > number]


def _leave_out(turn: Turn, rule: str, out: Out, reason: str, *also: Sent) -> list[Label]:
    subscribe = _subscription(turn, out)
    shown_by: list[Out | Sent] = [publish_of(out), *also, *([subscribe] if subscribe else [])]
    return silence(turn, out, Label(rule, shown_by, reason, turn.topic_of(out)))


@fault(
    "retained-missing",
    "T-MISSING",
    Place.BROKER,
    "a new subscriber does not get the retained message",
    follow=stay_silent,
    fits=_RETAINS,
)
def retained_missing(turn: Turn) -> Edit | None:
    copies = [out for out in _copies(turn) if not _later(turn, out)]
    if not copies:
        return None
    text = "the subscriber does not get the retained message"
    return lambda: _leave_out(turn, "T-MISSING", turn.chance.pick(copies), text)


@fault(
    "retained-cleared",
    "T-CLEARED",
    Place.BROKER,
    "a message that was not to be retained has cleared the one that was: a new subscriber gets none",
    follow=stay_silent,
    fits=_RETAINS,
)
def retained_cleared(turn: Turn) -> Edit | None:
    copies = [out for out in _copies(turn) if _later(turn, out)]
    if not copies:
        return None

    def edit() -> list[Label]:
        out = turn.chance.pick(copies)
        return _leave_out(turn, "T-CLEARED", out, "a later message has cleared the retained one", _later(turn, out)[0])

    return edit


@fault(
    "retained-stale",
    "T-STALE",
    Place.BROKER,
    "a new subscriber gets an older message than the one that is retained",
    fits=all_of(_RETAINS, has_payload),
)
def retained_stale(turn: Turn) -> Edit | None:
    copies = [(out, older) for out in _copies(turn) if (older := _older(turn, out)) is not None]
    if not copies:
        return None

    def edit() -> list[Label]:
        out, (publish, datagram) = turn.chance.pick(copies)
        stale = replace(out, datagram=datagram, message=turn.codec.decode(datagram), publish=publish)
        turn.outs[turn.outs.index(out)] = stale
        subscribe = _subscription(turn, out)
        shown_by: list[Out | Sent] = [publish, publish_of(out), *([subscribe] if subscribe else []), stale]
        return [Label("T-STALE", shown_by, "a newer message is retained", turn.topic_of(out))]

    return edit


def _older(turn: Turn, out: Out) -> tuple[Sent, bytes] | None:
    """The message that was retained before, and what a copy of it looks like here."""
    number = publish_of(out).crossing.number
    published = turn.history.published.get(turn.topic_of(out) or b"", [])
    before = [sent for sent in published if sent.message.retain and sent.crossing.number < number]
    name = out.message.layout.payload if out.message.layout is not None else None
    if not before or name is None or before[-1].message.payload == out.message.payload:
        return None
    changes = {key: value for key, value in before[-1].message.fields.items() if key == name}
    counted = {step.name for step in out.message.layout.steps if step.counts} if out.message.layout else set()
    fields = {key: value for key, value in out.message.fields.items() if key not in counted}
    datagram = rebuilt(turn.codec, replace(out.message, fields=fields, layout=None), **changes)
    return (before[-1], datagram) if datagram is not None else None


def _orders_retained(dialect: Dialect) -> str | None:
    if dialect.spec.broker.sessions != "none":
        return f"a client of {dialect.name} knows a topic's id only after the ACK, and could not take it before"
    duties = dialect.spec.broker.order.get("subscribe", [])
    if "ack" in duties and "retained" in duties:
        return None
    return f"{dialect.name} does not say what comes first, the ACK or the retained message"


@fault(
    "retained-late",
    "T-ORDER",
    Place.BROKER,
    "retained message and ACK of a subscription leave in the other order than the dialect's",
    fits=all_of(_RETAINS, _orders_retained),
)
def retained_late(turn: Turn) -> Edit | None:
    subscribe, copies = asked(turn, "subscribe"), turn.of(Duty.RETAINED)
    ack = ack_of(turn, subscribe) if subscribe else None
    if subscribe is None or ack is None or not copies:
        return None

    def edit() -> list[Label]:
        was_first = turn.outs.index(ack) < turn.outs.index(copies[0])
        turn.drop(ack)
        turn.outs.insert(len(turn.outs) if was_first else 0, ack)
        text = f"the retained message comes {'before' if was_first else 'after'} the ACK"
        return [Label("T-ORDER", [subscribe, ack, *copies], text, turn.topic_of(copies[0]))]

    return edit

"""Faults of delivery: forwards that are missing, too many, wrong, late, in the wrong order or for somebody else."""

from __future__ import annotations

from dataclasses import replace

from generators.faults.applicability import all_of, can_subscribe, can_unsubscribe, has_no_sessions, has_payload
from generators.faults.occasions import (
    SOON_NS,
    altered,
    asked,
    forward_to,
    lone_forwards,
    matches,
    new_forwards,
    publish_of,
    publishes_again,
    silence,
    stay_silent,
    strangers,
)
from generators.simulation.activation import Duty, Edit, Label, Out, Sent, Turn
from generators.simulation.fault import Place, fault
from reference_broker.messages.sending import SECOND

LATE_NS = 3_500_000_000
HELD_NS = 2 * SECOND  # for so long at most: what waits longer for the next message would be late as well

_FINDS_ANYONE = all_of(can_subscribe, has_no_sessions)


@fault(
    "forward-missing",
    "D-MISSING",
    Place.BROKER,
    "a subscriber does not get a message",
    follow=stay_silent,
    fits=can_subscribe,
)
def forward_missing(turn: Turn) -> Edit | None:
    forwards = new_forwards(turn)
    return (lambda: leave_out(turn, turn.chance.pick(forwards))) if forwards else None


def leave_out(turn: Turn, out: Out) -> list[Label]:
    """Do not pass on a message to a subscriber."""
    text = f"it is not passed on to {out.to[0]} port {out.to[1]}"
    return silence(turn, out, Label("D-MISSING", [publish_of(out)], text, turn.topic_of(out)))


@fault(
    "forward-unexpected",
    "D-UNEXPECTED",
    Place.BROKER,
    "a client gets a message that it has not subscribed to",
    fits=_FINDS_ANYONE,
)
def forward_unexpected(turn: Turn) -> Edit | None:
    publish = asked(turn, "publish")
    receivers = strangers(turn, publish) if publish and new_forwards(turn) else []
    if publish is None or not receivers:
        return None

    def edit() -> list[Label]:
        extra = forward_to(turn, publish, turn.chance.pick(receivers).endpoint)
        put_with_forwards(turn, extra)
        return [Label("D-UNEXPECTED", [publish, extra], "no subscription asks for this", turn.topic)]

    return edit


def put_with_forwards(turn: Turn, extra: Out) -> None:
    """After the last of the forwards, so that their place before or after the ACK is kept."""
    last = max((at for at, out in enumerate(turn.outs) if out.duty is Duty.FORWARD), default=None)
    if last is None:
        order = turn.site.dialect.spec.broker.order.get("publish", [])
        first = "ack" not in order or ("forward" in order and order.index("forward") < order.index("ack"))
        last = -1 if first else len(turn.outs) - 1
    turn.outs.insert(last + 1, extra)


@fault("forward-duplicate", "D-DUPLICATE", Place.BROKER, "a subscriber gets a message twice", fits=can_subscribe)
def forward_duplicate(turn: Turn) -> Edit | None:
    forwards = new_forwards(turn)
    if not forwards:
        return None

    def edit() -> list[Label]:
        out = turn.chance.pick(forwards)
        again = replace(out, delay_ns=SOON_NS)
        turn.outs.append(again)
        return [Label("D-DUPLICATE", [publish_of(out), out, again], "this comes twice", turn.topic_of(out))]

    return edit


@fault(
    "forward-altered",
    "D-ALTERED",
    Place.BROKER,
    "a subscriber gets a message with another payload than was published",
    fits=all_of(can_subscribe, has_payload),
)
def forward_altered(turn: Turn) -> Edit | None:
    forwards = [out for out in new_forwards(turn) if altered(turn.codec, out.message) is not None]
    if not forwards:
        return None

    def edit() -> list[Label]:
        out = turn.chance.pick(forwards)
        out.datagram = altered(turn.codec, out.message) or out.datagram
        out.message = turn.codec.decode(out.datagram)
        return [Label("D-ALTERED", [publish_of(out), out], "the payload has changed on the way", turn.topic_of(out))]

    return edit


@fault(
    "forward-misdirected",
    "D-MISDIRECTED",
    Place.BROKER,
    "a message goes to another client in place of the subscriber",
    fits=_FINDS_ANYONE,
)
def forward_misdirected(turn: Turn) -> Edit | None:
    publish = asked(turn, "publish")
    forwards = lone_forwards(turn)
    receivers = strangers(turn, publish) if publish and forwards else []
    if publish is None or not receivers:
        return None

    def edit() -> list[Label]:
        out = turn.chance.pick(forwards)
        astray = replace(out, to=turn.chance.pick(receivers).endpoint)
        turn.outs[turn.outs.index(out)] = astray
        text = f"this goes to another client in place of {out.to[0]} port {out.to[1]}"
        return [Label("D-MISDIRECTED", [publish, astray], text, turn.topic)]

    return edit


def _note_overtaking(turn: Turn) -> list[Label]:
    """What comes while a message is late overtakes it: that is to be seen, too."""
    labels = []
    late: dict[object, list[tuple[int, Out]]] = turn.memory.get("late", {})
    for out in new_forwards(turn) if late else ():
        for due, before in late.get(_stream(turn, out), ()):
            if turn.now < due and before.datagram != out.datagram:
                shown_by: list[Out | Sent] = [publish_of(before), before, publish_of(out), out]
                labels.append(Label("D-REORDERED", shown_by, "this overtakes a late message", turn.topic_of(out)))
    return labels


def _stream(turn: Turn, out: Out) -> object:
    """The messages that have an order among each other: one publisher's, under one topic, to one subscriber."""
    return publish_of(out).crossing.src, turn.topic_of(out), out.to


@fault(
    "forward-late",
    "D-LATE",
    Place.BROKER,
    "a subscriber gets a message seconds late; the next of its topic may overtake it",
    also=("D-REORDERED",),
    follow=_note_overtaking,
    fits=can_subscribe,
)
def forward_late(turn: Turn) -> Edit | None:
    late: dict[object, list[tuple[int, Out]]] = turn.memory.setdefault("late", {})
    forwards = [
        out for out in lone_forwards(turn) if all(due <= turn.now for due, _ in late.get(_stream(turn, out), ()))
    ]
    if not forwards:
        return None

    def edit() -> list[Label]:
        out = turn.chance.pick(forwards)
        out.delay_ns = LATE_NS
        late.setdefault(_stream(turn, out), []).append((turn.now + LATE_NS, out))
        return [Label("D-LATE", [publish_of(out), out], "this comes seconds late", turn.topic_of(out))]

    return edit


def _release(turn: Turn) -> None:
    """What was held back leaves after the next message of its kind; never if it waited too long for that, or if nobody
    could tell the two from each other."""
    stay_silent(turn)
    held: dict[object, tuple[int, Out, Label]] = turn.memory.get("held", {})
    for out in lone_forwards(turn) if held else ():
        until, before, label = held.pop(_stream(turn, out), (0, out, None))
        if label is not None and turn.now < until and before.datagram != out.datagram:
            turn.outs.insert(turn.outs.index(out) + 1, before)
            label.rule, label.text = "D-REORDERED", "these come in the other order"
            label.shown_by += [before, publish_of(out), out]


@fault(
    "forward-reordered",
    "D-REORDERED",
    Place.BROKER,
    "two messages of one publisher under one topic arrive in the other order; one that nothing follows is missing",
    also=("D-MISSING",),
    follow=_release,
    fits=can_subscribe,
)
def forward_reordered(turn: Turn) -> Edit | None:
    held = turn.memory.setdefault("held", {})
    forwards = [
        out
        for out in lone_forwards(turn)
        if publishes_again(turn, publish_of(out), turn.topic_of(out) or b"", HELD_NS) and _stream(turn, out) not in held
    ]
    if not forwards:
        return None

    def edit() -> list[Label]:
        out = turn.chance.pick(forwards)
        labels = leave_out(turn, out)
        held[_stream(turn, out)] = turn.now + HELD_NS, out, labels[0]
        return labels

    return edit


@fault(
    "forward-after-unsubscribe",
    "D-AFTER-UNSUBSCRIBE",
    Place.BROKER,
    "a client that has unsubscribed still gets a message",
    fits=all_of(_FINDS_ANYONE, can_unsubscribe),
)
def forward_after_unsubscribe(turn: Turn) -> Edit | None:
    publish, topic = asked(turn, "publish"), turn.topic
    if publish is None or topic is None:
        return None
    receivers = {out.to for out in turn.of(Duty.FORWARD)} | {publish.crossing.src}
    left = {
        endpoint: gone
        for (endpoint, text), gone in turn.history.unsubscribed.items()
        if endpoint not in receivers and matches(turn, text, topic)
    }
    if not left:
        return None

    def edit() -> list[Label]:
        endpoint = turn.chance.pick(list(left))
        extra = forward_to(turn, publish, endpoint)
        put_with_forwards(turn, extra)
        shown_by: list[Out | Sent] = [left[endpoint], publish, extra]
        return [Label("D-AFTER-UNSUBSCRIBE", shown_by, "its subscription has ended", topic)]

    return edit

"""Faults of sending again: not at all, otherwise than before, though acknowledged, or far too soon."""

from __future__ import annotations

from dataclasses import replace

from generators.faults.applicability import (
    REQUESTS,
    acknowledged,
    all_of,
    broker_acknowledges,
    clients_resend,
    has_payload,
    meaning_of,
)
from generators.faults.occasions import (
    SOON_NS,
    ack_of,
    acknowledged_request,
    altered,
    asked,
    goes_on,
    rebuilt,
    waits_ns,
)
from generators.simulation.activation import Duty, Edit, Label, Out, Sent, Turn
from generators.simulation.fault import Place, fault
from pcap_tools.codec.message import Message
from pcap_tools.dialect import Dialect

ENOUGH = 2  # resend times after which it is clear that nothing is sent again
EARLY, STILL_IN_TIME = 8, 4  # parts of the resend time: the resend comes at one eighth of it, the ACK at a quarter

_RESENDS = all_of(broker_acknowledges, clients_resend)


def _stay_mute(turn: Turn) -> None:
    """The request gets no ACK, and is not sent again."""
    for out in list(turn.outs):
        about = out.resend_of if turn.node is not None else turn.cause if out.duty is Duty.ACK else None
        if about is not None and about.first.crossing.number in turn.memory:
            turn.drop(out)


@fault(
    "resend-missing",
    "R-MISSING",
    Place.BROKER,
    "the broker does not acknowledge a request, and the client does not send it again",
    also=("A-MISSING",),
    follow=_stay_mute,
    fits=_RESENDS,
)
def resend_missing(turn: Turn) -> Edit | None:
    request = asked(turn)
    ack = ack_of(turn, request) if request else None
    if request is None or ack is None or not goes_on(turn, waits_ns(request) * ENOUGH):
        return None

    def edit() -> list[Label]:
        turn.drop(ack)
        turn.memory[request.first.crossing.number] = True
        name = request.message.message
        return [
            Label("R-MISSING", [request], f"{name} is not sent again, though no ACK comes", turn.topic),
            Label("A-MISSING", [request], f"{name} is never acknowledged", turn.topic),
        ]

    return edit


def _acks_survive_changes(dialect: Dialect) -> str | None:
    """An ACK that repeats all of a message would not answer what the client believes to have sent."""
    publishes = {name for name in dialect.messages if meaning_of(dialect, name) == "publish"}
    for variants in dialect.spec.messages.values():
        answers = [one for one in variants if "any" in one.acks or publishes & set(one.acks)]
        if any(one.acks_by in ("echo", "copy") for one in answers):
            return f"an ACK of {dialect.name} repeats the message, so that the client would not take it for its own"
    return None if any(acknowledged(dialect, name) for name in publishes) else f"{dialect.name} acknowledges no publish"


def _send_otherwise(turn: Turn) -> None:
    """The resend of a request whose first send was left unanswered."""
    for out in turn.outs if turn.node is not None else ():
        changed = turn.memory.get(out.resend_of.first.crossing.number) if out.resend_of is not None else None
        if changed is not None:
            label, out.datagram = changed
            out.message = turn.codec.decode(out.datagram)
            label.shown_by.append(out)


def _unanswered(turn: Turn, request: Sent, ack: Out, other: bytes, label: Label) -> list[Label]:
    turn.drop(ack)
    turn.memory[request.first.crossing.number] = label, other
    return [label]


@fault(
    "resend-altered",
    "R-ALTERED",
    Place.BROKER,
    "the broker leaves a publish unanswered, and the client sends it again with another payload",
    follow=_send_otherwise,
    fits=all_of(_RESENDS, has_payload, _acks_survive_changes),
)
def resend_altered(turn: Turn) -> Edit | None:
    request = asked(turn, "publish")
    ack = ack_of(turn, request) if request else None
    other = altered(turn.codec, _as_resent(turn, request.message)) if request else None
    if request is None or ack is None or other is None:
        return None
    label = Label("R-ALTERED", [request], "the resend has another payload", turn.topic)
    return lambda: _unanswered(turn, request, ack, other, label)


def _as_resent(turn: Turn, message: Message) -> Message:
    """With the marks that a resend has in this dialect."""
    resend = turn.site.dialect.spec.client.resend
    marks = {name: value for name, value in (resend.marks if resend else {}).items() if name in message.fields}
    return replace(message, fields={**message.fields, **marks})


def _may_change_retain(dialect: Dialect) -> str | None:
    resend = dialect.spec.client.resend
    layouts = [layout for form in dialect.forms for layout in form.layouts if layout.meaning == "publish"]
    if resend and any(layout.retain in resend.may_change for layout in layouts if layout.retain):
        return None
    return f"{dialect.name} does not say that a resend may have another retain flag"


@fault(
    "resend-altered-retain",
    "R-ALTERED-RETAIN",
    Place.BROKER,
    "the broker leaves a publish unanswered, and the client sends it again as one to be retained",
    follow=_send_otherwise,
    fits=all_of(_RESENDS, _may_change_retain, _acks_survive_changes),
)
def resend_altered_retain(turn: Turn) -> Edit | None:
    request = asked(turn, "publish")
    ack = ack_of(turn, request) if request else None
    if request is None or ack is None or request.message.retain is not False:
        return None
    name = request.message.layout.retain if request.message.layout else None
    other = rebuilt(turn.codec, request.message, **{name: 1}) if name else None
    if other is None:
        return None
    label = Label("R-ALTERED-RETAIN", [request], "the resend asks for the message to be retained", turn.topic)
    return lambda: _unanswered(turn, request, ack, other, label)


@fault(
    "resend-after-ack",
    "R-AFTER-ACK",
    Place.CLIENT,
    "a client sends a request again that was acknowledged",
    fits=_RESENDS,
)
def resend_after_ack(turn: Turn) -> Edit | None:
    request, ack = acknowledged_request(turn), turn.cause
    if (
        request is None
        or ack is None
        or request.out.resend_of is not None
        or ack.duty is not Duty.ACK
        or turn.memory.get(request.crossing.number)
    ):
        return None

    def edit() -> list[Label]:
        turn.memory[request.crossing.number] = True  # its second ACK is no new occasion
        again = replace(request.out, resend_of=request, delay_ns=SOON_NS, sent=None)
        turn.outs.append(again)
        text = f"{request.message.message} is sent again after its ACK"
        return [Label("R-AFTER-ACK", [request, ack, again], text, request.message.topic)]

    return edit


def _take_time(turn: Turn) -> None:
    """The ACK of what is sent again early would otherwise come before that. It still comes in time, and once."""
    cause = turn.cause
    if not turn.is_brokers or cause is None or cause.first.out not in turn.memory:
        return
    for ack in turn.of(Duty.ACK):
        if turn.is_first:
            ack.delay_ns = waits_ns(cause) // STILL_IN_TIME
        else:
            turn.drop(ack)


@fault(
    "resend-early",
    "R-EARLY",
    Place.CLIENT,
    "a client sends a request again long before its ACK is late",
    follow=_take_time,
    fits=_RESENDS,
)
def resend_early(turn: Turn) -> Edit | None:
    node = turn.node
    news = [out for out in turn.of(Duty.REQUEST) if out.resend_of is None and out.message.meaning in REQUESTS]
    if node is None or len(news) != 1 or not node.client.expects_ack(news[0].message, news[0].datagram):
        return None
    request = news[0]

    def edit() -> list[Label]:
        early_ns = node.client.timing.resend_after_ns // EARLY
        again = replace(request, repeats=request, delay_ns=early_ns)
        turn.outs.append(again)
        turn.memory[request] = True
        text = f"{request.message.message} is sent again too soon"
        return [Label("R-EARLY", [request, again], text, request.message.topic)]

    return edit

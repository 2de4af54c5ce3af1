"""Faults of acknowledgement: ACKs and status messages that do not come, or come late, twice, wrongly or to others."""

from __future__ import annotations

from generators.faults.applicability import (
    all_of,
    broker_acknowledges,
    clients_acknowledge,
    has_status,
    meaning_of,
)
from generators.faults.occasions import (
    SOON_NS,
    ack_of,
    answered_request,
    asked,
    idle_others,
    silence,
    stay_silent,
    waits_ns,
)
from generators.simulation.activation import Duty, Edit, Label, Out, Sent, Turn
from generators.simulation.fault import Place, fault
from pcap_tools.dialect import Dialect

LATE = 1.3  # of the time after which a client sends again: after the first resend and before the second


@fault(
    "ack-missing",
    "A-MISSING",
    Place.BROKER,
    "the broker never acknowledges a request, however often it is sent",
    follow=stay_silent,
    fits=broker_acknowledges,
)
def ack_missing(turn: Turn) -> Edit | None:
    request = asked(turn)
    ack = ack_of(turn, request) if request else None
    if request is None or ack is None:
        return None
    label = Label("A-MISSING", [request], f"{request.message.message} is never acknowledged", turn.topic)
    return lambda: silence(turn, ack, label)


@fault(
    "ack-unsolicited",
    "A-UNSOLICITED",
    Place.BROKER,
    "a client that has asked for nothing gets an ACK",
    fits=broker_acknowledges,
)
def ack_unsolicited(turn: Turn) -> Edit | None:
    request = asked(turn)
    ack = ack_of(turn, request) if request else None
    others = idle_others(turn, request.crossing.src) if request else []
    if ack is None or not others:
        return None

    def edit() -> list[Label]:
        stray = turn.stray(ack.datagram, turn.chance.pick(others).endpoint)
        turn.outs.append(stray)
        return [Label("A-UNSOLICITED", [stray], "this ACK answers nothing")]

    return edit


def _forget_second_ack(turn: Turn) -> None:
    """The resend that a late ACK brings about gets no ACK of its own."""
    cause = turn.cause
    if turn.is_brokers and cause is not None and cause.first.crossing.number in turn.memory:
        label: Label = turn.memory[cause.first.crossing.number]
        for ack in turn.of(Duty.ACK):
            turn.drop(ack)
        label.shown_by.insert(1, cause)


@fault(
    "ack-late",
    "A-LATE",
    Place.BROKER,
    "the broker acknowledges a request only after the client has sent it again, and then once",
    follow=_forget_second_ack,
    fits=broker_acknowledges,
)
def ack_late(turn: Turn) -> Edit | None:
    request = asked(turn)
    ack = ack_of(turn, request) if request else None
    if request is None or ack is None:
        return None

    def edit() -> list[Label]:
        ack.delay_ns = int(waits_ns(request) * LATE)
        label = Label("A-LATE", [request, ack], f"the ACK of {request.message.message} comes late", turn.topic)
        turn.memory[request.first.crossing.number] = label
        return [label]

    return edit


@fault("ack-duplicate", "A-DUPLICATE", Place.BROKER, "a request is acknowledged twice", fits=broker_acknowledges)
def ack_duplicate(turn: Turn) -> Edit | None:
    request = asked(turn)
    ack = ack_of(turn, request) if request else None
    if request is None or ack is None:
        return None

    def edit() -> list[Label]:
        again = turn.stray(ack.datagram, ack.to, SOON_NS)
        turn.outs.append(again)
        return [Label("A-DUPLICATE", [request, ack, again], "this ACK comes twice", turn.topic)]

    return edit


@fault(
    "ack-misdirected",
    "A-MISDIRECTED",
    Place.BROKER,
    "an ACK goes to another client; when the request is sent again it is acknowledged rightly",
    fits=broker_acknowledges,
)
def ack_misdirected(turn: Turn) -> Edit | None:
    request = asked(turn)
    ack = ack_of(turn, request) if request else None
    others = idle_others(turn, request.crossing.src) if request else []
    if request is None or ack is None or not others:
        return None

    def edit() -> list[Label]:
        astray = turn.stray(ack.datagram, turn.chance.pick(others).endpoint)
        turn.outs[turn.outs.index(ack)] = astray
        return [Label("A-MISDIRECTED", [request, astray], "this ACK goes to another client", turn.topic)]

    return edit


def _orders_acks(dialect: Dialect) -> str | None:
    """Whether the dialect says where the ACK stands among forwards and status."""
    for kind, duties in dialect.spec.broker.order.items():
        has_other = ("forward" in duties and kind == "publish") or "status" in duties
        if "ack" in duties and has_other:
            return None
    return f"{dialect.name} does not say what comes first, an ACK or what else a request brings about"


@fault(
    "ack-reordered",
    "A-ORDER",
    Place.BROKER,
    "ACK and forwards, or ACK and status, leave in the other order than the dialect's",
    fits=all_of(broker_acknowledges, _orders_acks),
)
def ack_reordered(turn: Turn) -> Edit | None:
    request = asked(turn)
    ack = ack_of(turn, request) if request else None
    others = turn.of(Duty.FORWARD, Duty.STATUS)
    if request is None or ack is None or not others or _says_no_order(turn, request):
        return None

    def edit() -> list[Label]:
        was_first = turn.outs.index(ack) < turn.outs.index(others[0])
        turn.drop(ack)
        turn.outs.insert(len(turn.outs) if was_first else 0, ack)
        shown_by: list[Out | Sent] = [request, ack, *others]
        return [Label("A-ORDER", shown_by, f"the ACK comes {'last' if was_first else 'first'}", turn.topic)]

    return edit


def _says_no_order(turn: Turn, request: Sent) -> bool:
    return request.message.meaning not in turn.site.dialect.spec.broker.order


def _anyone_acknowledges(dialect: Dialect) -> str | None:
    if any(_clients_may_send(dialect, name) for name in dialect.messages if meaning_of(dialect, name) == "ack"):
        return None
    return f"the ACKs of {dialect.name} are the broker's alone, or name what clients acknowledge by its id"


def _clients_may_send(dialect: Dialect, ack: str) -> bool:
    """Whether a client may send this ACK without a word of the broker's being taken for acknowledged."""
    spec = dialect.spec.messages[ack][0]
    by_id = spec.acks_by not in ("order", "echo", "copy")
    is_theirs = "any" in spec.acks or bool(set(spec.acks) & set(dialect.spec.client.acks))
    return spec.sender != "broker" and not (by_id and is_theirs and dialect.spec.client.acks)


@fault(
    "ack-of-ack",
    "A-ACK-OF-ACK",
    Place.CLIENT,
    "a client acknowledges an ACK",
    fits=all_of(broker_acknowledges, _anyone_acknowledges),
)
def ack_of_ack(turn: Turn) -> Edit | None:
    request, ack = answered_request(turn), turn.came("ack")
    if request is None or ack is None or not _clients_may_send(turn.site.dialect, ack.message.message or ""):
        return None

    def edit() -> list[Label]:
        stray = turn.stray(ack.crossing.datagram, turn.site.broker)
        turn.outs.append(stray)
        return [Label("A-ACK-OF-ACK", [ack, stray], "an ACK is acknowledged")]

    return edit


def _stay_ungrateful(turn: Turn) -> None:
    """What the broker sends again because its ACK did not come gets none either."""
    cause = turn.cause
    if turn.node is not None and cause is not None and cause.first.crossing.number in turn.memory:
        label: Label = turn.memory[cause.first.crossing.number]
        for ack in turn.of(Duty.ACK):
            turn.drop(ack)
            label.shown_by.append(cause)


@fault(
    "client-ack-missing",
    "A-CLIENT-MISSING",
    Place.CLIENT,
    "a client does not acknowledge a forward or a status message",
    follow=_stay_ungrateful,
    fits=clients_acknowledge,
)
def client_ack_missing(turn: Turn) -> Edit | None:
    cause, acks = turn.cause, turn.of(Duty.ACK)
    if cause is None or not acks or cause.duty not in (Duty.FORWARD, Duty.RETAINED, Duty.STATUS):
        return None
    if cause.out.resend_of is not None or turn.memory.get(("acknowledged", cause.crossing.number)):
        return None
    turn.memory["acknowledged", cause.crossing.number] = True  # the network may double it

    def edit() -> list[Label]:
        turn.drop(acks[0])
        label = Label("A-CLIENT-MISSING", [cause], f"{cause.message.message} is not acknowledged by the client")
        turn.memory[cause.first.crossing.number] = label
        return [label]

    return edit


@fault(
    "status-missing",
    "A-STATUS-MISSING",
    Place.BROKER,
    "a request is acknowledged, but no status follows",
    follow=stay_silent,
    fits=has_status,
)
def status_missing(turn: Turn) -> Edit | None:
    request, statuses = asked(turn), turn.of(Duty.STATUS)
    if request is None or not statuses:
        return None
    label = Label("A-STATUS-MISSING", [request], f"no status follows {request.message.message}", turn.topic)
    return lambda: silence(turn, statuses[0], label)

"""Faults of acknowledgement: ACKs and status messages that do not come, or come late, twice, wrongly or to others."""

from __future__ import annotations

from dataclasses import replace

from generators.faults.applicability import (
    REQUESTS,
    acknowledged,
    all_of,
    broker_acknowledges,
    clients_acknowledge,
    clients_resend,
    has_payload,
    has_status,
    meaning_of,
)
from generators.faults.occasions import (
    SOON_NS,
    ack_of,
    acknowledged_request,
    altered,
    answered_request,
    goes_on,
    keep_suppressing,
    new_request,
    other_idle_clients,
    rebuilt,
    suppress,
    waits_ns,
)
from generators.simulation.activation import Activation, Edit, Label, Outgoing, Purpose, Sent
from generators.simulation.fault import Place, fault
from pcap_tools.codec.message import Message
from pcap_tools.dialect import Dialect

LATE = 1.3  # of the time after which a client sends again: after the first resend and before the second


@fault(
    "ack-missing",
    "A-MISSING",
    Place.BROKER,
    "the broker never acknowledges a request, despite resends",
    follow=keep_suppressing,
    fits=broker_acknowledges,
)
def ack_missing(activation: Activation) -> Edit | None:
    request = new_request(activation)
    ack = ack_of(activation, request) if request else None
    if request is None or ack is None:
        return None
    label = Label("A-MISSING", [request], f"{request.message.message} is never acknowledged", activation.topic)
    return lambda: suppress(activation, ack, label)


@fault(
    "ack-unsolicited",
    "A-UNSOLICITED",
    Place.BROKER,
    "a client without a pending request gets an ACK",
    fits=broker_acknowledges,
)
def ack_unsolicited(activation: Activation) -> Edit | None:
    request = new_request(activation)
    ack = ack_of(activation, request) if request else None
    others = other_idle_clients(activation, request.transit.src) if request else []
    if ack is None or not others:
        return None

    def edit() -> list[Label]:
        stray = activation.stray(ack.datagram, activation.rng.pick(others).endpoint)
        activation.outgoing.append(stray)
        return [Label("A-UNSOLICITED", [stray], "this ACK answers nothing")]

    return edit


def _forget_second_ack(activation: Activation) -> None:
    """The resend that a late ACK brings about gets no ACK of its own."""
    cause = activation.cause
    if activation.is_brokers and cause is not None and cause.first.transit.number in activation.memory:
        label: Label = activation.memory[cause.first.transit.number]
        for ack in activation.of(Purpose.ACK):
            activation.drop(ack)
        label.shown_by.insert(1, cause)


@fault(
    "ack-late",
    "A-LATE",
    Place.BROKER,
    "the broker acknowledges a request only after its resend, and only once",
    follow=_forget_second_ack,
    fits=all_of(broker_acknowledges, clients_resend),
)
def ack_late(activation: Activation) -> Edit | None:
    request = new_request(activation)
    ack = ack_of(activation, request) if request else None
    if request is None or ack is None:
        return None

    def edit() -> list[Label]:
        ack.delay_ns = int(waits_ns(request) * LATE)
        label = Label("A-LATE", [request, ack], f"the ACK of {request.message.message} comes late", activation.topic)
        activation.memory[request.first.transit.number] = label
        return [label]

    return edit


@fault("ack-duplicate", "A-DUPLICATE", Place.BROKER, "a request is acknowledged twice", fits=broker_acknowledges)
def ack_duplicate(activation: Activation) -> Edit | None:
    request = new_request(activation)
    ack = ack_of(activation, request) if request else None
    if request is None or ack is None:
        return None

    def edit() -> list[Label]:
        again = activation.stray(ack.datagram, ack.to, SOON_NS)
        activation.outgoing.append(again)
        return [Label("A-DUPLICATE", [request, ack, again], "this ACK comes twice", activation.topic)]

    return edit


@fault(
    "ack-misdirected",
    "A-MISDIRECTED",
    Place.BROKER,
    "an ACK goes to another client; the ACK of the resend is correct",
    fits=broker_acknowledges,
)
def ack_misdirected(activation: Activation) -> Edit | None:
    request = new_request(activation)
    ack = ack_of(activation, request) if request else None
    others = other_idle_clients(activation, request.transit.src) if request else []
    if request is None or ack is None or not others:
        return None

    def edit() -> list[Label]:
        astray = activation.stray(ack.datagram, activation.rng.pick(others).endpoint)
        activation.outgoing[activation.outgoing.index(ack)] = astray
        return [Label("A-MISDIRECTED", [request, astray], "this ACK goes to another client", activation.topic)]

    return edit


def _orders_acks(dialect: Dialect) -> str | None:
    """Whether the dialect says where the ACK stands among forwards and status."""
    for kind, purposes in dialect.spec.broker.order.items():
        has_other = ("forward" in purposes and kind == "publish") or "status" in purposes
        if "ack" in purposes and has_other:
            return None
    return f"{dialect.name} does not say what comes first, an ACK or what else a request brings about"


@fault(
    "ack-reordered",
    "A-ORDER",
    Place.BROKER,
    "ACK and forwards, or ACK and status, are sent in the opposite of the dialect's order",
    fits=all_of(broker_acknowledges, _orders_acks),
)
def ack_reordered(activation: Activation) -> Edit | None:
    request = new_request(activation)
    ack = ack_of(activation, request) if request else None
    others = activation.of(Purpose.FORWARD, Purpose.STATUS)
    if request is None or ack is None or not others or _says_no_order(activation, request):
        return None

    def edit() -> list[Label]:
        was_first = activation.outgoing.index(ack) < activation.outgoing.index(others[0])
        activation.drop(ack)
        activation.outgoing.insert(len(activation.outgoing) if was_first else 0, ack)
        shown_by: list[Outgoing | Sent] = [request, ack, *others]
        return [Label("A-ORDER", shown_by, f"the ACK comes {'last' if was_first else 'first'}", activation.topic)]

    return edit


def _says_no_order(activation: Activation, request: Sent) -> bool:
    return request.message.meaning not in activation.site.dialect.spec.broker.order


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
def ack_of_ack(activation: Activation) -> Edit | None:
    request, ack = answered_request(activation), activation.came("ack")
    if request is None or ack is None or not _clients_may_send(activation.site.dialect, ack.message.message or ""):
        return None

    def edit() -> list[Label]:
        stray = activation.stray(ack.transit.datagram, activation.site.broker)
        activation.outgoing.append(stray)
        return [Label("A-ACK-OF-ACK", [ack, stray], "an ACK is acknowledged")]

    return edit


def _stay_ungrateful(activation: Activation) -> None:
    """What the broker sends again because its ACK did not come gets none either."""
    cause = activation.cause
    if activation.node is not None and cause is not None and cause.first.transit.number in activation.memory:
        label: Label = activation.memory[cause.first.transit.number]
        for ack in activation.of(Purpose.ACK):
            activation.drop(ack)
            label.shown_by.append(cause)


@fault(
    "client-ack-missing",
    "A-CLIENT-MISSING",
    Place.CLIENT,
    "a client does not acknowledge a forward or a status message",
    follow=_stay_ungrateful,
    fits=clients_acknowledge,
)
def client_ack_missing(activation: Activation) -> Edit | None:
    cause, acks = activation.cause, activation.of(Purpose.ACK)
    if cause is None or not acks or cause.purpose not in (Purpose.FORWARD, Purpose.RETAINED, Purpose.STATUS):
        return None
    if cause.out.resend_of is not None or activation.memory.get(("acknowledged", cause.transit.number)):
        return None
    activation.memory["acknowledged", cause.transit.number] = True  # the network may double it

    def edit() -> list[Label]:
        activation.drop(acks[0])
        label = Label("A-CLIENT-MISSING", [cause], f"{cause.message.message} is not acknowledged by the client")
        activation.memory[cause.first.transit.number] = label
        return [label]

    return edit


@fault(
    "status-missing",
    "A-STATUS-MISSING",
    Place.BROKER,
    "a request is acknowledged, but no status follows",
    follow=keep_suppressing,
    fits=has_status,
)
def status_missing(activation: Activation) -> Edit | None:
    request, statuses = new_request(activation), activation.of(Purpose.STATUS)
    if request is None or not statuses:
        return None
    label = Label("A-STATUS-MISSING", [request], f"no status follows {request.message.message}", activation.topic)
    return lambda: suppress(activation, statuses[0], label)


ENOUGH = 2  # resend times after which it is clear that nothing is sent again
EARLY, STILL_IN_TIME = 8, 4  # parts of the resend time: the resend comes at one eighth of it, the ACK at a quarter

_RESENDS = all_of(broker_acknowledges, clients_resend)


def _stay_mute(activation: Activation) -> None:
    """The request gets no ACK, and is not sent again."""
    for out in list(activation.outgoing):
        about = (
            out.resend_of if activation.node is not None else activation.cause if out.purpose is Purpose.ACK else None
        )
        if about is not None and about.first.transit.number in activation.memory:
            activation.drop(out)


@fault(
    "resend-missing",
    "R-MISSING",
    Place.BROKER,
    "the broker does not acknowledge a request, and the client does not resend it",
    also=("A-MISSING",),
    follow=_stay_mute,
    fits=_RESENDS,
)
def resend_missing(activation: Activation) -> Edit | None:
    request = new_request(activation)
    ack = ack_of(activation, request) if request else None
    if request is None or ack is None or not goes_on(activation, waits_ns(request) * ENOUGH):
        return None

    def edit() -> list[Label]:
        activation.drop(ack)
        activation.memory[request.first.transit.number] = True
        name = request.message.message
        return [
            Label("R-MISSING", [request], f"{name} is not sent again, though no ACK comes", activation.topic),
            Label("A-MISSING", [request], f"{name} is never acknowledged", activation.topic),
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


def _send_otherwise(activation: Activation) -> None:
    """The resend of a request whose first send was left unanswered."""
    for out in activation.outgoing if activation.node is not None else ():
        changed = activation.memory.get(out.resend_of.first.transit.number) if out.resend_of is not None else None
        if changed is not None:
            label, out.datagram = changed
            out.message = activation.codec.decode(out.datagram)
            label.shown_by.append(out)


def _unanswered(activation: Activation, request: Sent, ack: Outgoing, other: bytes, label: Label) -> list[Label]:
    activation.drop(ack)
    activation.memory[request.first.transit.number] = label, other
    return [label]


@fault(
    "resend-altered",
    "R-ALTERED",
    Place.BROKER,
    "the broker does not acknowledge a publish, and the client resends it with another payload",
    follow=_send_otherwise,
    fits=all_of(_RESENDS, has_payload, _acks_survive_changes),
)
def resend_altered(activation: Activation) -> Edit | None:
    request = new_request(activation, "publish")
    ack = ack_of(activation, request) if request else None
    other = altered(activation.codec, _as_resent(activation, request.message)) if request else None
    if request is None or ack is None or other is None:
        return None
    label = Label("R-ALTERED", [request], "the resend has another payload", activation.topic)
    return lambda: _unanswered(activation, request, ack, other, label)


def _as_resent(activation: Activation, message: Message) -> Message:
    """With the marks that a resend has in this dialect."""
    resend = activation.site.dialect.spec.client.resend
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
    "the broker does not acknowledge a publish, and the client resends it with the retain flag",
    follow=_send_otherwise,
    fits=all_of(_RESENDS, _may_change_retain, _acks_survive_changes),
)
def resend_altered_retain(activation: Activation) -> Edit | None:
    request = new_request(activation, "publish")
    ack = ack_of(activation, request) if request else None
    if request is None or ack is None or request.message.retain is not False:
        return None
    name = request.message.layout.retain if request.message.layout else None
    other = rebuilt(activation.codec, request.message, **{name: 1}) if name else None
    if other is None:
        return None
    label = Label("R-ALTERED-RETAIN", [request], "the resend asks for the message to be retained", activation.topic)
    return lambda: _unanswered(activation, request, ack, other, label)


@fault(
    "resend-after-ack",
    "R-AFTER-ACK",
    Place.CLIENT,
    "a client resends an acknowledged request",
    fits=_RESENDS,
)
def resend_after_ack(activation: Activation) -> Edit | None:
    request, ack = acknowledged_request(activation), activation.cause
    if (
        request is None
        or ack is None
        or request.out.resend_of is not None
        or ack.purpose is not Purpose.ACK
        or activation.memory.get(request.transit.number)
    ):
        return None

    def edit() -> list[Label]:
        activation.memory[request.transit.number] = True  # its second ACK is no new occasion
        again = replace(request.out, resend_of=request, delay_ns=SOON_NS, sent=None)
        activation.outgoing.append(again)
        text = f"{request.message.message} is sent again after its ACK"
        return [Label("R-AFTER-ACK", [request, ack, again], text, request.message.topic)]

    return edit


def _take_time(activation: Activation) -> None:
    """The ACK of what is sent again early would otherwise come before that. It still comes in time, and once."""
    cause = activation.cause
    if not activation.is_brokers or cause is None or cause.first.out not in activation.memory:
        return
    for ack in activation.of(Purpose.ACK):
        if activation.is_first:
            ack.delay_ns = waits_ns(cause) // STILL_IN_TIME
        else:
            activation.drop(ack)


@fault(
    "resend-early",
    "R-EARLY",
    Place.CLIENT,
    "a client resends a request long before its ACK is late",
    follow=_take_time,
    fits=_RESENDS,
)
def resend_early(activation: Activation) -> Edit | None:
    node = activation.node
    news = [out for out in activation.of(Purpose.REQUEST) if out.resend_of is None and out.message.meaning in REQUESTS]
    if node is None or len(news) != 1 or not node.client.expects_ack(news[0].message, news[0].datagram):
        return None
    request = news[0]

    def edit() -> list[Label]:
        early_ns = node.client.timing.resend_after_ns // EARLY
        again = replace(request, repeats=request, delay_ns=early_ns)
        activation.outgoing.append(again)
        activation.memory[request] = True
        text = f"{request.message.message} is sent again too soon"
        return [Label("R-EARLY", [request, again], text, request.message.topic)]

    return edit

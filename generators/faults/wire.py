"""Faults of the wire format: a client sends one more datagram, which is damaged. The broker ignores it.

It is made from a valid one of the same client by one small change after the other, until decoding it gives exactly
the wanted error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

from generators.faults.applicability import REQUESTS, all_of, broker_acknowledges, has_no_sessions, meaning_of
from generators.faults.occasions import acknowledged_request, filled, rebuilt
from generators.simulation.activation import Activation, Edit, Label, Purpose, Sent
from generators.simulation.fault import Find, Fits, Place, fault
from pcap_tools.codec import Codec
from pcap_tools.codec.message import Message, WireError
from pcap_tools.dialect import Dialect
from pcap_tools.dialect.kinds import NUMBERS
from pcap_tools.dialect.program import Counts, Extent, Kind, Step
from pcap_tools.errors import UsageError

# What is tried in the place of a byte that is no number: not in any text, no digit, no NUL.
FEW = (0xFF, 0x80, 0x21, 0x00)

Damage = Callable[[Message, bytes, WireError], Iterator[bytes]]

# The fields in which a changed byte can bring an error about.
PLACES: dict[WireError, Callable[[Step], bool]] = {
    WireError.UNKNOWN_TYPE: lambda step: step.guard is not None,
    WireError.BAD_MAGIC: lambda step: step.kind is Kind.MAGIC,
    WireError.BAD_LENGTH: lambda step: step.counts is not Counts.NOTHING or step.extent is Extent.PREFIX,
    WireError.BAD_VALUE: lambda step: step.allowed is not None or step.kind is Kind.DIGITS,
    WireError.BAD_TEXT: lambda step: step.kind is Kind.TEXT,
    WireError.NO_DELIMITER: lambda step: step.extent is Extent.UNTIL,
}


def _body(message: Message, datagram: bytes) -> int:
    return len(datagram) - message.padding


def _cut(message: Message, datagram: bytes, error: WireError) -> Iterator[bytes]:
    return (datagram[:length] for length in range(_body(message, datagram) - 1, 0, -1))


def _changed(message: Message, datagram: bytes, error: WireError) -> Iterator[bytes]:
    for step in message.layout.steps if message.layout is not None else ():
        if step.name not in message.ranges or not PLACES.get(error, _anywhere)(step):
            continue
        start, end = message.ranges[step.name]
        values = range(255, -1, -1) if step.kind in NUMBERS or step.extent is Extent.PREFIX else FEW
        for at in range(start, end):
            yield from (datagram[:at] + bytes([value]) + datagram[at + 1 :] for value in values)


def _anywhere(step: Step) -> bool:
    return True


def _shortened(message: Message, datagram: bytes, error: WireError) -> Iterator[bytes]:
    return (datagram[:at] + datagram[at + 1 :] for at in range(_body(message, datagram)))


def _lengthened(message: Message, datagram: bytes, error: WireError) -> Iterator[bytes]:
    return (datagram[:at] + b"\xff" + datagram[at:] for at in range(_body(message, datagram), -1, -1))


def _followed(message: Message, datagram: bytes, error: WireError) -> Iterator[bytes]:
    body = datagram[: _body(message, datagram)]
    return iter((body + b"!", body + b"\0!", datagram + b"!"))


DAMAGES: dict[WireError, tuple[Damage, ...]] = {
    WireError.UNKNOWN_TYPE: (_changed, _cut),
    WireError.INCOMPLETE: (_cut, _changed),
    WireError.NO_DELIMITER: (_shortened, _changed, _cut),
    WireError.BAD_MAGIC: (_changed,),
    WireError.BAD_LENGTH: (_changed, _cut, _lengthened),
    WireError.BAD_VALUE: (_changed,),
    WireError.BAD_TEXT: (_changed, _lengthened),
    WireError.TRAILING: (_followed, _lengthened),
}


def damaged(codec: Codec, datagram: bytes, error: WireError) -> bytes | None:
    """A datagram like this one that has this error and no other, or None if there is none."""
    if error is WireError.EMPTY:
        return b""
    message = codec.decode(datagram)
    tries = chain.from_iterable(damage(message, datagram, error) for damage in DAMAGES[error])
    return next((made for made in tries if codec.decode(made).error is error), None)


def _finds(error: WireError, rule: str) -> Find:
    def find(activation: Activation) -> Edit | None:
        valid = (
            [out for out in activation.of(Purpose.REQUEST) if out.resend_of is None]
            if activation.node is not None
            else []
        )
        possible: dict[object, bool] = activation.memory.setdefault(
            "possible", {}
        )  # by trying is slow: once a kind will do
        for out in valid:
            kind = out.message.message, out.message.form
            if kind not in possible:
                possible[kind] = damaged(activation.codec, out.datagram, error) is not None
            if possible[kind]:
                return partial(_damage, activation, rule, out.datagram, error)
        return None

    return find


def _damage(activation: Activation, rule: str, datagram: bytes, error: WireError) -> list[Label]:
    made = damaged(activation.codec, datagram, error)
    return [] if made is None else _send(activation, rule, made)


def _send(activation: Activation, rule: str, datagram: bytes) -> list[Label]:
    stray = activation.stray(datagram, activation.site.broker)
    activation.outgoing.append(stray)
    return [Label(rule, [stray], f"this datagram is damaged: {stray.message.error}")]


def _can_have(error: WireError) -> Fits:
    """By trying."""

    def check(dialect: Dialect) -> str | None:
        codec = Codec(dialect)
        if any(damaged(codec, codec.build(message), error) is not None for message in _samples(codec)):
            return None
        return f"no request of {dialect.name} can have the error {error}"

    return check


def _samples(codec: Codec) -> Iterator[Message]:
    """A valid request of each kind in each form."""
    for form in codec.dialect.forms:
        for layout in form.layouts:
            if layout.meaning in REQUESTS:
                try:
                    message = codec.message(layout.message, filled(layout, b"a"), form=form.name)
                    codec.build(message)
                except UsageError:
                    continue
                yield message


def _enter() -> None:
    """One fault for each way in which a datagram can be wrong."""
    for error in (WireError.EMPTY, *DAMAGES):
        rule = f"W-{error.upper()}"
        about = f"a client sends an extra datagram with the error {error}; the broker ignores it"
        fault(f"wire-{error}", rule, Place.CLIENT, about, fits=_can_have(error))(_finds(error, rule))


_enter()


def _has_wildcards(dialect: Dialect) -> str | None:
    codec = Codec(dialect)
    published = [message for message in _samples(codec) if meaning_of(dialect, message.message or "") == "publish"]
    if any(_wild(codec, message) is not None for message in published):
        return None
    return f"a topic of {dialect.name} has no room for a wildcard"


def _wild(codec: Codec, message: Message) -> bytes | None:
    """A publish to a wildcard: the last level of its topic is one."""
    topics, name = codec.dialect.spec.topics, message.layout.topic if message.layout is not None else None
    topic = message.fields.get(name) if name is not None else None
    if name is None or topic is None or not topics.wildcards:
        return None
    sign = next(iter(topics.wildcards)).encode()
    if isinstance(topic, int):
        return rebuilt(codec, message, **{name: int(sign)}) if sign.isdigit() else None
    separator = (topics.separator or "").encode()
    above = topic.rpartition(separator)[0] + separator if separator and separator in topic else b""
    counted = {step.name for step in message.layout.steps if step.counts} if message.layout is not None else set()
    fields = {key: value for key, value in message.fields.items() if key not in counted} | {name: above + sign}
    try:
        return codec.build(codec.message(message.message or "", fields, form=message.form))
    except UsageError:
        return None


@fault(
    "wildcard-published",
    "W-WILDCARD-TOPIC",
    Place.CLIENT,
    "a client publishes to a wildcard",
    fits=all_of(_has_wildcards, has_no_sessions),
)
def wildcard_published(activation: Activation) -> Edit | None:
    publish = _publish_done(activation)
    made = _wild(activation.codec, publish.message) if publish is not None else None
    if publish is None or made is None or made == publish.transit.datagram:
        return None

    def edit() -> list[Label]:
        wild = activation.stray(made, activation.site.broker)
        wild.purpose = Purpose.REQUEST
        activation.outgoing.append(wild)
        return [Label("W-WILDCARD-TOPIC", [wild], "there is a wildcard in the topic of a publish", wild.message.topic)]

    return edit


def _publish_done(activation: Activation) -> Sent | None:
    """A client's publish that is over and done with; only then does the ACK of another one mislead nobody."""
    request = acknowledged_request(activation)
    return request if request is not None and request.message.meaning == "publish" else None


WORD = b"20"


def _brokers_own(codec: Codec, form: str | None = None) -> bytes | None:
    """A message that is the broker's alone; rather one that clients would believe than an ACK."""
    dialect = codec.dialect
    names = [name for name, variants in dialect.spec.messages.items() if variants[0].sender == "broker"]
    for name in sorted(names, key=lambda name: meaning_of(dialect, name) == "ack"):
        try:
            layout = dialect.forms[0].layouts_of(name)[0]
            return codec.build(codec.message(name, filled(layout, WORD), form=form))
        except UsageError:
            continue
    return None


def _has_brokers_own(dialect: Dialect) -> str | None:
    return None if _brokers_own(Codec(dialect)) is not None else f"no message of {dialect.name} is the broker's alone"


@fault(
    "wrong-speaker",
    "P-SPEAKER",
    Place.CLIENT,
    "a client sends a message that only the broker sends",
    fits=all_of(broker_acknowledges, _has_brokers_own),
)
def wrong_speaker(activation: Activation) -> Edit | None:
    request = acknowledged_request(activation)
    made = _brokers_own(activation.codec, request.message.form) if request is not None else None
    if made is None:
        return None

    def edit() -> list[Label]:
        stray = activation.stray(made, activation.site.broker)
        if stray.message.meaning != "ack":
            stray.purpose = Purpose.REQUEST  # the broker may well acknowledge it
        activation.outgoing.append(stray)
        return [Label("P-SPEAKER", [stray], f"{stray.message.message} is for the broker to say")]

    return edit

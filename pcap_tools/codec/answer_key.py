"""What ties a request to its ACK, and two numbers beside it: the columns ``key``, ``number`` and ``port`` of a message.

    >>> from pcap_tools import Codec, load_dialect
    >>> dialect = load_dialect("mqttsn")
    >>> publish = bytes.fromhex("080c2000010007 78")
    >>> answer_key(dialect, Codec(dialect).decode(publish), publish)
    7

Plain and slow: this is the definition, against which the columns of ``pcap_tools.columnar.decode.rule_columns`` are
tested. Whatever has an error has none of the three.
"""

from __future__ import annotations

from typing import NamedTuple

from pcap_tools.codec.message import Message
from pcap_tools.dialect.kinds import NUMBERS
from pcap_tools.dialect.program import Dialect, Extent, Kind, Layout, Step, Value, as_int64

ORDER, ECHO, COPY = "order", "echo", "copy"
FNV_BASIS, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
KEY_BITS = 63  # so that a key is never negative
PORT_LIMIT = 1 << 31


class RequestKey(NamedTuple):
    """How ACKs find their requests: ``by`` echo, copy or a field; ``acks`` are the messages that do."""

    by: str
    acks: frozenset[str]


def request_key_of(dialect: Dialect) -> RequestKey | None:
    """The first way that is more than order, or None."""
    ways: dict[str, set[str]] = {}
    for name, variants in dialect.spec.messages.items():
        for variant in variants:
            if variant.acks and variant.acks_by != ORDER:
                ways.setdefault(variant.acks_by, set()).add(name)
    return next((RequestKey(by, frozenset(acks)) for by, acks in ways.items()), None)


def answer_key(dialect: Dialect, message: Message, datagram: bytes) -> int | None:
    """What is equal in a request and in its ACK; None if nothing is."""
    request_key, layout = request_key_of(dialect), message.layout
    if request_key is None or layout is None or message.error is not None:
        return None
    said = datagram[: len(datagram) - message.padding]
    if request_key.by == ECHO:
        return fnv1a(_repeated(layout, message, said))
    holder = request_key.by
    if request_key.by == COPY:
        copy = copy_of_request(layout) if layout.message in request_key.acks else None
        if copy is None:
            return fnv1a(said)
        holder = copy.name
    value = message.fields.get(holder)
    return None if value is None else _number(value)


def topic_number(dialect: Dialect, message: Message) -> int | None:
    """The number that stands for the topic, as 64 bits."""
    value = _valid_field(message, dialect.spec.topics.number)
    return _number(value) if isinstance(value, int) else None


def subscriber_port(dialect: Dialect, message: Message) -> int | None:
    """The port that the message names as the subscriber's; None also for what does not fit into 31 bits."""
    value = _valid_field(message, dialect.spec.broker.subscriber_port)
    return value if isinstance(value, int) and 0 <= value < PORT_LIMIT else None


def fnv1a(data: bytes) -> int:
    """FNV-1a of 64 bits, without the highest."""
    value = FNV_BASIS
    for byte in data:
        value = (value ^ byte) * FNV_PRIME & 0xFFFFFFFFFFFFFFFF
    return value & (1 << KEY_BITS) - 1


def is_repeated(step: Step) -> bool:
    """Whether an echo says the same here: what selects or measures a message is its own."""
    return step.guard is None and not step.counts and step.kind is not Kind.MAGIC


def copy_of_request(layout: Layout) -> Step | None:
    """The field of an ACK that holds the request."""
    return next(
        (step for step in reversed(layout.steps) if step.extent is not Extent.FIXED and step.kind not in NUMBERS), None
    )


def _repeated(layout: Layout, message: Message, said: bytes) -> bytes:
    """The bytes of a message that its echo has too; one that is shared with a guard's bits is none of them."""
    own = [message.ranges[step.name] for step in layout.steps if step.name in message.ranges and not is_repeated(step)]
    return bytes(byte for at, byte in enumerate(said) if not any(start <= at < end for start, end in own))


def _valid_field(message: Message, name: str | None) -> Value | None:
    return None if message.error is not None else message.fields.get(name or "")


def _number(value: Value) -> int:
    """A number as an int64 holds its bits; a text by its hash."""
    return fnv1a(value) if isinstance(value, bytes) else as_int64(value)

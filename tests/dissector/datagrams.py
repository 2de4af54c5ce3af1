"""Datagrams by the thousand for comparing decoders: valid ones of every message, and the same ones damaged."""

from __future__ import annotations

import random
from collections.abc import Iterator

from pcap_tools.codec import Codec
from pcap_tools.codec.message import Message
from pcap_tools.dialect import Dialect
from pcap_tools.dialect.program import Charset, Counts, Extent, Form, Kind, Layout, Step, Value
from pcap_tools.errors import UsageError

_TEXTS = [
    "",
    "a",
    "home/room/light",
    "temp",
    "14C\u00b0",
    "a b",
    "x=1;2,3",
    "sub",
    "\u20ac\U0001f600",
    "0042",
    "0" * 130,
]
_ODD_BYTES = [0, 1, 2, 7, 10, 32, 48, 58, 127, 128, 160, 192, 224, 237, 240, 244, 255]


def generated(dialect: Dialect, count: int, seed: int) -> Iterator[bytes]:
    """``count`` datagrams; half of them are damaged in one to three places."""
    rng = random.Random(f"{dialect.name} {seed}")
    codec = Codec(dialect)
    for number in range(count):
        datagram = _valid(codec, rng)
        yield datagram if number % 2 else _damaged(datagram, rng)


def _valid(codec: Codec, rng: random.Random) -> bytes:
    form = rng.choice(codec.dialect.forms)
    layout = rng.choice(form.layouts)
    fields = {step.name: _value(step, rng) for step in layout.steps if _is_free(step)}
    if any(step.optional for step in layout.steps) and rng.random() < 0.5:
        keep = rng.randrange(len(layout.steps) + 1)
        kept = {step.name for step in layout.steps[:keep]}
        fields = {name: value for name, value in fields.items() if name in kept}
    message = _complete(codec, form, layout, fields)
    return codec.build(message, check=False) if message else bytes(rng.choices(_ODD_BYTES, k=rng.randrange(12)))


def _complete(codec: Codec, form: Form, layout: Layout, fields: dict[str, Value]) -> Message | None:
    try:
        message = codec.message(layout.message, fields, form=form.name)
    except UsageError:
        return None
    return message


def _is_free(step: Step) -> bool:
    return step.kind is not Kind.MAGIC and step.counts is Counts.NOTHING


def _value(step: Step, rng: random.Random) -> Value:
    if step.guard is not None:
        return rng.choice(step.guard)
    if step.allowed is not None and rng.random() < 0.9:
        return rng.choice(step.allowed)
    if step.kind is Kind.BITS:
        return rng.randrange(1 << step.bits)
    if step.kind is Kind.DIGITS:
        return int(rng.randrange(10**step.size))
    if step.kind is Kind.UINT:
        return rng.randrange(1 << 8 * step.size)
    if step.kind is Kind.INT:
        return rng.randrange(1 << 8 * step.size) - (1 << 8 * step.size - 1)
    text = _text(step, rng)
    return text.ljust(step.size, b"_")[: step.size] if step.extent is Extent.FIXED else text


def _text(step: Step, rng: random.Random) -> bytes:
    text = rng.choice(_TEXTS) if rng.random() < 0.8 else "".join(rng.choices("ab/*:= \u00e9", k=rng.randrange(30)))
    if step.charset is Charset.ASCII:
        return text.encode("ascii", "replace")
    if step.kind is Kind.BYTES and rng.random() < 0.3:
        return rng.randbytes(rng.randrange(20))
    return text.encode()


def _damaged(datagram: bytes, rng: random.Random) -> bytes:
    raw = bytearray(datagram)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(raw) + 1)
        kind = rng.randrange(6)
        if kind == 0 and at < len(raw):
            raw[at] = rng.choice(_ODD_BYTES)
        elif kind == 1:
            raw[at:at] = bytes(rng.choices(_ODD_BYTES, k=rng.randint(1, 3)))
        elif kind == 2:
            del raw[at : at + rng.randint(1, 3)]
        elif kind == 3:
            del raw[at:]
        elif kind == 4:
            raw += bytes(rng.choice([1, 2, 30, 300]))
        elif raw:
            raw[rng.randrange(min(8, len(raw)))] = rng.randrange(256)
    return bytes(raw)

"""Messages of a dialect with values that decoders find hard: the ends of every range, texts of awkward sizes and bytes.

The codec builds them. What it refuses (a text too long for its length in front) is built all the same, without checks.
"""

from __future__ import annotations

import random

from pcap_tools.codec import Codec
from pcap_tools.dialect.kinds import NUMBERS
from pcap_tools.dialect.program import Charset, Counts, Extent, Kind, Layout, Step, Value
from pcap_tools.errors import UsageError

_SIZES = (0, 0, 1, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 99, 100, 127, 128, 129, 254, 255, 256, 257)
_WORDS = (
    "",
    "a",
    "home/room/light",
    "temp",
    "a b",
    "x=1;2,3",
    "sub",
    "0042",
    "#",
    "+",
    "*",
    "a/*/b",
    "\\",
    '"',
    "\x7f",
)
_LETTERS = "ab/*:= ;,|0\t"
_WIDE = (
    "\u00b0",
    "\u00e9",
    "\u07ff",
    "\u0800",
    "\u20ac",
    "\ud7ff",
    "\ue000",
    "\uffff",
    "\U00010000",
    "\U0010ffff",
    "\0",
)
_JAVA = (b"\xc0\x80", b"\xdf\xbf", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xef\xbf\xbf", b"\xc1\xbf")


def built(codec: Codec, rng: random.Random) -> bytes:
    """A datagram of any message in any form; nearly all are valid."""
    form = rng.choice(codec.dialect.forms)
    if not form.layouts:
        return b"\0"
    layout = rng.choice(form.layouts)
    fields = {step.name: value_of(step, rng) for step in layout.steps if _is_free(step)}
    if any(step.optional for step in layout.steps) and rng.random() < 0.5:
        kept = {step.name for step in layout.steps[: rng.randrange(len(layout.steps) + 1)]}
        fields = {name: value for name, value in fields.items() if name in kept}
    try:
        message = codec.message(layout.message, fields, form=form.name)
    except UsageError:
        return _anyhow(layout, rng)
    if form.nul_padding and rng.random() < 0.3:
        message.padding = rng.choice((0, 1, 2, 31, 33))
    return codec.build(message, check=False)


def _anyhow(layout: Layout, rng: random.Random) -> bytes:
    """Bytes that begin like this layout, where its fields cannot be put together."""
    heads = [step.literal for step in layout.steps[:2]] + [bytes([rng.randrange(256)]) for _ in range(6)]
    return b"".join(heads)


def _is_free(step: Step) -> bool:
    return step.kind is not Kind.MAGIC and step.counts is Counts.NOTHING


def value_of(step: Step, rng: random.Random) -> Value:
    """A value for a field: one that it may have, most often."""
    if step.guard is not None:
        return rng.choice(step.guard)
    if step.kind not in (Kind.TEXT, Kind.BYTES):
        return rng.choice(step.allowed) if step.allowed and rng.random() < 0.9 else _number(step, rng)
    text = _text(step, rng)
    if step.extent is Extent.FIXED:
        return text.ljust(step.size, b"_")[: step.size]
    return text.replace(step.literal, b"") if step.literal and rng.random() < 0.9 else text


def _number(step: Step, rng: random.Random) -> int:
    low, high = NUMBERS[step.kind](step.size, step.bits)
    near = (low, low + 1, high, high - 1, high // 2, high // 2 + 1, 0, 1, 10**15 - 1, 10**15, 1 << 53, 1 << 63)
    number = rng.choice(near) if rng.random() < 0.5 else rng.randint(low, high)
    return min(max(number, low), high)


def _text(step: Step, rng: random.Random) -> bytes:
    way = rng.random()
    if way < 0.5:
        return rng.choice(_WORDS).encode()
    size = rng.choice(_SIZES)
    if way < 0.6:
        return (rng.choice(_LETTERS) * size).encode()
    if step.charset is Charset.ANY and way < 0.8:
        return rng.randbytes(size)
    if step.charset is Charset.JAVA and way < 0.9:
        return b"".join(rng.choices(_JAVA, k=rng.randrange(6)))
    if step.charset is Charset.ASCII:
        return "".join(rng.choices(_LETTERS, k=size)).encode()
    text = "".join(rng.choices(_LETTERS, k=min(size, 40))) + "".join(rng.choices(_WIDE, k=rng.randrange(4)))
    return text.encode("utf-8", "surrogatepass")

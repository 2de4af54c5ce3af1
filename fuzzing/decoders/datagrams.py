"""Datagrams by the million, from a seed: valid ones of every message, and the same ones damaged in every way we know.

A run of datagrams begins with some bases (built by the codec, the vectors, other dialects' vectors); most of its
datagrams are bases with one to five mutations. Mutations like the borders of fields, where decoders decide something.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from fuzzing.decoders.outcome import Item
from fuzzing.decoders.valid_messages import built
from pcap_tools.codec import Codec
from pcap_tools.columnar.read.datagrams import NO_IDENT, DatagramBatch
from pcap_tools.dialect import Dialect
from pcap_tools.dialect.program import Extent
from tests.vectors import load_vectors

MOST_BASES = 240
LARGEST = 65_507  # bytes of payload in a UDP datagram
USUAL = 400  # larger bases are taken seldom: they cost much and say little
_GUARD_BYTES = 64  # behind a batch, as its contract has it
_GUARD = 0xEE
_ODD = [0, 1, 2, 7, 9, 10, 13, 31, 32, 47, 48, 57, 58, 92, 127, 128, 160, 191, 192, 193, 194, 223, 224, 237, 239, 240]
_ODD += [244, 245, 254, 255]
_PIECES = [
    b"\0",
    b"\0\0\0",
    b"\xff\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xef\xbf\xbf",
    b"00",
    b"-1",
]
_PIECES += [b"\xf0\x9f\x98\x80", b"\xe2\x80\xae", b"\x1b[31m", b"\r\n", b"\xac\xed\x00\x05\x77", b"\x80", b"9" * 5]
_FILLS = (b"\0\0", b"\xff\xff", b"\x7f\xff", b"\x80\0", b"00", b"99")  # the first byte, and all others
_GROWTHS = (1, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 300)


class Base(NamedTuple):
    """A datagram to start from, and the places where its fields begin and end."""

    payload: bytes
    borders: tuple[int, ...]


def seeded(*words: object) -> random.Random:
    """Randomness that these words repeat."""
    return random.Random(" ".join(map(str, words)))  # noqa: S311 - traffic, not secrets


@cache
def _vectors() -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for vector in load_vectors():
        found.setdefault(vector.dialect, []).append(vector.datagram)
    return found


def anything(_: Item) -> bool:
    """For decoders that take every datagram."""
    return True


def items_of(
    dialect: Dialect, count: int, rng: random.Random, takes: Callable[[Item], bool] = anything
) -> Iterator[Item]:
    """So many datagrams for this dialect; some of them cut by the capture."""
    bases = bases_of(dialect, rng, min(MOST_BASES, count // 4 + 12))
    pieces = _PIECES + _literals(dialect)
    made = 0
    while made < count:
        way = rng.random()
        if way < 0.03:
            payload = rng.randbytes(rng.choice((1, 2, 3, 5, 9, 17, 40, 300)))
        else:
            base = rng.choice(bases)
            payload = base.payload if way < 0.25 else mutated(base, bases, pieces, rng)
        missing = rng.choice((1, 2, 9, 1400)) if rng.random() < 0.04 else 0
        item = Item(dialect.name, payload, max(len(payload), min(len(payload) + missing, LARGEST)))
        if takes(item):
            made += 1
            yield item


def bases_of(dialect: Dialect, rng: random.Random, count: int) -> list[Base]:
    """Where mutations start: half of them built, the others vectors, a few of those of other dialects."""
    codec = Codec(dialect)
    payloads = [built(codec, rng) for _ in range(count // 2)]
    own = _vectors().get(dialect.name, [])
    payloads += rng.choices(own, k=count // 2) if own else [built(codec, rng) for _ in range(count // 2)]
    payloads += [rng.choice(rng.choice(list(_vectors().values()))) for _ in range(count // 20)]
    kept = [payload for payload in payloads if len(payload) <= USUAL or rng.random() < 0.02]
    return [_base(codec, payload) for payload in kept or [b"\0"]]


def _base(codec: Codec, payload: bytes) -> Base:
    borders = {edge for span in codec.decode(payload).ranges.values() for edge in span}
    return Base(payload, tuple(sorted(borders | {0, len(payload)})))


def _literals(dialect: Dialect) -> list[bytes]:
    """Delimiters, constants and texts that select: what may be put where it does not belong."""
    steps = [step for form in dialect.forms for layout in form.layouts for step in layout.steps]
    found = {step.literal for step in steps if step.literal}
    found |= {step.literal[:1] for step in steps if step.extent is Extent.UNTIL}
    found |= {value for step in steps for value in step.guard or () if isinstance(value, bytes)}
    return 3 * sorted(found)


def mutated(base: Base, bases: Sequence[Base], pieces: Sequence[bytes], rng: random.Random) -> bytes:
    """The base with one to five things done to it."""
    data = bytearray(base.payload)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        _mutate(data, base, bases, pieces, rng)
    return bytes(data[:LARGEST])


def _mutate(data: bytearray, base: Base, bases: Sequence[Base], pieces: Sequence[bytes], rng: random.Random) -> None:
    size = len(data)
    at = min(rng.choice(base.borders), size) if rng.random() < 0.6 else rng.randrange(min(size, USUAL) + 1)
    way = rng.randrange(12)
    if way < 5 and at < size:
        data[at] = _byte(data, at, way, rng)
    elif way == 5:
        data[at:at] = rng.choice(pieces)
    elif way == 6:
        data[at:at] = bytes(rng.choices(_ODD, k=rng.randint(1, 4)))
    elif way == 7:
        del data[at : at + rng.choice((1, 1, 2, 3, 8))]
    elif way == 8:
        del data[at:]
    elif way == 9:
        more = rng.choice(_GROWTHS) if rng.random() < 0.999 else LARGEST - size
        data += bytes(more) if rng.random() < 0.7 else rng.randbytes(min(more, 40))
    elif way == 10:
        other = rng.choice(bases)
        data[at:] = other.payload[min(rng.choice(other.borders), len(other.payload)) if rng.random() < 0.5 else at :]
    else:
        _field(data, base, rng)


def _byte(data: bytearray, at: int, way: int, rng: random.Random) -> int:
    """Another byte for this place."""
    if way == 0:
        return data[at] ^ 1 << rng.randrange(8)
    if way == 1:
        return (data[at] + rng.choice((1, 255))) % 256
    if way == 2:  # what a length here might be, or one beside it
        return (len(data) - rng.choice((0, at, at + 1, at + 2)) + rng.choice((0, 0, 0, 1, -1))) % 256
    return rng.choice(_ODD) if way == 3 else rng.randrange(256)


def _field(data: bytearray, base: Base, rng: random.Random) -> None:
    """A whole field: at the ends of its range, doubled, or taken out."""
    index = rng.randrange(len(base.borders))
    first, last = base.borders[index - 1] if index else 0, base.borders[index]
    size = min(last - first, USUAL)
    way = rng.randrange(6)
    if way == 0:
        data[first:last] = data[first:last] * 2
    elif way == 1:
        del data[first:last]
    elif size > 0:
        fill = rng.choice(_FILLS)
        data[first:last] = fill[:1] + fill[1:] * (size - 1)


def batch_of(items: Sequence[Item]) -> DatagramBatch:
    """Datagrams one behind the other, between bytes that are nobody's."""
    count = len(items)
    joined = b"".join([bytes([_GUARD]), *(item.payload for item in items), bytes([_GUARD]) * _GUARD_BYTES])
    sizes = np.array([len(item.payload) for item in items], np.int32)
    numbers, zeros = np.arange(1, count + 1, dtype=np.int64), np.zeros(count, np.int32)
    return DatagramBatch(
        buffer=np.frombuffer(bytearray(joined), np.uint8),
        count=count,
        frame=numbers,
        time_ns=numbers,
        start=np.cumsum(sizes, dtype=np.int64) - sizes + 1,
        size=sizes,
        length=np.array([item.length for item in items], np.int32),
        src=zeros,
        dst=zeros,
        sport=zeros,
        dport=zeros,
        copy_of=zeros.astype(np.int64),
        ip_id=np.full(count, NO_IDENT, np.int32),
        addresses=["10.0.0.1"],
    )

"""Captures of every kind, and what can be wrong with them: one mutator for each class of broken file.

    >>> mutant = make_mutant(seed=1, number=7)                             # doctest: +SKIP
    >>> mutant.kind, len(mutant.content), len(mutant.sound)

Each mutant follows from the seed and its number alone, so that any worker, or a user, can make it again. `sound` are
the frames in front of the damage, as they were built and not as anyone has read them: a reader must give them.
"""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from fuzzing.captures.sound import Good, good_captures
from tests.pcap_tools.capture import packets as p

# Where lengths are in a record of pcap and in an enhanced block.
_PCAP_CAPTURED, _BLOCK_CAPTURED = 8, 20
_LIES = (0, 1, 7, 8, 19, 20, 27, 28, 1499, 4096, 65535)


@dataclass(frozen=True)
class Mutant:
    """A capture with something wrong; `sound` are the frames that must be read whatever comes behind them."""

    kind: str
    origin: str
    content: bytes
    sound: tuple[bytes, ...]


# --- Mutators: what is wrong, and how many frames come before it ----------------------------------------------------

Damaged = tuple[bytes, int]
Mutator = Callable[[random.Random, Good], Damaged]
MUTATORS: dict[str, Mutator] = {}


def _class(name: str) -> Callable[[Mutator], Mutator]:
    def add(mutator: Mutator) -> Mutator:
        MUTATORS[name] = mutator
        return mutator

    return add


def _packed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)  # a mutant is the same at any time


def _with(good: Good, at: int, *instead: bytes) -> Damaged:
    """The capture with record `at` replaced."""
    records = good.records
    records[at : at + 1] = instead
    return good.head + b"".join(records), at


def _put(good: Good, record: bytes, place: int, number: int) -> bytes:
    field = struct.pack(good.order + "I", number & 0xFFFFFFFF)
    return record[:place] + field + record[place + 4 :]


def _place(rng: random.Random, good: Good) -> tuple[int, bytes]:
    at = rng.randrange(len(good.packets))
    return at, good.records[at]


@_class("caplen beyond the block")
def _long_captured(rng: random.Random, good: Good) -> Damaged:
    at, record = _place(rng, good)
    place = _PCAP_CAPTURED if good.format == "pcap" else _BLOCK_CAPTURED
    captured = len(good.frames[at]) + rng.choice((1, 4, 100, 70_000, 262_144, 262_145, 0xFFFFFF00))
    return _with(good, at, _put(good, record, place, captured))


def _block_length(*lengths: int) -> Mutator:
    def mutate(rng: random.Random, good: Good) -> Damaged:
        blocks = good.as_pcapng()
        at, record = _place(rng, blocks)
        length = struct.pack(good.order + "I", rng.choice(lengths))
        bad = record[:4] + length + record[8:-4] + (length if rng.random() < 0.5 else record[-4:])
        return _with(blocks, at, bad)

    return mutate


MUTATORS["block length 0"] = _block_length(0)
MUTATORS["block length below 12"] = _block_length(*range(1, 12))
MUTATORS["block length huge"] = _block_length(1 << 24, (1 << 24) + 1, 1 << 31, (1 << 32) - 1, (1 << 32) - 4)


@_class("block length not a multiple of 4")
def _odd_length(rng: random.Random, good: Good) -> Damaged:
    blocks = good.as_pcapng()
    at, record = _place(rng, blocks)
    length = struct.pack(good.order + "I", len(record) + rng.choice((-3, -2, -1, 1, 2, 3)))
    return _with(blocks, at, record[:4] + length + record[8:-4] + length)


@_class("trailer differs")
def _other_trailer(rng: random.Random, good: Good) -> Damaged:
    blocks = good.as_pcapng()
    at, record = _place(rng, blocks)
    return _with(blocks, at, _put(blocks, record, len(record) - 4, len(record) ^ 1 << rng.randrange(32)))


@_class("caplen over snaplen")
def _small_snaplen(rng: random.Random, good: Good) -> Damaged:
    """No damage: the lengths of the records count."""
    snaplen = rng.choice((0, 1, 14, 40))
    if good.format == "pcap":
        head = p.pcap_header(good.link_type, good.magic, good.order, snaplen)
    else:
        head = p.section(good.order) + p.interface(good.link_type, good.order, tsresol=9, snaplen=snaplen)
    return head + b"".join(good.records), len(good.packets)


@_class("cut last record")
def _cut(rng: random.Random, good: Good) -> Damaged:
    at, record = _place(rng, good)
    return good.head + b"".join(good.records[:at]) + record[: rng.randrange(1, len(record))], at


@_class("zero progress")
def _nothing(rng: random.Random, good: Good) -> Damaged:
    """Records, blocks and options of the least length, thousands of them; each must be passed by."""
    count = rng.choice((1, 100, 5000))
    if good.format == "pcap":
        nothing = good.record(b"", p.T0) * count
    else:
        options = p.option(2988, b"", good.order) * count
        packet = struct.pack(good.order + "IIIII", 0, 0, 0, 0, 0) + options
        nothing = rng.choice((p.block(5, b"", good.order) * count, p.block(6, packet, good.order)))
    return good.content + nothing, len(good.packets)


@_class("several sections and byte orders")
def _sections(rng: random.Random, good: Good) -> Damaged:
    blocks = good.as_pcapng()
    others = [one.as_pcapng() for one in rng.choices(good_captures(), k=rng.randrange(1, 4))]
    return blocks.content + b"".join(one.content for one in others), len(good.packets)


@_class("odd if_tsresol")
def _clock(rng: random.Random, good: Good) -> Damaged:
    resolution = rng.choice((0, 3, 10, 19, 20, 127, 0x80, 0x8A, 0xA0, 0xBF, 0xC0, 0xFF))
    offset = rng.choice((None, 0, -1, 1 << 40, -(1 << 40), (1 << 63) - 1, -(1 << 63)))
    head = p.section(good.order) + p.interface(good.link_type, good.order, tsresol=resolution, tsoffset=offset)
    return head + b"".join(p.enhanced(one, rng.getrandbits(64), good.order) for one in good.frames), len(good.packets)


@_class("backward and far-future times")
def _times(rng: random.Random, good: Good) -> Damaged:
    most = 1 << (62 if good.format == "pcapng" else 32)
    scale = 1 if good.format == "pcapng" else 10**9
    odd = [p.T0, 0, scale, (most - 1) * scale, most // 2 * scale]
    times = [rng.choice(odd) - rng.choice((0, 0, scale)) for _ in good.packets]
    records = [good.record(one, max(0, when)) for one, when in zip(good.frames, times, strict=True)]
    return good.head + b"".join(records), len(good.packets)


@_class("unknown link types")
def _unknown_links(rng: random.Random, good: Good) -> Damaged:
    if good.format == "pcap":
        return p.pcap_header(rng.choice((2, 147, 195, 65535)), good.magic, good.order) + b"".join(good.records), len(
            good.packets
        )
    links = [rng.randrange(300, 65536) for _ in range(rng.randrange(1, 30))]
    head = p.section(good.order) + b"".join(p.interface(link, good.order) for link in (good.link_type, *links))
    of = [rng.randrange(len(links) + 1) for _ in good.packets]
    blocks = [p.enhanced(one, p.T0, good.order, interface_id=slot) for one, slot in zip(good.frames, of, strict=True)]
    return head + b"".join(blocks), len(good.packets)


def _lie(place_in_packet: Callable[[bytes], int]) -> Mutator:
    """A 16-bit length inside some packets says something else; as a file all is well."""

    def mutate(rng: random.Random, good: Good) -> Damaged:
        frames = []
        for packet in good.packets:
            at = place_in_packet(packet)
            if rng.random() < 0.5 and at + 2 <= len(packet):
                packet = packet[:at] + struct.pack(">H", rng.choice(_LIES)) + packet[at + 2 :]
            frames.append(good.frame(packet))
        return good.head + b"".join(good.record(one, p.T0 + n) for n, one in enumerate(frames)), 0

    return mutate


MUTATORS["IP total length lies"] = _lie(lambda packet: 2 if packet[0] >> 4 == 4 else 4)
MUTATORS["UDP length lies"] = _lie(lambda packet: 24 if packet[0] >> 4 == 4 else 44)


def _fragments(
    rng: random.Random, good: Good, offsets: tuple[int, ...], sizes: tuple[int, ...], idents: int
) -> Damaged:
    """Behind the sound frames, fragments that fit together by rng only."""
    odd = []
    for _ in range(rng.randrange(20, 60)):
        body, offset = bytes(rng.choice(sizes)), rng.choice(offsets)
        more, ident = rng.random() < 0.8, rng.randrange(idents)
        if rng.random() < 0.5:
            odd.append(p.ipv4(body, ident=ident, offset=offset, more=more))
        else:
            odd.append(p.ipv6(p.fragment_header(17, offset, more, ident) + body, next_header=44))
    frames = [good.frame(packet) for packet in odd]
    return good.content + b"".join(good.record(one, p.T0 + n) for n, one in enumerate(frames)), len(good.packets)


@_class("fragment bombs")
def _bomb(rng: random.Random, good: Good) -> Damaged:
    return _fragments(rng, good, (8, 64, 65_520, 65_528), (1, 8, 1400), 65_536)


@_class("overlapping fragments")
def _overlaps(rng: random.Random, good: Good) -> Damaged:
    return _fragments(rng, good, tuple(range(0, 64, 8)), (1, 8, 16, 20, 40), 3)


@_class("gzip bombs")
def _gzip_bomb(rng: random.Random, good: Good) -> Damaged:
    """Zeros pack well: empty records of pcap, no block of pcapng; or nothing but empty members."""
    zeros = _packed(bytes(1 << rng.choice((12, 12, 14, 14, 16, 18))))
    empty = _packed(b"") * rng.randrange(1, 200)
    return _packed(good.content) + rng.choice((zeros, empty, empty + zeros)), len(good.packets)


@_class("truncated gzip")
def _cut_gzip(rng: random.Random, good: Good) -> Damaged:
    packed = _packed(good.content)
    packed = packed[: rng.randrange(20, len(packed))]
    return packed, good.whole_records(len(zlib.decompressobj(31).decompress(packed)))


@_class("damaged gzip")
def _bad_gzip(rng: random.Random, good: Good) -> Damaged:
    packed = bytearray(_packed(good.content))
    packed[rng.randrange(10, len(packed))] ^= 1 << rng.randrange(8)
    return bytes(packed), 0


@_class("concatenated captures")
def _concatenated(rng: random.Random, good: Good) -> Damaged:
    return good.content + rng.choice(good_captures()).content, len(good.packets)


@_class("empty file")
def _empty(rng: random.Random, good: Good) -> Damaged:
    return good.head[: rng.randrange(4)], 0


@_class("Git LFS pointer")
def _pointer(rng: random.Random, good: Good) -> Damaged:
    oid = rng.randbytes(32).hex()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 12345\n".encode(), 0


@_class("only 0xFF or 0x00")
def _constant(rng: random.Random, good: Good) -> Damaged:
    byte = rng.choice((b"\xff", b"\0"))
    if rng.random() < 0.5:
        return byte * rng.randrange(1, 5000), 0
    at = rng.randrange(len(good.packets))
    return good.head + b"".join(good.records[:at]) + byte * rng.randrange(1, 5000), at


@_class("random bytes")
def _noise(rng: random.Random, good: Good) -> Damaged:
    """A few bytes changed, added or taken away, anywhere."""
    data = bytearray(good.content)
    first = len(data)
    for _ in range(rng.randrange(1, 6)):
        at, size = rng.randrange(len(data)), rng.randrange(9)
        first = min(first, at)
        data[at : at + size] = rng.randbytes(rng.randrange(9))
    return bytes(data), good.whole_records(first)


def make_mutant(seed: int, number: int) -> Mutant:
    """The classes take turns; one of five mutants is damaged once more, anywhere, and one of ten is gzipped."""
    rng = random.Random(f"{seed} {number}")  # noqa: S311 - damage, not secrets
    kind = list(MUTATORS)[number % len(MUTATORS)]
    good = rng.choice(good_captures())
    content, sound = MUTATORS[kind](rng, good)
    if rng.random() < 0.2 and content:
        at = rng.randrange(len(content))
        content = content[:at] + rng.randbytes(rng.randrange(5)) + content[at + rng.randrange(5) :]
        sound = 0
    if rng.random() < 0.1 and not content.startswith(b"\x1f\x8b"):
        content = _packed(content)
    return Mutant(kind, good.name, content, tuple(good.frames[:sound]))

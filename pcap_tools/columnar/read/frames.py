"""Records of pcap and blocks of pcapng into a table of frames, one row a frame; from any place in a file.

The kernels know what a sound record is and nothing more. Whatever else comes (a section, an interface, damage) is left
to the pure-Python reader, which also finds the words for it. `Facts` is what a reader must know to go on in the middle
of a capture; a `Walker` walks through the records from there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numba import types
from numpy.typing import NDArray

from pcap_tools.capture.damage import Corrupt
from pcap_tools.capture.frame import LATEST_NS, MAX_CAPTURED
from pcap_tools.capture.frames import frame_parser
from pcap_tools.capture.pcap import (
    FILE_HEADER,
    FILE_HEADS,
    LINK_TYPE_MASK,
    MAGICS,
    MODIFIED,
    NANOSECONDS,
    why_no_record,
)
from pcap_tools.capture.pcapng import (
    ENHANCED,
    INTERFACE,
    MAX_BLOCK,
    NUMBERED,
    OBSOLETE,
    SECTION,
    SIMPLE,
    BlockReader,
    InterfaceBlock,
)
from pcap_tools.capture.streams import BrokenStream, Window
from pcap_tools.kernels.jit import i64, inlined, kernel, u64
from pcap_tools.kernels.words import load64, swapped

# Columns of the table of frames, whose rows are as long as a cache line. PLACE is the interface as copies see it,
# SLOT its place in the section in force.
NUMBER, TIME, POSITION, CAPTURED, ORIGINAL, SLOT, PLACE, PACKET_TYPE = range(8)
FRAME_COLUMNS = 8
# Set in SLOT where TIME still holds ticks, because the clock or the time itself is beyond what a kernel can count.
ODD_TIME = 1 << 40

# Columns of the table of interfaces. A time is ticks * MULTIPLIER // DIVISOR + OFFSET up to MOST seconds.
IF_PLACE, IF_LINK, IF_SNAPLEN, IF_MULTIPLIER, IF_DIVISOR, IF_OFFSET, IF_MOST = range(7)
INTERFACE_COLUMNS = 7

# Link layers by the way they are read; UNKNOWN is left to Python, which warns and makes it SILENT.
NULL, ETHERNET, RAW, LOOP, COOKED1, RAW_IPV6, COOKED2 = range(7)
UNKNOWN, SILENT = -1, -2
LINKS = {
    0: NULL,
    1: ETHERNET,
    12: RAW,
    14: RAW,
    101: RAW,
    108: LOOP,
    113: COOKED1,
    228: RAW,
    229: RAW_IPV6,
    276: COOKED2,
}

NO_PACKET_TYPE = -1

# Why a walk stopped: as far as it was told, for want of bytes, or at something that Python must look at.
DONE, NEED, ASK = 0, 1, 2

BYTES = types.Array(types.uint8, 1, "C")
TABLE = types.Array(types.int64, 2, "C")

_RECORD, _MODIFIED_RECORD = 16, 24
_NUMBERED = tuple(sorted(NUMBERED))
_FILE_HEADS = tuple(u64(int.from_bytes(head, "little")) for head in sorted(FILE_HEADS))
_LITTLE_MAGIC, _BIG_MAGIC = 0x1A2B3C4D, 0x4D3C2B1A


@inlined
def u16(buffer: Any, at: int, big: bool) -> Any:
    """Two bytes at `at`."""
    word = load64(buffer, at)
    return i64(swapped(word) >> u64(48)) if big else i64(word & u64(0xFFFF))


@inlined
def u32(buffer: Any, at: int, big: bool) -> Any:
    """Four bytes at `at`."""
    word = load64(buffer, at)
    return i64(swapped(word) >> u64(32)) if big else i64(word & u64(0xFFFFFFFF))


@inlined
def _begins_a_file(buffer: Any, at: int) -> Any:
    word = load64(buffer, at)
    for head in _FILE_HEADS:  # noqa: SIM110  # numba has no any()
        if word == head:
            return True
    return False


# --- pcap -----------------------------------------------------------------------------------------------------------


@kernel(
    BYTES,
    types.int64,
    types.int64,
    types.int64,
    types.int64,
    types.boolean,
    types.int64,
    types.boolean,
    TABLE,
    types.int64,
)
def walk_pcap(
    buffer: Any,
    at: int,
    have: int,
    limit: int,
    number: int,
    big: bool,
    scale: int,
    modified: bool,
    frames: Any,
    most: int,
) -> tuple[int, int, int, int, int]:
    """Up to `most` frames of records that begin before `limit`.

    How many there were, where it stopped, the last one's number, why it stopped, how many bytes it needs to go on.
    """
    header = _MODIFIED_RECORD if modified else _RECORD
    found = 0
    while found < most and at < limit:
        if at + header > have:
            return found, at, number + found, NEED, header
        captured = u32(buffer, at + 8, big)
        if captured > MAX_CAPTURED or (captured == 0 and _begins_a_file(buffer, at)):
            return found, at, number + found, ASK, header
        if at + header + captured > have:
            return found, at, number + found, NEED, header + captured
        if modified:
            frames[found, PLACE] = u32(buffer, at + 16, big)
            frames[found, PACKET_TYPE] = buffer[at + 22]
        frames[found, NUMBER] = number + found + 1
        frames[found, TIME] = u32(buffer, at, big) * 1_000_000_000 + u32(buffer, at + 4, big) * scale
        frames[found, POSITION] = at + header
        frames[found, CAPTURED] = captured
        frames[found, ORIGINAL] = u32(buffer, at + 12, big)
        at += header + captured
        found += 1
    return found, at, number + found, DONE, 0


# --- pcapng ---------------------------------------------------------------------------------------------------------


@inlined
def _block_size(buffer: Any, at: int, big: bool) -> Any:
    """The size with padding of the block at `at`, or 0 if it cannot be one."""
    if u32(buffer, at, False) == SECTION:
        magic = u32(buffer, at + 8, False)
        if magic == _BIG_MAGIC:
            big = True
        elif magic == _LITTLE_MAGIC:
            big = False
        else:
            return 0
    length = u32(buffer, at + 4, big)
    return (length + 3) // 4 * 4 if 12 <= length <= MAX_BLOCK else 0


@inlined
def _sound_options(buffer: Any, at: int, stop: int, big: bool) -> Any:
    while at + 4 <= stop:
        code = u16(buffer, at, big)
        length = u16(buffer, at + 2, big)
        if code == 0:
            return True
        if at + 4 + length > stop:
            return False
        at += 4 + (length + 3) // 4 * 4
    return True


@inlined
def _set_time(frames: Any, found: int, high: int, low: int, interfaces: Any, slot: int) -> None:
    ticks = u64(high) << u64(32) | u64(low)
    divisor = u64(interfaces[slot, IF_DIVISOR])
    seconds = ticks // divisor if divisor != u64(1) else ticks
    most = interfaces[slot, IF_MOST]
    if most < 0 or seconds > u64(most):
        frames[found, TIME] = i64(ticks)
        frames[found, SLOT] = slot | ODD_TIME
        return
    multiplier = interfaces[slot, IF_MULTIPLIER]
    time = i64(seconds) * multiplier
    if divisor != u64(1):
        time += i64(ticks - seconds * divisor) * multiplier // i64(divisor)
    frames[found, TIME] = time + interfaces[slot, IF_OFFSET]


@inlined
def _packet_block(
    buffer: Any, start: int, stop: int, kind: int, big: bool, interfaces: Any, slots: int, frames: Any, found: int
) -> Any:
    """The frame of an enhanced or obsolete packet block, or False if the block is not sound."""
    if stop - start < 20:
        return False
    slot = u32(buffer, start, big) if kind == ENHANCED else u16(buffer, start, big)
    captured = u32(buffer, start + 12, big)
    if slot >= slots or captured > MAX_CAPTURED or start + 20 + captured > stop:
        return False
    if not _sound_options(buffer, start + 20 + (captured + 3) // 4 * 4, stop, big):
        return False
    frames[found, POSITION] = start + 20
    frames[found, CAPTURED] = captured
    frames[found, ORIGINAL] = u32(buffer, start + 16, big)
    frames[found, SLOT] = slot
    _set_time(frames, found, u32(buffer, start + 4, big), u32(buffer, start + 8, big), interfaces, slot)
    frames[found, PLACE] = interfaces[slot, IF_PLACE]
    return True


@inlined
def _simple_block(
    buffer: Any, start: int, stop: int, big: bool, interfaces: Any, slots: int, frames: Any, found: int
) -> Any:
    if stop - start < 4 or slots == 0:
        return False
    original = u32(buffer, start, big)
    snaplen = interfaces[0, IF_SNAPLEN]
    captured = min(original, snaplen) if snaplen else original
    if captured > MAX_CAPTURED or start + 4 + captured > stop:
        return False
    frames[found, POSITION] = start + 4
    frames[found, CAPTURED] = captured
    frames[found, ORIGINAL] = original
    frames[found, SLOT] = 0
    frames[found, TIME] = 0
    frames[found, PLACE] = interfaces[0, IF_PLACE]
    return True


@inlined
def _is_numbered(kind: int) -> Any:
    for other in _NUMBERED:  # noqa: SIM110  # numba has no any()
        if kind == other:
            return True
    return False


@kernel(
    BYTES, types.int64, types.int64, types.int64, types.int64, types.boolean, TABLE, types.int64, TABLE, types.int64
)
def walk_pcapng(
    buffer: Any,
    at: int,
    have: int,
    limit: int,
    number: int,
    big: bool,
    interfaces: Any,
    slots: int,
    frames: Any,
    most: int,
) -> tuple[int, int, int, int, int, int]:
    """Up to `most` frames of blocks that begin before `limit`: how many, where it stopped, last number, why, bytes
    needed, and how many of them have an ODD_TIME.
    """
    found = odd = 0
    while found < most and at < limit:
        if at + 12 > have:
            return found, at, number, NEED, 12, odd
        kind = u32(buffer, at, big)
        size = _block_size(buffer, at, big)
        if size == 0:
            return found, at, number, ASK, 12, odd
        if at + size > have:
            return found, at, number, NEED, size, odd
        stop = at + size - 4
        if kind in (SECTION, INTERFACE) or u32(buffer, at + 4, big) != u32(buffer, stop, big):
            return found, at, number, ASK, size, odd
        if kind in (ENHANCED, OBSOLETE, SIMPLE):
            if kind == SIMPLE:
                sound = _simple_block(buffer, at + 8, stop, big, interfaces, slots, frames, found)
            else:
                sound = _packet_block(buffer, at + 8, stop, kind, big, interfaces, slots, frames, found)
            if not sound:
                return found, at, number, ASK, size, odd
            number += 1
            frames[found, NUMBER] = number
            odd += frames[found, SLOT] >> 40
            found += 1
        elif _is_numbered(kind):
            number += 1
        at += size
    return found, at, number, DONE, 0, odd


PCAP, PCAPNG = "pcap", "pcapng"
Walked = tuple[int, int, int, int, int]
# Who may see copies: nobody, maybe later in the file, or from here on.
Copies = Literal["never", "later", "now"]


@dataclass(frozen=True)
class Facts:
    """The format and, for pcapng, the section in force."""

    format: str
    order: str
    magic: int
    interfaces: tuple[InterfaceBlock, ...]
    next_interface: int


def read_facts(name: str, head: bytes, trouble: str) -> Facts:
    """From the first bytes of a file; raises `CaptureError` or `Corrupt` as `read_frames` does."""
    frame_parser(name, _window(head, 0, trouble))
    if head[:4] not in MAGICS:
        return Facts(PCAPNG, "<", 0, (), 0)
    order, magic = MAGICS[head[:4]]
    (link_type,) = struct.unpack_from(order + "I", head, 20)
    return Facts(PCAP, order, magic, (InterfaceBlock(0, link_type & LINK_TYPE_MASK, 0, 1, 1, 0),), 1)


def head_size(start: bytes) -> int:
    """How many bytes `read_facts` should see, by the first four."""
    return FILE_HEADER if start in MAGICS else 64


def first_record(facts: Facts) -> int:
    """Where the walk begins."""
    return FILE_HEADER if facts.format == PCAP else 0


class Usual(NamedTuple):
    """What ``usual_kernel`` must know of a file that it can read."""

    big: bool
    scale: int  # of the fraction of a second
    link: int


class Walker(Protocol):
    """Walks through records; `interfaces` and `link_types` are those that the table's SLOT counts. `usual` is None if
    there is no short way."""

    interfaces: NDArray[np.int64]
    link_types: list[int]

    @property
    def copies(self) -> Copies: ...

    @property
    def usual(self) -> Usual | None: ...

    def walk(self, buffer: NDArray[np.uint8], at: int, have: int, limit: int, number: int, most: int) -> Walked: ...

    def ask(self, data: bytes, offset: int, number: int, trouble: str) -> int: ...

    def finish(self, data: bytes, offset: int, number: int, trouble: str) -> None: ...

    def facts(self) -> Facts: ...


def walker(facts: Facts, frames: NDArray[np.int64]) -> Walker:
    """The walker of a format; it fills `frames`."""
    frames[:, PLACE] = 0
    frames[:, SLOT] = 0
    frames[:, PACKET_TYPE] = NO_PACKET_TYPE
    return _PcapWalker(facts, frames) if facts.format == PCAP else _PcapngWalker(facts, frames)


class _PcapWalker:
    def __init__(self, facts: Facts, frames: NDArray[np.int64]) -> None:
        self._facts = facts
        self._frames = frames
        self._modified = facts.magic == MODIFIED
        self._scale = 1 if facts.magic == NANOSECONDS else 1000
        self.interfaces = np.array([_interface_row(facts.interfaces[0])], np.int64)
        self.link_types = [facts.interfaces[0].link_type]

    @property
    def copies(self) -> Copies:
        return "now" if self._modified or _is_cooked(self.link_types[0]) else "never"

    @property
    def usual(self) -> Usual | None:
        link = int(self.interfaces[0, IF_LINK])
        return None if self.copies == "now" or link < 0 else Usual(self._facts.order == ">", self._scale, link)

    def walk(self, buffer: NDArray[np.uint8], at: int, have: int, limit: int, number: int, most: int) -> Walked:
        big = self._facts.order == ">"
        found: Walked = walk_pcap(buffer, at, have, limit, number, big, self._scale, self._modified, self._frames, most)
        return found

    def ask(self, data: bytes, offset: int, number: int, trouble: str) -> int:
        """Only what is no record comes here."""
        (captured,) = struct.unpack_from(self._facts.order + "I", data, 8)
        raise Corrupt(offset, why_no_record(data[:8], captured))

    def finish(self, data: bytes, offset: int, number: int, trouble: str) -> None:
        window = _window(data, offset, trouble)
        window.need(0, len(data) + 1)
        window.finish(f"the record of frame {number + 1}")

    def facts(self) -> Facts:
        return self._facts


class _PcapngWalker:
    """The kernel walks over packets; sections, interfaces and damage go to the pure-Python reader."""

    usual = None

    def __init__(self, facts: Facts, frames: NDArray[np.int64]) -> None:
        self._frames = frames
        self._reader = BlockReader(_window(b"", 0, ""), facts.order, facts.interfaces, facts.next_interface)
        self.interfaces = np.zeros((1, INTERFACE_COLUMNS), np.int64)
        self.link_types: list[int] = []
        self._cooked = False
        self._update()

    @property
    def copies(self) -> Copies:
        """With one interface there is one place, unless the link layer tells of more."""
        return "now" if self._cooked or self._reader.next_interface > 1 else "later"

    def walk(self, buffer: NDArray[np.uint8], at: int, have: int, limit: int, number: int, most: int) -> Walked:
        slots = len(self.link_types)
        walked: tuple[int, int, int, int, int, int] = walk_pcapng(
            buffer, at, have, limit, number, self._reader.order == ">", self.interfaces, slots, self._frames, most
        )
        found, odd = walked[:5], walked[5]
        if odd:
            for index in np.flatnonzero(self._frames[: found[0], SLOT] & ODD_TIME).tolist():
                self._set_odd_time(index)
        return found

    def _set_odd_time(self, index: int) -> None:
        self._frames[index, SLOT] ^= ODD_TIME
        interface = self._reader.interfaces[int(self._frames[index, SLOT])]
        self._frames[index, TIME] = interface.time_ns(0, int(self._frames[index, TIME]) & 0xFFFFFFFFFFFFFFFF)

    def ask(self, data: bytes, offset: int, number: int, trouble: str) -> int:
        """Take a section or an interface, and say how long it is; all else raises `Corrupt`."""
        self._reader.window = _window(data, offset, trouble)
        block, _ = next(self._reader.blocks())
        if block.kind not in (SECTION, INTERFACE):
            raise RuntimeError(f"the kernel refused a sound block at {offset}")
        self._update()
        return block.stop + 4 - (block.start - 8)

    def finish(self, data: bytes, offset: int, number: int, trouble: str) -> None:
        self._reader.window = _window(data, offset, trouble)
        next(self._reader.blocks(), None)

    def facts(self) -> Facts:
        reader = self._reader
        return Facts(PCAPNG, reader.order, 0, tuple(reader.interfaces), reader.next_interface)

    def _update(self) -> None:
        """Bring the kernel's table in line with the reader's interfaces."""
        known = self._reader.interfaces
        if len(known) < len(self.link_types) or not known:
            self.link_types.clear()
        if len(known) > len(self.interfaces):
            larger = np.zeros((2 * len(known), INTERFACE_COLUMNS), np.int64)
            larger[: len(self.interfaces)] = self.interfaces
            self.interfaces = larger
        for one in known[len(self.link_types) :]:
            self.interfaces[len(self.link_types)] = _interface_row(one)
            self.link_types.append(one.link_type)
            self._cooked = self._cooked or _is_cooked(one.link_type)


def _is_cooked(link_type: int) -> bool:
    return LINKS.get(link_type) in (COOKED1, COOKED2)


def _interface_row(one: InterfaceBlock) -> tuple[int, ...]:
    """A row of the kernel's table; MOST is -1 if Python must count the time."""
    common = gcd(one.multiplier, one.divisor)
    multiplier, divisor = one.multiplier // common, one.divisor // common
    most = (LATEST_NS - max(0, one.offset_ns)) // multiplier - 1
    if multiplier * divisor >= 1 << 62 or abs(one.offset_ns) >= 1 << 61:
        multiplier, divisor, most = 1, 1, -1
    offset = one.offset_ns if most >= 0 else 0
    return one.number, LINKS.get(one.link_type, UNKNOWN), one.snaplen, multiplier, divisor, offset, most


def _window(data: bytes, offset: int, trouble: str) -> Window:
    """The last bytes of a stream as the pure-Python reader sees them."""
    window = Window(_end(trouble))
    window.data, window.start = data, offset
    return window


def _end(trouble: str) -> Iterator[bytes]:
    if trouble:
        raise BrokenStream(trouble)
    yield from ()

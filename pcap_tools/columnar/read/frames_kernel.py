"""Records of pcap and blocks of pcapng into a table of frames, one row a frame.

The kernels know what a sound record is and nothing more. Whatever else comes (a section, an interface, damage) is
left to the pure-Python reader, which also finds the words for it.
"""

from __future__ import annotations

from typing import Any

from numba import types

from pcap_tools.capture.frame import MAX_CAPTURED
from pcap_tools.capture.pcap import FILE_HEADS
from pcap_tools.capture.pcapng import ENHANCED, INTERFACE, MAX_BLOCK, NUMBERED, OBSOLETE, SECTION, SIMPLE
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

"""The encodings of Parquet that look at each value: bit packing, differences, and dictionaries of numbers and texts.

As in https://parquet.apache.org/docs/file-format/data-pages/encodings. What is written to has room for the worst case.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import boolean, int64, uint64
from numba import types as numba_types

from pcap_tools.kernels.jit import i64, inlined, kernel, u64
from pcap_tools.kernels.words import BLOCK, copy_block, item, load64, put, zeros_above

FULL = -1
# Values in a block of differences, and in one of its four parts, each packed in a width of its own.
_BLOCK, _PART = 128, 32
_LOW = 0xFFFFFFFF
_SPREAD, _MIX = u64(0x9E3779B97F4A7C15), u64(0xC2B2AE3D27D4EB4F)
_I64 = numba_types.Array(int64, 1, "C")
_I32 = numba_types.Array(numba_types.int32, 1, "C")
_U64 = numba_types.Array(uint64, 1, "C")
_U32 = numba_types.Array(numba_types.uint32, 1, "C")
_U8 = numba_types.Array(numba_types.uint8, 1, "C")


def delta_room(count: int) -> int:
    """How many bytes `delta` may write."""
    return 64 + (count // _BLOCK + 1) * (16 + 8 * _BLOCK) + BLOCK


# --- Bit packing ----------------------------------------------------------------------------------------------------


@kernel(_I32, int64, _U32)
def pack(codes: Any, width: int, out: Any) -> None:
    """Numbers of at most 32 bits, one behind the other; the last word is filled up with zeros."""
    waiting, bits, at = u64(0), 0, 0
    for row in range(codes.size):
        waiting |= u64(item(codes, row)) << u64(bits)
        bits += width
        if bits >= 32:
            out[at] = np.uint32(waiting & u64(_LOW))
            waiting >>= u64(32)
            bits -= 32
            at += 1
    out[at] = np.uint32(waiting & u64(_LOW))


@inlined
def _pack_part(deltas: Any, first: int, least: int, width: int, words: Any) -> None:
    """The same for one part of a block, whose numbers may have 64 bits."""
    waiting, bits, at = u64(0), 0, 0
    for row in range(first, first + _PART):
        value = u64(deltas[row] - least)
        piece = min(width, 32)
        waiting |= (value & u64(_LOW)) << u64(bits)
        bits += piece
        if bits >= 32:
            words[at] = np.uint32(waiting & u64(_LOW))
            waiting >>= u64(32)
            bits -= 32
            at += 1
        if width > 32:
            waiting |= (value >> u64(32)) << u64(bits)
            bits += width - 32
            if bits >= 32:
                words[at] = np.uint32(waiting & u64(_LOW))
                waiting >>= u64(32)
                bits -= 32
                at += 1


# --- Differences (DELTA_BINARY_PACKED) ------------------------------------------------------------------------------


@inlined
def _put_varint(out: Any, at: int, value: Any) -> Any:
    while value >= u64(0x80):
        out[at] = np.uint8(value & u64(0x7F) | u64(0x80))
        value >>= u64(7)
        at += 1
    out[at] = np.uint8(value)
    return at + 1


@inlined
def _zigzag(value: int) -> Any:
    return u64(value << 1) ^ u64(value >> 63)


@inlined
def _difference(values: Any, row: int, narrow: bool) -> Any:
    """Wrapped to the column's own width, as readers count."""
    delta = item(values, row) - item(values, row - 1)
    return i64(np.int32(delta & _LOW)) if narrow else delta


@kernel(_I64, boolean, _I64, _U32, _U8, _U8)
def delta(values: Any, narrow: bool, deltas: Any, words: Any, packed: Any, out: Any) -> Any:
    """How many bytes of `out` the values take. For work: 128 `deltas`, and 256 bytes as `words` and as `packed`."""
    count = values.size
    at = _put_varint(out, 0, u64(_BLOCK))
    at = _put_varint(out, at, u64(_BLOCK // _PART))
    at = _put_varint(out, at, u64(count))
    at = _put_varint(out, at, _zigzag(item(values, 0)) if count else u64(0))
    for first in range(1, count, _BLOCK):
        there = min(_BLOCK, count - first)
        least = _difference(values, first, narrow)
        for row in range(there):
            deltas[row] = _difference(values, first + row, narrow)
            least = min(least, deltas[row])
        for row in range(there, _BLOCK):
            deltas[row] = least
        at = _put_varint(out, at, _zigzag(least))
        widths, at = at, at + _BLOCK // _PART
        for part in range(_BLOCK // _PART):
            most = u64(0)
            for row in range(part * _PART, (part + 1) * _PART):
                most |= u64(deltas[row] - least)
            width = 64 - zeros_above(most) if most else 0
            out[widths + part] = np.uint8(width)
            if width and part * _PART < there:
                _pack_part(deltas, part * _PART, least, width, words)
                for done in range(0, 4 * width, BLOCK):
                    copy_block(packed, done, out, at + done)
                at += 4 * width
    return at


# --- Dictionaries ---------------------------------------------------------------------------------------------------


@kernel(_I32, _U8)
def mark(codes: Any, used: Any) -> None:
    """Set the flag of each code."""
    for row in range(codes.size):
        put(used, i64(item(codes, row)), np.uint8(1))


@kernel(_I64, uint64, _I32, _I64, int64, _I32)
def number_codes(values: Any, seed: Any, slots: Any, known: Any, used: int, codes: Any) -> Any:
    """The place of each value among those `known`, new ones behind the `used`; how many there are then, or FULL."""
    mask = slots.size - 1
    for row in range(values.size):
        value = item(values, row)
        word = (u64(value) ^ seed) * _SPREAD
        at = i64((word ^ (word >> u64(29))) * _MIX >> u64(34)) & mask
        code = i64(item(slots, at))
        while code >= 0 and item(known, code) != value:
            at = (at + 1) & mask
            code = i64(item(slots, at))
        if code < 0:
            if used == known.size:
                return FULL
            code, used = used, used + 1
            known[code], slots[at] = value, code
        codes[row] = code
    return used


@inlined
def _hash(text: Any, place: int, size: int, seed: Any) -> Any:
    word = seed ^ u64(size)
    if size >= 8:
        for done in range(0, size - 8, 8):
            word = (word ^ load64(text, place + done)) * _SPREAD
            word ^= word >> u64(29)
        word = (word ^ load64(text, place + size - 8)) * _SPREAD
    else:
        for done in range(size):
            word = (word ^ u64(item(text, place + done))) * _SPREAD
    return (word ^ (word >> u64(29))) * _MIX


@inlined
def _equal(text: Any, place: int, other: Any, where: int, size: int) -> Any:
    if size >= 8:
        for done in range(0, size - 8, 8):
            if load64(text, place + done) != load64(other, where + done):
                return False
        return load64(text, place + size - 8) == load64(other, where + size - 8)
    for done in range(size):  # noqa: SIM110 - numba has no generators
        if item(text, place + done) != item(other, where + done):
            return False
    return True


@kernel(_I32, _U8, _U8, uint64, _I32, _U64, _I64, _U8, int64, _I32)
def text_codes(
    offsets: Any,
    there: Any,
    text: Any,
    seed: Any,
    slots: Any,
    hashes: Any,
    ends: Any,
    known: Any,
    used: int,
    codes: Any,
) -> Any:
    """As `number_codes`, of the texts that are `there`. Known text n lies between `ends` n and n + 1."""
    mask = slots.size - 1
    found = 0
    for row in range(there.size):
        if not item(there, row):
            continue
        place = i64(item(offsets, row))
        size = i64(item(offsets, row + 1)) - place
        word = _hash(text, place, size, seed)
        at = i64(word >> u64(34)) & mask
        code = i64(item(slots, at))
        while code >= 0:
            begin = item(ends, code)
            if (
                item(hashes, code) == word
                and item(ends, code + 1) - begin == size
                and _equal(text, place, known, begin, size)
            ):
                break
            at = (at + 1) & mask
            code = i64(item(slots, at))
        if code < 0:
            begin = item(ends, used)
            if used == hashes.size or begin + size > known.size:
                return FULL
            for done in range(size):
                put(known, begin + done, item(text, place + done))
            code, used = used, used + 1
            hashes[code], ends[used], slots[at] = word, begin + size, code
        codes[found] = code
        found += 1
    return used


@kernel(_I64, _U8, _U8, _U8)
def plain(ends: Any, there: Any, text: Any, out: Any) -> Any:
    """Texts that are `there`, each as its length in four bytes and then itself. How many bytes that takes."""
    at = 0
    for row in range(there.size):
        if not item(there, row):
            continue
        begin, end = item(ends, row), item(ends, row + 1)
        for byte in range(4):
            put(out, at + byte, np.uint8(end - begin >> (8 * byte) & 0xFF))
        at += 4
        for place in range(end - begin):
            put(out, at + place, item(text, begin + place))
        at += end - begin
    return at

"""The short way through a pcap file without copies, which is what most captures are: from records straight to rows.

``frames_kernel`` and ``packets_kernel`` do the same in two steps, for every format. Here each frame is gone through
once, and one that needs more (a fragment, a link layer nobody knows, what is no record, the end of the bytes) is left
to them.
"""

from __future__ import annotations

from typing import Any

from numba import types

from pcap_tools.capture.frame import MAX_CAPTURED
from pcap_tools.columnar.read.addresses import ADDRESSES, COUNT, SLOTS
from pcap_tools.columnar.read.frames_kernel import BYTES
from pcap_tools.columnar.read.packets_kernel import GONE, KINDS, NARROW, PLAIN, WIDE, one_packet, two_addresses
from pcap_tools.kernels.jit import i64, inlined, kernel, u64
from pcap_tools.kernels.words import load64, put, swapped

_RECORD, _UDP_HEADER = 16, 8
_LOW = u64(0xFFFFFFFF)


@inlined
def _two_words(buffer: Any, at: int, big: bool) -> tuple[int, int]:
    word = load64(buffer, at)
    if big:
        word = swapped(word)
        return i64(word >> u64(32)), i64(word & _LOW)
    return i64(word & _LOW), i64(word >> u64(32))


@kernel(
    BYTES, types.int64, types.int64, types.int64, types.int64, types.boolean, types.int64, types.int64,
    ADDRESSES, SLOTS, COUNT, types.int64, types.int64,
    WIDE, WIDE, WIDE, NARROW, NARROW, NARROW, NARROW, NARROW, NARROW, NARROW, KINDS,
)  # fmt: skip
def read_usual(
    buffer: Any, at: int, have: int, limit: int, before: int, big: bool, scale: int, link: int,
    known: Any, slots: Any, count: Any, row: int, rows: int,
    number: Any, time: Any, start: Any, size: Any, length: Any, src: Any, dst: Any, sport: Any, dport: Any,
    ip_id: Any, kinds: Any,
) -> tuple[int, int, int]:  # fmt: skip
    """Rows from `row` to `rows`, of records that begin before `limit`, while they are of the usual kind.

    The next free row, where it stopped, and the number of the last frame.
    """
    while row < rows and at < limit and at + _RECORD <= have:
        captured, original = _two_words(buffer, at + 8, big)
        place = at + _RECORD
        if captured == 0 or captured > MAX_CAPTURED or place + captured > have:
            break
        kind, begin, _, ident, _, family, offset, source, target, there, told = one_packet(
            buffer, place, captured, link, original
        )
        if kind == PLAIN:
            seconds, fraction = _two_words(buffer, at, big)
            first, second = two_addresses(buffer, place + offset, family, known, slots, count)
            put(number, row, before + 1)
            put(time, row, seconds * 1_000_000_000 + fraction * scale)
            put(start, row, place + begin + _UDP_HEADER)
            put(size, row, there)
            put(length, row, told)
            put(src, row, first)
            put(dst, row, second)
            put(sport, row, source)
            put(dport, row, target)
            put(ip_id, row, ident)
            put(kinds, row, PLAIN)
            row += 1
        elif kind != GONE:
            break
        before += 1
        at = place + captured
    return row, at, before

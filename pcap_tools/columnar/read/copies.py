"""Capture copies, by the rules of `pcap_tools.capture.copies`, with a hash of 128 bits in place of the datagram.

The groups lie in a ring in the order in which they were begun; those of one hash bucket are chained. A group that
was replaced leaves a dead slot, and a full ring is packed.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from pcap_tools.capture.copies import MAX_GROUPS, WINDOW_NS
from pcap_tools.columnar.read.addresses import ADDRESSES, FAMILY, HIGH, LOW
from pcap_tools.columnar.read.datagrams import ROWS, DatagramBatch, Rows
from pcap_tools.columnar.read.frames import BYTES, TABLE
from pcap_tools.columnar.read.packets import NARROW, WIDE, X_IDENT, X_PACKET_TYPE, X_PLACE
from pcap_tools.kernels.jit import i64, inlined, kernel, u64
from pcap_tools.kernels.words import load64

# Columns of a group. The first two are the hash; CHAIN is the next slot of the bucket.
_HASH1, _HASH2, _TIME, _FRAME, _PLACE, _PACKET_TYPE, _SPREAD, _CHAIN, _ALIVE = range(9)
GROUP_COLUMNS, _COLUMNS = 7, 9  # the first are kept for going on elsewhere
_RING = 2 * MAX_GROUPS
_BUCKETS = 1 << 15
# The state: groups are in the slots from _HEAD to _TAIL, _LIVE of them alive; and the seed of the hash.
_HEAD, _TAIL, _LIVE, _SEED1, _SEED2 = range(5)

_P1, _P2 = u64(0x9E3779B185EBCA87), u64(0xC2B2AE3D27D4EB4F)
_S29, _S31 = u64(29), u64(31)


@inlined
def _mix(value: Any, word: Any) -> Any:
    value = (value ^ word) * _P1
    return value ^ (value >> _S29)


@inlined
def _hash(
    buffer: Any, start: int, size: int, src: int, dst: int, ports: int, ident: int, known: Any, state: Any
) -> tuple[Any, Any]:
    """Of all that copies have in common. Two lanes that meet at the end take turns, so that neither waits."""
    first = _mix(u64(state[_SEED1]), u64(ports << 32 ^ (ident + 1)))
    second = _mix(u64(state[_SEED2]), u64(size) ^ known[src, FAMILY] << u64(32))
    first, second = _mix(first, known[src, LOW]), _mix(second, known[dst, LOW])
    if known[src, FAMILY] != u64(4):
        first, second = _mix(first, known[src, HIGH]), _mix(second, known[dst, HIGH])
    at = start
    stop = start + size
    while at + 16 <= stop:
        first, second = _mix(first, load64(buffer, at)), _mix(second, load64(buffer, at + 8))
        at += 16
    if at + 8 <= stop:
        first = _mix(first, load64(buffer, at))
        at += 8
    if at < stop:
        second = _mix(second, load64(buffer, at) << u64(64 - 8 * (stop - at)))
    return (first + second) * _P2 ^ (first >> _S31), _mix(second, first)


@inlined
def _unlink(groups: Any, buckets: Any, slot: int) -> None:
    bucket = groups[slot, _HASH1] & (_BUCKETS - 1)
    if buckets[bucket] == slot:
        buckets[bucket] = groups[slot, _CHAIN]
        return
    at = buckets[bucket]
    while groups[at, _CHAIN] != slot:
        at = groups[at, _CHAIN]
    groups[at, _CHAIN] = groups[slot, _CHAIN]


@inlined
def _link(groups: Any, buckets: Any, slot: int) -> None:
    bucket = groups[slot, _HASH1] & (_BUCKETS - 1)
    groups[slot, _CHAIN] = buckets[bucket]
    buckets[bucket] = slot


@inlined
def _near(one: int, other: int) -> Any:
    """Within the window; the sum cannot overflow as the difference could."""
    return one <= other + WINDOW_NS if one >= other else other <= one + WINDOW_NS


@inlined
def _forget(groups: Any, buckets: Any, state: Any, now: int) -> None:
    while state[_LIVE] > 0:
        slot = state[_HEAD]
        if groups[slot, _ALIVE]:
            if state[_LIVE] < MAX_GROUPS and _near(now, groups[slot, _TIME]):
                return
            _unlink(groups, buckets, slot)
            groups[slot, _ALIVE] = 0
            state[_LIVE] -= 1
        state[_HEAD] += 1
    state[_HEAD] = state[_TAIL] = 0


@inlined
def _pack(groups: Any, buckets: Any, state: Any) -> None:
    """Move the living to the front of the ring."""
    for bucket in range(_BUCKETS):
        buckets[bucket] = -1
    kept = 0
    for slot in range(state[_HEAD], state[_TAIL]):
        if groups[slot, _ALIVE]:
            for column in range(_COLUMNS):
                groups[kept, column] = groups[slot, column]
            _link(groups, buckets, kept)
            kept += 1
    state[_HEAD], state[_TAIL] = 0, kept


@inlined
def _seek(groups: Any, buckets: Any, first: int, second: int) -> Any:
    slot = buckets[first & (_BUCKETS - 1)]
    while slot >= 0 and (groups[slot, _HASH1] != first or groups[slot, _HASH2] != second):
        slot = groups[slot, _CHAIN]
    return slot


@inlined
def _belongs(groups: Any, slot: int, time: int, place: int, packet_type: int, ident: int) -> Any:
    if not _near(time, groups[slot, _TIME]):
        return False
    if place != groups[slot, _PLACE] or packet_type != groups[slot, _PACKET_TYPE]:
        groups[slot, _SPREAD] = 1
        return True
    return groups[slot, _SPREAD] == 1 and ident > 0


@kernel(BYTES, types.int64, types.int64, ROWS, TABLE, ADDRESSES, TABLE, NARROW, WIDE)
def _find_copies(
    buffer: Any, row: int, stop: int, rows: Rows, extra: Any, known: Any, groups: Any, buckets: Any, state: Any
) -> None:
    for at in range(row, stop):
        now, ident = rows.time_ns[at], extra[at, X_IDENT]
        place, packet_type = extra[at, X_PLACE], extra[at, X_PACKET_TYPE]
        ports = i64(rows.sport[at]) << 16 | i64(rows.dport[at])
        hashed = _hash(buffer, rows.start[at], rows.size[at], rows.src[at], rows.dst[at], ports, ident, known, state)
        first, second = i64(hashed[0]), i64(hashed[1])
        _forget(groups, buckets, state, now)
        slot = _seek(groups, buckets, first, second)
        if slot >= 0:
            if _belongs(groups, slot, now, place, packet_type, ident):
                rows.copy_of[at] = groups[slot, _FRAME]
                continue
            _unlink(groups, buckets, slot)
            groups[slot, _ALIVE] = 0
            state[_LIVE] -= 1
        rows.copy_of[at] = 0
        if state[_TAIL] == _RING:
            _pack(groups, buckets, state)
        slot = state[_TAIL]
        groups[slot, _HASH1], groups[slot, _HASH2] = first, second
        groups[slot, _TIME], groups[slot, _FRAME] = now, rows.frame[at]
        groups[slot, _PLACE], groups[slot, _PACKET_TYPE] = place, packet_type
        groups[slot, _SPREAD], groups[slot, _ALIVE] = 0, 1
        _link(groups, buckets, slot)
        state[_TAIL] += 1
        state[_LIVE] += 1


class CopyTable:
    """The groups of the last millisecond. `kept` of another one with the same seed makes it go on from there."""

    def __init__(self, seed: tuple[int, int], kept: NDArray[np.int64] | None = None) -> None:
        self._groups = np.zeros((_RING, _COLUMNS), np.int64)
        self._buckets = np.full(_BUCKETS, -1, np.int32)
        self._state = np.array([0, 0, 0, *seed], np.int64)
        self._latest = np.iinfo(np.int64).min
        if kept is not None and len(kept):
            self._restore(kept[:MAX_GROUPS])

    def _restore(self, kept: NDArray[np.int64]) -> None:
        count = len(kept)
        self._groups[:count, :GROUP_COLUMNS] = kept
        self._groups[:count, _ALIVE] = 1
        self._state[[_TAIL, _LIVE]] = count
        for slot, first in enumerate(kept[:, _HASH1].tolist()):
            self._groups[slot, _CHAIN] = self._buckets[first & (_BUCKETS - 1)]
            self._buckets[first & (_BUCKETS - 1)] = slot
        self._latest = int(kept[:, _TIME].max())

    def kept(self) -> NDArray[np.int64]:
        """The groups in the order in which they were begun."""
        groups = self._groups[self._state[_HEAD] : self._state[_TAIL]]
        return np.ascontiguousarray(groups[groups[:, _ALIVE] == 1, :GROUP_COLUMNS])

    def mark(
        self, batch: DatagramBatch, extra: NDArray[np.int64], known: NDArray[np.uint64], row: int, stop: int
    ) -> None:
        """Set `copy_of` of the rows from `row` to `stop`."""
        _find_copies(
            batch.buffer, row, stop, batch.rows, extra, known, self._groups, self._buckets, self._state
        )  # fmt: skip

    def remember(
        self, batch: DatagramBatch, extra: NDArray[np.int64], known: NDArray[np.uint64], row: int, stop: int
    ) -> None:
        """The same where all rows so far were seen at one place, so that none is a copy and most need no look.

        Each row then begins a group or replaces one. If no time goes back, all groups older than the window have been
        forgotten when the last row has been seen, whatever they were.
        """
        times = batch.time_ns[row:stop]
        if not len(times):
            return
        last = int(times[-1])
        first = row
        if int(times[0]) >= self._latest and bool((times[1:] >= times[:-1]).all()):
            first = row + int(np.searchsorted(times, last - WINDOW_NS))
        if first > row:
            self._state[[_HEAD, _TAIL, _LIVE]] = 0
            self._buckets[:] = -1
        self._latest = max(self._latest, int(times.max()))
        self.mark(batch, extra, known, first, stop)


def random_seed() -> tuple[int, int]:
    """Nobody who makes captures can know it, so nobody can make two datagrams with one hash."""
    return int.from_bytes(os.urandom(7), "little"), int.from_bytes(os.urandom(7), "little")

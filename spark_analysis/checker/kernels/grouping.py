"""Rows by key, without sorting keys: which rows have the same key, in their order.

Keys are hashes (`hashing.mix`), so their low bits spread well. Two passes of counting sort over these bits put rows
with equal keys beside each other, save for the few that share all of the bits.

>>> order_by_key(mix(np.array([7, 5, 7]), np.zeros(3, np.int64))).tolist() in ([0, 2, 1], [1, 0, 2])
True
>>> distinct(np.array([7, 5, 7]))
(array([0, 1]), array([0, 1, 0]))
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from pcap_tools.kernels.jit import i64, kernel

Integers = NDArray[np.int64]
BITS = 11
_column = types.Array(types.int64, 1, "C")


@kernel(_column, _column, _column, _column)
def _order(keys: Any, order: Any, spare: Any, counts: Any) -> None:
    """`order` gets the rows, those of a key beside each other; `spare` is as long, `counts` has 2 ** BITS places."""
    mask = i64(len(counts) - 1)
    for turn in range(2):
        shift = i64(turn * 11)
        for digit in range(len(counts)):
            counts[digit] = 0
        for row in range(len(keys)):
            counts[(keys[row] >> shift) & mask] += 1
        total = i64(0)
        for digit in range(len(counts)):
            count = counts[digit]
            counts[digit] = total
            total += count
        for at in range(len(keys)):
            row = i64(at) if turn == 0 else spare[at]
            digit = (keys[row] >> shift) & mask
            if turn == 0:
                spare[counts[digit]] = row
            else:
                order[counts[digit]] = row
            counts[digit] += 1
    low = i64(len(counts) * len(counts) - 1)
    begin = i64(0)
    while begin < len(keys):
        key, end, others = keys[order[begin]], begin + 1, i64(0)
        while end < len(keys) and ((keys[order[end]] ^ key) & low) == 0:
            if keys[order[end]] != key:
                spare[others] = order[end]
                others += 1
            elif others:
                order[end - others] = order[end]
            end += 1
        # Those of the first key stand together now; the others are looked at next.
        for at in range(others):
            order[end - others + at] = spare[at]
        begin = end - others


@kernel(_column, _column, _column)
def _firsts(keys: Any, order: Any, firsts: Any) -> None:
    first = i64(-1)
    for at in range(len(order)):
        row = order[at]
        if at == 0 or keys[row] != keys[first]:
            first = row
        firsts[row] = first


def order_by_key(keys: Integers) -> Integers:
    """The rows, those of a key beside each other and in their order."""
    given = np.require(keys, np.int64, ["C", "W"])
    order = np.empty(len(given), np.int64)
    _order(given, order, np.empty(len(given), np.int64), np.empty(1 << BITS, np.int64))
    return order


def first_of_key(keys: Integers) -> Integers:
    """For each row the first row that has its key."""
    given = np.require(keys, np.int64, ["C", "W"])
    firsts = np.empty(len(given), np.int64)
    _firsts(given, order_by_key(given), firsts)
    return firsts


def distinct(keys: Integers) -> tuple[Integers, Integers]:
    """The first row of each key, in order; and for each row the place of its key among them."""
    firsts = first_of_key(keys)
    is_first = firsts == np.arange(len(firsts))
    place = np.cumsum(is_first) - 1
    return np.flatnonzero(is_first), place[firsts]

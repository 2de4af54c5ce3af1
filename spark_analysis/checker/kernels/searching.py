"""Places of numbers in a sorted column. What is asked for is nearly sorted, so each search begins at the last place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from pcap_tools.kernels.jit import i64, kernel

Integers = NDArray[np.int64]
_column = types.Array(types.int64, 1, "C")


@kernel(_column, _column, _column)
def _find(known: Any, wanted: Any, places: Any) -> None:
    count = i64(len(known))
    at = i64(0)
    for one in range(len(wanted)):
        value = wanted[one]
        step = i64(1)
        if known[at] < value:  # widen the stretch until it has the value, then halve it
            low = at + 1
            high = low
            while high < count and known[high] < value:
                low = high + 1
                high = min(high + step, count)
                step *= 2
        else:
            high = at
            low = high
            while low > 0 and known[low - 1] >= value:
                high = low - 1
                low = max(low - step, i64(0))
                step *= 2
        while low < high:
            middle = (low + high) // 2
            if known[middle] < value:
                low = middle + 1
            else:
                high = middle
        if low < count:
            at = low
        places[one] = low if low < count and known[low] == value else i64(-1)


def places_of(wanted: Integers, known: Integers) -> Integers:
    """The first place of each wanted number in the sorted `known`, -1 for those that are not there.

    >>> places_of(np.array([7, 3, 4]), np.array([1, 3, 3, 7])).tolist()
    [3, 1, -1]
    """
    places = np.full(len(wanted), -1, np.int64)
    if len(known):
        _find(np.require(known, np.int64, ["C", "W"]), np.require(wanted, np.int64, ["C", "W"]), places)
    return places

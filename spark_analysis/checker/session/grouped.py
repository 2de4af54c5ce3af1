"""Rows by key, looked up by binary search: for the few rows of which a finding is told."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


class Grouped:
    """
    >>> Grouped(np.array([7, 5, 7]), np.array([0, 1, 2])).of(7).tolist()
    [0, 2]
    """

    def __init__(self, keys: Integers, rows: Integers) -> None:
        order = np.lexsort((rows, keys))
        self._keys, self._rows = keys[order], rows[order]

    def of(self, key: int) -> Integers:
        """The rows of a key, in order."""
        begin, end = np.searchsorted(self._keys, key, "left"), np.searchsorted(self._keys, key, "right")
        return self._rows[begin:end]

    def before(self, key: int, row: int) -> Integers:
        """Those before a row."""
        rows = self.of(key)
        return rows[: np.searchsorted(rows, row)]

"""Some frames of a capture, as ranges of their numbers.

>>> frames = FrameRanges([(1, 3), (4, 5), (20, 30)])
>>> frames.last, frames.overlap(6, 19), frames.include(np.array([5, 6]))
(30, False, array([ True, False]))
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class FrameRanges:
    """From first and last frames of ranges in any order; at least one."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        merged: list[list[int]] = []
        for first, last in sorted(ranges):
            if merged and first <= merged[-1][1] + 1:
                merged[-1][1] = max(merged[-1][1], last)
            else:
                merged.append([first, last])
        self._firsts, self._lasts = np.array(merged, np.int64).T
        self.last = int(self._lasts[-1])

    def include(self, frames: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these are among them."""
        at = np.searchsorted(self._firsts, frames, side="right") - 1
        inside: NDArray[np.bool_] = (at >= 0) & (frames <= self._lasts[np.maximum(at, 0)])
        return inside

    def overlap(self, first: int, last: int) -> bool:
        """Whether any is in this range."""
        return bool(np.any((self._firsts <= last) & (self._lasts >= first)))

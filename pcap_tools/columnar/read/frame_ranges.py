"""Some frames of a capture, as ranges of their numbers.

>>> frames = FrameRanges([(1, 3), (4, 5), (20, 30)])
>>> frames.last, frames.overlap(6, 19), frames.include(np.array([5, 6]))
(30, False, array([ True, False]))
>>> list(frames), 4 in frames
([(1, 5), (20, 30)], True)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray


class FrameRanges:
    """From first and last frames of ranges in any order. Iterates over ranges in order that do not overlap."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        merged: list[list[int]] = []
        for first, last in sorted(ranges):
            if merged and first <= merged[-1][1] + 1:
                merged[-1][1] = max(merged[-1][1], last)
            else:
                merged.append([first, last])
        self._firsts, self._lasts = np.array(merged, np.int64).reshape(-1, 2).T
        self.last = int(self._lasts[-1]) if merged else 0

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._firsts.tolist(), self._lasts.tolist(), strict=True)

    def __contains__(self, frame: int) -> bool:
        return bool(self.include(np.array([frame]))[0])

    def include(self, frames: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these are among them."""
        if not len(self._firsts):
            return np.zeros(len(frames), np.bool_)
        at = np.searchsorted(self._firsts, frames, side="right") - 1
        inside: NDArray[np.bool_] = (at >= 0) & (frames <= self._lasts[np.maximum(at, 0)])
        return inside

    def overlap(self, first: int, last: int) -> bool:
        """Whether any is in this range."""
        return bool(np.any((self._firsts <= last) & (self._lasts >= first)))

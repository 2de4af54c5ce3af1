"""Ranges of frames: whatever overlaps or touches, a frame is in them if it is in one of those given."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pcap_tools.columnar.read.frame_ranges import FrameRanges

NUMBERS = st.integers(-5, 40)
RANGES = st.lists(st.tuples(NUMBERS, NUMBERS).map(lambda ends: (min(ends), max(ends))), min_size=1, max_size=6)


@given(RANGES, NUMBERS, st.integers(0, 10))
def test_they_are_what_each_range_is(ranges: list[tuple[int, int]], first: int, more: int) -> None:
    frames = FrameRanges(ranges)
    members = {number for low, high in ranges for number in range(low, high + 1)}
    asked = range(first, first + more + 1)
    assert frames.include(np.array(asked)).tolist() == [number in members for number in asked]
    assert frames.overlap(asked[0], asked[-1]) == bool(members & set(asked))
    assert frames.last == max(members)

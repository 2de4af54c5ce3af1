"""Where a reading is, so that another one can go on from there; and a split, which is such a place and an end."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pcap_tools.columnar.read.formats import Facts
from pcap_tools.columnar.read.slow_path import FrameNote


@dataclass(frozen=True)
class State:
    """A border between two records, and what a reader that comes from the file's begin remembers there.

    offset  of the next record
    frames  the number of the last frame before it
    groups  the datagrams of the last millisecond, which may have copies yet
    notes   the frames of fragments that wait for others
    """

    offset: int
    frames: int
    facts: Facts
    groups: NDArray[np.int64] | None = None
    notes: list[FrameNote] = field(default_factory=list)


@dataclass(frozen=True)
class Split:
    """A part of a capture that can be read by itself; small, and made to be pickled.

    end      offset of the first record that is not part of it
    version  of the source, which must not change in between
    seed     of the hashes in `state.groups`
    state    None if the file can only be read as a whole (gzip)
    """

    source: str
    ordinal: int
    end: int
    version: str
    seed: tuple[int, int]
    state: State | None

    @property
    def begin(self) -> int:
        """Offset of its first record."""
        return 0 if self.state is None else self.state.offset

    @property
    def first_frame(self) -> int:
        """The number of its first frame."""
        return 1 if self.state is None else self.state.frames + 1

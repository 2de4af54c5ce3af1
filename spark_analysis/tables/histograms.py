"""Durations in bins of about one per cent, so that percentiles of any number of them fit into little memory.

A bin is an octave cut into 64: the middle of one is at most 0.8 % away from whatever is in it. Which bin a value falls
into is a matter of whole numbers and powers of two, so the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
STEPS = 64  # in an octave
PERCENTILES = (50, 90, 99)


def bins_of(values: Integers) -> Integers:
    """The bin of each value in nanoseconds. Below 0 (a clock was set back) counts as 0."""
    fraction, octave = np.frexp(np.maximum(values, 0).astype(np.float64))
    step = np.floor((2 * fraction - 1) * STEPS).astype(np.int64)
    return np.where(values > 0, octave * STEPS + step, 0).astype(np.int64)


def middles_of(bins: Integers) -> NDArray[np.float64]:
    """The middle of the whole numbers in each bin."""
    octave, step = np.divmod(bins, STEPS)
    unit = np.ldexp(1.0 / STEPS, octave - 1)
    first, after = np.ceil((STEPS + step) * unit), np.ceil((STEPS + step + 1) * unit)
    return np.where(bins > 0, (first + after - 1) / 2, 0.0)


def percentiles(
    bins: Integers, counts: Integers, least: int, most: int, wanted: Sequence[int] = PERCENTILES
) -> list[float]:
    """Nearest-rank percentiles of a histogram in the order of its bins, which holds something."""
    up_to = np.cumsum(counts)
    ranks = np.ceil(np.array(wanted) * up_to[-1] / 100)
    at = np.searchsorted(up_to, np.maximum(ranks, 1))
    return [float(value) for value in np.clip(middles_of(bins[at]), least, most)]

"""Which filters of one subscriber take the same message: pairs that make a broker send it twice, or think twice."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

MOST_EACH = 8  # filters of one subscriber that are paired for one publish: pairs grow with the square
PAIRS = pa.schema([("filter", pa.string()), ("other", pa.string()), ("count", pa.int64())])


def overlaps(deliveries: pa.Table) -> pa.Table:
    """A row for each pair of filters of each publish and subscriber. All rows of a publish must be in the table."""
    known = pc.and_(pc.is_valid(deliveries.column("filter")), pc.is_valid(deliveries.column("publish_frame")))
    rows = deliveries.filter(known)
    names = pc.unique(rows.column("filter").cast(pa.string())).sort()
    columns = ("capture", "publish_frame", "subscriber")
    codes = np.stack([*(_codes(rows.column(name)) for name in columns), _codes(rows.column("filter"), names)], axis=1)
    codes = np.unique(codes, axis=0) if len(codes) else codes
    pairs = _pairs(codes)
    return pa.table([names.take(pairs[0]), names.take(pairs[1]), np.ones(len(pairs[0]), np.int64)], schema=PAIRS)


def _codes(column: pa.ChunkedArray, names: pa.Array | None = None) -> NDArray[np.int64]:
    plain = column.cast(pa.string()) if not pa.types.is_integer(column.type) else column
    values = names if names is not None else pc.unique(plain)
    return np.asarray(pc.index_in(plain, value_set=values).to_numpy(), np.int64)


def _pairs(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of the last column within equal others; the rows are sorted, so that partners are a few rows apart."""
    starts = np.ones(len(codes), np.bool_)
    starts[1:] = (codes[1:, :-1] != codes[:-1, :-1]).any(axis=1)
    group = np.cumsum(starts)
    place = np.arange(len(codes)) - np.flatnonzero(starts)[group - 1] if len(codes) else group
    left, right = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for apart in range(1, MOST_EACH):
        at = np.flatnonzero((group[apart:] == group[:-apart]) & (place[apart:] < MOST_EACH))
        left.append(codes[at, -1])
        right.append(codes[at + apart, -1])
    return np.concatenate(left), np.concatenate(right)

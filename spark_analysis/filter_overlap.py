"""Which filters of one subscriber take the same message: pairs that make a broker send it twice, or think twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Integers = NDArray[np.int64]
MOST_EACH = 8  # filters of one subscriber that are paired for one publish: pairs grow with the square
PAIRS = pa.schema([("filter", pa.string()), ("other", pa.string()), ("count", pa.int64())])


def overlaps(deliveries: pa.Table) -> pa.Table:
    """A row for each pair of filters of each publish and subscriber. All rows of a publish must be in the table."""
    known = pc.and_(pc.is_valid(deliveries.column("filter")), pc.is_valid(deliveries.column("publish")))
    rows = deliveries.filter(known)
    names = pc.unique(rows.column("filter").cast(pa.string())).sort()
    columns = [*places_of(rows.column("publish")), codes_of(rows.column("subscriber"))]
    columns += [codes_of(rows.column("filter"), names)]
    once = distinct(columns)
    left, right = _pairs(np.stack(columns, axis=1)[once])
    return pa.table([names.take(left), names.take(right), np.ones(len(left), np.int64)], schema=PAIRS)


def codes_of(column: pa.ChunkedArray, names: pa.Array | None = None) -> Integers:
    """Texts as numbers, equal for equal ones: their places among the names."""
    texts = column.cast(pa.string())
    values = names if names is not None else pc.unique(texts)
    return np.asarray(pc.index_in(texts, value_set=values).to_numpy(), np.int64)


def places_of(column: pa.ChunkedArray) -> tuple[Integers, Integers]:
    """Of datagrams (``schemas.PLACE``) the capture as a number, and the frame."""
    capture, frame = (pc.struct_field(column, name) for name in ("capture", "frame"))
    return codes_of(capture), np.asarray(frame.to_numpy(), np.int64)


def distinct(columns: Sequence[Integers]) -> Integers:
    """The first row of each combination, in the order of the columns."""
    order = np.lexsort(list(reversed(columns)))
    is_new = np.zeros(len(order), np.bool_)
    is_new[:1] = True
    for column in columns:
        is_new[1:] |= column[order[1:]] != column[order[:-1]]
    return order[is_new]


def _pairs(codes: Integers) -> tuple[Integers, Integers]:
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

"""When things happened, in at most 200 buckets of a width that suits the whole of a session.

Each width is a multiple of the one before, so buckets can be made coarser without looking at the rows again, and a part
never needs a coarser one than the whole: what tasks count apart can be merged.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

MOST_BUCKETS = 200
_MS, _SECOND, _MINUTE, _HOUR, _DAY = 10**6, 10**9, 60 * 10**9, 3600 * 10**9, 86_400 * 10**9
WIDTHS_NS = (
    *(step * _MS for step in (1, 5, 10, 50, 100, 500)),
    *(step * _SECOND for step in (1, 5, 10, 30)),
    *(step * _MINUTE for step in (1, 5, 10, 30)),
    *(step * _HOUR for step in (1, 3, 6, 12)),
    *(step * _DAY for step in (1, 10, 100, 1000)),
)


def width_of(tables: list[pa.Table], column: str, at_least: int = 0) -> int:
    """The finest width of which few enough buckets hold all times of this column, in whichever table they are.

    ``at_least`` is the width that they were put into before: below it their ends are not told.
    """
    ends = [(int(times.min()), int(times.max())) for table in tables if len(times := table.column(column).to_numpy())]
    first, last = min((low for low, _ in ends), default=0), max((high for _, high in ends), default=0)
    wide = [width for width in WIDTHS_NS if width >= at_least]
    return next((width for width in wide if last // width - first // width < MOST_BUCKETS), wide[-1])


def in_buckets(table: pa.Table, column: str, width_ns: int) -> pa.Table:
    """Each time replaced by the begin of its bucket."""
    begins = table.column(column).to_numpy() // width_ns * width_ns
    return table.set_column(table.column_names.index(column), column, pa.array(begins.astype(np.int64)))

"""How long ACKs take, by client and kind of request, and how long the broker takes to forward.

>>> parts = [TimingSummary.of(exchanges, deliveries) for exchanges, deliveries in tables]     # doctest: +SKIP
>>> TimingSummary.merged(parts).rows()[0]["rtt_ms"]                                           # doctest: +SKIP
{'min': 0.21, 'p50': 0.34, 'p90': 0.5, 'p99': 1.9, 'max': 7.2}

Summaries are small whatever they sum up, can be merged, and are the same however the rows were cut into parts. Round
trips are told of matches that are sure (exact, anchored); how many others there are stands beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..tables.histograms import PERCENTILES, bins_of, percentiles
from ..tables.schemas import DELIVERIES, EXCHANGES
from ..tables.tallies import OTHER, Tallies, folded, last_kept, merged, run_starts, tally

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


Row = dict[str, Any]
MOST_GROUPS = 300_000  # clients and kinds; the rest is one row
MOST_ROWS = 1_000  # of those shown
QUALITIES = ("exact", "anchored", "resent", "queued", "none")
SURE = QUALITIES[:2]
_GROUP, _KIND, _MOMENT = ("client", "asks", "message"), ("asks", "message"), ("asks", "time_ns")
_OF_QUALITY = {name: f"quality_{name}" for name in QUALITIES}
_COUNTS = ("requests", "acked", "unacked", "resent", "sends", *_OF_QUALITY.values(), "timed")
_BIN = ("bin", "count", "least_", "most_")


def _schema(names: Sequence[str]) -> pa.Schema:
    texts = {**dict.fromkeys(_GROUP, pa.string()), "retained": pa.bool_()}
    return pa.schema([(name, texts.get(name, pa.int64())) for name in names])


_GROUPS, _BINS = _schema((*_GROUP, *_COUNTS)), _schema((*_GROUP, *_BIN))
_MOMENTS, _MOMENT_BINS = _schema((*_MOMENT, *_COUNTS)), _schema((*_MOMENT, *_BIN))
_LATENCIES = _schema(("retained", *_BIN))


@dataclass(frozen=True)
class TimingSummary(Tallies):
    """Tallies: requests by client and kind, their round trips in bins, both by time, and the latency of forwards."""

    groups: pa.Table = field(default_factory=_GROUPS.empty_table)
    bins: pa.Table = field(default_factory=_BINS.empty_table)
    moments: pa.Table = field(default_factory=_MOMENTS.empty_table)
    moment_bins: pa.Table = field(default_factory=_MOMENT_BINS.empty_table)
    latencies: pa.Table = field(default_factory=_LATENCIES.empty_table)
    width_ns: int = WIDTHS_NS[0]

    @classmethod
    def empty(cls) -> TimingSummary:
        return cls()

    @classmethod
    def of(cls, exchanges: pa.Table, deliveries: pa.Table | None = None) -> TimingSummary:
        """From rows of ``schemas.EXCHANGES`` and ``schemas.DELIVERIES`` of one session."""
        requests = _requests(exchanges)
        timed = _binned(requests.filter(pc.equal(requests.column("timed"), 1)), "rtt_ns")
        forwards = _forwards(deliveries if deliveries is not None else DELIVERIES.empty_table())
        columns = (requests, timed, requests, timed, _binned(forwards, "latency_ns"))
        schemas = (_GROUPS, _BINS, _MOMENTS, _MOMENT_BINS, _LATENCIES)
        tables = [table.select(schema.names).cast(schema) for table, schema in zip(columns, schemas, strict=True)]
        return cls.merged([cls(*tables)])

    @classmethod
    def merged(cls, parts: Iterable[TimingSummary]) -> TimingSummary:
        """Of many parts at once: cheaper than one after the other."""
        some = [cls(), *parts]
        width = width_of([part.moments for part in some], "time_ns", max(part.width_ns for part in some))
        groups = merged([part.groups for part in some], _GROUP)
        last = last_kept(groups, _GROUP, MOST_GROUPS)
        return cls(
            folded(groups, _GROUP, last),
            folded(merged([part.bins for part in some], (*_GROUP, "bin")), _GROUP, last, by=("bin",)),
            merged([in_buckets(part.moments, "time_ns", width) for part in some], _MOMENT),
            merged([in_buckets(part.moment_bins, "time_ns", width) for part in some], (*_MOMENT, "bin")),
            merged([part.latencies for part in some], ("retained", "bin")),
            width,
        )

    def __add__(self, other: TimingSummary) -> TimingSummary:
        return TimingSummary.merged((self, other))

    def rows(self, most: int = MOST_ROWS) -> list[Row]:
        """One row a client and kind, those with most requests first. How many there are: ``len(summary.groups)``."""
        order = np.argsort(-self.groups.column("requests").to_numpy(), kind="stable")
        return _described(self.groups, self.bins, _GROUP, order[:most])

    def kinds(self) -> list[Row]:
        """The same over all clients."""
        counts, bins = self.groups.drop_columns("client"), self.bins.drop_columns("client")
        return _described(tally(counts, _KIND), tally(bins, (*_KIND, "bin")), _KIND)

    def over_time(self) -> list[Row]:
        """The same by the time of the request, in buckets of ``width_ns``."""
        return _described(self.moments, self.moment_bins, _MOMENT)

    def forward_latency(self, retained: bool = False) -> Row:
        """From publish to forward; for retained messages from subscription to forward."""
        bins = self.latencies.filter(pc.equal(self.latencies.column("retained"), retained))
        return {"forwards": int(bins.column("count").to_numpy().sum()), "latency_ms": _percentiles_ms(bins)}


def _requests(exchanges: pa.Table) -> pa.Table:
    """Those that an ACK was due for, or came for, with a column for each thing that is counted."""
    wanted = ("client", "message", "asks", "time_ns", "sends", "ack", "rtt_ns", "quality", "owed")
    table = exchanges.select(wanted).cast(pa.schema([EXCHANGES.field(name) for name in wanted]))
    owed = table.column("owed").fill_null(False)
    table = table.filter(pc.or_(owed, pc.is_valid(table.column("ack"))))
    acked, quality = pc.is_valid(table.column("ack")), table.column("quality").fill_null("none")
    sure = pc.is_in(quality, pa.array(SURE))
    flags = {
        "requests": pc.is_valid(table.column("time_ns")),
        "acked": acked,
        "unacked": pc.invert(acked),
        "resent": pc.greater(table.column("sends"), 1),
        **{column: pc.equal(quality, name) for name, column in _OF_QUALITY.items()},
        "timed": pc.and_(sure, pc.is_valid(table.column("rtt_ns"))),
    }
    for name, flag in flags.items():
        table = table.append_column(name, flag.fill_null(False).cast(pa.int64()))
    for name, unknown in (*((key, "?") for key in _GROUP), ("sends", 1)):  # null is the key of the rest
        table = table.set_column(table.column_names.index(name), name, table.column(name).fill_null(unknown))
    return table


def _forwards(deliveries: pa.Table) -> pa.Table:
    """Those that came, in time or late."""
    came = pc.is_in(deliveries.column("outcome").cast(pa.string()), pa.array(("delivered", "late")))
    table = deliveries.filter(pc.and_(came, pc.is_valid(deliveries.column("latency_ns"))))
    at = table.column_names.index("retained")
    return table.set_column(at, "retained", table.column("retained").fill_null(False))


def _binned(table: pa.Table, column: str) -> pa.Table:
    """Each row as a histogram of one."""
    values = table.column(column).to_numpy().astype(np.int64)
    made = (bins_of(values), np.ones(len(values), np.int64), values, values)
    for name, array in zip(_BIN, made, strict=True):
        table = table.append_column(name, pa.array(array))
    return table


def _described(
    counts: pa.Table, bins: pa.Table, keys: Sequence[str], chosen: NDArray[np.int64] | None = None
) -> list[Row]:
    """Rows for JSON. Both tables are in the order of the keys: the runs of bins follow the rows that have any."""
    timed = counts.column("timed").to_numpy() > 0
    run_of, starts = np.cumsum(timed) - 1, run_starts(bins, keys)
    chosen = chosen if chosen is not None else np.arange(len(counts))
    found = []
    for at, row in zip(chosen, counts.take(pa.array(chosen)).to_pylist(), strict=True):
        begin, end = starts[run_of[at] : run_of[at] + 2] if timed[at] else (0, 0)
        found.append(_row(row, _percentiles_ms(bins.slice(begin, end - begin))))
    return found


def _row(row: Row, rtt_ms: Row) -> Row:
    names = {"client": "client", "asks": "asks", "message": "kind", "time_ns": "time_ns"}
    keys = {shown: OTHER if row[name] is None else row[name] for name, shown in names.items() if name in row}
    counts = {name: row[name] for name in ("requests", "acked", "unacked", "resent", "sends")}
    return {**keys, **counts, "rtt_ms": rtt_ms, "quality": {name: row[at] for name, at in _OF_QUALITY.items()}}


def _percentiles_ms(bins: pa.Table) -> Row:
    """Of a histogram; all null if it is empty."""
    names = ("min", *(f"p{percent}" for percent in PERCENTILES), "max")
    if not len(bins):
        return dict.fromkeys(names)
    numbers, counts, least, most = (bins.column(name).to_numpy() for name in _BIN)
    values = (least.min(), *percentiles(numbers, counts, least.min(), most.max()), most.max())
    return {name: round(float(value) / 1e6, 6) for name, value in zip(names, values, strict=True)}

"""How many subscribers each message went to, and should have gone to: by topic, by filter, and in all.

>>> summary = FanoutSummary.of(deliveries, publishes, subscriptions)      # doctest: +SKIP
>>> summary.totals()["amplification"]                                     # doctest: +SKIP
3.2

Summaries can be merged. They are the same however a session is cut into parts, as long as the rows of one publish stay
together (the overlap of filters asks for that).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..tables.schemas import DELIVERIES, PUBLISHES
from ..tables.tallies import OTHER, Tallies, folded, last_kept, merged, run_starts

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


Row = dict[str, Any]
MOST_NAMES = 100_000  # topics, and filters; the rest is one row
MOST_LINKS = 1_000_000  # of a topic or filter to a subscriber: beyond, subscribers are not counted
MOST_ROWS = 1_000  # of those shown
MOST_OVERLAPS = 20
_DUE = ("delivered", "late", "missing", "altered", "misdirected", "inconclusive")
OUTCOMES = (*_DUE, "unexpected", "duplicate", "optional")
# ``due``: copies that were. ``seen``: forwards, but for retained ones.
_COUNTS = ("publishes", *OUTCOMES, "due", "seen", "retained")
_FILTER_COUNTS = ("hits", "missing")


def _schema(texts: Sequence[str], counts: Sequence[str]) -> pa.Schema:
    return pa.schema([*((name, pa.string()) for name in texts), *((name, pa.int64()) for name in counts)])


_TOPICS, _FILTERS = _schema(["topic"], _COUNTS), _schema(["filter"], _FILTER_COUNTS)
_TOPIC_LINKS, _FILTER_LINKS = _schema(["topic", "subscriber"], ()), _schema(["filter", "subscriber"], ())


@dataclass(frozen=True)
class FanoutSummary(Tallies):
    """Tallies: counts by topic and by filter, who is linked to them, and which pairs of filters overlap."""

    topics: pa.Table = field(default_factory=_TOPICS.empty_table)
    filters: pa.Table = field(default_factory=_FILTERS.empty_table)
    topic_links: pa.Table = field(default_factory=_TOPIC_LINKS.empty_table)
    filter_links: pa.Table = field(default_factory=_FILTER_LINKS.empty_table)
    pairs: pa.Table = field(default_factory=PAIRS.empty_table)
    publishes: int = 0

    @classmethod
    def empty(cls) -> FanoutSummary:
        return cls()

    @classmethod
    def of(
        cls,
        deliveries: pa.Table,
        publishes: pa.Table | int = 0,
        subscriptions: pa.Table | Sequence[str] = (),
    ) -> FanoutSummary:
        """From rows of ``schemas.DELIVERIES``, ``PUBLISHES`` and ``SUBSCRIPTIONS`` of one session.

        Publishes add up over parts; subscriptions may be given with one part or with all. Where only the number of
        publishes is told, those of a topic are those that were due to somebody; where only the names of subscribed
        filters are, the subscribers of a filter are those.
        """
        by_topic = publishes if isinstance(publishes, pa.Table) else None
        rows = _counted(deliveries, count_publishes=by_topic is None)
        published = _published(by_topic if by_topic is not None else PUBLISHES.empty_table())
        subscribed = _subscribed(subscriptions)
        by_filter = rows.filter(pc.is_valid(rows.column("filter")))
        due = rows.filter(pc.and_(pc.equal(rows.column("due"), 1), pc.is_valid(rows.column("subscriber"))))
        return cls.merged(
            [
                cls(
                    pa.concat_tables([rows.select(_TOPICS.names), published]),
                    pa.concat_tables([table.select(_FILTERS.names) for table in (by_filter, subscribed)]),
                    due.select(_TOPIC_LINKS.names),
                    _known_links(by_filter, subscribed),
                    overlaps(deliveries),
                    publishes if isinstance(publishes, int) else int(published.column("publishes").to_numpy().sum()),
                )
            ]
        )

    @classmethod
    def merged(cls, parts: Iterable[FanoutSummary]) -> FanoutSummary:
        """Of many parts at once: cheaper than one after the other."""
        some = [cls(), *parts]
        return cls(
            _bounded([part.topics for part in some], ("topic",), MOST_NAMES),
            _bounded([part.filters for part in some], ("filter",), MOST_NAMES),
            _bounded([part.topic_links for part in some], ("topic", "subscriber"), MOST_LINKS),
            _bounded([part.filter_links for part in some], ("filter", "subscriber"), MOST_LINKS),
            _bounded([part.pairs for part in some], ("filter", "other"), MOST_NAMES),
            sum(part.publishes for part in some),
        )

    def __add__(self, other: FanoutSummary) -> FanoutSummary:
        return FanoutSummary.merged((self, other))

    def totals(self) -> Row:
        """Over all topics. ``amplification``: forwards seen for each publish, those of retained messages left out."""
        sums = {name: int(self.topics.column(name).to_numpy().sum()) for name in _COUNTS}
        row = _shown({**sums, "publishes": self.publishes})
        extra = {name: sums[name] for name in ("altered", "late", "misdirected", "optional", "retained")}
        amplification = round(sums["seen"] / self.publishes, 3) if self.publishes else None
        return {**row, **extra, "amplification": amplification}

    def topic_rows(self, most: int = MOST_ROWS) -> list[Row]:
        """Those with most publishes and expected copies first. How many there are: ``len(summary.topics)``."""
        load = sum(self.topics.column(name).to_numpy() for name in _COUNTS)
        return [
            {"topic": row["topic"], **_shown(row), "subscribers": row["subscribers"]}
            for row in _with_links(self.topics, self.topic_links, "topic", -load, most)
        ]

    def filter_rows(self, most: int = MOST_ROWS) -> list[Row]:
        """Those with most hits first. How many there are: ``len(summary.filters)``."""
        return _with_links(self.filters, self.filter_links, "filter", -self.filters.column("hits").to_numpy(), most)

    def unused_filters(self) -> list[str]:
        """Filters that somebody subscribed to, and that no message matched."""
        unused = self.filters.column("filter").filter(pc.equal(self.filters.column("hits"), 0))
        return [name for name in unused.to_pylist() if name is not None]

    def overlap_rows(self, most: int = MOST_OVERLAPS) -> list[Row]:
        """Pairs of filters through which one subscriber is due the same message, and how often that was so."""
        order = np.argsort(-self.pairs.column("count").to_numpy(), kind="stable")[:most]
        rows = self.pairs.take(pa.array(order)).to_pylist()
        return [{"filters": [row["filter"], row["other"]], "count": row["count"]} for row in rows if row["filter"]]


def _bounded(tables: list[pa.Table], keys: Sequence[str], most: int) -> pa.Table:
    whole = merged(tables, keys)
    return folded(whole, keys, last_kept(whole, keys, most))


def _counted(deliveries: pa.Table, count_publishes: bool) -> pa.Table:
    """With a column for each thing that is counted."""
    names = ("topic", "subscriber", "filter", "publish", "forward", "retained", "outcome")
    table = deliveries.select(names).cast(pa.schema([DELIVERIES.field(name) for name in names]))
    outcome, was_seen = table.column("outcome"), pc.is_valid(table.column("forward"))
    retained = table.column("retained").fill_null(False)
    due = pc.and_(pc.is_in(outcome, pa.array(_DUE)), pc.is_valid(table.column("publish")))
    flags = {name: pc.equal(outcome, name) for name in OUTCOMES}
    for name in ("altered", "misdirected"):  # the forward that it was has a row of its own
        flags[name] = pc.and_(flags[name], due)
    flags |= {
        "due": due,
        "seen": pc.and_not(was_seen, retained),
        "retained": pc.and_(pc.is_in(outcome, pa.array(("delivered", "late"))), retained),
        "hits": pc.or_(due, flags["optional"]),
    }
    texts = [table.column("topic").fill_null("?"), table.column("subscriber"), table.column("filter")]
    counts = {name: flag.fill_null(False).cast(pa.int64()) for name, flag in flags.items()}
    firsts = _firsts(table, pc.and_not(due, retained)) if count_publishes else np.zeros(len(table), np.int64)
    return pa.table([*texts, firsts, *counts.values()], names=[*names[:3], "publishes", *counts])


def _firsts(table: pa.Table, due: pa.ChunkedArray) -> NDArray[np.int64]:
    """1 in the first of the due rows of each publish."""
    at = np.flatnonzero(due.to_numpy())
    rows = table.take(pa.array(at))
    flags = np.zeros(len(table), np.int64)
    flags[at[distinct(places_of(rows.column("publish")))]] = 1
    return flags


def _published(publishes: pa.Table) -> pa.Table:
    """As rows of topics on which nothing but that has happened."""
    table = publishes.cast(PUBLISHES)
    none = pa.array(np.zeros(len(table), np.int64))
    columns = [none if name not in PUBLISHES.names else table.column(name) for name in _TOPICS.names]
    return pa.table([columns[0].fill_null("?"), *columns[1:]], schema=_TOPICS)


def _subscribed(subscriptions: pa.Table | Sequence[str]) -> pa.Table:
    """As rows of filters that nothing has hit."""
    if not isinstance(subscriptions, pa.Table):
        names = pa.array(subscriptions, pa.string())
        subscriptions = pa.table([names, pa.nulls(len(names), pa.string())], schema=_FILTER_LINKS)
    table = subscriptions.select(_FILTER_LINKS.names).cast(_FILTER_LINKS)
    for name in _FILTER_COUNTS:
        table = table.append_column(name, pa.array(np.zeros(len(table), np.int64)))
    return table.filter(pc.is_valid(table.column("filter")))


def _known_links(*tables: pa.Table) -> pa.Table:
    links = pa.concat_tables([table.select(_FILTER_LINKS.names) for table in tables])
    return links.filter(pc.is_valid(links.column("subscriber")))


def _shown(counts: Row) -> Row:
    """What a row tells of the outcomes: late ones were delivered."""
    told = {"publishes": counts["publishes"], "expected": counts["due"]}
    told["delivered"] = counts["delivered"] + counts["late"]
    return told | {name: counts[name] for name in ("missing", "unexpected", "duplicate", "inconclusive")}


def _with_links(table: pa.Table, links: pa.Table, name: str, order: Any, most: int) -> list[Row]:
    """The first rows in this order, each with its number of subscribers (None if there were too many to count)."""
    chosen = table.take(pa.array(np.argsort(order, kind="stable")[:most]))
    real = links.filter(pc.is_valid(links.column(name)))
    starts = run_starts(real, (name,))
    numbers = dict(zip(real.column(name).take(starts[:-1]).to_pylist(), np.diff(starts).tolist(), strict=True))
    uncounted = real.column(name)[-1].as_py() if len(real) < len(links) else None
    rows: list[Row] = chosen.to_pylist()
    for row in rows:
        is_counted = row[name] is not None and (uncounted is None or row[name] < uncounted)
        row["subscribers"] = numbers.get(row[name], 0) if is_counted else None
        row[name] = OTHER if row[name] is None else row[name]
    return rows

"""How a large session is cut so that many tasks can judge it: its rows by client, and by topic.

A unit of a session goes through a `UnitCutter`: a chunk at a time, since few columns of integers are needed in the end.
What comes out are packed rows (`engines.Packed`) for numbered buckets of clients and of topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pcap_tools.columnar.decode.schema import ALL_MESSAGES
from pcap_tools.topic_match import matches, wild_flags

from .checker.kernels.grouping import distinct
from .checker.kernels.hashing import hashes, mix
from .checker.matching.deliveries import find_publishes, topic_rows
from .checker.rules.ack_rules import ASTRAY
from .checker.rules.loop_rules import judges_payloads
from .checker.session.broker_activity import edges_of, runs_of, set_beside
from .checker.session.control import control_and_acks
from .checker.session.events import (
    COLUMNS,
    PAYLOAD_HASH,
    TO_BROKER,
    Col,
    Events,
    as_one,
    events_of,
    with_coded_texts,
    with_parties,
)
from .checker.session.facts import SessionFacts, needs_control
from .checker.session.policy import SUBSCRIBE
from .checker.steps import StepFindings, client_rows, join_findings, judge_datagrams, prepare
from .engine.engines import Packed
from .tables.packing import narrow, pack, pack_tables, split_rows, together, unpack

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
CHUNK_ROWS = 1 << 17
SLICE_ROWS = 3 << 18  # that a step looks at at a time, unless one key has more
SHARE_ROWS = 1 << 18  # of a topic with more than these, by subscriber
EVERYWHERE = -1
SENT_EVERYWHERE = 100_000  # subscriptions of a session
KEPT_NAMES = 10_000  # topics with retained messages; of more only the buckets are told
KEPT = pa.schema([("bucket", pa.int64()), ("name", pa.string())])  # of a topic with retained messages; null: any
Share = tuple[int, int]  # of the subscribers: its number, and how many there are
ALL: Share = (0, 1)
_TYPES = {field.name: field.type for field in ALL_MESSAGES}


@dataclass(frozen=True)
class Cut:
    """One dialect of a large session, and the buckets that its keys go to: those of clients and of topics are numbered
    alike, from ``first`` on. ``place`` is its number among all of these; ``key`` has the session's among the large ones
    and the dialect's; ``number`` is the session's among all."""

    place: int
    key: tuple[int, int]
    number: int
    facts: SessionFacts
    first: int
    buckets: int

    @property
    def session(self) -> int:
        return self.key[0]

    @property
    def topics(self) -> range:
        """All its buckets of topics."""
        return range(self.first, self.first + self.buckets)

    def client_buckets(self, events: Events) -> Integers:
        """By row: the bucket of its two ends."""
        return self.client_keys(events) % self.buckets

    def client_keys(self, events: Events) -> Integers:
        """By row: its two ends, whichever of them is the broker."""
        broker = self.facts.policy.dialect.spec.broker
        by_host = broker.forward_from == "ephemeral" or broker.subscriber_port is not None
        one, two = (Col.SRC_HOST, Col.DST_HOST) if by_host else (Col.SRC, Col.DST)
        source, target = (as_one(events[column], self.facts.brokers.same) for column in (one, two))
        low, high = np.minimum(source, target), np.maximum(source, target)
        return mix(low, high)

    def topic_buckets(self, events: Events) -> Integers:
        """By row: the bucket of the topic that a publish and its forwards have."""
        return self._topic_bucket(events[Col.TOPIC])

    def filter_buckets(self, filters: pa.ChunkedArray | pa.Array) -> Integers:
        """By filter: the bucket of the one topic that it matches; `EVERYWHERE` for what may match topics of any."""
        policy = self.facts.policy
        if not policy.filters_name_topics:
            return np.full(len(filters), EVERYWHERE, np.int64)
        coded = pa.chunked_array(filters).cast(pa.string()).combine_chunks().dictionary_encode()
        words = coded.dictionary
        buckets = self._topic_bucket(hashes(words))
        buckets[wild_flags(words.to_pylist(), policy.dialect.spec.topics)] = EVERYWHERE
        found: Integers = np.append(buckets, EVERYWHERE)[coded.indices.fill_null(len(words)).to_numpy()]
        return found

    def _topic_bucket(self, topics: Integers) -> Integers:
        return mix(topics, np.zeros(len(topics), np.int64)) % self.buckets

    def by_filter(self, rows: pa.Table, filters: pa.ChunkedArray | pa.Array) -> Iterator[tuple[int, pa.Table]]:
        """Rows about subscriptions by the bucket of the topics that these may match, or `EVERYWHERE`."""
        bucket = self.filter_buckets(filters)
        yield from split_rows(rows, bucket, self.buckets, np.flatnonzero(bucket != EVERYWHERE))
        wild = np.flatnonzero(bucket == EVERYWHERE)
        yield from ((EVERYWHERE, part) for _, part in split_rows(rows, np.zeros(len(rows), np.int64), 1, wild))

    def by_kept(self, asks: pa.Table, kept: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Subscriptions by the buckets of topics with retained messages (``KEPT``) that they may ask for."""
        topics = self.facts.policy.dialect.spec.topics
        coded = asks.column("filter").cast(pa.string()).fill_null("").combine_chunks().dictionary_encode()
        filters = coded.dictionary.to_pylist()
        wanted = np.ones(len(filters), np.bool_)
        if self.facts.policy.dialect.spec.broker.retained == "exact":
            wanted = ~wild_flags(filters, topics)
        for bucket in np.unique(kept.column("bucket").to_numpy()):
            names = kept.column("name").filter(pc.equal(kept.column("bucket"), bucket)).to_pylist()
            chosen = wanted
            if None not in names:
                chosen = np.zeros(len(filters), np.bool_)
                chosen[matches(names, filters, topics)[1]] = True
                chosen &= wanted
            rows = np.flatnonzero(chosen[coded.indices.to_numpy()])
            if len(rows):
                yield int(bucket), asks.take(pa.array(rows))

    def is_too_many(self, wild: pa.Table) -> bool:
        """Whether subscriptions with wildcards of a bucket of clients are too many to be sent to all buckets of topics.
        Then publishes come to them. Where a number must have been created, all topics have all control rows."""
        by_number = self.facts.policy.dialect.spec.topics.kind == "number"
        return not by_number and len(wild) > SENT_EVERYWHERE // self.buckets

    def packed(self, kind: str, parts: Iterable[tuple[int, pa.Table]]) -> Iterator[Packed]:
        """Packed rows of parts by bucket, as `split_rows` and `by_filter` give them."""
        for bucket, part in parts:
            data = pack(narrow(part))
            for topic in self.topics if bucket == EVERYWHERE else [self.first + bucket]:
                yield Packed(topic, kind, data)

    def rows(self, parts: Iterable[bytes], facts: SessionFacts | None = None) -> BucketRows:
        """The rows of a bucket that `UnitCutter` packed. ``facts``: with the names behind numbers, if these matter."""
        return BucketRows(self, parts, facts or self.facts)

    def events(self, tables: Sequence[pa.Table], facts: SessionFacts) -> Events:
        """The events of such rows, which are in the order of frames, so that nothing is left to sort."""
        table = together(tables)
        for name in COLUMNS:
            if name not in table.column_names and name not in ("dialect", "copy_of"):
                table = table.append_column(name, pa.nulls(len(table), _TYPES[name]))
        return prepare(with_brokers(events_of(table, self.facts.policy, self.facts.captures), self.facts), facts)


class BucketRows:
    """The rows of a bucket, of which a step looks at some keys at a time: it takes many times the room that they do."""

    def __init__(self, cut: Cut, parts: Iterable[bytes], facts: SessionFacts) -> None:
        self._cut, self._facts = cut, facts
        tables = sorted(map(unpack, parts), key=lambda part: part.column("frame")[0].as_py())
        self._whole = cut.events(tables, facts) if sum(map(len, tables)) <= SLICE_ROWS else None
        self._tables = list(map(self._in_order, tables)) if self._whole is None else [self._whole.table]
        self._ends = np.cumsum([len(table) for table in self._tables])
        self._shares: dict[int, Integers] = {}

    def _in_order(self, table: pa.Table) -> pa.Table:
        """As events are, for what is made of these stands beside the rows."""
        return self._cut.events([table], self._facts).table.select(table.column_names)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def some(self, wanted: Flags) -> Events:
        """The events of some rows."""
        if self._whole is not None and wanted.all():
            return self._whole
        return self._cut.events(self.tables(wanted), self._facts)

    def tables(self, wanted: Flags) -> list[pa.Table]:
        """Some rows as they are."""
        flags = zip(self._tables, np.split(wanted, self._ends[:-1]), strict=True)
        return [table.filter(pa.array(chosen)) for table, chosen in flags if chosen.any()]

    def column(self, make: Callable[[Events], NDArray[Any]]) -> NDArray[Any]:
        """What is made of the events, by row."""
        if self._whole is not None:
            return make(self._whole)
        return np.concatenate([make(self._cut.events([table], self._facts)) for table in self._tables])

    def of_share(self, share: Share) -> Flags:
        """What is published, and what these subscribers send and get."""
        number, count = share
        if count not in self._shares:
            self._shares = {count: self.column(lambda events: _share_numbers(events, count))}
        flags: Flags = np.isin(self._shares[count], (number, EVERYWHERE))
        return flags

    def by_client(self) -> Iterator[Events]:
        """All events, some clients at a time."""
        yield from map(self.some, slices(self.column(self._cut.client_keys)))

    def by_topic(self) -> Iterator[Flags]:
        """All rows, some topics at a time, with all subscriptions each."""
        if self._whole is not None:
            yield np.ones(len(self), np.bool_)
            return
        asks = self.column(subscribing)
        for chosen in slices(self.column(lambda events: events[Col.TOPIC])):
            yield chosen | asks


def slices(keys: Integers) -> Iterator[Flags]:
    """Rows, some keys at a time; one at least."""
    if len(keys) <= SLICE_ROWS:
        yield np.ones(len(keys), np.bool_)
        return
    _, which = distinct(keys)
    slice_of = ((np.cumsum(np.bincount(which)) - 1) // SLICE_ROWS)[which]
    yield from (slice_of == number for number in np.unique(slice_of))


def shares_of(topics: int) -> list[Share]:
    """Into how many shares the subscribers of some topics, with so many rows, are to be divided."""
    count = -(-topics // SHARE_ROWS) if topics > SLICE_ROWS else 1
    return [(number, count) for number in range(count)]


def is_in_share(clients: Integers, share: Share) -> Flags:
    number, count = share
    flags: Flags = clients % count == number
    return flags


def _share_numbers(events: Events, count: int) -> Integers:
    """By row: the share whose subscriber sends it or gets it; `EVERYWHERE` for what is published."""
    published = (events[Col.SIDE] == TO_BROKER) & ~subscribing(events)
    return np.where(published, EVERYWHERE, events[Col.CLIENT] % count)


def subscribing(events: Events) -> Flags:
    """Which events are subscriptions."""
    flags: Flags = np.append(events.policy.meaning == SUBSCRIBE, False)[events[Col.MESSAGE]]
    return flags


def with_brokers(events: Events, facts: SessionFacts) -> Events:
    return with_parties(events, facts.brokers.endpoints, facts.brokers.hosts, facts.brokers.same)


def cut_of(cuts: Sequence[Cut], bucket: int) -> Cut | None:
    """Whose bucket it is; None: of a session that cannot be read."""
    return next((cut for cut in cuts if bucket in cut.topics), None)


class UnitCutter:
    """Cuts the rows of one unit. For the bucket ``survey`` it finds what the brokers sent first and last, and when they
    were busy, and which topics have retained messages (``kept``); for buckets of clients control messages with their
    ACKs (``changes``), all rows (``client``) and, where messages are retained, subscriptions (``asks``); for buckets of
    topics publishes and forwards (``topic``).

    Where topics are numbers, only clients know what these mean: all rows go to them (``all``), and on from there.
    """

    def __init__(self, cut: Cut, survey: int) -> None:
        self._cut, self._survey, self._by_number = cut, survey, needs_control(cut.facts.policy)
        self._told: list[Packed] = []
        self._kept: list[pa.Table] = []
        self._findings: list[StepFindings] = []
        self._columns: dict[str, list[Integers]] = {name: [] for name in ("clients", "topics", "beside", "payload")}
        self._rows: dict[str, list[Integers]] = {kind: [] for kind in ("changes", "all", "client", "topic", "asks")}

    def cut(self, table: pa.Table) -> Iterator[Packed]:
        """The rows of one dialect, in the order of the capture (`events.rows_of`). Small packed rows come first: who
        wants only these need not look at the others."""
        if len(self._cut.facts.captures) == 1:
            table = table.drop_columns(["capture"])  # it is the same everywhere, and handed over with each row
        table = with_coded_texts(table)
        chunks = [table.slice(start, CHUNK_ROWS) for start in range(0, len(table), CHUNK_ROWS)]
        ordered = [self._look(chunk, place * CHUNK_ROWS) for place, chunk in enumerate(chunks)]
        if any(one is not other for one, other in zip(ordered, chunks, strict=True)):
            table = pa.concat_tables(ordered).combine_chunks()
        yield from self._told
        if self._kept:
            yield Packed(self._survey, "kept", pack(distinct_kept(self._kept)))
        if self._findings:
            yield candidates_row(self._cut, join_findings(self._findings))
        yield from self._split("changes", table, "clients")
        if self._by_number:
            yield from self._split("all", self._with_beside(table), "clients")
            return
        yield from self._split("client", self._client_columns(table), "clients")
        yield from self._split("topic", table, "topics")
        yield from self._split("asks", table, "clients")

    def _look(self, chunk: pa.Table, start: int) -> pa.Table:
        """Find out where the rows of a chunk go; returned are these rows in the order of events."""
        events = with_brokers(events_of(chunk, self._cut.facts.policy, self._cut.facts.captures), self._cut.facts)
        self._told.append(Packed(self._survey, "edges", pack(edges_of(events))))
        self._told.append(Packed(self._survey, "runs", pack(runs_of(events))))
        self._rows["changes"].append(np.flatnonzero(control_and_acks(events)) + start)
        set_beside(events)
        self._columns["clients"].append(self._cut.client_buckets(events))
        self._columns["beside"].append(events[Col.BESIDE])
        if self._by_number:
            self._rows["all"].append(np.arange(len(events)) + start)
            return events.table
        self._findings.append(judge_datagrams(events, self._cut.facts))
        rows, asks = topic_rows(events)
        self._rows["client"].append(np.flatnonzero(client_rows(events)) + start)
        self._rows["topic"].append(rows + start)
        self._rows["asks"].append(asks + start)
        buckets = self._cut.topic_buckets(events)
        self._columns["topics"].append(buckets)
        kept = kept_topics(self._cut, events, buckets)
        if len(kept):
            self._kept.append(kept)
        self._columns["payload"].append(events[Col.PAYLOAD])
        return events.table

    def _with_beside(self, table: pa.Table) -> pa.Table:
        return table.append_column("beside", pa.array(_joined(self._columns["beside"])))

    def _client_columns(self, table: pa.Table) -> pa.Table:
        """What the steps by client need: of payloads mostly their hashes."""
        table = self._with_beside(table)
        if judges_payloads(self._cut.facts.policy):
            return table
        hashed = pa.array(_joined(self._columns["payload"]))
        return table.drop_columns(["payload"]).append_column(PAYLOAD_HASH, hashed)

    def _split(self, kind: str, table: pa.Table, key: str) -> Iterator[Packed]:
        rows, buckets = _joined(self._rows[kind]), _joined(self._columns[key])
        yield from self._cut.packed(kind, split_rows(table, buckets, self._cut.buckets, rows))


def _joined(chunks: Sequence[Integers]) -> Integers:
    return np.concatenate([np.zeros(0, np.int64), *chunks])


def named_rows(cut: Cut, events: Events) -> Iterator[Packed]:
    """What `UnitCutter` leaves to be done by client where topics are numbers; the names behind these are known now."""
    yield candidates_row(cut, judge_datagrams(events, cut.facts))
    rows, asks = topic_rows(events)
    table, buckets = events.table.drop_columns(["beside"]), cut.topic_buckets(events)
    yield from cut.packed("topic", split_rows(table, buckets, cut.buckets, rows))
    yield from cut.packed("asks", split_rows(table, cut.client_buckets(events), cut.buckets, asks))
    kept = kept_topics(cut, events, buckets)
    if len(kept):
        yield from cut.packed("kept", [(EVERYWHERE, distinct_kept([kept]))])


def kept_topics(cut: Cut, events: Events, buckets: Integers) -> pa.Table:
    """``KEPT`` of the topics of which a message is to be retained; ``buckets`` are those of all rows."""
    if cut.facts.policy.dialect.spec.broker.retained == "none" or not (events[Col.RETAIN] == 1).any():
        return KEPT.empty_table()
    publishes = find_publishes(events, cut.facts)
    rows = publishes.plain[events[Col.RETAIN][publishes.plain] == 1]
    rows = rows[distinct(mix(events[Col.NAME][rows], buckets[rows]))[0]]
    names = [publishes.names[int(name)] for name in events[Col.NAME][rows]]
    return pa.table([pa.array(buckets[rows]), pa.array(names, pa.string())], schema=KEPT)


def distinct_kept(several: Sequence[pa.Table]) -> pa.Table:
    """Rows of ``KEPT`` as one; without the names of too many topics."""
    found = pa.concat_tables(several).group_by(KEPT.names).aggregate([])
    if len(found) > KEPT_NAMES or found.column("name").null_count:
        buckets = found.column("bucket").unique()
        return pa.table([buckets, pa.nulls(len(buckets), pa.string())], schema=KEPT)
    return found


def candidates_row(cut: Cut, found: StepFindings, evidence: int = 0, astray: pa.Table | None = None) -> Packed:
    """What a step found, for the step that settles it."""
    tables = {
        "candidates": found.candidates,
        "counts": found.counts,
        "strays": pa.table({"time": found.strays}),
        "invented": pa.table({"time": found.invented}),
        "evidence": pa.table({"bits": [evidence]}),
        "astray": ASTRAY.empty_table() if astray is None else astray,
    }
    return Packed(cut.place, "candidates", pack_tables(tables))

"""From units of captures to tables and verdicts: the passes over sessions, the same for every engine.

    units ─► endpoints ─► control ─► deliveries ─► exchanges ─► delivery findings ─► findings

A session of one unit takes all steps in one task. A larger one is read by many tasks: they cut its rows into buckets of
clients and of topics, and each step is a fold over buckets (`checker.steps`). Only what is small comes to the driver:
who the brokers are, when they were silent, and control rows of dialects whose topics are numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcap_tools.columnar.schema import ALL_MESSAGES
from pcap_tools.dialect import Dialect
from pcap_tools.errors import TopicsharkError

from .ack_timing import TimingSummary
from .capture_parts import Dialects
from .checker.ack_rules import ASTRAY
from .checker.broker_activity import edges_of, join_units, runs_of, set_beside
from .checker.control import CONTROL, control_and_acks, control_rows, subscription_rows, subscriptions_of
from .checker.deliveries import topic_rows
from .checker.endpoints import Point, add_pairs, brokers_of, pairs_of
from .checker.events import COLUMNS, PAYLOAD_HASH, Col, Events, events_of, rows_of, with_coded_texts, with_parties
from .checker.evidence import evidence_rows
from .checker.exchanges import FORWARDS, Forwards
from .checker.facts import SessionFacts, facts_of, needs_control
from .checker.findings import COUNTS
from .checker.kernels.hashing import mix
from .checker.loop_rules import judges_payloads
from .checker.policy import PUBLISH, SUBSCRIBE, Policy
from .checker.requests import REQUESTS
from .checker.session_plans import SessionPlan
from .checker.steps import (
    Judged,
    client_rows,
    judge_clients,
    judge_datagrams,
    judge_session,
    judge_topics,
    match_deliveries,
    prepare,
    settle,
)
from .checker.units import Read, Unit, read_unit
from .checker.verdicts import verdict_rows
from .engines import Engine, Packed
from .fanout import FanoutSummary
from .packing import joined, pack, pack_tables, split_rows, unpack, unpack_tables
from .schemas import DELIVERIES, ENDPOINTS, EXCHANGES, PUBLISHES

Integers = NDArray[np.int64]
TYPES = {field.name: field.type for field in ALL_MESSAGES}
BUCKET_ROWS = 1 << 20  # so many rows of a session go to one bucket, unless one key has more
ROW_TABLES = ("exchanges", "deliveries", "findings", "subscriptions")


@dataclass(frozen=True)
class Options:
    """What the user asks for.

    summaries  timing and fan-out
    tables     names of ``ROW_TABLES`` whose rows are wanted
    limit      findings of a rule that are wanted, -1 for all
    """

    dialects: Dialects
    brokers: tuple[str, ...] = ()
    summaries: bool = True
    tables: frozenset[str] = frozenset()
    limit: int = -1

    @property
    def with_rows(self) -> bool:
        return self.summaries or bool(self.tables & {"exchanges", "deliveries"})


@dataclass(frozen=True)
class Results:
    """Packed rows; the bucket is the number of a session. Kinds: ``failed`` and ``damage`` (sentences), the tables
    wanted, and with a colon and the dialect behind them ``why`` (JSON), ``endpoints``, ``evidence``, ``verdicts``,
    ``findings`` (tables), ``timing`` and ``fanout`` (summaries)."""

    rows: list[Any]


def analyse_sessions(engine: Engine, sessions: Sequence[SessionPlan], options: Options, packed: Any = None) -> Results:
    """All passes. Sessions are numbered as they are given; ``packed`` are their units, if these come as packed rows."""
    numbered = list(enumerate(sessions))
    small = [(number, session) for number, session in numbered if len(session.units) == 1]
    large = [(number, session) for number, session in numbered if len(session.units) > 1]
    read = UnitReader(engine, packed)
    rows = []
    if small:
        items = [(number, session.name, session.captures, session.units[0]) for number, session in small]
        rows.append(engine.keep(read(partial(_judge_small, options), items, "check")))
    if large:
        rows += LargeSessions(engine, read, large, options).rows()
    return Results(rows)


class UnitReader:
    """Runs a function on items whose last part is a unit: in a task that reads it, or that gets its packed rows."""

    def __init__(self, engine: Engine, packed: Any = None) -> None:
        self._engine, self._packed = engine, packed

    def __call__(self, function: Any, items: Sequence[tuple[Any, ...]], label: str) -> Any:
        if self._packed is None:
            return self._engine.read(function, items, label)
        by_place = {item[-1].place: item for item in items}
        count = 1 + max(by_place)
        return self._engine.fold([self._packed], ["unit"], count, partial(_read_packed, function, by_place), label)


def _read_packed(
    function: Any, items: dict[int, tuple[Any, ...]], place: int, rows: dict[str, list[bytes]]
) -> Iterator[Packed]:
    """In a task: the function on one unit."""
    if place in items:
        *about, unit = items[place]
        yield from function((*about, replace(unit, rows=joined(rows["unit"]))))


# -- sessions of one unit -----------------------------------------------------------------------------------------


def _judge_small(options: Options, item: tuple[int, str, tuple[str, ...], Unit]) -> Iterator[Packed]:
    """In a task: all steps."""
    number, session, captures, unit = item
    try:
        read = read_unit(unit, options.dialects)
    except TopicsharkError as error:
        yield Packed(number, "failed", str(error).encode(errors="replace"))
        return
    yield from (Packed(number, "damage", sentence.encode(errors="replace")) for sentence in read.damage)
    for dialect in present(read.batches, options.dialects):
        policy = Policy(dialect)
        table = rows_of(read.batches, dialect.name)
        if not len(table):
            continue
        yield from _why(number, read, dialect)
        copies = sum(len(batch) - batch.column("copy_of").null_count for batch in read.batches)
        facts = facts_of(session, captures, policy, pairs_of(table, policy, copies), options.brokers)
        yield from _whole(number, events_of(table, policy, captures), facts, options)


def _why(number: int, read: Read, dialect: Dialect) -> Iterator[Packed]:
    """Why the dialect is believed, if the task found that out."""
    if dialect.name in read.evidence:
        yield Packed(number, f"why:{dialect.name}", json.dumps(read.evidence[dialect.name][:3]).encode())


def present(batches: Sequence[pa.RecordBatch], dialects: Dialects) -> list[Dialect]:
    """The dialects of which there are rows, in the order in which they are wanted."""
    there = {name for batch in batches for name in batch.column("dialect").unique().to_pylist()}
    return [dialect for dialect in dialects.wanted if dialect.name in there]


def _whole(number: int, events: Events, facts: SessionFacts, options: Options) -> Iterator[Packed]:
    events, facts = whole_session(events, facts)
    found = judge_session(events, facts, options.with_rows)
    yield endpoints_row(number, facts)
    yield from _outcome(number, facts, found.evidence, found.counts, found.findings, options)
    if "subscriptions" in options.tables:
        yield Packed(
            number, "subscriptions", pack(subscription_rows(facts.subscriptions, facts.session, facts.captures))
        )
    yield from _client_outputs(number, facts, found.exchanges, found.publishes, options)
    yield from _topic_outputs(number, facts, found.deliveries, options)
    if options.summaries:
        subscribed = subscription_rows(facts.subscriptions, facts.session, facts.captures)
        summary = FanoutSummary.of(DELIVERIES.empty_table(), PUBLISHES.empty_table(), subscribed)
        yield Packed(number, _of(facts, "fanout"), summary.packed())


def whole_session(events: Events, facts: SessionFacts) -> tuple[Events, SessionFacts]:
    """Events and facts of a session that is at hand as a whole, ready for `judge_session`."""
    control = control_rows(with_brokers(events, facts))
    facts = facts.with_control(control).with_subscriptions(subscriptions_of(control, facts.policy))
    facts = facts.with_activity(join_units(0, (), [runs_of(events)]))
    return prepare(events, facts), facts


def _of(facts: SessionFacts, kind: str) -> str:
    """Kinds of rows that are told apart by dialect."""
    return f"{kind}:{facts.policy.dialect.name}"


def endpoints_row(number: int, facts: SessionFacts) -> Packed:
    """What a user wants to know of a session, as ``ENDPOINTS``."""
    row = {
        "session": facts.session,
        "dialect": facts.policy.dialect.name,
        "brokers": [{"host": host, "port": port} for host, port in facts.brokers.ends],
        "point": str(facts.point),
        "begin_ns": facts.begin,
        "end_ns": facts.end,
        "starts_late": facts.starts_late,
        "is_cut": facts.is_cut,
        "datagrams": facts.datagrams,
    }
    return Packed(number, _of(facts, "endpoints"), pack(pa.Table.from_pylist([row], ENDPOINTS)))


def _outcome(
    number: int, facts: SessionFacts, evidence: int, counts: pa.Table, findings: pa.Table, options: Options
) -> Iterator[Packed]:
    """Verdicts, and some or all of the findings."""
    yield Packed(number, _of(facts, "evidence"), pack(evidence_rows(facts, evidence)))
    yield Packed(number, _of(facts, "verdicts"), pack(verdict_rows(facts, counts, findings)))
    if options.limit >= 0:
        rank: dict[str, int] = {}
        kept = []
        for rule in findings.column("rule").to_pylist():
            rank[rule] = rank.get(rule, 0) + 1
            kept.append(rank[rule] <= options.limit)
        findings = findings.filter(pa.array(kept, pa.bool_()))
    yield Packed(number, _of(facts, "findings"), pack(findings))


def _client_outputs(
    number: int, facts: SessionFacts, exchanges: pa.Table, publishes: pa.Table, options: Options
) -> Iterator[Packed]:
    if "exchanges" in options.tables:
        yield Packed(number, "exchanges", pack(exchanges))
    if options.summaries:
        yield Packed(number, _of(facts, "timing"), TimingSummary.of(exchanges).packed())
        yield Packed(number, _of(facts, "fanout"), FanoutSummary.of(DELIVERIES.empty_table(), publishes).packed())


def _topic_outputs(number: int, facts: SessionFacts, deliveries: pa.Table, options: Options) -> Iterator[Packed]:
    if "deliveries" in options.tables:
        yield Packed(number, "deliveries", pack(deliveries))
    if options.summaries:
        yield Packed(number, _of(facts, "timing"), TimingSummary.of(EXCHANGES.empty_table(), deliveries).packed())
        yield Packed(number, _of(facts, "fanout"), FanoutSummary.of(deliveries, PUBLISHES.empty_table()).packed())


# -- sessions of several units ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cut:
    """One dialect of a large session, and the buckets that its keys go to: clients from ``first_client`` on, topics
    from ``first_topic`` on. ``session`` is its place among the large sessions, ``number`` that among all."""

    session: int
    number: int
    facts: SessionFacts
    first_client: int
    first_topic: int
    buckets: int

    def client_buckets(self, events: Events) -> Integers:
        """By row: the bucket of its two ends, whichever of them is the broker."""
        broker = self.facts.policy.dialect.spec.broker
        by_host = broker.forward_from == "ephemeral" or broker.subscriber_port is not None
        one, two = (Col.SRC_HOST, Col.DST_HOST) if by_host else (Col.SRC, Col.DST)
        low, high = np.minimum(events[one], events[two]), np.maximum(events[one], events[two])
        return mix(low, high) % self.buckets

    def topic_buckets(self, events: Events) -> Integers:
        """By row: the bucket of the topic that a publish and its forwards have."""
        return mix(events[Col.TOPIC], np.zeros(len(events), np.int64)) % self.buckets

    @property
    def topics(self) -> range:
        """All its buckets of topics."""
        return range(self.first_topic, self.first_topic + self.buckets)


class LargeSessions:
    """The passes over sessions of several units."""

    def __init__(
        self, engine: Engine, read: UnitReader, sessions: Sequence[tuple[int, SessionPlan]], options: Options
    ) -> None:
        self._engine, self._read, self._sessions, self._options = engine, read, list(sessions), options
        self._units = [(at, unit) for at, (_, session) in enumerate(sessions) for unit in session.units]

    def rows(self) -> list[Any]:
        """Packed rows as `Results` has them."""
        engine, options = self._engine, self._options
        surveyed = engine.keep(self._read(partial(_survey, options, self._numbers), self._units, "look"))
        cuts = self._endpoints(surveyed)
        if not cuts:
            return [surveyed]
        controlled, cuts = self._control(cuts)
        buckets = sum(cut.buckets for cut in cuts)
        packed = engine.keep(self._read(partial(_cut_rows, options, cuts), self._readable(cuts), "read"))

        def fold(rows: list[Any], kinds: list[str], count: int, step: Any) -> Any:
            return engine.keep(engine.fold(rows, kinds, count, partial(step, options, cuts), "check"))

        matched = fold([packed, controlled], ["topic", "control"], buckets, _match)
        exchanged = fold([packed, matched], ["client", "forwards"], buckets, _judge_clients)
        kinds = ["pending", "control", "requests", "bits", "served"]
        delivered = fold([controlled, matched, exchanged], kinds, buckets, _judge_topics)
        settled = fold([packed, matched, exchanged, delivered], ["judged"], len(cuts), _settle)
        told = engine.read(_as_it_is, [endpoints_row(cut.number, cut.facts) for cut in cuts], "check")
        return [surveyed, controlled, matched, exchanged, delivered, settled, told]

    @property
    def _numbers(self) -> list[int]:
        return [number for number, _ in self._sessions]

    def _readable(self, cuts: Sequence[Cut]) -> list[tuple[int, Unit]]:
        wanted = {cut.session for cut in cuts}
        return [(at, unit) for at, unit in self._units if at in wanted]

    def _endpoints(self, surveyed: Any) -> list[Cut]:
        """The dialects of each session that can be read."""
        engine, options = self._engine, self._options
        plans = [session for _, session in self._sessions]
        count = len(plans) * len(options.dialects.wanted)
        added = engine.fold([surveyed], ["pairs"], count, partial(_add_pairs, options, plans), "look")
        found = engine.collect([surveyed, added], ["failed", "endpoints"], "look")
        failed = {row.bucket for row in found if row.kind == "failed"}
        cuts: list[Cut] = []
        for row in sorted(row for row in found if row.kind == "endpoints"):
            at, dialect = divmod(row.bucket, len(options.dialects.wanted))
            number, plan = self._sessions[at]
            if number not in failed:
                facts = _facts_from(unpack(row.data), plan, options.dialects.wanted[dialect])
                first = cuts[-1].first_client + cuts[-1].buckets if cuts else 0
                cuts.append(Cut(at, number, facts, first, first, -(-facts.datagrams // BUCKET_ROWS)))
        return cuts

    def _control(self, cuts: Sequence[Cut]) -> tuple[Any, list[Cut]]:
        """Control rows; and with them what is known of the session in the end."""
        engine, options = self._engine, self._options
        seen = self._read(partial(_cut_control, options, cuts), self._readable(cuts), "look")
        kinds, buckets = ["control", "edges", "runs"], sum(cut.buckets for cut in cuts)
        controlled = engine.keep(engine.fold([seen], kinds, buckets, partial(_fold_control, options, cuts), "look"))
        found: dict[tuple[int, str], list[bytes]] = {}
        for row in engine.collect([controlled], ["edges", "runs", "numbers"], "look"):
            found.setdefault((row.bucket, row.kind), []).append(row.data)
        made = []
        for at, cut in enumerate(cuts):
            edges, runs = ([unpack(one) for one in found.get((at, kind), ())] for kind in ("edges", "runs"))
            activity = join_units(int(cut.facts.policy.ack_place[PUBLISH]), edges, runs)
            facts = cut.facts.with_activity(activity)
            facts = facts.with_control(joined(found.get((at, "numbers"), ()), CONTROL))
            made.append(replace(cut, facts=facts))
        return controlled, made


def _facts_from(endpoints: pa.Table, plan: SessionPlan, dialect: Dialect) -> SessionFacts:
    (said,) = endpoints.to_pylist()
    brokers = brokers_of([(one["host"], one["port"]) for one in said["brokers"]])
    return SessionFacts(
        plan.name,
        plan.captures,
        Policy(dialect),
        brokers,
        Point(said["point"]),
        *(said[name] for name in ("begin_ns", "end_ns", "starts_late", "is_cut", "datagrams")),
    )


# -- in tasks -----------------------------------------------------------------------------------------------------


def _as_it_is(row: Packed) -> Iterator[Packed]:
    yield row


_OF_CONTROL = tuple(name for name in COLUMNS if name not in ("payload", "retain", "error_offset"))
# Columns that tell who says what to whom.
_OF_TALKS = ("time_ns", "src", "sport", "dst", "dport", "dialect", "message", "error", "copy_of")


def _survey(options: Options, numbers: Sequence[int], item: tuple[int, Unit]) -> Iterator[Packed]:
    """Who says what to whom in a unit."""
    at, unit = item
    try:
        read = read_unit(unit, options.dialects, _OF_TALKS)
    except TopicsharkError as error:
        yield Packed(numbers[at], "failed", str(error).encode(errors="replace"))
        return
    yield from (Packed(numbers[at], "damage", sentence.encode(errors="replace")) for sentence in read.damage)
    for dialect in present(read.batches, options.dialects):
        table = rows_of(read.batches, dialect.name)
        if len(table):
            copies = sum(len(batch) - batch.column("copy_of").null_count for batch in read.batches)
            place = at * len(options.dialects.wanted) + options.dialects.wanted.index(dialect)
            yield from _why(numbers[at], read, dialect)
            yield Packed(place, "pairs", pack(pairs_of(table, Policy(dialect), copies)))


def _add_pairs(
    options: Options, plans: Sequence[SessionPlan], bucket: int, rows: dict[str, list[bytes]]
) -> Iterator[Packed]:
    """The facts of one dialect of a session."""
    at, dialect = divmod(bucket, len(options.dialects.wanted))
    pairs = add_pairs([unpack(one) for one in rows["pairs"]])
    policy = Policy(options.dialects.wanted[dialect])
    facts = facts_of(plans[at].name, plans[at].captures, policy, pairs, options.brokers)
    yield Packed(bucket, "endpoints", endpoints_row(0, facts).data)


def _events(
    options: Options, cuts: Sequence[Cut], item: tuple[int, Unit], columns: tuple[str, ...] = COLUMNS
) -> Iterator[tuple[int, Cut, Events]]:
    """The events of a unit for each dialect in it, with their parties."""
    session, unit = item
    read = read_unit(unit, options.dialects, columns)
    for at, cut in enumerate(cuts):
        if cut.session == session and read.batches:
            table = with_coded_texts(rows_of(read.batches, cut.facts.policy.dialect.name))
            if len(table):
                yield at, cut, with_brokers(events_of(table, cut.facts.policy, cut.facts.captures), cut.facts)


def _cut_control(options: Options, cuts: Sequence[Cut], item: tuple[int, Unit]) -> Iterator[Packed]:
    """Control messages and ACKs by client; what the brokers sent first and last, and when they were busy."""
    for at, cut, events in _events(options, cuts, item, _OF_CONTROL):
        yield Packed(cut.first_client, "edges", _tagged(at, edges_of(events)))
        yield Packed(cut.first_client, "runs", _tagged(at, runs_of(events)))
        rows = np.flatnonzero(control_and_acks(events))
        for bucket, table in split_rows(events.table, cut.client_buckets(events), cut.buckets, rows):
            yield Packed(cut.first_client + bucket, "control", pack(table))


def _tagged(at: int, table: pa.Table) -> bytes:
    """With the place of its session, which is not that of the bucket in which it travels."""
    return pack(table.replace_schema_metadata({"cut": str(at)}))


def _fold_control(options: Options, cuts: Sequence[Cut], bucket: int, rows: dict[str, list[bytes]]) -> Iterator[Packed]:
    """Control rows of a bucket of clients, for all buckets of topics."""
    for kind in ("edges", "runs"):
        for data in rows.get(kind, ()):
            table = unpack(data)
            yield Packed(int(table.schema.metadata[b"cut"]), kind, pack(table))
    at, cut = _cut_of(cuts, bucket)
    events = _bucket_events(rows.get("control", ()), cut)
    control = control_rows(events)
    for topic in cut.topics:
        yield Packed(topic, "control", pack(control))
    if needs_control(cut.facts.policy):
        yield Packed(at, "numbers", pack(control))
    if "subscriptions" in options.tables or options.summaries:
        subscriptions = subscriptions_of(control, cut.facts.policy)
        table = subscription_rows(subscriptions, cut.facts.session, cut.facts.captures)
        if "subscriptions" in options.tables:
            yield Packed(cut.number, "subscriptions", pack(table))
        if options.summaries:
            summary = FanoutSummary.of(DELIVERIES.empty_table(), PUBLISHES.empty_table(), table)
            yield Packed(cut.number, _of(cut.facts, "fanout"), summary.packed())


def _cut_of(cuts: Sequence[Cut], bucket: int) -> tuple[int, Cut]:
    """Whose bucket it is; those of clients and of topics are numbered alike."""
    return next((at, cut) for at, cut in enumerate(cuts) if bucket in cut.topics)


def with_brokers(events: Events, facts: SessionFacts) -> Events:
    return with_parties(events, facts.brokers.endpoints, facts.brokers.hosts)


def _bucket_events(parts: Iterable[bytes], cut: Cut) -> Events:
    """Events with their parties from packed rows."""
    table = joined(parts)
    for name in COLUMNS:
        if name not in table.column_names and name not in ("dialect", "copy_of"):
            table = table.append_column(name, pa.nulls(len(table), TYPES[name]))
    return with_brokers(events_of(table, cut.facts.policy, cut.facts.captures), cut.facts)


def _cut_rows(options: Options, cuts: Sequence[Cut], item: tuple[int, Unit]) -> Iterator[Packed]:
    """All rows by client; publishes, forwards and, where messages are retained, subscriptions by topic."""
    for at, cut, events in _events(options, cuts, item):
        prepare(events, cut.facts)
        set_beside(events, cut.facts.activity)
        yield _judged_row(at, judge_datagrams(events, cut.facts), 0, ASTRAY.empty_table())
        table = events.table.append_column("beside", pa.array(events[Col.BESIDE]))
        if not judges_payloads(cut.facts.policy):
            table = table.drop_columns(["payload"]).append_column(PAYLOAD_HASH, pa.array(events[Col.PAYLOAD]))
        rows = np.flatnonzero(client_rows(events))
        for bucket, part in split_rows(table, cut.client_buckets(events), cut.buckets, rows):
            yield Packed(cut.first_client + bucket, "client", pack(part))
        rows, asks = topic_rows(events)
        for bucket, part in split_rows(events.table, cut.topic_buckets(events), cut.buckets, rows):
            yield Packed(cut.first_topic + bucket, "topic", pack(part))
        if len(asks):
            for _, part in split_rows(events.table, np.zeros(len(events), np.int64), 1, asks):
                yield from (Packed(bucket, "topic", pack(part)) for bucket in cut.topics)


def _topic_step(cut: Cut, control: list[bytes], rows: list[bytes]) -> tuple[Events, SessionFacts]:
    """What both steps by topic begin with."""
    facts = cut.facts.with_subscriptions(subscriptions_of(joined(control, CONTROL), cut.facts.policy))
    return prepare(_bucket_events(rows, cut), facts), facts


def _match(options: Options, cuts: Sequence[Cut], bucket: int, rows: dict[str, list[bytes]]) -> Iterator[Packed]:
    """By topic: which forward belongs to which request, for the client that asked. Topics without trouble are judged at
    once; the rows of the others wait for the exchanges."""
    if "topic" not in rows:
        return
    at, cut = _cut_of(cuts, bucket)
    events, facts = _topic_step(cut, rows.get("control", []), rows["topic"])
    deliveries, served = match_deliveries(events, facts)
    if served is not None:
        data = np.array(sorted(served), np.int64).tobytes()
        yield from (Packed(topic, "served", data) for topic in cut.topics)
        yield Packed(at, "judged", pack_tables({"served": pa.table({"key": pa.array(sorted(served), pa.int64())})}))
    forwards = deliveries.forwards(events)
    buckets = cut.client_buckets(events)[events.rows_of(forwards.cause)]
    every = np.arange(len(buckets))
    for number, part in split_rows(forwards.table(), buckets, cut.buckets, every):
        yield Packed(cut.first_client + number, "forwards", pack(part))
    troubled = deliveries.troubled(events)
    if len(troubled):
        wait = np.isin(events[Col.TOPIC], troubled)
        asks = np.append(events.policy.meaning == SUBSCRIBE, False)[events[Col.MESSAGE]]
        yield Packed(bucket, "pending", pack(events.table.filter(pa.array(wait | asks))))
        deliveries = deliveries.without(events, troubled)
    found = judge_topics(events, facts, deliveries, REQUESTS.empty_table(), 0, None, options.with_rows)
    yield from _topic_outputs(cut.number, facts, found.deliveries, options)
    yield _judged_row(at, found.judged, 0, ASTRAY.empty_table())


def _judge_clients(
    options: Options, cuts: Sequence[Cut], bucket: int, rows: dict[str, list[bytes]]
) -> Iterator[Packed]:
    """By client: exchanges and their findings; what topics want to know of requests."""
    at, cut = _cut_of(cuts, bucket)
    if "client" not in rows:
        return
    events = prepare(_bucket_events(rows["client"], cut), cut.facts)
    forwards = Forwards.of(joined(rows.get("forwards", ()), FORWARDS))
    found = judge_clients(events, cut.facts, forwards, options.with_rows)
    yield from _client_outputs(cut.number, cut.facts, found.exchanges, found.publishes, options)
    yield from (Packed(topic, "bits", str(found.evidence).encode()) for topic in cut.topics)
    yield _judged_row(at, found.judged, found.evidence, found.astray)
    yield from _request_rows(cut, events, found.requests)


def _request_rows(cut: Cut, events: Events, requests: pa.Table) -> Iterator[Packed]:
    """To the topic of a publish or a forward; subscriptions to all topics."""
    asked = events.rows_of(requests.column("id").to_numpy())
    meaning = np.append(events.policy.meaning, -1)[events[Col.MESSAGE][asked]]
    everywhere = meaning == SUBSCRIBE
    rows = np.flatnonzero(~everywhere)
    for number, part in split_rows(requests, cut.topic_buckets(events)[asked], cut.buckets, rows):
        yield Packed(cut.first_topic + number, "requests", pack(part))
    if everywhere.any():
        data = pack(requests.filter(pa.array(everywhere)))
        yield from (Packed(topic, "requests", data) for topic in cut.topics)


def _judge_topics(options: Options, cuts: Sequence[Cut], bucket: int, rows: dict[str, list[bytes]]) -> Iterator[Packed]:
    """By topic again: those in which something is missing or not explained."""
    if "pending" not in rows:
        return
    at, cut = _cut_of(cuts, bucket)
    events, facts = _topic_step(cut, rows.get("control", []), rows["pending"])
    deliveries, served = match_deliveries(events, facts)
    if served is not None:
        served = frozenset(int(key) for data in rows.get("served", ()) for key in np.frombuffer(data, np.int64))
    evidence = _any_bits(int(data) for data in rows.get("bits", ()))
    requests = joined(rows.get("requests", ()), REQUESTS)
    found = judge_topics(events, facts, deliveries, requests, evidence, served, options.with_rows)
    yield from _topic_outputs(cut.number, facts, found.deliveries, options)
    yield _judged_row(at, found.judged, 0, ASTRAY.empty_table())


def _any_bits(several: Iterable[int]) -> int:
    found = 0
    for bits in several:
        found |= bits
    return found


def _judged_row(at: int, judged: Judged, evidence: int, astray: pa.Table) -> Packed:
    tables = {
        "candidates": judged.candidates,
        "counts": judged.counts,
        "strays": pa.table({"time": judged.strays}),
        "invented": pa.table({"time": judged.invented}),
        "evidence": pa.table({"bits": [evidence]}),
        "astray": astray,
    }
    return Packed(at, "judged", pack_tables(tables))


def _settle(options: Options, cuts: Sequence[Cut], bucket: int, rows: dict[str, list[bytes]]) -> Iterator[Packed]:
    """By session: what all its clients and topics together show."""
    cut = cuts[bucket]
    parts = [unpack_tables(data) for data in rows["judged"]]
    keys = [int(key) for part in parts if "served" in part for key in part["served"].column("key").to_numpy()]
    served = frozenset(keys) if any("served" in part for part in parts) else None
    parts = [part for part in parts if "candidates" in part]
    judged = [
        Judged(part["candidates"], part["counts"], *(part[name].column("time").to_numpy() for name in _TIMES))
        for part in parts
    ]
    evidence = _any_bits(part["evidence"].column("bits")[0].as_py() for part in parts)
    findings, evidence = settle(cut.facts, judged, evidence, [part["astray"] for part in parts], served)
    counts = pa.concat_tables([COUNTS.empty_table(), *(one.counts for one in judged)])
    yield from _outcome(cut.number, cut.facts, evidence, counts, findings, options)


_TIMES = ("strays", "invented")

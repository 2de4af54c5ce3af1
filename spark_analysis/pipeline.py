"""From units of captures to tables and verdicts: the passes over sessions, the same for every engine.

    units ─► endpoints ─► control ─► deliveries ─► exchanges ─► delivery findings ─► findings

A session of one unit takes all steps in one task. A larger one is read by many tasks: they cut its rows into buckets of
clients and of topics, and each step is a fold over buckets (`checker.steps`). To cut, they must know the brokers: these
are guessed from the first messages, and if all of the messages tell otherwise, the session is read once more. Only
what is small comes to the driver: who the brokers are, and when they were silent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcap_tools.codec.detect import Dialects
from pcap_tools.columnar.decode.schema import ALL_MESSAGES
from pcap_tools.dialect import Dialect
from pcap_tools.errors import TopicsharkError

from .checker.findings.evidence import evidence_rows
from .checker.findings.findings import COUNTS
from .checker.matching.deliveries import DUE, Deliveries, clients_of, expected_by, published_rows
from .checker.matching.exchanges import FORWARDS, Forwards
from .checker.matching.requests import REQUESTS
from .checker.session.broker_activity import EDGES, join_runs, join_units, mend_beside, runs_of
from .checker.session.control import (
    BINDINGS,
    CONNECTIONS,
    CONTROL,
    binding_rows,
    connection_rows,
    control_rows,
    subscription_rows,
    subscriptions_of,
)
from .checker.session.endpoints import Point, add_pairs, brokers_of, pairs_of
from .checker.session.events import Col, Events, events_of, rows_of
from .checker.session.facts import SessionFacts, facts_of, needs_control
from .checker.session.policy import CREATE, PUBLISH, SUBSCRIBE, Policy
from .checker.steps import (
    StepFindings,
    client_rows,
    judge_clients,
    judge_session,
    judge_topics,
    match_deliveries,
    prepare,
    settle,
)
from .cutting import (
    ALL,
    EVERYWHERE,
    KEPT,
    BucketRows,
    Cut,
    Share,
    UnitCutter,
    candidates_row,
    cut_of,
    distinct_kept,
    is_in_share,
    named_rows,
    shares_of,
    subscribing,
    with_brokers,
)
from .engine.engines import Engine, Packed
from .results.verdicts import verdict_rows
from .sessions.plans import SessionPlan
from .sessions.unit_reading import Read, read_head, read_unit
from .sources.units import Unit
from .summaries.ack_timing import TimingSummary
from .summaries.fanout import FanoutSummary
from .tables.packing import joined, narrow, pack, pack_tables, split_rows, together, unpack, unpack_tables
from .tables.schemas import DELIVERIES, ENDPOINTS, EXCHANGES, PUBLISHES

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Facts = dict[tuple[int, int], SessionFacts]  # by session and dialect
TYPES = {field.name: field.type for field in ALL_MESSAGES}
BUCKET_ROWS = 1 << 19  # so many rows of a session go to one bucket, unless one key has more
_HEADS, _HEAD_ROWS = 8, 5_000  # captures of a session, and messages of each, that show who the brokers are
ROW_TABLES = ("exchanges", "deliveries", "findings", "subscriptions")


@dataclass(frozen=True)
class Options:
    """What the user asks for.

    summaries  timing and fan-out
    tables     names of ``ROW_TABLES`` whose rows are wanted
    limit      findings of a rule that are wanted, -1 for all
    period     datagrams from this time on, and before that one; as if the capture were only so long
    raises     a small session that cannot be read fails its task, so that its rows are not kept; else it is told
    """

    dialects: Dialects
    brokers: tuple[str, ...] = ()
    summaries: bool = True
    tables: frozenset[str] = frozenset()
    limit: int = -1
    period: tuple[int, int] | None = None
    raises: bool = False

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
        read = read_unit(unit, options.dialects, period=options.period)
    except TopicsharkError as error:
        if options.raises:
            raise
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
        yield from _session_rows(number, events_of(table, policy, captures), facts, options)


def _why(number: int, read: Read, dialect: Dialect) -> Iterator[Packed]:
    """Why the dialect is believed, if the task found that out."""
    if dialect.name in read.evidence:
        yield Packed(number, f"why:{dialect.name}", json.dumps(read.evidence[dialect.name][:3]).encode())


def present(batches: Sequence[pa.RecordBatch], dialects: Dialects) -> list[Dialect]:
    """The dialects of which there are rows, in the order in which they are wanted."""
    there = {name for batch in batches for name in batch.column("dialect").unique().to_pylist()}
    return [dialect for dialect in dialects.wanted if dialect.name in there]


def _session_rows(number: int, events: Events, facts: SessionFacts, options: Options) -> Iterator[Packed]:
    events, facts = prepare_session(events, facts)
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


def prepare_session(events: Events, facts: SessionFacts) -> tuple[Events, SessionFacts]:
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
        "brokers": [
            {"host": host, "port": port, "first": first}
            for (host, port), first in zip(facts.brokers.ends, facts.brokers.first_of, strict=True)
        ],
        "point": str(facts.point),
        "begin_ns": facts.begin,
        "end_ns": facts.end,
        "starts_late": facts.starts_late,
        "shows_start": facts.shows_start,
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
        survey = self._survey(self._guess())
        if not survey.is_right:
            survey = self._survey(self._cuts(survey.facts))
        cuts, found = survey.cuts, [survey.packed]
        if not cuts:
            return [engine.read(_as_it_is, survey.told, "check")]
        buckets = _bucket_count(cuts)

        def fold(given: list[Any], kinds: list[str], count: int, step: Any) -> Any:
            return engine.keep(engine.fold(given, kinds, count, partial(step, options, cuts), "check"))

        control = [survey.control]
        numbers = [survey.control] if any(needs_control(cut.facts.policy) for cut in cuts) else []
        if numbers:
            found.append(fold(found, ["all"], buckets, _name_rows))
        if survey.joins:
            published = engine.fold(
                found, ["topic"], buckets, partial(_spread_publishes, options, cuts, survey.joins), "check"
            )
            control.append(fold([*control, published], ["wild", "published"], buckets, _expect_wild))
        if survey.retains or numbers:
            found.append(fold([*found, survey.control], ["asks", "kept"], buckets, _ask_for_kept))
        matched = fold([*found, *control], ["topic", "control", "numbers", "due"], buckets, _match)
        kinds = ["client", "all", "numbers", "forwards", "concerned"]
        exchanged = fold([*found, *numbers, matched], kinds, buckets, _judge_clients)
        kinds = ["pending", "control", "numbers", "due", "background", "requests", "bits", "served"]
        delivered = fold([*control, matched, exchanged], kinds, buckets, _judge_topics)
        places = 1 + max(cut.place for cut in cuts)
        settled = fold([*found, matched, exchanged, delivered], ["candidates"], places, _settle)
        told = [*survey.told, *(endpoints_row(cut.number, cut.facts) for cut in cuts)]
        with_rows = [survey.control, matched, exchanged, delivered] if options.summaries or options.tables else []
        return [*with_rows, settled, engine.read(_as_it_is, told, "check")]

    def _guess(self) -> list[Cut]:
        """What the first messages of each session show, so that its rows can be cut in the same pass in which all of
        its endpoints are found."""
        facts: Facts = {}
        for at, (_, plan) in enumerate(self._sessions):
            heads = {unit.capture: unit for unit in reversed(plan.units)}
            batches = [
                batch
                for unit in list(heads.values())[:_HEADS]
                for batch in read_head(unit, self._options.dialects, _HEAD_ROWS)
            ]
            for place, dialect in enumerate(self._options.dialects.wanted):
                table = rows_of(batches, dialect.name) if batches else ()
                if len(table):
                    policy = Policy(dialect)
                    pairs = pairs_of(table, policy, 0)
                    facts[at, place] = facts_of(plan.name, plan.captures, policy, pairs, self._options.brokers)
        weights = {at: sum(unit.weight for unit in plan.units) for at, (_, plan) in enumerate(self._sessions)}
        return self._cuts({key: replace(one, datagrams=weights[key[0]]) for key, one in facts.items()})

    def _cuts(self, facts: Facts) -> list[Cut]:
        cuts: list[Cut] = []
        first = 0
        for place, (key, one) in enumerate(sorted(facts.items())):
            buckets = max(1, -(-one.datagrams // BUCKET_ROWS))
            cuts.append(Cut(place, key, self._sessions[key[0]][0], one, first, buckets))
            first += buckets
        return cuts

    def _survey(self, cuts: Sequence[Cut]) -> Survey:
        """Read all units, cut as these say; and find out from all messages who the brokers are, when they were silent,
        and what changes what is due."""
        engine, options = self._engine, self._options
        numbers, plans = zip(*self._sessions, strict=True)
        dialects = options.dialects.wanted
        told = ["failed", "damage", *(f"why:{dialect.name}" for dialect in dialects)]
        packed = engine.keep(self._read(partial(_read_unit, options, cuts), self._units, "read"))
        step = partial(_survey_bucket, options, self._sessions, cuts)
        kinds = ["changes", "pairs", "edges", "runs", "kept", *told]
        control = engine.keep(engine.fold([packed], kinds, _survey_place(options, cuts, len(plans)), step, "look"))
        rows = engine.collect([control], [*told, "facts", "edges", "runs", "joins", "retains"], "look")
        found: dict[tuple[int, str], list[bytes]] = {}
        for row in rows:
            found.setdefault((row.bucket, row.kind), []).append(row.data)
        facts: Facts = {}
        for (bucket, kind), (data, *_) in found.items():
            at, place = divmod(bucket - _survey_place(options, cuts, 0), len(dialects))
            if kind == "facts" and (numbers[at], "failed") not in found:
                known = _facts_from(unpack(data), plans[at], dialects[place])
                edges, runs = ([unpack(one) for one in found[bucket, name]] for name in ("edges", "runs"))
                activity = join_units(int(known.policy.ack_place[PUBLISH]), edges, runs)
                facts[at, place] = known.with_activity(activity)
        known_cuts = [replace(cut, facts=facts[cut.key]) for cut in cuts if cut.key in facts]
        return Survey(
            packed,
            control,
            facts,
            known_cuts,
            [row for row in rows if row.kind in told],
            frozenset(row.bucket for row in rows if row.kind == "joins"),
            any(row.kind == "retains" for row in rows),
            _is_right(cuts, facts),
        )


@dataclass(frozen=True)
class Survey:
    """What the first pass over large sessions gives.

    packed, control   the rows of the units; those that change what is due
    facts, cuts       of the dialects of each session that can be read
    told              what goes to the user as it is
    joins             buckets of clients with so many wildcards that publishes are sent there, not these to all topics
    retains           some topics have retained messages
    is_right          the cuts that the units were read with had all dialects and brokers
    """

    packed: Any
    control: Any
    facts: Facts
    cuts: list[Cut]
    told: list[Packed]
    joins: frozenset[int]
    retains: bool
    is_right: bool


def _is_right(guessed: Sequence[Cut], facts: Facts) -> bool:
    """Whether the first messages of all sessions have shown all dialects and brokers."""
    known = {cut.key: (cut.facts.brokers.endpoints, cut.facts.brokers.same) for cut in guessed}
    return all(known.get(key) == (one.brokers.endpoints, one.brokers.same) for key, one in facts.items())


def _facts_from(endpoints: pa.Table, plan: SessionPlan, dialect: Dialect) -> SessionFacts:
    (said,) = endpoints.to_pylist()
    ends = [(one["host"], one["port"]) for one in said["brokers"]]
    brokers = brokers_of(ends, [one["first"] for one in said["brokers"]])
    return SessionFacts(
        plan.name,
        plan.captures,
        Policy(dialect),
        brokers,
        Point(said["point"]),
        *(said[name] for name in ("begin_ns", "end_ns", "starts_late", "shows_start", "is_cut", "datagrams")),
    )


# -- in tasks -----------------------------------------------------------------------------------------------------


def _as_it_is(row: Packed) -> Iterator[Packed]:
    yield row


def _read_unit(options: Options, cuts: Sequence[Cut], item: tuple[int, Unit]) -> Iterator[Packed]:
    """Who says what to whom in a unit; and its rows by client and by topic."""
    at, unit = item
    own = _survey_place(options, cuts, at)
    try:
        read = read_unit(unit, options.dialects, period=options.period)
    except TopicsharkError as error:
        yield Packed(own, "failed", str(error).encode(errors="replace"))
        return
    yield from (Packed(own, "damage", sentence.encode(errors="replace")) for sentence in read.damage)
    copies = sum(len(batch) - batch.column("copy_of").null_count for batch in read.batches)
    for dialect in present(read.batches, options.dialects):
        table = rows_of(read.batches, dialect.name)
        if len(table):
            place = options.dialects.wanted.index(dialect)
            yield from _why(own, read, dialect)
            yield Packed(own + place, "pairs", pack(pairs_of(table, Policy(dialect), copies)))
            for cut in cuts:
                if cut.key == (at, place):
                    yield from UnitCutter(cut, own + place).cut(table)


def _bucket_count(cuts: Sequence[Cut]) -> int:
    return max((cut.first + cut.buckets for cut in cuts), default=0)


def _survey_place(options: Options, cuts: Sequence[Cut], session: int, dialect: int = 0) -> int:
    """The bucket in the survey for one dialect of a session; these are behind the buckets of clients."""
    return _bucket_count(cuts) + session * len(options.dialects.wanted) + dialect


def _survey_bucket(
    options: Options,
    sessions: Sequence[tuple[int, SessionPlan]],
    cuts: Sequence[Cut],
    bucket: int,
    rows: dict[str, list[bytes]],
) -> Iterator[Packed]:
    """Control rows of a bucket of clients; or, behind these, the facts of one dialect of a session."""
    at, place = divmod(bucket - _bucket_count(cuts), len(options.dialects.wanted))
    if at < 0:
        yield from _fold_control(options, cuts, bucket, rows)
        return
    number, plan = sessions[at]
    for kind, several in rows.items():
        if kind not in ("pairs", "edges", "runs", "kept"):
            yield from (Packed(number, kind, data) for data in several)
    if "pairs" not in rows:
        return
    policy = Policy(options.dialects.wanted[place])
    pairs = add_pairs([unpack(one) for one in rows["pairs"]])
    facts = facts_of(plan.name, plan.captures, policy, pairs, options.brokers)
    yield Packed(bucket, "facts", endpoints_row(number, facts).data)
    yield Packed(bucket, "edges", pack(joined(rows.get("edges", ()), EDGES)))
    yield Packed(bucket, "runs", pack(join_runs(unpack(one) for one in rows.get("runs", ()))))
    if "kept" in rows:
        yield Packed(bucket, "retains", b"")
        kept = distinct_kept([joined(rows["kept"], KEPT)])
        for cut in cuts:
            if cut.key == (at, place):
                yield from cut.packed("kept", [(EVERYWHERE, kept)])


def _name_rows(options: Options, cuts: Sequence[Cut], bucket: int, rows: dict[str, list[bytes]]) -> Iterator[Packed]:
    """By client, where topics are numbers: its rows by topic, now that their names are known."""
    cut = cut_of(cuts, bucket)
    if cut is None or "all" not in rows:
        return
    for events in cut.rows(rows["all"]).by_client():
        own = replace(cut, facts=cut.facts.with_control(control_rows(events)))
        yield from named_rows(own, prepare(events, own.facts))


def _fold_control(options: Options, cuts: Sequence[Cut], bucket: int, rows: dict[str, list[bytes]]) -> Iterator[Packed]:
    """Control rows of a bucket of clients, for the topics that they are about."""
    cut = cut_of(cuts, bucket)
    if cut is None:
        return
    if "changes" not in rows:
        return
    control = pa.concat_tables(map(control_rows, cut.rows(rows["changes"]).by_client()))
    for place, part in cut.by_filter(control, control.column("filter_text")):
        if place == EVERYWHERE and cut.is_too_many(part):
            yield Packed(bucket, "wild", pack(part))
            yield Packed(bucket, "joins", b"")
        else:
            yield from cut.packed("control", [(place, part)])
    if needs_control(cut.facts.policy):
        policy = cut.facts.policy
        tables = {"bindings": binding_rows(control, policy), "connections": connection_rows(control, policy)}
        data = pack_tables(tables)
        yield from (Packed(topic, "numbers", data) for topic in cut.topics)
    if "subscriptions" in options.tables or options.summaries:
        subscriptions = subscriptions_of(control, cut.facts.policy)
        table = subscription_rows(subscriptions, cut.facts.session, cut.facts.captures)
        if "subscriptions" in options.tables:
            yield Packed(cut.number, "subscriptions", pack(table))
        if options.summaries:
            summary = FanoutSummary.of(DELIVERIES.empty_table(), PUBLISHES.empty_table(), table)
            yield Packed(cut.number, _of(cut.facts, "fanout"), summary.packed())


def _spread_publishes(
    options: Options, cuts: Sequence[Cut], joins: Collection[int], bucket: int, rows: dict[str, list[bytes]]
) -> Iterator[Packed]:
    """By topic: publishes, for the clients with more wildcards than can be sent to all topics."""
    cut = cut_of(cuts, bucket)
    wanted = [one for one in joins if cut is not None and one in cut.topics]
    if cut is None or not wanted:
        return
    topics = cut.rows(rows["topic"])
    for events in map(topics.some, topics.by_topic()):
        published = published_rows(events, cut.facts)
        data = pack(published.append_column("bucket", pa.array(np.full(len(published), bucket, np.int32))))
        yield from (Packed(one, "published", data) for one in wanted)


def _expect_wild(options: Options, cuts: Sequence[Cut], bucket: int, rows: dict[str, list[bytes]]) -> Iterator[Packed]:
    """By client: what its subscriptions with wildcards make due, for the topics."""
    cut = cut_of(cuts, bucket)
    if cut is None or "wild" not in rows:
        return
    subscriptions = subscriptions_of(joined(rows["wild"], CONTROL), cut.facts.policy)
    for data in rows.get("published", ()):
        published = unpack(data)
        if len(published):
            due = expected_by(subscriptions, published, cut.facts.policy)
            yield Packed(published.column("bucket")[0].as_py(), "due", pack(due))


def _ask_for_kept(options: Options, cuts: Sequence[Cut], bucket: int, rows: dict[str, list[bytes]]) -> Iterator[Packed]:
    """By client: its subscriptions, for the topics of which they may ask for a retained message."""
    cut = cut_of(cuts, bucket)
    if cut is not None and "asks" in rows and "kept" in rows:
        kept = distinct_kept([joined(rows["kept"], KEPT)])
        yield from cut.packed("topic", cut.by_kept(joined(rows["asks"]), kept))


def _numbered(facts: SessionFacts, rows: dict[str, list[bytes]]) -> SessionFacts:
    """With what numbers mean and who is connected."""
    if not needs_control(facts.policy):
        return facts
    tables = [unpack_tables(data) for data in rows.get("numbers", ())]
    bindings = together([one["bindings"] for one in tables], BINDINGS)
    return facts.with_numbers(bindings, together([one["connections"] for one in tables], CONNECTIONS))


def _with_subscriptions(facts: SessionFacts, rows: dict[str, list[bytes]], share: Share = ALL) -> SessionFacts:
    """What both steps by topic know, about a share of the subscribers."""
    policy = facts.policy
    control = joined(rows.get("control", ()), CONTROL)
    creates = policy.meaning[control.column("message").to_numpy()] == CREATE
    control = control.filter(pa.array(creates | is_in_share(control.column("client").to_numpy(), share)))
    subscriptions = expecting = subscriptions_of(control, policy)
    if "background" in rows:
        subscriptions = subscriptions_of(together([control, joined(rows["background"], CONTROL)], CONTROL), policy)
    due = None
    if "due" in rows:
        due = joined(rows["due"], DUE)
        due = due.filter(pa.array(is_in_share(due.column("client").to_numpy(), share)))
        subscriptions = subscriptions.naming(due.column("filter").unique().to_pylist(), clients_of(due))
    return facts.with_subscriptions(subscriptions, expecting, due)


def _match(options: Options, cuts: Sequence[Cut], bucket: int, rows: dict[str, list[bytes]]) -> Iterator[Packed]:
    """By topic: which forward belongs to which request, for the client that asked. Topics without trouble are judged at
    once; the rows of the others wait for the exchanges."""
    cut = cut_of(cuts, bucket)
    if cut is None or "topic" not in rows:
        return
    facts = _numbered(cut.facts, rows)
    topics = cut.rows(rows.pop("topic"), facts)
    waiting = np.zeros(len(topics), np.bool_)
    known = lru_cache(1)(partial(_with_subscriptions, facts, rows))
    for chosen in topics.by_topic():
        shares = shares_of(int(chosen.sum()))
        match = partial(_match_share, options, cut, bucket, topics, chosen, known)
        found = [match(share) for share in shares]
        troubled = np.unique(np.concatenate([one.troubled for one in found]))
        for share, one in zip(shares, found, strict=True):
            yield from one.rows
            yield from one.judged if len(one.troubled) == len(troubled) else match(share, troubled).judged
        if len(troubled):
            waiting |= topics.column(partial(_waiting_rows, troubled))
    if waiting.any():
        yield from (Packed(bucket, "pending", pack(narrow(table))) for table in topics.tables(waiting))


def _waiting_rows(troubled: Integers, events: Events) -> Flags:
    waiting: Flags = np.isin(events[Col.TOPIC], troubled) | subscribing(events)
    return waiting


@dataclass(frozen=True)
class MatchedShare:
    """Some topics, and a share of their subscribers: hashes of topics with trouble; rows for the other steps; what was
    found of topics without trouble."""

    troubled: Integers
    rows: list[Packed]
    judged: list[Packed]


def _match_share(
    options: Options,
    cut: Cut,
    bucket: int,
    topics: BucketRows,
    chosen: Flags,
    facts_of_share: Callable[[Share], SessionFacts],
    share: Share,
    troubled: Integers | None = None,
) -> MatchedShare:
    """``troubled``: what other shares have shown, too. Without trouble subscribers have nothing to do with each other:
    their messages need not be looked at together, which bounds the room that a hot topic takes."""
    facts = facts_of_share(share)
    events = topics.some(chosen if share == ALL else chosen & topics.of_share(share))
    deliveries, served = match_deliveries(events, facts)
    trouble = deliveries.troubled(events) if troubled is None else troubled
    told = [*_served_rows(cut, served), *_forward_rows(cut, events, deliveries)]
    if len(trouble):
        told += _concerned_rows(cut, bucket, events, deliveries)
        deliveries = deliveries.without(events, trouble)
    found = judge_topics(events, facts, deliveries, REQUESTS.empty_table(), 0, None, options.with_rows)
    judged = [*_topic_outputs(cut.number, facts, found.deliveries, options), candidates_row(cut, found.findings)]
    return MatchedShare(trouble, told, judged)


def _served_rows(cut: Cut, served: frozenset[int] | None) -> Iterator[Packed]:
    if served is not None:
        data = np.array(sorted(served), np.int64).tobytes()
        yield from (Packed(topic, "served", data) for topic in cut.topics)
        keys = pa.table({"key": pa.array(sorted(served), pa.int64())})
        yield Packed(cut.place, "candidates", pack_tables({"served": keys}))


def _forward_rows(cut: Cut, events: Events, deliveries: Deliveries) -> Iterator[Packed]:
    """Which request each forward belongs to, for the client that asked."""
    forwards = deliveries.forwards(events)
    about = np.where(forwards.forward < 0, ~forwards.forward, forwards.cause)
    buckets = cut.client_buckets(events)[events.rows_of(about)]
    every = np.arange(len(buckets))
    yield from cut.packed("forwards", split_rows(forwards.table(), buckets, cut.buckets, every))


def _judge_clients(
    options: Options, cuts: Sequence[Cut], bucket: int, rows: dict[str, list[bytes]]
) -> Iterator[Packed]:
    """By client: exchanges and their findings; what topics want to know of requests."""
    cut = cut_of(cuts, bucket)
    if cut is None or not ("client" in rows or "all" in rows):
        return
    facts = _numbered(cut.facts, rows)
    forwards = Forwards.of(joined(rows.get("forwards", ()), FORWARDS))
    evidence, control = 0, [CONTROL.empty_table()]
    are_all = "all" in rows
    for some in cut.rows(rows.pop("all" if are_all else "client"), facts).by_client():
        events = prepare(with_brokers(some.some(client_rows(some)), facts), facts) if are_all else some
        mend_beside(events, facts.activity)
        found = judge_clients(events, facts, forwards, options.with_rows)
        evidence |= found.evidence
        yield from _client_outputs(cut.number, cut.facts, found.exchanges, found.publishes, options)
        yield candidates_row(cut, found.findings, found.evidence, found.astray)
        yield from _request_rows(cut, events, found.requests)
        if "concerned" in rows:
            control.append(control_rows(events))
    yield from (Packed(topic, "bits", str(evidence).encode()) for topic in cut.topics)
    if "concerned" in rows:
        yield from _filters_of_concerned(cut, pa.concat_tables(control), joined(rows["concerned"]))


def _concerned_rows(cut: Cut, bucket: int, events: Events, deliveries: Deliveries) -> Iterator[Packed]:
    """Clients that got a forward which nothing made due. To explain it all of their filters must be known."""
    extra = deliveries.seen[deliveries.answers < 0]
    clients, first = np.unique(events[Col.CLIENT][extra], return_index=True)
    table = pa.table({"client": clients, "topic": np.full(len(clients), bucket - cut.first)})
    buckets = cut.client_buckets(events)[extra[first]]
    yield from cut.packed("concerned", split_rows(table, buckets, cut.buckets, np.arange(len(clients))))


def _filters_of_concerned(cut: Cut, control: pa.Table, concerned: pa.Table) -> Iterator[Packed]:
    """Of all control rows of a bucket those of these clients, as far as the topics do not have them already."""
    place = cut.filter_buckets(control.column("filter_text"))
    is_wild = place == EVERYWHERE
    elsewhere = np.full(len(control), cut.is_too_many(control.filter(pa.array(is_wild))))
    topics, clients = concerned.column("topic").to_numpy(), concerned.column("client").to_numpy()
    for topic in np.unique(topics):
        theirs = np.isin(control.column("client").to_numpy(), clients[topics == topic])
        rows = control.filter(pa.array(theirs & np.where(is_wild, elsewhere, place != topic)))
        if len(rows):
            yield Packed(cut.first + int(topic), "background", pack(rows))


def _request_rows(cut: Cut, events: Events, requests: pa.Table) -> Iterator[Packed]:
    """To the topic of a publish or a forward, or those that a subscription may match."""
    asked = events.rows_of(requests.column("id").to_numpy())
    meaning = np.append(events.policy.meaning, -1)[events[Col.MESSAGE][asked]]
    subscribes = meaning == SUBSCRIBE
    rows = np.flatnonzero(~subscribes)
    yield from cut.packed("requests", split_rows(requests, cut.topic_buckets(events)[asked], cut.buckets, rows))
    if events.policy.dialect.spec.broker.retained == "none":
        return  # nothing is due to subscriptions
    subscribed = pa.array(np.flatnonzero(subscribes))
    filters = events.table.column("filter").take(pa.array(asked)).take(subscribed)
    yield from cut.packed("requests", cut.by_filter(requests.take(subscribed), filters))


def _judge_topics(options: Options, cuts: Sequence[Cut], bucket: int, rows: dict[str, list[bytes]]) -> Iterator[Packed]:
    """By topic again: those in which something is missing or not explained."""
    cut = cut_of(cuts, bucket)
    if cut is None or "pending" not in rows:
        return
    facts = _with_subscriptions(_numbered(cut.facts, rows), rows)
    evidence = _any_bits(int(data) for data in rows.get("bits", ()))
    requests = joined(rows.get("requests", ()), REQUESTS)
    topics = cut.rows(rows.pop("pending"), facts)
    for events in map(topics.some, topics.by_topic()):
        deliveries, served = match_deliveries(events, facts)
        if served is not None:
            served = frozenset(int(key) for data in rows.get("served", ()) for key in np.frombuffer(data, np.int64))
        found = judge_topics(events, facts, deliveries, requests, evidence, served, options.with_rows)
        yield from _topic_outputs(cut.number, facts, found.deliveries, options)
        yield candidates_row(cut, found.findings)


def _any_bits(several: Iterable[int]) -> int:
    found = 0
    for bits in several:
        found |= bits
    return found


def _settle(options: Options, cuts: Sequence[Cut], bucket: int, rows: dict[str, list[bytes]]) -> Iterator[Packed]:
    """By session: what all its clients and topics together show."""
    cut = next((cut for cut in cuts if cut.place == bucket), None)
    if cut is None:
        return
    parts = [unpack_tables(data) for data in rows["candidates"]]
    keys = [int(key) for part in parts if "served" in part for key in part["served"].column("key").to_numpy()]
    served = frozenset(keys) if any("served" in part for part in parts) else None
    parts = [part for part in parts if "candidates" in part]
    found = [
        StepFindings(part["candidates"], part["counts"], *(part[name].column("time").to_numpy() for name in _TIMES))
        for part in parts
    ]
    evidence = _any_bits(part["evidence"].column("bits")[0].as_py() for part in parts)
    findings, evidence = settle(cut.facts, found, evidence, [part["astray"] for part in parts], served)
    counts = pa.concat_tables([COUNTS.empty_table(), *(one.counts for one in found)])
    yield from _outcome(cut.number, cut.facts, evidence, counts, findings, options)


_TIMES = ("strays", "invented")

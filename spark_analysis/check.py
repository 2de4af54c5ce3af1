"""Check captures for conformance: read, find sessions and brokers, judge part by part, put the verdicts together.

>>> result = check(["run.pcap"])                                     # doctest: +SKIP
>>> [(rule.id, rule.verdict) for rule in result.sessions[0].rules]   # doctest: +SKIP

Two engines run the same functions over the same parts: in this process, or as Spark tasks. A large session is cut by
*time*, not by client or topic, so no busy client can hold up the rest: each part is read with a margin on both sides,
in which answers and causes lie, and tells only of what it owns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Protocol, TypeVar

import pyarrow as pa

from pcap_tools.columnar.sources import is_remote
from pcap_tools.dialect import Dialect
from pcap_tools.errors import TopicsharkError, UsageError

from .ack_timing import TimingSummary
from .brokers import choose_brokers
from .capture_parts import Dialects
from .captures import find_captures
from .context import Context
from .control import subscription_rows
from .events import Events, events_of
from .fanout import FanoutSummary
from .gathering import Known, Seen, know, look
from .part_check import PartResult, check_part
from .pieces import Batches, Piece, read_piece
from .planning import wanted_dialects
from .policy import SECOND, Policy
from .results import CheckResult, Counts, SessionResult, added, findings_of, verdicts
from .schemas import DELIVERIES
from .session_plans import SessionPlan, plan_sessions

SMALL_BYTES = 64 << 20  # below it starting Spark takes longer than the work
PART_BYTES = 256 << 20
EVER = (-(1 << 62), 1 << 62)

Item = TypeVar("Item")
Result = TypeVar("Result")
Stage = Callable[[str], AbstractContextManager[None]]


class Runner(Protocol):
    """Applies a function to items, in the order of which the results come back."""

    def __call__(self, function: Callable[[Item], Result], items: Sequence[Item], label: str) -> list[Result]: ...


@dataclass(frozen=True)
class Options:
    """What a user may say."""

    dialects: Dialects
    brokers: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    limit: int = 1000
    summaries: bool = True


@dataclass(frozen=True)
class Part:
    """A stretch of time that one task judges, with the pieces that hold it and its margins."""

    session: SessionPlan
    dialect: str
    pieces: tuple[Piece, ...]
    own: tuple[int, int]


@dataclass(frozen=True)
class Judged:
    """What one task found, small."""

    part: PartResult
    timing: TimingSummary
    fanout: FanoutSummary


@dataclass(frozen=True)
class Whole:
    """All that is known of one dialect in one session."""

    session: SessionPlan
    dialect: Dialect
    datagrams: int
    known: Known
    judged: list[Judged]
    damage: tuple[str, ...]


def check(
    sources: Sequence[str],
    *,
    dialects: Dialects | None = None,
    brokers: Sequence[str] = (),
    merge: bool = False,
    engine: str = "auto",
    rules: Sequence[str] = (),
    limit: int = 1000,
    summaries: bool = True,
    master: str | None = None,
    stage: Callable[[object], Stage] | None = None,
) -> CheckResult:
    """Judge what the sources hold. Without ``summaries`` timing and fan-out are left out, which takes a third of the
    time. ``stage``: given the Spark session, what to enter with each job's name."""
    if engine not in ("auto", "local", "spark"):
        raise UsageError(f"--engine is auto, local or spark, not {engine!r}")
    options = Options(dialects or wanted_dialects(), tuple(brokers), tuple(rules), limit, summaries)
    captures = find_captures(sources)
    if engine == "local" or (engine == "auto" and _is_small(captures)):
        return _check(captures, options, merge, _in_process)
    from .spark_session import LOCAL, open_session
    from .spark_tasks import run_tasks

    with open_session(master or LOCAL) as spark:
        entered = stage(spark) if stage else _no_stage

        def run(function: Callable[[Item], Result], items: Sequence[Item], label: str) -> list[Result]:
            with entered(label):
                return run_tasks(spark, function, items, label)

        return _check(captures, options, merge, run)


def _no_stage(label: str) -> AbstractContextManager[None]:
    return nullcontext()


def _in_process(function: Callable[[Item], Result], items: Sequence[Item], label: str) -> list[Result]:
    return [function(item) for item in items]


def _is_small(captures: Sequence[str]) -> bool:
    if any(is_remote(capture) for capture in captures):
        return False
    return sum(Path(capture).stat().st_size for capture in captures) <= SMALL_BYTES


def _check(captures: Sequence[str], options: Options, merge: bool, run: Runner) -> CheckResult:
    sessions, failed = plan_sessions(captures, options.dialects, merge, PART_BYTES, run)
    alone = [session for session in sessions if len(session.pieces) == 1]
    wholes = [one for found in run(partial(_judge_alone, options), alone, "check") for one in found]
    for session in sessions:
        if len(session.pieces) > 1:
            wholes += _judge_in_parts(session, options, run)
    wholes.sort(key=lambda one: [session.name for session in sessions].index(one.session.name))
    partial_ = [sentence for session in sessions for sentence in session.damage]
    partial_ += [sentence for one in wholes for sentence in one.damage]
    return CheckResult([_result(one, options) for one in wholes], list(dict.fromkeys(partial_)), failed)


# -- a session that is one piece ----------------------------------------------------------------------------------


def _judge_alone(options: Options, session: SessionPlan) -> list[Whole]:
    """In a task: both looks at once."""
    read = read_piece(session.pieces[0], options.dialects)
    wholes = []
    for dialect in _present(read.batches, options.dialects):
        policy = Policy(dialect)
        seen = look(read.batches, policy)
        if not seen.datagrams:
            continue
        brokers = choose_brokers(seen.pairs, policy, options.brokers)
        known = know(policy, brokers, [seen], session.captures)
        events = events_of(read.batches, policy, session.captures)
        judged = _judged(events, known.part(EVER), session.name, known.starts_late, options)
        wholes.append(Whole(session, dialect, seen.datagrams, known, [judged], read.damage))
    return wholes


def _present(batches: Batches, dialects: Dialects) -> list[Dialect]:
    there = {name for batch in batches for name in batch.column("dialect").unique().to_pylist()}
    return [dialect for dialect in dialects.wanted if dialect.name in there]


def _judged(events: Events, context: Context, session: str, starts_late: bool, options: Options) -> Judged:
    part = check_part(events, context, session, starts_late, options.summaries)
    if not options.summaries:
        return Judged(part.without_rows(options.limit), TimingSummary.empty(), FanoutSummary.empty())
    timing = TimingSummary.of(part.exchanges, part.deliveries)
    fanout = FanoutSummary.of(part.deliveries, part.published)
    return Judged(part.without_rows(options.limit), timing, fanout)


# -- a session in several parts -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Looked:
    seen: dict[str, Seen]
    damage: tuple[str, ...]


def _look(options: Options, piece: Piece) -> _Looked:
    read = read_piece(piece, options.dialects)
    present = _present(read.batches, options.dialects)
    return _Looked({dialect.name: look(read.batches, Policy(dialect)) for dialect in present}, read.damage)


def _judge_in_parts(session: SessionPlan, options: Options, run: Runner) -> list[Whole]:
    looked = run(partial(_look, options), session.pieces, "look")
    damage = tuple(sentence for one in looked for sentence in one.damage)
    wholes = []
    for dialect in options.dialects.wanted:
        pieces = [
            (piece, one.seen[dialect.name])
            for piece, one in zip(session.pieces, looked, strict=True)
            if dialect.name in one.seen and one.seen[dialect.name].datagrams
        ]
        if not pieces:
            continue
        policy, seen = Policy(dialect), [one for _, one in pieces]
        pairs = pa.concat_tables([one.pairs for one in seen])
        known = know(policy, choose_brokers(pairs, policy, options.brokers), seen, session.captures)
        jobs = [(part, known.part(part.own)) for part in _parts(session, dialect, pieces)]
        judged = run(partial(_judge, options, known.starts_late), jobs, "check")
        wholes.append(Whole(session, dialect, sum(one.datagrams for one in seen), known, judged, damage))
    return wholes


def _parts(session: SessionPlan, dialect: Dialect, seen: Sequence[tuple[Piece, Seen]]) -> list[Part]:
    """Cut where pieces begin; a part reads all pieces that reach into it or its margins."""
    timed = sorted(((one.times, piece) for piece, one in seen if one.times), key=lambda pair: pair[0])
    cuts = [EVER[0], *(times[0] for times, _ in timed[1:]), EVER[1]]
    margin = margin_ns(Policy(dialect))
    parts = []
    for begin, end in pairwise(cuts):
        if begin < end:
            near = [piece for times, piece in timed if times[0] < end + margin and times[1] >= begin - margin]
            parts.append(Part(session, dialect.name, tuple(near), (begin, end)))
    return parts


def margin_ns(policy: Policy) -> int:
    """So far around a part lie the answers and causes of what it owns."""
    return max(int(2.2 * policy.resend_ns), 5 * SECOND)


def _judge(options: Options, starts_late: bool, job: tuple[Part, Context]) -> Judged:
    part, context = job
    margin = margin_ns(context.policy)
    within = (part.own[0] - margin, part.own[1] + margin)
    batches = [batch for piece in part.pieces for batch in read_piece(piece, options.dialects, within).batches]
    if not batches:
        raise TopicsharkError(f"{part.session.captures[0]}: changed while it was read")
    events = events_of(batches, context.policy, part.session.captures)
    return _judged(events, context, part.session.name, starts_late, options)


# -- the verdict --------------------------------------------------------------------------------------------------


def _result(whole: Whole, options: Options) -> SessionResult:
    counts: Counts = added(one.part.counts for one in whole.judged)
    rules = verdicts(counts, whole.dialect, options.rules)
    subscribed = FanoutSummary.of(
        DELIVERIES.empty_table(), 0, subscription_rows(whole.known.context.subscriptions, whole.session.name)
    )
    tables: list[pa.Table] = [one.part.findings for one in whole.judged]
    shown = findings_of(tables, whole.dialect, options.rules, options.limit)
    return SessionResult(
        whole.session.name,
        list(whole.session.captures),
        whole.dialect.name,
        list(whole.known.context.brokers.texts),
        whole.datagrams,
        _facts(whole),
        rules,
        shown,
        sum(rule.failed + rule.inconclusive for rule in rules),
        TimingSummary.merged([one.timing for one in whole.judged]),
        FanoutSummary.merged([subscribed, *(one.fanout for one in whole.judged)]),
    )


def _facts(whole: Whole) -> dict[str, object]:
    context = whole.known.context
    loss = any(one.part.loss_seen for one in whole.judged)
    notes = [_POINTS[context.point]]
    if whole.known.starts_late:
        notes.append("It starts late: clients get messages that they asked for before it began.")
    if loss:
        notes.append(
            "Datagrams were lost on the way: some were sent again though they had been answered, or led to nothing."
        )
    if not context.brokers.texts:
        notes.append("Nothing tells which end is the broker; name it with --broker HOST:PORT.")
    return {
        "point": str(context.point),
        "starts_late": whole.known.starts_late,
        "loss_seen": loss,
        "begin_ns": context.begin,
        "end_ns": context.end,
        "evidence": list(whole.session.evidence.get(whole.dialect.name, ())),
        "notes": notes,
    }


_POINTS = {
    "broker": "The capture was taken at the broker: what is in it came there, and it holds all that the broker sent.",
    "bridge": "The capture was taken between all nodes: what is in it was sent, but may be lost behind.",
    "client": "The capture shows one client only: what goes to the broker may be lost, and others are not seen.",
}

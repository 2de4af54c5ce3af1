"""Check captures for conformance: read, find sessions and brokers, judge part by part, put the verdicts together.

>>> result = check(["run.pcap"])                                     # doctest: +SKIP
>>> [(rule.id, rule.verdict) for rule in result.sessions[0].rules]   # doctest: +SKIP

Two engines run the same functions over the same parts: in this process, or as Spark tasks. A large session is cut by
*time*, not by client or topic, so no busy client can hold up the rest: each part is read with a margin on both sides,
in which answers and causes lie, and tells only of what it owns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from pcap_tools.dialect import Dialect
from pcap_tools.errors import TopicsharkError, UsageError

from .ack_timing import TimingSummary
from .capture_parts import Dialects
from .checker.context import Context
from .checker.control import subscription_rows
from .checker.events import Events
from .checker.gathering import Known
from .checker.ingested import Sources, find_sources
from .checker.part_check import PartResult, check_part
from .checker.results import CheckResult, Counts, SessionResult, added, findings_of, verdicts
from .checker.session_jobs import EVER, PartJob, look_alone, look_in_parts
from .checker.session_plans import SessionPlan, plan_sources
from .engines import Runner, Stage, in_process, on_spark
from .fanout import FanoutSummary
from .planning import wanted_dialects
from .schemas import DELIVERIES

SMALL_BYTES = 64 << 20  # below it starting Spark takes longer than the work
PART_BYTES = 96 << 20


@dataclass(frozen=True)
class Options:
    """What a user may say."""

    dialects: Dialects
    brokers: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    limit: int = 1000
    summaries: bool = True


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
    found = find_sources(sources)
    if engine == "local" or (engine == "auto" and _is_small(found)):
        return judge(found, options, merge, in_process)
    with on_spark(master, stage) as run:
        return judge(found, options, merge, run)


def _is_small(sources: Sources) -> bool:
    return sources.bytes is not None and sources.bytes <= SMALL_BYTES


def judge(sources: Sources, options: Options, merge: bool, run: Runner) -> CheckResult:
    """All that there is to do, with whoever runs it."""
    sessions, failed = plan_sources(sources, options.dialects, merge, PART_BYTES, run)
    alone = [session for session in sessions if len(session.pieces) == 1]
    judged = list(zip(alone, run(partial(_judge_alone, options), alone, "check"), strict=True))
    judged += [(session, _judge_in_parts(session, options, run)) for session in sessions if len(session.pieces) > 1]
    wholes = [whole for _, found in judged if not isinstance(found, str) for whole in found]
    for session, why in judged:
        if isinstance(why, str):
            failed |= dict.fromkeys(session.captures, why)
    place = {session.name: at for at, session in enumerate(sessions)}
    wholes.sort(key=lambda one: place[one.session.name])
    partial_ = [sentence for session in sessions for sentence in session.damage]
    partial_ += [sentence for one in wholes for sentence in one.damage]
    partial_ += _silent(sessions, wholes, failed)
    return CheckResult([_result(one, options) for one in wholes], list(dict.fromkeys(partial_)), failed)


def _silent(sessions: Sequence[SessionPlan], wholes: Sequence[Whole], failed: dict[str, str]) -> list[str]:
    """Captures of a set in which there was nothing to judge: that the others pass says nothing of them."""
    judged = {one.session.name for one in wholes}
    captures = [capture for session in sessions if session.name not in judged for capture in session.captures]
    unsaid = [capture for capture in captures if judged and capture not in failed]
    return [f"{capture}: no datagram of a dialect that was looked for" for capture in unsaid]


def _judge_alone(options: Options, session: SessionPlan) -> list[Whole] | str:
    """In a task: a session that is one piece; or why it cannot be read any more, which is no trouble of the others."""
    try:
        return [
            Whole(
                session,
                one.dialect,
                one.datagrams,
                one.known,
                [_judged(one.events, one.known.part(EVER), session.name, one.known.starts_late, options)],
                one.damage,
            )
            for one in look_alone(session, options.dialects, options.brokers)
        ]
    except TopicsharkError as error:
        return str(error)


def _judge_in_parts(session: SessionPlan, options: Options, run: Runner) -> list[Whole] | str:
    """A session in several parts."""
    judge_part = partial(_judge, options)
    try:
        return [
            Whole(session, one.dialect, one.datagrams, one.known, run(judge_part, one.jobs, "check"), one.damage)
            for one in look_in_parts(session, options.dialects, options.brokers, run)
        ]
    except TopicsharkError as error:
        return str(error)


def _judge(options: Options, job: PartJob) -> Judged:
    """In a task: one part."""
    return _judged(job.read(options.dialects), job.context, job.part.session.name, job.starts_late, options)


def _judged(events: Events, context: Context, session: str, starts_late: bool, options: Options) -> Judged:
    part = check_part(events, context, session, starts_late, options.summaries)
    if not options.summaries:
        return Judged(part.without_rows(options.limit), TimingSummary.empty(), FanoutSummary.empty())
    timing = TimingSummary.of(part.exchanges, part.deliveries)
    fanout = FanoutSummary.of(part.deliveries, part.published)
    return Judged(part.without_rows(options.limit), timing, fanout)


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

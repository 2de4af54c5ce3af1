"""Check captures for conformance: plan, run the passes of `pipeline`, and put the verdicts together.

>>> result = check(["run.pcap"])                                     # doctest: +SKIP
>>> [(rule.id, rule.verdict) for rule in result.sessions[0].rules]   # doctest: +SKIP
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from pcap_tools.codec.detect import Dialects, wanted_dialects
from pcap_tools.dialect import Dialect
from pcap_tools.errors import UsageError

from .checker.session.events import endpoint_text
from .engine.engines import Engine, LocalEngine, Stage, spark_engine
from .pipeline import Options, analyse_sessions
from .results.verdicts import NOT_EXERCISED, CheckResult, SessionResult, findings_of, verdicts
from .sessions.ingested import Sources, find_sources
from .sessions.plans import SessionPlan, plan_sources
from .summaries.ack_timing import TimingSummary
from .summaries.fanout import FanoutSummary
from .tables.packing import joined, unpack

SMALL_BYTES = 64 << 20  # below it starting Spark takes longer than the work
UNIT_BYTES = 96 << 20
_KINDS = ("endpoints", "evidence", "verdicts", "findings", "timing", "fanout", "why")


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
    period: tuple[int, int] | None = None,
) -> CheckResult:
    """Judge what the sources hold. Without ``summaries`` timing and fan-out are left out, which takes a third of the
    time. ``stage``: given the Spark session, what to enter with each job's name. ``period``: only
    datagrams from this time on and before that one, in nanoseconds."""
    if engine not in ("auto", "local", "spark"):
        raise UsageError(f"--engine is auto, local or spark, not {engine!r}")
    options = Options(dialects or wanted_dialects(), tuple(brokers), summaries, limit=limit, period=period)
    found = find_sources(sources)
    if engine == "local" or (engine == "auto" and _is_small(found)):
        return judge(found, options, merge, LocalEngine(), rules)
    with spark_engine(master, stage) as running:
        return judge(found, options, merge, running, rules)


def _is_small(sources: Sources) -> bool:
    return sources.bytes is not None and sources.bytes <= SMALL_BYTES


def judge(sources: Sources, options: Options, merge: bool, engine: Engine, rules: Sequence[str] = ()) -> CheckResult:
    """All that there is to do, on any engine."""
    sessions, failed = plan_sources(sources, options.dialects, merge, UNIT_BYTES)
    results = analyse_sessions(engine, sessions, options)
    kinds = [f"{kind}:{one.name}" for one in options.dialects.wanted for kind in _KINDS]
    kinds += ["failed", "damage"]
    rows = engine.collect(results.rows, kinds, "check") if results.rows else []
    by_session: dict[int, dict[str, list[bytes]]] = {}
    for row in rows:
        by_session.setdefault(row.bucket, {}).setdefault(row.kind, []).append(row.data)
    partial = [sentence for session in sessions for sentence in session.damage]
    made: list[SessionResult] = []
    for number, session in enumerate(sessions):
        told = by_session.get(number, {})
        partial += sorted(data.decode() for data in told.get("damage", ()))
        if "failed" in told:
            failed |= dict.fromkeys(session.captures, sorted(told["failed"])[0].decode())
            continue
        made += [
            _result(session, _of_dialect(told, dialect.name), dialect, rules, options.limit)
            for dialect in options.dialects.wanted
            if f"endpoints:{dialect.name}" in told
        ]
    partial += _silent(sessions, made, failed)
    return CheckResult(made, list(dict.fromkeys(partial)), failed)


def _of_dialect(told: dict[str, list[bytes]], dialect: str) -> dict[str, list[bytes]]:
    return {kind: told.get(f"{kind}:{dialect}", []) for kind in _KINDS}


def _silent(sessions: Sequence[SessionPlan], results: Sequence[SessionResult], failed: dict[str, str]) -> list[str]:
    """Captures without any message of a known dialect. They must not count as passed."""
    judged = {one.name for one in results}
    captures = [capture for session in sessions if session.name not in judged for capture in session.captures]
    unsaid = [capture for capture in captures if judged and capture not in failed]
    return [f"{capture}: no datagram of a dialect that was looked for" for capture in unsaid]


def _result(
    session: SessionPlan, told: dict[str, list[bytes]], dialect: Dialect, rules: Sequence[str], limit: int
) -> SessionResult:
    (facts,) = joined(told["endpoints"]).to_pylist()
    found = verdicts(joined(told["verdicts"]), rules)
    is_heard = "unheard" not in joined(told["evidence"]).column("kind").to_pylist()
    return SessionResult(
        session.name,
        list(session.captures),
        dialect.name,
        [endpoint_text(one["host"], one["port"]) for one in facts["brokers"]],
        facts["datagrams"],
        _facts(session, told, dialect, facts) | {"broker_heard": is_heard},
        found,
        findings_of((unpack(data) for data in told["findings"]), rules, limit),
        sum(rule.failed + rule.inconclusive for rule in found),
        TimingSummary.merged(TimingSummary.unpacked(data) for data in told["timing"]),
        FanoutSummary.merged(FanoutSummary.unpacked(data) for data in told["fanout"]),
    )


def _facts(
    session: SessionPlan, told: dict[str, list[bytes]], dialect: Dialect, facts: dict[str, Any]
) -> dict[str, object]:
    kinds = joined(told["evidence"]).column("kind").to_pylist()
    loss = "loss" in kinds
    notes = [_PARTIAL if "partial" in kinds else _POINTS[facts["point"]]]
    if facts["starts_late"]:
        notes.append("It starts late: clients get messages that they asked for before it began.")
    if loss:
        notes.append(
            "Datagrams were lost on the way: some were sent again though they had been answered, or led to nothing."
        )
    if not facts["brokers"]:
        notes.append("Nothing tells which end is the broker; name it with --broker HOST:PORT.")
    if "unheard" in kinds:
        notes.append("The broker sends nothing, so nothing that it has to do was put to the test.")
    else:
        notes += _not_tested(joined(told["verdicts"]))
    why = [sentence for data in sorted(told["why"]) for sentence in json.loads(data)]
    return {
        "point": facts["point"],
        "starts_late": facts["starts_late"],
        "loss_seen": loss,
        "begin_ns": facts["begin_ns"],
        "end_ns": facts["end_ns"],
        "evidence": [*session.evidence.get(dialect.name, ()), *why][:3],
        "notes": notes,
    }


def _not_tested(rules: pa.Table) -> list[str]:
    """Main duties of the dialect that nothing in the capture could have violated."""
    idle = {row["rule"] for row in rules.to_pylist() if row["verdict"] == NOT_EXERCISED}
    names = [name for rule, name in _DUTIES.items() if rule in idle]
    return [f"Not put to the test: {', '.join(names)}."] if names else []


_DUTIES = {
    "A-MISSING": "acknowledgement (no client asks for anything)",
    "D-MISSING": "delivery (nobody subscribes to what is published)",
    "D-AFTER-UNSUBSCRIBE": "the end of subscriptions",
    "T-MISSING": "retained messages",
    "N-ZERO": "creation of topics",
    "X-LOOP": "the control loop",
}
_PARTIAL = "The capture shows a part of what the broker receives: it forwards messages whose publish is not in it."
_POINTS = {
    "broker": "The capture was taken at the broker: what is in it came there, and it holds all that the broker sent.",
    "bridge": "The capture was taken between all nodes: what is in it was sent, but may be lost behind.",
    "client": "The capture shows one client only: what goes to the broker may be lost, and others are not seen.",
}

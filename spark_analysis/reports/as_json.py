"""Results as objects for ``json.dumps``: what `check`, `timing` and `fanout` print with ``--format json``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .safe_text import all_shown

if TYPE_CHECKING:
    from ..results import CheckResult, Finding, SessionResult

MOST_FINDINGS = 1_000


def check_object(result: CheckResult, most: int = MOST_FINDINGS) -> dict[str, Any]:
    """``most`` findings in all; ``findings_total`` says of each session how many there are."""
    sessions = []
    for session in result.sessions:
        findings = [_finding(finding) for finding in session.findings[:most]]
        most -= len(findings)
        judged = {
            "datagrams": session.datagrams,
            "verdict": session.verdict,
            "facts": session.facts,
            "rules": [asdict(rule) for rule in session.rules],
            "findings": findings,
            "findings_total": session.findings_total,
        }
        sessions.append(_named(session) | judged)
    return _whole(result, sessions)


def timing_object(result: CheckResult) -> dict[str, Any]:
    sessions = []
    for session in result.sessions:
        timing = session.timing
        rows = timing.rows()
        told = {
            "kinds": timing.kinds(),
            "rows": rows,
            "rows_total": len(timing.groups),
            "forward": timing.forward_latency(),
            "retained": timing.forward_latency(retained=True),
            "bucket_ns": timing.width_ns,
            "over_time": timing.over_time(),
        }
        sessions.append(_named(session) | told)
    return _whole(result, sessions)


def fanout_object(result: CheckResult) -> dict[str, Any]:
    sessions = []
    for session in result.sessions:
        fanout = session.fanout
        told = {
            "topics": fanout.topic_rows(),
            "topics_total": len(fanout.topics),
            "filters": fanout.filter_rows(),
            "filters_total": len(fanout.filters),
            "unused_filters": fanout.unused_filters(),
            "overlap": fanout.overlap_rows(),
        }
        sessions.append(_named(session) | fanout.totals() | told)
    return _whole(result, sessions)


def _named(session: SessionResult) -> dict[str, Any]:
    return {
        "name": session.name,
        "captures": session.captures,
        "dialect": session.dialect,
        "broker": session.brokers[0] if session.brokers else None,
        "brokers": session.brokers,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return asdict(finding) | {"related": list(finding.related)}


def _whole(result: CheckResult, sessions: list[dict[str, Any]]) -> dict[str, Any]:
    """Captures that could not be read at all make the result partial, too."""
    whole: dict[str, Any] = all_shown({"sessions": sessions, "partial": troubles(result)})
    return whole


def troubles(result: CheckResult) -> list[str]:
    """Sentences about what could not be read."""
    unread = [why if capture in why else f"{capture}: {why}" for capture, why in result.failed.items()]
    return [*result.partial, *unread]

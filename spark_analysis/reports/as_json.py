"""Results as objects for ``json.dumps``: what `check --format json` prints, and what is the same in other reports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..results.safe_text import all_shown

if TYPE_CHECKING:
    from ..results.verdicts import CheckResult, Finding, SessionResult

MOST_FINDINGS = 1_000


def check_object(result: CheckResult, most: int = MOST_FINDINGS) -> dict[str, Any]:
    """``most`` findings in all; ``findings_total`` says of each session how many there are."""
    return whole_object(result, session_objects(result.sessions, most))


def session_objects(sessions: Iterable[SessionResult], most: int) -> list[dict[str, Any]]:
    """With ``most`` findings in all of them."""
    objects = []
    for session in sessions:
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
        objects.append(named(session) | judged)
    return objects


def named(session: SessionResult) -> dict[str, Any]:
    """Which session it is."""
    return {
        "name": session.name,
        "captures": session.captures,
        "dialect": session.dialect,
        "broker": session.brokers[0] if session.brokers else None,
        "brokers": session.brokers,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "rule": finding.rule,
        "level": finding.level,
        "verdict": finding.verdict,
        "capture": finding.capture,
        "frame": finding.frame,
        "time_ns": finding.time_ns,
        "related": [place._asdict() for place in finding.related],
        "client": finding.client,
        "topic": finding.topic,
        "detail": dict(finding.detail),
        "reason": finding.reason,
        "cause": finding.cause,
        "text": finding.text,
    }


def whole_object(result: CheckResult, sessions: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the sessions' objects. Captures that could not be read at all make the result partial, too."""
    whole: dict[str, Any] = all_shown({"sessions": sessions, "partial": troubles(result)})
    return whole


def troubles(result: CheckResult) -> list[str]:
    """Sentences about what could not be read."""
    unread = [why if capture in why else f"{capture}: {why}" for capture, why in result.failed.items()]
    return [*result.partial, *unread]

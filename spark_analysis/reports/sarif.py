"""Findings as SARIF 2.1.0 (OASIS), which code hosts and editors show beside other tools' findings.

A capture has no lines: the place of a finding is the capture as artifact and the frame as logical location. What the
capture cannot tell is of the kind ``open``, which has no level.
"""

from __future__ import annotations

from importlib.metadata import version
from os.path import isabs
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ..checker.rulebook.catalogue import RULES
from ..results.safe_text import all_shown, shown
from .as_json import troubles

if TYPE_CHECKING:
    from ..results.verdicts import CheckResult, Finding, SessionResult

MOST_FINDINGS = 1_000  # in all
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_URI_CHARACTERS = "/:?&=%+@~!$'()*,;[]#"


def sarif_object(result: CheckResult, most: int = MOST_FINDINGS) -> dict[str, Any]:
    places = {rule: at for at, rule in enumerate(RULES)}
    results: list[dict[str, Any]] = []
    for session in result.sessions:
        for finding in session.findings[: most - len(results)]:
            results.append(_result(finding, session, places))
    captures = sorted({capture for session in result.sessions for capture in session.captures})
    lost = [{"level": "warning", "message": {"text": text}} for text in troubles(result)]
    run = {
        "tool": {"driver": _driver()},
        "invocations": [{"executionSuccessful": bool(result.sessions), "toolExecutionNotifications": lost}],
        "artifacts": [{"location": _artifact(capture)} for capture in captures],
        "results": results,
        "columnKind": "unicodeCodePoints",
    }
    whole: dict[str, Any] = all_shown({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})
    return whole


def _driver() -> dict[str, Any]:
    rules = [
        {
            "id": rule.id,
            "shortDescription": {"text": rule.sentence},
            "fullDescription": {"text": rule.meaning},
            "help": {"text": rule.advice},
            "defaultConfiguration": {"level": rule.level},
        }
        for rule in RULES.values()
    ]
    return {"name": "topicshark", "version": version("topicshark"), "rules": rules}


def _result(finding: Finding, session: SessionResult, places: dict[str, int]) -> dict[str, Any]:
    is_sure = finding.verdict == "fail"
    about = {
        "session": session.name,
        "dialect": session.dialect,
        "client": finding.client,
        "topic": finding.topic,
        "reason": finding.reason,
        "cause": finding.cause,
    }
    return {
        "ruleId": finding.rule,
        **({"ruleIndex": places[finding.rule]} if finding.rule in places else {}),
        "kind": "fail" if is_sure else "open",
        "level": finding.level if is_sure else "none",
        "message": {"text": f"Frame {finding.frame}: {shown(finding.text)}"},
        "locations": [_location(finding.capture, finding.frame)],
        "relatedLocations": _related(finding),
        "partialFingerprints": {"topicsharkFinding/v1": finding.id},
        "properties": {name: value for name, value in about.items() if value is not None}
        | {"frame": finding.frame, "timeNs": str(finding.time_ns), "detail": dict(finding.detail)},
    }


def _related(finding: Finding) -> list[dict[str, Any]]:
    """Its other datagrams, and with a message the finding that it follows from."""
    places = [_location(*place) for place in finding.related]
    if finding.follows_from:
        rule, capture, frame = finding.follows_from
        places.append(_location(capture, frame) | {"message": {"text": f"follows from {rule} at frame {frame}"}})
    return [place | {"id": number} for number, place in enumerate(places, start=1)]


def _location(capture: str, frame: int) -> dict[str, Any]:
    return {
        "physicalLocation": {"artifactLocation": _artifact(capture)},
        "logicalLocations": [{"name": f"frame {frame}", "kind": "frame"}],
    }


def _artifact(capture: str) -> dict[str, str]:
    """A URI: of a file on this machine with its scheme, else as it was given."""
    if isabs(capture):
        return {"uri": PurePosixPath(capture).as_uri()}
    return {"uri": quote(capture, safe=_URI_CHARACTERS)}

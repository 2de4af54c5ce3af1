"""Grades as one HTML page that needs nothing else: no script, no network, no style but its own.

Everything goes through a template that escapes; the content policy would stop what came through nevertheless.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined

from pcap_tools.escaping import shorten

from ...checker.rulebook.catalogue import RULES
from ...results.safe_text import shown
from ..display_filter import frames_filter
from . import cells

if TYPE_CHECKING:
    from ...results.grades import Grade
    from ...results.verdicts import Finding, SessionResult

MOST_FINDINGS = 10  # of a session
NAME = 80  # characters
_CLASSES = {"pass": "pass", "fail": "fail", "inconclusive": "open"}
_MARKS = {"pass": ("pass", "✓"), "inconclusive": ("open", "?")}


@dataclass(frozen=True)
class Row:
    """One submission as the page shows it; ``marks`` has a cell for each rule of the matrix."""

    anchor: str
    name: str
    grade: Grade
    kind: str
    dialect: str
    broken: str
    first: str
    problems: list[str]
    marks: list[tuple[str, str]]
    sessions: list[Part]


@dataclass(frozen=True)
class Part:
    """One session in the details of a submission."""

    title: str
    about: str
    notes: list[str]
    findings: list[tuple[str, str]]
    more: int


def html_text(grades: Sequence[Grade]) -> str:
    """The page."""
    folder = files(__package__)
    style = (folder / "page.css").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((folder / "page.html.jinja").read_text(encoding="utf-8"))
    rules = _rules(grades)
    return template.render(
        style=style,
        style_hash=b64encode(sha256(style.encode()).digest()).decode(),
        summary=cells.summary(grades),
        rows=[_row(number, one, rules) for number, one in enumerate(grades, start=1)],
        rules=[RULES[rule] for rule in rules],
    )


def _rules(grades: Sequence[Grade]) -> list[str]:
    """Those that somebody breaks, or may have broken, as in the catalogue."""
    found = {rule.id for one in grades for session in one.sessions for rule in session.rules if _is_told(rule.verdict)}
    return [rule for rule in RULES if rule in found]


def _is_told(verdict: str) -> bool:
    return verdict in ("fail", "inconclusive")


def _row(number: int, grade: Grade, rules: Sequence[str]) -> Row:
    return Row(
        anchor=f"s{number}",
        name=shorten(shown(grade.submission), NAME),
        grade=grade,
        kind=_CLASSES.get(grade.verdict, "none"),
        dialect=cells.dialect(grade),
        broken=cells.broken(grade),
        first=cells.first(grade),
        problems=cells.problems(grade, most=20),
        marks=[_mark(grade, rule) for rule in rules],
        sessions=[_part(session) for session in grade.sessions],
    )


def _mark(grade: Grade, rule: str) -> tuple[str, str]:
    """How often it is broken, ``?`` if the captures cannot tell, ``✓`` if it was put to the test; else nothing."""
    count = sum(one.count for one in grade.broken if one.id == rule)
    if count:
        return "fail", f"{count:,}"
    found = {one.verdict for session in grade.sessions for one in session.rules if one.id == rule}
    return next((_MARKS[verdict] for verdict in ("inconclusive", "pass") if verdict in found), ("none", ""))


def _part(session: SessionResult) -> Part:
    broker = ", ".join(session.brokers) if session.brokers else "not found"
    notes = session.facts.get("notes")
    told = session.findings[:MOST_FINDINGS]
    return Part(
        title=shorten(shown(session.name), NAME),
        about=f"{shown(session.dialect)}, broker {shown(broker)}, {session.datagrams:,} datagrams: {session.verdict}",
        notes=[shown(str(note)) for note in notes] if isinstance(notes, list) else [],
        findings=[(cells.sentence(one), _filter(one)) for one in told],
        more=session.findings_total - len(told),
    )


def _filter(finding: Finding) -> str:
    return frames_filter(finding.frames)

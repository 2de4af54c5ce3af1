"""Broken rules, each with what it means, what to do and where to look; and the tables of all rules."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import basename
from typing import TYPE_CHECKING

from ...checker.rulebook.catalogue import RULES, applies
from ...checker.session.policy import Policy
from ...results.finding_notes import doubt, follows, related_frames
from ..display_filter import frames_filter, traffic_filter
from ..faults import fault, worst_first
from .model import Diagram, Filter, RuleSection, Table, short
from .sentences import UNTESTED

if TYPE_CHECKING:
    from pcap_tools.dialect import Dialect

    from ...results.verdicts import Finding, RuleVerdict, SessionResult

MOST_FINDINGS = 10  # of a rule
MOST_CAPTURES = 5  # with a filter each
_MOST_FRAMES = 8  # in a cell
_HEADER = ("rule", "what must hold", "level")


def rule_sections(
    session: SessionResult,
    anchor: str,
    verdict: str,
    diagrams: dict[str, list[Diagram]],
    most: int = MOST_FINDINGS,
    dialect: Dialect | None = None,
) -> list[RuleSection]:
    """Those of this verdict, worst first, with ``most`` findings each; ``diagrams`` by rule. The dialect cites."""
    found: dict[str, list[Finding]] = {}
    for finding in session.findings:
        found.setdefault(finding.rule, []).append(finding)
    for own in found.values():
        own.sort(key=lambda one: (one.verdict != "fail", one.time_ns, one.frame))
    return [
        _section(
            rule,
            found.get(rule.id, [])[:most],
            session,
            anchor,
            diagrams.get(rule.id, []),
            dialect.spec.rules.section_of(rule.id) if dialect else "",
        )
        for rule in worst_first(session.rules, verdict)
    ]


def _section(
    verdict: RuleVerdict,
    findings: list[Finding],
    session: SessionResult,
    anchor: str,
    diagrams: list[Diagram],
    section: str,
) -> RuleSection:
    rule = RULES[verdict.id]
    return RuleSection(
        f"{anchor}-{rule.id}",
        rule.id,
        verdict.level,
        verdict.verdict,
        fault(verdict),
        rule.sentence,
        rule.meaning,
        rule.advice,
        section,
        _findings(findings, verdict, session),
        _filters(findings, session),
        diagrams,
    )


def _findings(findings: Sequence[Finding], verdict: RuleVerdict, session: SessionResult) -> Table:
    """Columns that hold nothing are left out."""
    begin = session.facts.get("begin_ns")
    columns = {
        "capture": [short(basename(one.capture), 40) if len(session.captures) > 1 else "" for one in findings],
        "frame": [str(one.frame) for one in findings],
        "seconds": [f"{(one.time_ns - begin) / 1e9:,.3f}" if isinstance(begin, int) else "" for one in findings],
        "what": [short(one.text) + (f" ({doubt(one)})" if doubt(one) else "") for one in findings],
        "topic": [short(one.topic, 60) for one in findings],
        "client": [short(one.client, 60) for one in findings],
        "follows from": [follows(one).removeprefix("follows from ") for one in findings],
        "see also": [related_frames(one, _MOST_FRAMES) for one in findings],
    }
    header = tuple(name for name, cells in columns.items() if any(cells))
    rows = list(zip(*(columns[name] for name in header), strict=True))
    total = max(verdict.failed + verdict.inconclusive, len(findings))
    numbers, codes, wide = (
        frozenset(at for at, name in enumerate(header) if name in chosen)
        for chosen in (("frame", "seconds"), ("topic", "client"), ("what",))
    )
    return Table(f"Findings of {verdict.id}", header, rows, total - len(findings), numbers, codes, wide)


def _filters(findings: Sequence[Finding], session: SessionResult) -> list[Filter]:
    """One a capture: frame numbers are each capture's own."""
    by_capture: dict[str, list[Finding]] = {}
    for finding in findings:
        by_capture.setdefault(finding.capture, []).append(finding)
    filters = []
    for capture, found in list(by_capture.items())[:MOST_CAPTURES]:
        frames = [frame for one in found for frame in one.frames]
        name = short(basename(capture), 60) if len(session.captures) > 1 else ""
        more = traffic_filter(found)
        filters.append(Filter(name, frames_filter(frames), more if more is None or len(more) <= 300 else None))
    return filters


def all_rules(session: SessionResult, dialect: Dialect | None) -> list[Table]:
    """Those that were put to the test, and those that were not, with the reason."""
    tested = [rule for rule in session.rules if rule.verdict not in UNTESTED]
    others = [rule for rule in session.rules if rule.verdict in UNTESTED]
    counts = ("checked", "failed", "inconclusive")
    rows = [(*_named(rule), rule.verdict, *(f"{getattr(rule, name):,}" for name in counts)) for rule in tested]
    header = (*_HEADER, "verdict", "checked", "failed", "cannot tell")
    tables = [Table("Put to the test", header, rows, 0, frozenset({4, 5, 6}), frozenset({0}), frozenset({1}))]
    if others:
        reasons = [(*_named(rule), _why_not(rule, dialect)) for rule in others]
        caption, wide = "Not put to the test", frozenset({1, 3})
        tables.append(Table(caption, (*_HEADER, "why not"), reasons, codes=frozenset({0}), wide=wide))
    return tables


def _named(rule: RuleVerdict) -> tuple[str, str, str]:
    return rule.id, RULES[rule.id].sentence, rule.level


def _why_not(rule: RuleVerdict, dialect: Dialect | None) -> str:
    if rule.verdict == "not exercised":
        return "nothing in the traffic gave occasion for it"
    return short((applies(rule.id, Policy(dialect)) if dialect else None) or "does not apply to this dialect")

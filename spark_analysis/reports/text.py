"""The verdict for people: what was judged, which rules were broken, and where to look in Wireshark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os.path import basename
from typing import TYPE_CHECKING

from ..results.finding_notes import doubt, follows, related_frames, whose
from ..results.safe_text import shown
from .columns import aligned
from .display_filter import frames_filter, traffic_filter
from .faults import fault, worst_first

if TYPE_CHECKING:
    from ..results.verdicts import CheckResult, Finding, RuleVerdict, SessionResult

MOST_FINDINGS = 20  # of a rule
MOST_NAMES = 5  # captures and brokers in one line
UNEXERCISED = ("not exercised", "n/a")


def check_lines(result: CheckResult, most: int = MOST_FINDINGS, verbose: bool = False) -> Iterator[str]:
    """Broken rules with ``most`` findings each, the worst first, then those in doubt; the verdict is the last line.
    ``verbose``: a table of all rules in front of it."""
    for number, session in enumerate(result.sessions):
        if number:
            yield ""
        yield from heading(session)
        yield from _findings(session, most)
        if verbose:
            yield from _rules(session.rules)
        yield ""
        yield f"  {_verdict(session, verbose)}"


def heading(session: SessionResult) -> Iterator[str]:
    """What is judged here, and what limits the verdict."""
    yield f"{shown(session.name)}: {_some(session.captures)}"
    broker = f"broker {_some(session.brokers)}" if session.brokers else "no broker found"
    yield f"  {shown(session.dialect)}; {broker}; {session.datagrams:,} datagrams"
    for label, sentences in (("why", _facts(session, "evidence")[:1]), ("note", _facts(session, "notes"))):
        for sentence in sentences:
            yield f"  {label}: {shown(str(sentence))}"


def _facts(session: SessionResult, name: str) -> list[object]:
    found = session.facts.get(name)
    return found if isinstance(found, list) else []


def _some(names: Sequence[object]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(shown(str(name)) for name in names[:MOST_NAMES]) + more


def _verdict(session: SessionResult, verbose: bool) -> str:
    tested = [rule for rule in session.rules if rule.verdict not in UNEXERCISED]
    parts = [f"{sum(rule.verdict == name for rule in tested)} {name}" for name in ("fail", "inconclusive", "pass")]
    more = "" if verbose else "; -v lists them"
    return f"verdict: {session.verdict} ({len(tested)} rules put to the test: {', '.join(parts)}{more})"


def _rules(rules: Sequence[RuleVerdict]) -> Iterator[str]:
    yield ""
    rows = [(rule.id, rule.level, rule.verdict, rule.checked, rule.failed, rule.inconclusive) for rule in rules]
    yield from aligned(("rule", "level", "verdict", "checked", "failed", "inconclusive"), rows)


def _findings(session: SessionResult, most: int) -> Iterator[str]:
    """By rule, those that are sure first; behind them findings of rules without a verdict of their own."""
    by_rule: dict[str, list[Finding]] = {}
    for finding in session.findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    for rule in (*worst_first(session.rules, "fail"), *worst_first(session.rules, "inconclusive")):
        yield ""
        level = "" if rule.level == "error" else f" ({rule.level})"
        yield f"  {shown(rule.id)}{level}: {fault(rule)}"
        yield from _of_rule(by_rule.pop(rule.id, []), session, most, rule.failed + rule.inconclusive)
    for found in by_rule.values():
        yield ""
        yield from _of_rule(found, session, most, _total(session, found[0].rule, len(found)))


def _of_rule(findings: Sequence[Finding], session: SessionResult, most: int, total: int) -> Iterator[str]:
    found = sorted(findings, key=lambda one: (one.verdict != "fail", one.time_ns, one.frame))
    for finding in found[:most]:
        yield f"  {_finding(finding, session)}"
    if found and total > most:
        yield f"  … and {total - most:,} more of {found[0].rule}"
    yield from _filters(found[:most], session)


def _total(session: SessionResult, rule: str, at_hand: int) -> int:
    counted = sum(one.failed + one.inconclusive for one in session.rules if one.id == rule)
    return max(counted, at_hand)


def _finding(finding: Finding, session: SessionResult) -> str:
    """``frame 123  A-MISSING  PUBLISH home/x is never acknowledged [10.0.0.2:50000] (frames 130, 140)``."""
    where = f"{shown(basename(finding.capture))} " if len(session.captures) > 1 else ""
    said = doubt(finding) or ("" if finding.level == "error" else finding.level)
    mark = f" ({said})" if said else ""
    related = f" ({related_frames(finding)})" if finding.related else ""
    said = f"{shown(finding.text)}{whose(finding)}{related}"
    cause = f"; {follows(finding)}" if finding.follows_from else ""
    return f"{where}frame {finding.frame}  {shown(finding.rule)}{mark}  {said}{cause}"


def _filters(findings: Sequence[Finding], session: SessionResult) -> Iterator[str]:
    """One filter a capture: frame numbers are each capture's own."""
    by_capture: dict[str, list[Finding]] = {}
    for finding in findings:
        by_capture.setdefault(finding.capture, []).append(finding)
    for capture, found in list(by_capture.items())[:MOST_NAMES]:
        frames = [frame for finding in found for frame in finding.frames]
        more = traffic_filter(found)
        where = f" ({shown(basename(capture))})" if len(session.captures) > 1 else ""
        yield f"  Wireshark{where}: {frames_filter(frames)}" + (f"    or: {more}" if more else "")

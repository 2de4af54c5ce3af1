"""The verdict as JUnit XML, which CI servers show: a suite for each session, a test case for each rule.

A broken rule fails its case if it is an error, as it decides the exit code; below that the case passes and prints what
was found. What the capture cannot tell, or gave no occasion for, is skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ..checker.rulebook.catalogue import RULES
from ..results.finding_notes import doubt, follows, related_frames, whose
from ..results.safe_text import shown
from .as_json import troubles

if TYPE_CHECKING:
    from ..results.verdicts import CheckResult, Finding, RuleVerdict, SessionResult

MOST_FINDINGS = 1_000  # in all


@dataclass(frozen=True)
class Suite:
    """``lost``: sentences about what could not be read, which is an error of the run and not of a rule."""

    name: str
    sessions: Sequence[SessionResult] = ()
    lost: Sequence[str] = ()


def junit_text(result: CheckResult, most: int = MOST_FINDINGS) -> str:
    suites = [Suite(session.name, [session]) for session in result.sessions]
    if lost := troubles(result):
        suites.append(Suite("input", lost=lost))
    return suites_text(suites, most)


def suites_text(suites: Iterable[Suite], most: int = MOST_FINDINGS) -> str:
    """A file of these suites."""
    root = Element("testsuites", name="topicshark check")
    for suite in suites:
        most -= _add(root, suite, most)
    for count in ("tests", "failures", "errors"):  # Jenkins' schema has no `skipped` here
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _add(root: Element, suite: Suite, most: int) -> int:
    """How many findings are in it, at most ``most``."""
    element = SubElement(root, "testsuite", name=shown(suite.name))
    if suite.sessions:
        _properties(element, suite.sessions)
    used = 0
    for session in suite.sessions:
        findings = session.findings[: most - used]
        used += len(findings)
        for rule in session.rules:
            case = SubElement(element, "testcase", classname=shown(session.name), name=shown(rule.id))
            _case(case, rule, [finding for finding in findings if finding.rule == rule.id])
    for number, sentence in enumerate(suite.lost, start=1):
        case = SubElement(element, "testcase", classname=shown(suite.name), name=f"input {number}")
        SubElement(case, "error", type="partial", message=shown(sentence))
    element.set("tests", str(len(element.findall("testcase"))))
    for count, of_case in (("failures", "failure"), ("skipped", "skipped"), ("errors", "error")):
        element.set(count, str(len(element.findall(f"testcase/{of_case}"))))
    return used


def _properties(element: Element, sessions: Sequence[SessionResult]) -> None:
    properties = SubElement(element, "properties")
    told = {
        "captures": [capture for session in sessions for capture in session.captures],
        "dialect": [session.dialect for session in sessions],
        "broker": [broker for session in sessions for broker in session.brokers],
        "datagrams": [str(sum(session.datagrams for session in sessions))],
        "verdict": [session.verdict for session in sessions],
    }
    for name, values in told.items():
        SubElement(properties, "property", name=name, value=shown(", ".join(dict.fromkeys(values))))


def _case(case: Element, rule: RuleVerdict, findings: list[Finding]) -> None:
    told = "\n".join(_line(finding) for finding in findings)
    if rule.verdict == "fail" and rule.level == "error":
        sentence = RULES[rule.id].sentence if rule.id in RULES else ""
        message = f"{sentence} Broken {rule.failed} of {rule.checked} times.".strip()
        SubElement(case, "failure", type=shown(rule.id), message=shown(message)).text = told
        return
    if rule.verdict not in ("pass", "fail"):
        SubElement(case, "skipped", message=shown(rule.verdict))
    if told:
        SubElement(case, "system-out").text = told


def _line(finding: Finding) -> str:
    unsure = f" ({doubt(finding)})" if doubt(finding) else ""
    cause = f"; {follows(finding)}" if finding.follows_from else ""
    where = f"{shown(finding.capture)} {related_frames(finding, with_own=True)}"
    return f"{finding.verdict} {finding.level}: {where}: {shown(finding.text)}{whose(finding)}{unsure}{cause}"

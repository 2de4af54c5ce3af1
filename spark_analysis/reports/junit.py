"""The verdict as JUnit XML, which CI servers show: a suite for each session, a test case for each rule.

A broken rule fails its case if it is an error, as it decides the exit code; below that the case passes and prints what
was found. What the capture cannot tell, or gave no occasion for, is skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ..checker.rules import RULES
from .as_json import troubles
from .safe_text import shown

if TYPE_CHECKING:
    from ..checker.results import CheckResult, Finding, RuleVerdict, SessionResult

MOST_FINDINGS = 1_000  # in all


def junit_text(result: CheckResult, most: int = MOST_FINDINGS) -> str:
    root = Element("testsuites", name="topicshark check")
    for session in result.sessions:
        findings = session.findings[:most]
        most -= len(findings)
        _suite(root, session, findings)
    if lost := troubles(result):
        _unread(root, lost)
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(root: Element, session: SessionResult, findings: list[Finding]) -> None:
    suite = SubElement(root, "testsuite", name=shown(session.name))
    properties = SubElement(suite, "properties")
    told = {"captures": ", ".join(session.captures), "dialect": session.dialect, "broker": ", ".join(session.brokers)}
    for name, value in (told | {"datagrams": str(session.datagrams), "verdict": session.verdict}).items():
        SubElement(properties, "property", name=name, value=shown(value))
    for rule in session.rules:
        case = SubElement(suite, "testcase", classname=shown(session.name), name=shown(rule.id))
        _case(case, rule, [finding for finding in findings if finding.rule == rule.id])
    counts = {name: len(suite.findall(f"testcase/{name}")) for name in ("failure", "skipped")}
    suite.set("tests", str(len(session.rules)))
    suite.set("failures", str(counts["failure"]))
    suite.set("skipped", str(counts["skipped"]))
    suite.set("errors", "0")


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
    frames = ", ".join(str(frame) for frame in (finding.frame, *finding.related))
    return f"{finding.verdict} {finding.level}: {shown(finding.capture)} frames {frames}: {shown(finding.text)}"


def _unread(root: Element, lost: list[str]) -> None:
    """What could not be read is an error of the run, not of a rule."""
    suite = SubElement(root, "testsuite", name="input", tests=str(len(lost)), errors=str(len(lost)))
    suite.set("failures", "0")
    suite.set("skipped", "0")
    for number, sentence in enumerate(lost, start=1):
        case = SubElement(suite, "testcase", classname="input", name=f"input {number}")
        SubElement(case, "error", type="partial", message=shown(sentence))

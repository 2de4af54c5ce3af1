"""One run: generated, checked, and what the checker says held against the truth.

A failing finding is *true* if a fault of its rule is shown by one of its frames. A fault that the capture shows is
*found* if a failing finding of its rule names one of its frames, *inconclusive* if only a doubtful one does.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from benchmarks.accuracy.exchanges import tables_of
from benchmarks.accuracy.jobs import ROOT, Job, point_kind
from benchmarks.accuracy.links import Checked, Links, judge_capture
from generators.capture.capture_point import take, write
from generators.generate import GeneratedRun, generate, prepare
from generators.simulation.random_source import RandomSource
from pcap_tools.codec.detect import wanted_dialects
from pcap_tools.dialect import Dialect, load_dialect
from spark_analysis.check import check
from spark_analysis.checker.rulebook.catalogue import level_of
from spark_analysis.results.verdicts import Finding

NO_LIMIT = 1_000_000


@dataclass
class Tally:
    """Of one rule. ``true`` and ``false`` count failing findings, the others count faults."""

    shown: int = 0
    found: int = 0
    inconclusive: int = 0
    missed: int = 0
    true: int = 0
    false: int = 0

    def __iadd__(self, other: Tally) -> Tally:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
        return self

    @property
    def precision(self) -> float | None:
        return self.true / (self.true + self.false) if self.true + self.false else None

    @property
    def recall(self) -> float | None:
        return self.found / self.shown if self.shown else None


@dataclass(frozen=True)
class Problem:
    """Where the checker was not right. ``kind``: missed, inconclusive, false, or crashed.

    ``near`` holds the rules of the faults whose frames a false finding names; ``text`` is what the checker said, or of
    a missed fault what happened."""

    kind: str
    rule: str
    job: Job
    point: str
    frame: int
    text: str
    level: str = "error"
    near: tuple[str, ...] = ()

    @property
    def fault(self) -> str:
        return ", ".join(self.job.faults) or "none"


@dataclass
class Outcome:
    """What came of one capture."""

    job: Job
    point: str
    frames: int = 0
    tallies: dict[str, Tally] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    links: dict[str, Links] = field(default_factory=dict)  # the dissector's, by the passes of tshark

    @property
    def point_kind(self) -> str:
        return point_kind(self.point)

    @property
    def errors(self) -> list[Problem]:
        """Failures at error level that nothing justifies, and crashes."""
        return [one for one in self.problems if one.kind in ("false", "crashed") and one.level == "error"]


def run(job: Job, folder: Path) -> list[Outcome]:
    """One simulation, captured at each of its points."""
    first = job.points[0]
    made = generate(_order(job, first))
    return [
        _judge_capture(job, point, made if point == first else _recaptured(made, job, point), folder)
        for point in job.points
    ]


def _order(job: Job, point: str) -> Any:
    order = job.order(point)
    return replace(order, dialects=(_place(job.dialect),))


def _place(dialect: str) -> str:
    return str(ROOT / dialect) if dialect.endswith(".toml") else dialect


def _recaptured(made: GeneratedRun, job: Job, point: str) -> GeneratedRun:
    """The same traffic seen from elsewhere, as ``generate`` would give it."""
    options = prepare(_order(job, point)).capture
    dialects = {site.dialect.name: site.dialect for site in made.script.sites}
    capture = take(made.run.transits, options, RandomSource(f"{job.seed} capture"), dialects)
    return replace(made, capture=capture)


def _judge_capture(job: Job, point: str, made: GeneratedRun, folder: Path) -> Outcome:
    path = folder / "run.pcap"
    write(made.capture, path)
    outcome = Outcome(job, point, len(made.capture.frames))
    try:
        wanted = wanted_dialects([_place(job.dialect)])
        result = check([str(path)], engine="local", dialects=wanted, limit=NO_LIMIT)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        outcome.problems.append(Problem("crashed", "-", job, point, 0, text))
        return outcome
    findings = [finding for session in result.sessions for finding in session.findings]
    labels = _judged(made.truth()["faults"], load_dialect(_place(job.dialect)))
    hold_against(outcome, labels, findings)
    if (job.seed == 1 or not job.has_fault) and point == job.points[0] and shutil.which("tshark"):
        tables = tables_of(path, _place(job.dialect))
        checked = Checked.of(tables.exchanges, tables.deliveries)
        outcome.links = judge_capture(path, load_dialect(_place(job.dialect)), made.truth(), checked)
    return outcome


def _judged(labels: list[dict[str, Any]], dialect: Dialect) -> list[dict[str, Any]]:
    """Those whose rule the dialect has not switched off."""
    return [label for label in labels if level_of(label["rule"], dialect) != "off"]


def hold_against(outcome: Outcome, labels: Iterable[dict[str, Any]], findings: list[Finding]) -> None:
    labels = list(labels)
    by_place = {(one.rule, one.capture, one.frame): one for one in findings}
    for finding in findings:
        if finding.verdict == "fail":
            of = finding.follows_from
            cause = by_place.get((of.rule, of.capture, of.frame)) if of else None
            _score_finding(outcome, finding, labels, cause is not None and _is_true(cause, labels))
    for label in labels:
        if label["shown"]:
            _score_label(outcome, label, findings)


def _frames(finding: Finding) -> set[int]:
    return set(finding.frames)


def _near(finding: Finding, labels: list[dict[str, Any]]) -> tuple[str, ...]:
    """The rules of the faults whose frames a finding names."""
    return tuple(dict.fromkeys(label["rule"] for label in labels if _frames(finding) & set(label["frames"])))


def _is_true(finding: Finding, labels: list[dict[str, Any]]) -> bool:
    return finding.rule in _near(finding, labels)


def _score_finding(
    outcome: Outcome, finding: Finding, labels: list[dict[str, Any]], has_true_cause: bool = False
) -> None:
    """A consequence that is listed under a true cause is true; alone it is false."""
    tally, near = outcome.tallies.setdefault(finding.rule, Tally()), _near(finding, labels)
    if finding.rule in near or has_true_cause:
        tally.true += 1
        return
    tally.false += 1
    said = Problem("false", finding.rule, outcome.job, outcome.point, finding.frame, finding.text, finding.level, near)
    outcome.problems.append(said)


def _score_label(outcome: Outcome, label: dict[str, Any], findings: list[Finding]) -> None:
    tally, rule = outcome.tallies.setdefault(label["rule"], Tally()), label["rule"]
    tally.shown += 1
    about = [one for one in findings if one.rule == rule and _frames(one) & set(label["frames"])]
    if any(one.verdict == "fail" for one in about):
        tally.found += 1
        return
    kind = "inconclusive" if about else "missed"
    setattr(tally, kind, getattr(tally, kind) + 1)
    text = about[0].text if about else label["text"]
    outcome.problems.append(Problem(kind, rule, outcome.job, outcome.point, min(label["frames"], default=0), text))

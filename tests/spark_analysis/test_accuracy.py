"""The checker beside the truth, in short: `make accuracy` does the same with every fault, dialect and condition.

The first tests judge the judge, with findings and faults written by hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.accuracy.jobs import Job, clean_jobs, faulty_jobs
from benchmarks.accuracy.judging import Outcome, Tally, hold_against, run
from benchmarks.accuracy.page import Results, page
from benchmarks.accuracy.pipelined import measure
from benchmarks.accuracy.reasons import reason_of
from spark_analysis.results.verdicts import Finding, Place

OWN = "tests/dialects/nestedack.toml"


def finding(rule: str, verdict: str, frame: int, *related: int, level: str = "error") -> Finding:
    places = tuple(Place("run.pcap", one) for one in related)
    detail = {"message": "PUBLISH", "count": 1, "filter": "x", "after_ns": 1, "limit_ns": 2}
    return Finding("0", rule, level, verdict, "run.pcap", frame, 0, places, None, None, detail)


def fault(rule: str, *frames: int, shown: bool = True) -> dict[str, Any]:
    return {"rule": rule, "frames": list(frames), "shown": shown, "text": "done"}


def judged(faults: list[dict[str, Any]], findings: list[Finding]) -> Outcome:
    outcome = Outcome(Job("building", "colon", 1), "broker")
    hold_against(outcome, faults, findings)
    return outcome


def test_a_finding_is_true_where_a_fault_of_its_rule_shows() -> None:
    faults = [fault("A-MISSING", 4, 9), fault("A-MISSING", 20), fault("D-MISSING", 30)]
    said = [finding("A-MISSING", "fail", 1, 9), finding("A-MISSING", "fail", 30), finding("D-MISSING", "fail", 31)]
    outcome = judged(faults, said)
    assert outcome.tallies["A-MISSING"] == Tally(shown=2, found=1, missed=1, true=1, false=1)
    assert outcome.tallies["D-MISSING"] == Tally(shown=1, found=0, missed=1, true=0, false=1)
    assert outcome.tallies["A-MISSING"].precision == outcome.tallies["A-MISSING"].recall == 0.5
    assert [(one.kind, one.frame) for one in outcome.problems] == [
        ("false", 30),
        ("false", 31),
        ("missed", 20),
        ("missed", 30),
    ]
    assert outcome.problems[0].near == ("D-MISSING",)


def test_a_doubt_is_neither_found_nor_missed_and_what_the_capture_lacks_is_not_asked_for() -> None:
    outcome = judged(
        [fault("A-LATE", 5), fault("A-LATE", 7, shown=False), fault("A-LATE", 8, shown=False)],
        [finding("A-LATE", "inconclusive", 5), finding("A-LATE", "fail", 8)],
    )
    assert outcome.tallies == {"A-LATE": Tally(shown=1, inconclusive=1, true=1)}
    assert [one.kind for one in outcome.problems] == ["inconclusive"]


def test_only_errors_count_against_traffic_without_faults() -> None:
    said = [
        finding("A-LATE", "fail", 1),
        finding("A-LATE", "inconclusive", 2),
        finding("P-CLIENT-TO-CLIENT", "fail", 3, level="warning"),
    ]
    assert [(one.rule, one.frame) for one in judged([], said).errors] == [("A-LATE", 1)]


def test_the_command_of_a_case_makes_its_capture(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from generators.capture.capture_point import write
    from generators.generate import generate
    from topicshark.main import app

    job = Job("building", "colon", 3, {"ack-late": 0.1}, ("broker", "sensor1"))
    words = job.command("sensor1").split()[1:]
    words[words.index("run.pcap")] = str(tmp_path / "told.pcap")
    assert CliRunner().invoke(app, words).exit_code == 0
    run(job, tmp_path)  # leaves the capture of its last point: taken from the traffic of the first
    write(generate(job.order("sensor1")).capture, tmp_path / "made.pcap")
    captures = [(tmp_path / name).read_bytes() for name in ("told.pcap", "run.pcap", "made.pcap")]
    assert captures[0] == captures[1] == captures[2]


EASY = ("ack-missing", "forward-altered", "forward-unexpected", "wire-bad-text")


@pytest.mark.parametrize("dialect", ["colon", OWN])
@pytest.mark.parametrize("name", EASY)
def test_plain_faults_are_found_and_nothing_else_is(name: str, dialect: str, tmp_path: Path) -> None:
    (job,) = faulty_jobs([dialect], 1, ("broker",), name)
    (outcome,) = run(job, tmp_path)
    assert [(one.kind, one.rule, one.frame, one.text) for one in outcome.problems] == []
    (tally,) = outcome.tallies.values()
    assert tally.shown == tally.found > 0


def test_nothing_fails_where_there_is_no_fault(tmp_path: Path) -> None:
    dialects = ["colon", "mqttsn", "rolebyte", OWN]
    errors = [error for job in clean_jobs(dialects, 24) for one in run(job, tmp_path) for error in one.errors]
    assert [(one.job.command(one.point), one.rule, one.text) for one in errors] == []


@pytest.mark.parametrize("dialect", ["colon", "rolebyte", "topicbyte", "topicnumber"])
def test_ack_times_are_right_with_many_requests_under_way_and_lost_acks(dialect: str, tmp_path: Path) -> None:
    matched = measure(dialect, tmp_path, publishes=1_500)
    assert matched.lost > 0
    assert matched.fifo_wrong > 0.2 * matched.fifo_matched, "order alone must not do, or this shows nothing"
    assert matched.is_good, matched


def test_the_page_lists_what_is_not_explained_with_its_command() -> None:
    job = Job("building", "colon", 7, {"ack-late": 0.1})
    outcome = Outcome(job, "any", 100)
    hold_against(outcome, [fault("W-EMPTY", 5)], [finding("N-ZERO", "fail", 9)])
    assert [reason_of(one) for one in outcome.problems] == [None, None]
    text = page(Results([outcome], [], [], [], 60.0, "2026-01-01", "python -m benchmarks.accuracy"))
    assert "| W-EMPTY | 1 | 0 | 0 | 1 | 0 | 0 | - | 0.000 |" in text
    assert "| N-ZERO | 0 | 0 | 0 | 0 | 0 | 1 | 0.000 | - |" in text
    assert (
        "topicshark generate building -o run.pcap --dialect colon --seed 7 --fault ack-late=0.1 --capture-at any"
        in text
    )
    assert not Results([], [outcome], [], [], 0, "", "").is_good

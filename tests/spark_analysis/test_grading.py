"""A class with everything that a class hands in: good work, bad work, nothing, rubbish, links, broken dialects."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pcap_tools.codec.detect import wanted_dialects
from pcap_tools.dialect import builtin_text
from pcap_tools.errors import TopicsharkError, UsageError
from spark_analysis import grading
from spark_analysis.engine.engines import LocalEngine, SparkEngine
from spark_analysis.grading import GradingOptions, grade
from spark_analysis.results.grades import Grade
from spark_analysis.results.verdicts import CheckResult
from spark_analysis.sources.submissions import find_submissions
from tests.spark_analysis.checker.checked import Talk, check

CLEAN = """
    1     0  anna > broker  SUBSCRIBE filter=home/*
    2     1  broker > anna  SUBACK
    3  1000  bert > broker  PUBLISH topic=home/fan payload=ON
    4  1001  broker > anna  PUBLISH topic=home/fan payload=ON
    5  1002  broker > bert  PUBACK
    6 20000  dora > broker  PUBLISH topic=elsewhere payload=1
    7 20001  broker > dora  PUBACK
"""
# The publish in frame 3 is passed on to nobody.
FORGETS = "\n".join(line for line in CLEAN.splitlines() if " 4  1001" not in line)
FORGETS = FORGETS.replace("5  1002", "4  1002").replace("6 20000", "5 20000").replace("7 20001", "6 20001")
# A dialect of somebody's own: colon under another name, on another port.
OWN = builtin_text("colon").replace('"colon"', '"mine"').replace("50000", "51234")


def folder(top: Path, name: str, **talks: str) -> Path:
    made = top / name
    made.mkdir()
    for capture, lines in talks.items():
        Talk().write(made / f"{capture}.pcap", lines)
    return made


def graded(top: Path, options: GradingOptions | None = None) -> dict[str, Grade]:
    grades = grade(find_submissions([str(top)]).submissions, options, engine="local")
    return {one.submission: one for one in grades}


def on_port(path: Path, port: int) -> None:
    """The capture with every 50000 as another port; the checksums of `Talk` are zero, which is none."""
    path.write_bytes(path.read_bytes().replace((50000).to_bytes(2, "big") * 2, port.to_bytes(2, "big") * 2))


@pytest.fixture
def one_of_each(tmp_path: Path) -> Path:
    folder(tmp_path, "good", run=CLEAN)
    folder(tmp_path, "bad", run=FORGETS, rerun=FORGETS, fine=CLEAN)
    folder(tmp_path, "empty")
    (folder(tmp_path, "rubbish") / "run.pcap").write_text("my homework")
    cut = folder(tmp_path, "cut", run=CLEAN) / "run.pcap"
    cut.write_bytes(cut.read_bytes()[:-5])
    (folder(tmp_path, "toml", run=CLEAN) / "my.toml").write_text("name = \n")
    two = folder(tmp_path, "two tomls", run=CLEAN)
    for name in ("a.toml", "b.toml"):
        (two / name).write_text(OWN)
    on_port(folder(tmp_path, "foreign", run=CLEAN) / "run.pcap", 53)
    (tmp_path / "foreign" / "dialect.toml").write_text(OWN)
    return tmp_path


def test_each_folder_has_its_verdict_and_none_stops_the_others(one_of_each: Path) -> None:
    assert {name: one.verdict for name, one in graded(one_of_each).items()} == {
        "good": "pass",
        "bad": "fail",
        "empty": "nothing to judge",
        "rubbish": "unreadable",
        "cut": "inconclusive",  # the last ACK is cut away
        "toml": "unreadable",
        "two tomls": "unreadable",
        "foreign": "nothing to judge",
    }


def test_each_row_says_what_was_wrong(one_of_each: Path) -> None:
    told = {name: " / ".join(one.problems) for name, one in graded(one_of_each).items()}
    assert (told["good"], told["bad"]) == ("", "")
    assert told["empty"].startswith("no captures in it")
    assert told["rubbish"].startswith("run.pcap: is text")
    assert told["cut"].startswith("run.pcap: damaged at byte ")
    assert told["toml"].startswith("my.toml:1: ")
    assert told["two tomls"] == "several dialect files (a.toml, b.toml): name the one that counts dialect.toml"
    assert told["foreign"] == "run.pcap: no datagram in mine"


def test_a_row_sums_the_captures_of_a_submission(one_of_each: Path) -> None:
    bad = graded(one_of_each)["bad"]
    assert (bad.captures, bad.datagrams, bad.dialects) == (3, 6 + 6 + 7, ("colon",))
    assert [(one.id, one.level, one.count) for one in bad.broken] == [("D-MISSING", "error", 2)]
    assert bad.errors == 1
    assert sorted(session.name for session in bad.sessions) == ["bad/fine", "bad/rerun", "bad/run"]
    assert bad.first is not None
    assert (bad.first.rule, bad.first.frame) == ("D-MISSING", 3)


def test_merge_makes_one_session_of_each_submission(one_of_each: Path) -> None:
    grades = graded(one_of_each, GradingOptions(merge=True))
    assert [len(grades[name].sessions) for name in ("good", "bad", "cut")] == [1, 1, 1]
    assert len(grades["bad"].sessions[0].captures) == 3


def test_a_dialect_of_its_own_unless_one_is_named_for_all(tmp_path: Path) -> None:
    own = folder(tmp_path, "own", run=CLEAN)
    (own / "dialect.toml").write_text(OWN)
    (own / "other.toml").write_text("not looked at")
    (own / "pyproject.toml").write_text("[project]")
    on_port(own / "run.pcap", 51234)
    folder(tmp_path, "usual", run=CLEAN)
    grades = graded(tmp_path)
    assert [(one.verdict, one.dialects) for one in grades.values()] == [("pass", ("mine",)), ("pass", ("colon",))]
    grades = graded(tmp_path, GradingOptions(wanted_dialects(["mqttsn"])))
    assert [one.verdict for one in grades.values()] == ["nothing to judge"] * 2


def test_captures_and_dialects_are_found_in_folders_below(tmp_path: Path) -> None:
    deep = folder(folder(tmp_path, "zipped"), "project", run=CLEAN)
    (deep / "mine.toml").write_text(OWN)
    on_port(deep / "run.pcap", 51234)
    (folder(deep, "library") / "config.toml").write_text("further down, so not taken")
    hidden = folder(deep, ".git", run=FORGETS)
    assert hidden.exists()
    (one,) = graded(tmp_path).values()
    assert (one.verdict, one.dialects, one.captures) == ("pass", ("mine",), 1)


def test_links_out_of_a_submission_are_not_followed(tmp_path: Path) -> None:
    folder(tmp_path, "anna", run=CLEAN)
    thief = folder(tmp_path, "thief")
    os.symlink(tmp_path / "anna" / "run.pcap", thief / "mine.pcap")
    os.symlink("/dev/zero", thief / "dialect.toml")
    os.symlink(tmp_path / "anna", thief / "folder")
    one = graded(tmp_path)["thief"]
    assert (one.verdict, one.captures) == ("nothing to judge", 0)
    assert one.problems[:2] == tuple(
        f"{name}: a link or no plain file, and left out" for name in ("dialect.toml", "mine.pcap")
    )


def test_what_is_no_submission(tmp_path: Path) -> None:
    Talk().write(tmp_path / "loose.pcap", CLEAN)
    folder(tmp_path, ".hidden", run=CLEAN)
    folder(tmp_path, "__MACOSX", run=CLEAN)
    with pytest.raises(TopicsharkError, match="no folders in it"):
        find_submissions([str(tmp_path)])
    folder(tmp_path, "anna", run=CLEAN)
    found = find_submissions([str(tmp_path)])
    assert [one.name for one in found.submissions] == ["anna"]
    assert found.notes == [f"{tmp_path}: loose.pcap is in no folder of a submission, and not judged"]
    with pytest.raises(TopicsharkError, match="is no folder"):
        find_submissions([str(tmp_path / "loose.pcap")])


def test_the_same_name_in_two_classes(tmp_path: Path) -> None:
    for group in ("monday", "friday"):
        folder(folder(tmp_path, group), "anna", run=CLEAN)
    found = find_submissions([str(tmp_path / "monday"), str(tmp_path / "friday")])
    assert [one.name for one in found.submissions] == [f"{tmp_path}/friday/anna", f"{tmp_path}/monday/anna"]


def test_a_defect_of_ours_costs_one_row_only(one_of_each: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def stumbles(captures: list[str], **options: object) -> CheckResult:
        if "good" in captures[0]:
            raise IndexError("out of bounds")
        return check(captures, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(grading, "check", stumbles)
    grades = graded(one_of_each)
    assert (grades["good"].verdict, grades["bad"].verdict) == ("unreadable", "fail")
    assert grades["good"].problems == ("could not be judged: IndexError: out of bounds",)


def test_a_wrong_option_is_an_error_of_the_call(one_of_each: Path) -> None:
    with pytest.raises(UsageError, match="--broker"):
        graded(one_of_each, GradingOptions(brokers=("host:port",)))


def test_progress_is_told_after_each(one_of_each: Path) -> None:
    heard: list[tuple[int, int]] = []
    grade(find_submissions([str(one_of_each)]).submissions, told=lambda *counts: heard.append(counts))
    assert heard == [(done, 8) for done in range(1, 9)]


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_gives_the_same_rows(one_of_each: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading, "spark_engine", lambda master, stage: nullcontext(SparkEngine(spark)))
    submissions = find_submissions([str(one_of_each)]).submissions
    assert told(grade(submissions, engine="spark")) == told(grade(submissions))


def told(grades: Sequence[Grade]) -> list[tuple[object, ...]]:
    return [(one.submission, one.verdict, one.datagrams, one.broken, one.first, one.problems) for one in grades]


def test_bundles_hold_all_in_order(one_of_each: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading, "spark_engine", lambda master, stage: nullcontext(LocalEngine()))
    monkeypatch.setattr(grading, "BUNDLE", 3)
    submissions = find_submissions([str(one_of_each)]).submissions
    assert told(grade(submissions, engine="spark")) == told(grade(submissions))


def test_units_of_a_large_submission_give_the_same(one_of_each: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large ones are judged by the engine; here that is this process."""
    monkeypatch.setattr(grading, "spark_engine", lambda master, stage: nullcontext(LocalEngine()))
    monkeypatch.setattr(grading, "LARGE_BYTES", 900)
    submissions = find_submissions([str(one_of_each)]).submissions
    sizes = [sum(Path(one).stat().st_size for one in submission.captures) > 900 for submission in submissions]
    assert any(sizes)
    assert not all(sizes)
    assert told(grade(submissions, engine="spark")) == told(grade(submissions))

"""Two runs side by side: which findings are new and which are gone, in `compare` and in `check --baseline`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_analysis.results.comparing import KnownFinding, changes
from tests.conftest import Run
from topicshark.exit_codes import ExitCode
from topicshark.main import exit_code_of


def one(id_: str, rule: str = "A-MISSING", client: str | None = "10.0.0.2:4000", **about: Any) -> KnownFinding:
    finding = KnownFinding(id_, "colon", rule, "error", "fail", "a.pcap", 7, client, "home/x", "is never acknowledged")
    return replace(finding, **about)


def ids(findings: list[KnownFinding]) -> list[str]:
    return [finding.id for finding in findings]


def test_the_same_finding_in_the_same_capture_has_the_same_id() -> None:
    found = changes([one("a"), one("b")], [one("b"), one("c", topic="home/y")])
    assert (ids(found.new), ids(found.gone), found.same) == (["c"], ["a"], 1)


def test_another_frame_port_and_file_are_no_difference() -> None:
    found = changes([one("a")], [one("b", client="10.0.0.2:50123", capture="b.pcap", frame=99)])
    assert (found.new, found.gone, found.same) == ([], [], 1)


@pytest.mark.parametrize(
    "other", [{"rule": "A-LATE"}, {"client": "10.0.0.3:4000"}, {"topic": "home/y"}, {"verdict": "inconclusive"}]
)
def test_rule_host_topic_and_verdict_are_differences(other: dict[str, Any]) -> None:
    found = changes([one("a")], [one("b", **other)])
    assert (ids(found.new), ids(found.gone), found.same) == (["b"], ["a"], 0)
    assert found.is_worse == (other != {"verdict": "inconclusive"})


def test_as_many_as_before_are_the_same() -> None:
    found = changes([one("a"), one("b")], [one("c"), one("d"), one("e")])
    assert (ids(found.new), found.gone, found.same) == (["e"], [], 2)
    found = changes([one("a"), one("b"), one("c")], [one("b"), one("x")])
    assert (found.new, ids(found.gone), found.same) == ([], ["c"], 2)


# --- The commands ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A broker that is right, one that forgets ACKs, and one that forgets forwards as well."""
    folder = tmp_path_factory.mktemp("runs")
    faults = {"right": [], "forgets": ["ack-missing=0.05"], "worse": ["ack-missing=0.05", "forward-missing=0.05"]}
    for name, some in faults.items():
        words = [word for fault in some for word in ("--fault", fault)]
        assert exit_code_of(["generate", "building", "--seed", "5", *words, "-o", str(folder / f"{name}.pcap")]) == 0
    return {name: folder / f"{name}.pcap" for name in faults}


def told(run: Run, *args: object) -> tuple[int, Any]:
    code, out, _ = run(*args, "--format", "json")
    return code, json.loads(out)


@pytest.fixture
def baseline(run: Run, runs: dict[str, Path], tmp_path: Path) -> Path:
    path = tmp_path / "old.json"
    path.write_text(run("check", runs["forgets"], "--format", "json")[1])
    return path


def test_a_baseline_fails_on_new_findings_only(run: Run, runs: dict[str, Path], baseline: Path) -> None:
    code, same = told(run, "check", runs["forgets"], "--baseline", baseline)
    assert (code, same["baseline"]["new"], same["baseline"]["gone"]) == (ExitCode.CLEAN, [], [])
    assert same["baseline"]["same"] == same["sessions"][0]["findings_total"] > 0
    code, right = told(run, "check", runs["right"], "--baseline", baseline)
    assert (code, right["baseline"]["new_total"]) == (ExitCode.CLEAN, 0)
    assert right["baseline"]["gone_total"] == same["baseline"]["same"]
    code, worse = told(run, "check", runs["worse"], "--baseline", baseline)
    assert code == ExitCode.FINDINGS
    assert "D-MISSING" in {finding["rule"] for finding in worse["baseline"]["new"]}


def test_its_text_lists_what_is_new_and_gone(run: Run, runs: dict[str, Path], baseline: Path) -> None:
    code, out, _ = run("check", runs["right"], "--baseline", baseline)
    gone = json.loads(baseline.read_text())["sessions"][0]["findings"]
    assert code == ExitCode.CLEAN
    assert out.endswith(f"\n0 new, {len(gone)} gone, 0 as in {baseline}\n")
    assert f"  gone\n    forgets.pcap frame {gone[0]['frame']}  A-MISSING" in out


def test_a_baseline_must_be_whole(run: Run, runs: dict[str, Path], tmp_path: Path) -> None:
    cut, other = tmp_path / "cut.json", tmp_path / "other.json"
    cut.write_text(run("check", runs["forgets"], "--format", "json", "--limit", 1)[1])
    other.write_text('{"sessions": [{"findings": []}]}')
    for path, code in ((cut, ExitCode.USAGE), (other, ExitCode.UNREADABLE), (tmp_path / "no", ExitCode.UNREADABLE)):
        assert run("check", runs["right"], "--baseline", path)[0] == code
    assert run("check", runs["right"], "--baseline", cut, "--format", "sarif")[0] == ExitCode.USAGE


def test_compare_names_the_difference(run: Run, runs: dict[str, Path]) -> None:
    code, out = told(run, "compare", runs["right"], runs["forgets"])
    (colon,) = out["dialects"]
    assert code == ExitCode.FINDINGS
    assert colon["verdict"] == {"a": "pass", "b": "fail"}
    assert {finding["rule"] for finding in colon["findings"]["new"]} == {"A-MISSING"}
    rule = next(rule for rule in colon["rules"] if rule["id"] == "A-MISSING")
    assert (rule["a"]["failed"], rule["b"]["failed"]) == (0, colon["findings"]["new_total"])
    publish = next(row for row in colon["timing"] if row["kind"] == "PUBLISH")
    assert publish["a"]["unacked"] == 0 < publish["b"]["unacked"]
    assert colon["fanout"]["a"]["publishes"] == colon["fanout"]["b"]["publishes"]
    code, back = told(run, "compare", runs["forgets"], runs["right"])
    assert (code, back["dialects"][0]["findings"]["new"]) == (ExitCode.CLEAN, [])
    assert back["dialects"][0]["findings"]["gone"] == colon["findings"]["new"]


def test_compare_as_text_and_page(run: Run, runs: dict[str, Path], tmp_path: Path) -> None:
    code, out, _ = run("compare", runs["right"], runs["forgets"], "--limit", 1)
    assert code == ExitCode.FINDINGS
    assert "A-MISSING  error" in out
    assert "more (--limit)" in out
    page = tmp_path / "compare.html"
    assert run("compare", runs["right"], runs["forgets"], "--format", "html", "-o", page)[0] == ExitCode.FINDINGS
    text = page.read_text()
    assert "new findings at error level" in text
    assert text.count("data:image/svg+xml") == 4
    assert "<script" not in text


def test_nothing_to_compare(run: Run, runs: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "empty.pcap").write_bytes(runs["right"].read_bytes()[:24])
    assert run("compare", runs["right"], tmp_path / "empty.pcap")[0] == ExitCode.UNREADABLE

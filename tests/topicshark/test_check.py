"""`check`, `timing` and `fanout` as they are called: exit codes, formats, and what they say of generated traffic."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from spark_analysis.checker.rulebook.catalogue import RULES
from tests.conftest import Command, Run
from topicshark.exit_codes import ExitCode
from topicshark.main import exit_code_of

EMPTY_PCAP = bytes.fromhex("d4c3b2a1 0200 0400 00000000 00000000 00000400 01000000")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Captures: `clean`, and `faulty` with requests that are never acknowledged; the truth about both."""
    folder = tmp_path_factory.mktemp("captures")
    found: dict[str, Any] = {}
    for name, faults in (("clean", []), ("faulty", ["--fault", "ack-missing=0.1"])):
        found[name], truth = folder / f"{name}.pcap", folder / f"{name}.json"
        where = ["-o", str(found[name]), "--truth", str(truth)]
        assert exit_code_of(["generate", "building", "--dialect", "colon", "--seed", "3", *faults, *where]) == 0
        found[f"{name} truth"] = json.loads(truth.read_text())
    return found


def test_clean_traffic_passes(run: Run, made: dict[str, Any]) -> None:
    code, out, err = run("check", made["clean"])
    assert (code, err) == (ExitCode.CLEAN, "")
    assert out.startswith("clean: ")
    assert "verdict: pass" in out
    assert "frame " not in out


def test_findings_are_the_faults_that_were_made(run: Run, made: dict[str, Any]) -> None:
    code, out, err = run("check", made["faulty"], "--format", "json")
    assert (code, err) == (ExitCode.FINDINGS, "")
    (session,) = json.loads(out)["sessions"]
    assert (session["dialect"], session["verdict"], session["captures"]) == ("colon", "fail", [str(made["faulty"])])
    faults = made["faulty truth"]["faults"]
    assert len(faults) > 3
    missing = [one for one in session["findings"] if one["rule"] == "A-MISSING"]
    found = {(one["frame"], *(other["frame"] for other in one["related"])) for one in missing}
    assert found == {tuple(fault["frames"]) for fault in faults}
    verdicts = {rule["id"]: rule["verdict"] for rule in session["rules"]}
    assert [rule for rule, verdict in verdicts.items() if verdict == "fail"] == ["A-MISSING"]


def test_text_leads_to_wireshark(run: Run, made: dict[str, Any]) -> None:
    code, out, _ = run("check", made["faulty"], "--limit", 2)
    assert code == ExitCode.FINDINGS
    assert sum(line.startswith("  frame ") for line in out.splitlines()) == 2
    faults = len(made["faulty truth"]["faults"])
    assert f"  … and {faults - 2} more of A-MISSING" in out
    assert "  Wireshark: frame.number in {" in out


@pytest.mark.parametrize("form", ["text", "json", "junit", "sarif"])
def test_a_result_goes_into_a_file_that_is_no_source(run: Run, made: dict[str, Any], tmp_path: Path, form: str) -> None:
    printed = run("check", made["faulty"], "--format", form)
    code, out, _ = run("check", made["faulty"], "--format", form, "-o", tmp_path / "told")
    assert (code, out) == (printed[0], "")
    assert (tmp_path / "told").read_text() == printed[1]
    before = made["faulty"].read_bytes()
    code, _, err = run("check", made["faulty"], "--format", form, "-o", made["faulty"])
    assert (code, made["faulty"].read_bytes()) == (ExitCode.USAGE, before)
    assert "is one of the sources" in err


def test_only_the_rules_that_are_asked_for(run: Run, made: dict[str, Any]) -> None:
    code, out, _ = run("check", made["faulty"], "--rule", "d-missing", "--format", "json")
    assert code == ExitCode.CLEAN
    assert [rule["id"] for rule in json.loads(out)["sessions"][0]["rules"]] == ["D-MISSING"]
    code, _, err = run("check", made["faulty"], "--rule", "D-MISING")
    assert code == ExitCode.USAGE
    assert "--list-rules" in err


def test_junit_and_sarif_can_be_parsed(run: Run, made: dict[str, Any]) -> None:
    code, out, _ = run("check", made["faulty"], "--format", "junit")
    assert code == ExitCode.FINDINGS
    suite = ElementTree.fromstring(out.encode()).find("testsuite")  # noqa: S314  (our own)
    assert suite is not None
    assert [case.get("name") for case in suite.findall("testcase") if case.find("failure") is not None] == ["A-MISSING"]
    code, out, _ = run("check", made["faulty"], "--format", "sarif")
    assert code == ExitCode.FINDINGS
    results = json.loads(out)["runs"][0]["results"]
    assert [one["ruleId"] for one in results] == ["A-MISSING"] * len(made["faulty truth"]["faults"])


def test_nothing_decoded_is_never_a_pass(run: Run, made: dict[str, Any], tmp_path: Path) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(EMPTY_PCAP)
    for args in ((empty,), (made["clean"], "--dialect", "mqttsn")):
        for command in ("check", "timing", "fanout"):
            code, _, err = run(command, *args)
            assert code == ExitCode.UNREADABLE, (command, args)
            assert "no datagram matches a selected dialect" in err


def test_what_is_no_capture_is_unreadable(run: Run, tmp_path: Path) -> None:
    (tmp_path / "text.pcap").write_text("no capture at all, just some text")
    code, _, err = run("check", tmp_path / "text.pcap")
    assert code == ExitCode.UNREADABLE
    assert "text.pcap" in err
    assert run("check", tmp_path / "absent.pcap")[0] == ExitCode.UNREADABLE


def test_damage_makes_the_result_partial_but_findings_go_first(run: Run, made: dict[str, Any], tmp_path: Path) -> None:
    for name, expected in (("clean", ExitCode.PARTIAL), ("faulty", ExitCode.FINDINGS)):
        cut = tmp_path / f"{name}.pcap"
        cut.write_bytes(made[name].read_bytes()[:-7])
        code, out, err = run("check", cut, "--format", "json")
        assert code == expected
        assert len(json.loads(out)["partial"]) == 1
        assert "damaged" in err


def test_one_of_several_that_cannot_be_read(run: Run, made: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "text.pcap").write_text("no capture at all, just some text")
    code, out, _ = run("check", made["clean"], tmp_path / "text.pcap", "--format", "json")
    whole = json.loads(out)
    assert code == ExitCode.PARTIAL
    assert len(whole["sessions"]) == 1
    assert "text.pcap" in whole["partial"][0]


def test_all_rules_are_listed_without_a_source(topicshark: Command) -> None:
    answer = topicshark("check", "--list-rules")
    assert answer.returncode == ExitCode.CLEAN
    assert [line.split()[0] for line in answer.stdout.splitlines()] == list(RULES)


def test_timing_counts_what_was_sent_and_acknowledged(run: Run, made: dict[str, Any]) -> None:
    code, out, _ = run("timing", made["faulty"], "--format", "json")
    assert code == ExitCode.CLEAN  # how long things take is no verdict
    (session,) = json.loads(out)["sessions"]
    truth = made["faulty truth"]["exchanges"]
    told = {(row["client"], row["kind"]): row for row in session["rows"]}
    requests = Counter((one["from"], one["message"]) for one in truth)
    acked = Counter((one["from"], one["message"]) for one in truth if one["ack_frame"] is not None)
    sends: Counter[tuple[str, str]] = Counter()
    for one in truth:
        sends[one["from"], one["message"]] += len(one["frames"])
    assert {key: row["requests"] for key, row in told.items()} == requests
    assert {key: row["acked"] for key, row in told.items() if row["acked"]} == acked
    assert {key: row["sends"] for key, row in told.items()} == sends
    assert all(sum(row["quality"].values()) == row["requests"] for row in told.values())
    assert "publish to forward: " in run("timing", made["faulty"])[1]


def test_fanout_counts_what_was_due_and_delivered(run: Run, made: dict[str, Any]) -> None:
    code, out, _ = run("fanout", made["clean"], "--format", "json")
    assert code == ExitCode.CLEAN
    (session,) = json.loads(out)["sessions"]
    truth = made["clean truth"]
    assert session["publishes"] == sum(one["message"] == "PUBLISH" for one in truth["exchanges"])
    assert session["expected"] == session["delivered"] == len(truth["deliveries"])
    assert (session["missing"], session["unexpected"], session["duplicate"]) == (0, 0, 0)
    assert session["amplification"] == round(len(truth["deliveries"]) / session["publishes"], 3)
    assert sum(row["publishes"] for row in session["topics"]) == session["publishes"]
    assert " forwards for each publish" in run("fanout", made["clean"])[1]


def test_stdin_is_spooled_and_removed(
    run: Run, made: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    expected = json.loads(run("check", made["faulty"], "--format", "json")[1])
    with made["faulty"].open("rb") as stream:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stream))
        code, out, err = run("check", "-", "--format", "json")
    assert (code, err) == (ExitCode.FINDINGS, "")
    (session,) = json.loads(out)["sessions"]
    assert session["captures"][0].endswith("/stdin.pcap")
    assert session["rules"] == expected["sessions"][0]["rules"]
    assert not list(tmp_path.glob("topicshark-*"))

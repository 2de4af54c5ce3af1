"""Reports of hand-made results: what people read, what programs parse, and that hostile text breaks neither."""

from __future__ import annotations

import json
import re
import unicodedata
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from spark_analysis.checker.rulebook.catalogue import RULES
from spark_analysis.reports import fanout, timing
from spark_analysis.reports.as_json import check_object
from spark_analysis.reports.faults import CLAUSES, fault
from spark_analysis.reports.junit import junit_text
from spark_analysis.reports.sarif import sarif_object
from spark_analysis.reports.text import check_lines
from spark_analysis.results.verdicts import Cause, Place, RuleVerdict, SessionResult
from spark_analysis.summaries.ack_timing import TimingSummary
from spark_analysis.summaries.fanout import FanoutSummary
from spark_analysis.tables.schemas import DELIVERIES, EXCHANGES
from tests.spark_analysis.reports.made_results import CAPTURE, HOSTILE, finding, hostile_result, result, session

# --- Text -----------------------------------------------------------------------------------------------------------


def test_text_says_what_was_judged_and_where_to_look() -> None:
    found = [finding(), finding("A-CLIENT-MISSING", 200, level="warning", related=(), topic=None)]
    found += [finding("D-MISSING", 77, verdict="inconclusive", related=(78,), reason="the network doubles datagrams")]
    lines = list(check_lines(result(session(*found)), most=1))
    assert lines == [
        "run: /captures/run 1.pcap",
        "  colon; broker 10.0.0.1:50000; 1,234 datagrams",
        "  why: 9 of 9 datagrams decode",
        "",
        "  A-MISSING: 3 of 120 requests were never acknowledged; of 1 more the capture cannot tell",
        "  frame 123  A-MISSING  PUBLISH home/x is never acknowledged [10.0.0.2:50000] (frames 130, 140)",
        "  … and 3 more of A-MISSING",
        '  Wireshark: frame.number in {123, 130, 140}    or: pubsub.topic == "home/x"',
        "",
        "  A-CLIENT-MISSING (warning): 2 of 10 messages were never acknowledged by the client",
        "  frame 200  A-CLIENT-MISSING (warning)  10.0.0.2:50000 does not acknowledge PUBLISH home/x",
        "  … and 1 more of A-CLIENT-MISSING",
        "  Wireshark: frame.number in {200}",
        "",
        "  D-MISSING: 2 of 50 expected copies never came, but the capture leaves another explanation open",
        "  frame 77  D-MISSING (cannot tell: the network doubles datagrams)  "
        '"home/x" is not passed on to 10.0.0.2:50000, which subscribed to "home/*" (frame 78)',
        "  … and 1 more of D-MISSING",
        '  Wireshark: frame.number in {77, 78}    or: pubsub.topic == "home/x"',
        "",
        "  verdict: fail (4 rules put to the test: 2 fail, 1 inconclusive, 1 pass; -v lists them)",
    ]


def test_each_rule_has_a_clause_for_its_fault() -> None:
    assert list(CLAUSES) == list(RULES)
    for rule in RULES:
        for failed, checked in ((1, 9), (3, 9), (1, 0)):
            said = fault(RuleVerdict(rule, "error", "fail", checked, failed, 0))
            assert said.startswith(f"{failed} ")
            assert "  " not in said
        assert fault(RuleVerdict(rule, "error", "inconclusive", 9, 0, 2)).startswith("2 ")


def test_text_names_what_limits_the_verdict_and_all_rules_if_asked() -> None:
    notes = ["The capture starts late.", "Datagrams were lost on the way."]
    lines = list(check_lines(result(session(facts={"notes": notes}, brokers=[])), verbose=True))
    assert lines[1:4] == [
        "  colon; no broker found; 1,234 datagrams",
        "  note: The capture starts late.",
        "  note: Datagrams were lost on the way.",
    ]
    assert any(re.match(r"  T-MISSING +error +not exercised", line) for line in lines)
    assert any(re.match(r"  X-LOOP +error +n/a", line) for line in lines)


def test_text_cuts_the_findings_of_each_rule_and_says_how_many_more() -> None:
    rules = [RuleVerdict("A-MISSING", "error", "fail", 900, 70, 5), RuleVerdict("R-EARLY", "error", "fail", 9, 1, 0)]
    found = [finding(frame=n, related=()) for n in range(1, 60)] + [finding("R-EARLY", 999, topic=None, related=())]
    lines = list(check_lines(result(session(*found, rules=rules)), most=3))
    assert [line.split()[1] for line in lines if line.startswith("  frame ")] == ["1", "2", "3", "999"]
    assert "  … and 72 more of A-MISSING" in lines
    assert "  Wireshark: frame.number in {999}    or: pubsub.resend_of" in lines


def test_text_of_several_captures_names_the_capture_of_each_finding() -> None:
    found = [finding(frame=1, related=()), finding(frame=2, related=(), capture="/b/other.pcap", topic=None)]
    lines = list(check_lines(result(session(*found, captures=[CAPTURE, "/b/other.pcap"]))))
    assert "  other.pcap frame 2  A-MISSING  PUBLISH home/x is never acknowledged [10.0.0.2:50000]" in lines
    assert "  Wireshark (other.pcap): frame.number in {2}" in lines


def test_frames_of_another_capture_are_named_with_it_and_stand_in_no_filter() -> None:
    found = finding(related=(130, Place("/b/other.pcap", 140)))
    whole = result(session(found, captures=[CAPTURE, "/b/other.pcap"]))
    lines = list(check_lines(whole))
    said = "PUBLISH home/x is never acknowledged [10.0.0.2:50000]"
    assert f"  run 1.pcap frame 123  A-MISSING  {said} (frame 130; other.pcap frame 140)" in lines
    assert any(line.startswith("  Wireshark (run 1.pcap): frame.number in {123, 130}") for line in lines)
    assert f"{CAPTURE} frames 123, 130; other.pcap frame 140: {said}" in junit_text(whole)
    places = sarif_object(whole)["runs"][0]["results"][0]["relatedLocations"]
    uris = [place["physicalLocation"]["artifactLocation"]["uri"] for place in places]
    assert uris == ["file:///captures/run%201.pcap", "file:///b/other.pcap"]


def test_a_capture_of_the_same_name_is_told_apart_by_its_folder() -> None:
    found = finding(capture="/a/run.pcap", related=(Place("/b/run.pcap", 7),))
    lines = list(check_lines(result(session(found, captures=["/a/run.pcap", "/b/run.pcap"]))))
    assert any(line.endswith("(b/run.pcap frame 7)") for line in lines)


def test_a_finding_names_the_one_that_it_follows_from() -> None:
    cause = {"cause": "000000000000007b", "follows_from": Cause("A-MISSING", CAPTURE, 123)}
    whole = result(session(finding("A-CLIENT-MISSING", 130, **cause)))
    told = "; follows from A-MISSING at frame 123"
    assert f"{told}\n" in "\n".join(check_lines(whole)).replace("\n  Wireshark", "\n")
    assert told in (parsed(junit_text(whole)).findtext(".//system-out") or "")
    (found,) = sarif_object(whole)["runs"][0]["results"]
    assert found["properties"]["cause"] == "000000000000007b"
    *related, place = found["relatedLocations"]
    assert [one["id"] for one in (*related, place)] == [1, 2, 3]
    assert place["message"]["text"] == "follows from A-MISSING at frame 123"
    assert place["logicalLocations"][0]["name"] == "frame 123"
    assert check_object(whole)["sessions"][0]["findings"][0]["cause"] == "000000000000007b"


def test_a_cause_in_another_capture_is_named_with_it() -> None:
    found = finding(follows_from=Cause("A-LATE", "/b/other.pcap", 7))
    lines = "\n".join(check_lines(result(session(found, captures=[CAPTURE, "/b/other.pcap"]))))
    assert "(frames 130, 140); follows from A-LATE at other.pcap frame 7\n" in lines


def test_hostile_text_cannot_reach_a_terminal() -> None:
    hostile = hostile_result()
    for lines in (check_lines(hostile), timing.lines(hostile), fanout.lines(hostile)):
        for line in lines:
            assert all(unicodedata.category(character)[0] != "C" for character in line), line


def test_what_a_decoder_has_escaped_is_not_escaped_again() -> None:
    text = "\n".join(check_lines(result(session(finding("D-MISSING", topic=r"a\x1bb")))))
    assert r'"a\x1bb" is not passed on' in text


# --- JSON -----------------------------------------------------------------------------------------------------------


def test_json_has_the_keys_that_are_promised() -> None:
    whole = json.loads(json.dumps(check_object(result(session(finding()), partial=["cut"], failed={"x.pcap": "no"}))))
    assert set(whole) == {"sessions", "partial"}
    assert whole["partial"] == ["cut", "x.pcap: no"]
    one = whole["sessions"][0]
    assert {name: one[name] for name in ("captures", "dialect", "broker", "datagrams", "verdict")} == {
        "captures": [CAPTURE],
        "dialect": "colon",
        "broker": "10.0.0.1:50000",
        "datagrams": 1_234,
        "verdict": "fail",
    }
    assert one["rules"][1] == {
        "id": "A-MISSING",
        "level": "error",
        "verdict": "fail",
        "checked": 120,
        "failed": 3,
        "inconclusive": 1,
    }
    assert one["findings"][0] == {
        "id": "000000000000007b",
        "rule": "A-MISSING",
        "level": "error",
        "verdict": "fail",
        "capture": CAPTURE,
        "frame": 123,
        "time_ns": 123_000,
        "related": [{"capture": CAPTURE, "frame": 130}, {"capture": CAPTURE, "frame": 140}],
        "client": "10.0.0.2:50000",
        "topic": "home/x",
        "detail": {
            "message": "PUBLISH home/x",
            "count": 1,
            "filter": "home/*",
            "after_ns": 2_000_000,
            "limit_ns": 5_000_000_000,
        },
        "reason": None,
        "cause": None,
        "text": "PUBLISH home/x is never acknowledged",
    }


def test_json_holds_so_many_findings_over_all_sessions() -> None:
    many = [finding(frame=n) for n in range(7)]
    whole = check_object(result(session(*many), session(*many)), most=10)
    assert [(len(one["findings"]), one["findings_total"]) for one in whole["sessions"]] == [(7, 7), (3, 7)]


def test_json_of_hostile_text_is_printable() -> None:
    hostile = hostile_result()
    for whole in (check_object(hostile), sarif_object(hostile), timing.as_object(hostile), fanout.as_object(hostile)):
        text = json.dumps(whole, ensure_ascii=False)
        assert text.isprintable()
        assert json.loads(text.encode()) == whole


# --- JUnit ----------------------------------------------------------------------------------------------------------


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text.encode())  # noqa: S314  (our own)


def test_junit_has_a_case_for_each_rule() -> None:
    found = [finding(), finding("A-CLIENT-MISSING", 9, level="warning")]
    root = parsed(junit_text(result(session(*found))))
    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert list(cases) == ["W-EMPTY", "A-MISSING", "A-CLIENT-MISSING", "D-MISSING", "T-MISSING", "X-LOOP"]
    assert len(cases["W-EMPTY"]) == 0
    failure = cases["A-MISSING"].find("failure")
    assert failure is not None
    assert failure.get("message") == f"{RULES['A-MISSING'].sentence} Broken 3 of 120 times."
    assert failure.text == (
        "fail error: /captures/run 1.pcap frames 123, 130, 140: PUBLISH home/x is never acknowledged [10.0.0.2:50000]"
    )
    assert cases["A-CLIENT-MISSING"].find("failure") is None
    assert "warning" in (cases["A-CLIENT-MISSING"].findtext("system-out") or "")
    skipped = {name: case.find("skipped") for name, case in cases.items()}
    assert {name: one.get("message") for name, one in skipped.items() if one is not None} == {
        "D-MISSING": "inconclusive",
        "T-MISSING": "not exercised",
        "X-LOOP": "n/a",
    }
    suite = root.find("testsuite")
    assert suite is not None
    counts = [suite.get(name) for name in ("name", "tests", "failures", "errors", "skipped")]
    assert counts == ["run", "6", "1", "0", "3"]
    assert [root.get(name) for name in ("tests", "failures", "errors")] == ["6", "1", "0"]


def test_junit_tells_of_captures_that_could_not_be_read() -> None:
    root = parsed(junit_text(result(session(), failed={"x.pcap": "no capture"})))
    error = root.find("testsuite[@name='input']/testcase/error")
    assert error is not None
    assert error.get("message") == "x.pcap: no capture"
    assert root.get("errors") == "1"


def test_junit_of_hostile_text_says_what_was_there() -> None:
    root = parsed(junit_text(hostile_result()))
    told = root.find(".//failure")
    assert told is not None
    assert told.text is not None
    assert r"a\x1b[31m\x00\x0a]]><x" in told.text
    assert r"&amp;\xe2\x80\xae" in told.text


# --- SARIF ----------------------------------------------------------------------------------------------------------


def test_sarif_has_the_shape_that_the_standard_demands() -> None:
    found = [finding(), finding("D-MISSING", 77, verdict="inconclusive", related=(), reason="it starts late")]
    whole = sarif_object(result(session(*found), partial=["cut short"]))
    assert whole["version"] == "2.1.0"
    (run,) = whole["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    assert all(rule["shortDescription"]["text"] and rule["help"]["text"] for rule in rules)
    assert {rule["defaultConfiguration"]["level"] for rule in rules} <= {"error", "warning", "note"}
    missing, unsure = run["results"]
    assert rules[missing["ruleIndex"]]["id"] == missing["ruleId"] == "A-MISSING"
    assert (missing["kind"], missing["level"]) == ("fail", "error")
    assert (unsure["kind"], unsure["level"]) == ("open", "none")  # section 3.27.9: no level unless it failed
    assert (missing["partialFingerprints"], unsure["properties"]["reason"]) == (
        {"topicsharkFinding/v1": "000000000000007b"},
        "it starts late",
    )
    assert missing["message"]["text"] == "Frame 123: PUBLISH home/x is never acknowledged"
    assert missing["locations"] == [
        {
            "physicalLocation": {"artifactLocation": {"uri": "file:///captures/run%201.pcap"}},
            "logicalLocations": [{"name": "frame 123", "kind": "frame"}],
        }
    ]
    assert [place["logicalLocations"][0]["name"] for place in missing["relatedLocations"]] == ["frame 130", "frame 140"]
    assert [place["id"] for place in missing["relatedLocations"]] == [1, 2]
    assert run["artifacts"] == [{"location": {"uri": "file:///captures/run%201.pcap"}}]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is True
    assert invocation["toolExecutionNotifications"] == [{"level": "warning", "message": {"text": "cut short"}}]


@pytest.mark.parametrize("capture", [f"/{HOSTILE}.pcap", "s3://bucket/a b.pcap", "rel ative.pcap"])
def test_sarif_names_captures_by_uris(capture: str) -> None:
    uri = sarif_object(result(session(captures=[capture])))["runs"][0]["artifacts"][0]["location"]["uri"]
    assert re.fullmatch(r"[A-Za-z0-9/:?&=%+@~!$'()*,;\[\]#._-]+", uri)


# --- Timing and fan-out ---------------------------------------------------------------------------------------------


def timed_session() -> SessionResult:
    request = dict.fromkeys(EXCHANGES.names) | {"client": "10.0.0.2:50000", "message": "PUBLISH", "asks": "client"}
    request |= {
        "time_ns": 1,
        "sends": 1,
        "ack": {"capture": "c", "frame": 2},
        "rtt_ns": 2_000_000,
        "quality": "exact",
        "owed": True,
    }
    other = request | {"client": "10.0.0.3:50000", "quality": "queued", "rtt_ns": None}
    publish, forward = ({"capture": "c", "frame": frame} for frame in (1, 2))
    copy = dict.fromkeys(DELIVERIES.names) | {"publish": publish, "topic": "home/x", "filter": "home/*"}
    copy |= {"subscriber": "10.0.0.9:50000", "forward": forward, "latency_ns": 500_000, "retained": False}
    copy |= {"outcome": "delivered"}
    copies = pa.Table.from_pylist([copy, copy | {"filter": "*"}], DELIVERIES)
    summaries = {
        "timing": TimingSummary.of(pa.Table.from_pylist([request, request, other], EXCHANGES), copies),
        "fanout": FanoutSummary.of(copies, 2),
    }
    return session(**summaries)


def test_timing_for_people_and_programs() -> None:
    whole = result(timed_session())
    lines = list(timing.lines(whole, most=1))
    assert (
        "  asks    kind     requests  acked  unacked  resent  sends    min    p50    p90    p99    max  unsure" in lines
    )
    assert (
        "  client  PUBLISH         3      3        0       0      3  2.000  2.000  2.000  2.000  2.000       1" in lines
    )
    assert "  … and 1 more (--limit)" in lines
    assert "  publish to forward: 2 forwards, ms: min 0.500, p50 0.500, p90 0.500, p99 0.500, max 0.500" in lines
    one = json.loads(json.dumps(timing.as_object(whole)))["sessions"][0]
    assert (one["dialect"], one["rows_total"], one["forward"]["forwards"]) == ("colon", 2, 2)
    row = one["rows"][0]
    assert (row["client"], row["kind"], row["requests"]) == ("10.0.0.2:50000", "PUBLISH", 2)
    assert set(row["rtt_ms"]) == {"min", "p50", "p90", "p99", "max"}
    assert set(row["quality"]) == {"exact", "anchored", "resent", "queued", "none"}


def test_timing_without_acks_says_so() -> None:
    assert "  nothing was due an acknowledgement" in list(timing.lines(result(session())))


def test_fanout_for_people_and_programs() -> None:
    whole = result(timed_session())
    lines = list(fanout.lines(whole))
    assert "  2 publishes, 2 expected, 2 delivered, 0 missing, 0 unexpected" in lines
    assert "  1.00 forwards for each publish" in lines
    assert "  home/x          1         2          2        0           0            1" in lines
    assert "  filter  and     messages" in lines
    assert "  *       home/*         1" in lines
    one = json.loads(json.dumps(fanout.as_object(whole)))["sessions"][0]
    assert (one["publishes"], one["expected"], one["delivered"], one["amplification"]) == (2, 2, 2, 1.0)
    assert [row["filter"] for row in one["filters"]] == ["*", "home/*"]
    assert one["overlap"] == [{"filters": ["*", "home/*"], "count": 1}]

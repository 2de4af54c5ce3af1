"""Readings and instructions: rows written by hand, and captures whose truth the generators tell."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from io import BytesIO
from typing import Any

import pyarrow as pa
import pytest

from generators.capture_point import write
from generators.generate import Made, Order, generate
from pcap_tools import load_dialect
from pcap_tools.columnar.decoder import Decoder
from pcap_tools.columnar.reading import read_file
from pcap_tools.columnar.schema import MESSAGES
from spark_analysis.brokers import choose_brokers, evidence
from spark_analysis.context import Context, Point
from spark_analysis.control import bindings_of, control_rows, subscriptions_of
from spark_analysis.events import COLUMNS, Col, events_of, with_parties
from spark_analysis.findings import FAIL, INCONCLUSIVE, Findings
from spark_analysis.loop_rules import loop_findings
from spark_analysis.policy import Policy

LOOP, WRONG = "X-LOOP", "X-WRONG-INSTRUCTION"
READ = [name for name in COLUMNS if name in MESSAGES.names]
MILLISECOND, SECOND = 1_000_000, 1_000_000_000
BROKER, DASHBOARD, SENSOR = ("10.0.0.1", 50001), ("10.0.0.2", 50002), ("10.0.0.3", 50003)
ROOM, ORDERS = "temperature/room1", "temperature/room1Instructions"


def judged(batches: Sequence[pa.RecordBatch]) -> Findings:
    """What the two rules find in a capture of rolebyte."""
    policy = Policy(load_dialect("rolebyte"))
    events = events_of(batches, policy, ["run.pcap"])
    brokers = choose_brokers([evidence(events)])
    events = with_parties(events, brokers.endpoints, brokers.hosts)
    control = control_rows(events)
    begin, end = (int(events[Col.TIME][at]) for at in (0, -1))
    known = subscriptions_of(control, policy), bindings_of(control, policy)
    context = Context(policy, brokers, Point.BROKER, begin, end, (begin, end + 1), *known)
    findings = Findings(events, context, "run")
    loop_findings(events, context, findings)
    return findings


def told(findings: Findings, verdict: str = FAIL) -> list[tuple[str, int, list[int]]]:
    """Rule, frame and related frames of each finding, by frame."""
    rows = findings.table().to_pylist()
    found = [(row["rule"], row["frame"], row["related"]) for row in rows if row["verdict"] == verdict]
    return sorted(found, key=lambda one: one[1])


# -- by hand ----------------------------------------------------------------------------------------------------------


class Talk:
    """A capture written line by line; a line's number is its frame's."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.time_ns = 1_700_000_000 * SECOND
        self.say(SENSOR, BROKER, "SENSOR_PUBLISH", "elsewhere", "1")

    def say(
        self,
        src: tuple[str, int],
        dst: tuple[str, int],
        message: str,
        topic: str | None = None,
        payload: str | None = None,
        after_ms: int = 1,
    ) -> int:
        self.time_ns += after_ms * MILLISECOND
        row = dict.fromkeys(READ) | {"capture": "run.pcap", "frame": len(self.rows) + 1, "time_ns": self.time_ns}
        row |= {"src": src[0], "sport": src[1], "dst": dst[0], "dport": dst[1], "dialect": "rolebyte"}
        self.rows.append(row | {"form": "default", "message": message, "topic": topic, "payload": payload})
        return len(self.rows)

    def reading(self, value: str, after_ms: int = 1500, topic: str = ROOM, is_acked: bool = True) -> int:
        frame = self.say(BROKER, DASHBOARD, "BROKER", topic, value, after_ms)
        if is_acked:
            self.say(DASHBOARD, BROKER, "ACK")
        return frame

    def instruction(self, word: str, topic: str = ORDERS, after_ms: int = 1) -> int:
        frame = self.say(DASHBOARD, BROKER, "DASHBOARD_PUBLISH", topic, word, after_ms)
        self.say(BROKER, DASHBOARD, "ACK")
        return frame

    def findings(self, quiet_ms: int = 5000) -> Findings:
        """After some time in which nothing is said of the loop."""
        self.say(SENSOR, BROKER, "SENSOR_PUBLISH", "elsewhere", "2", after_ms=quiet_ms)
        schema = pa.schema([MESSAGES.field(name) for name in READ])
        return judged([pa.RecordBatch.from_pylist(self.rows, schema)])


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ("31", "lower_temperature"),
        ("30", "good_job"),
        ("25", "good_job"),
        ("24", "raise_temperature"),
        ("-3", "raise_temperature"),
    ],
)
def test_the_right_word_is_right_and_any_other_wrong(value: str, word: str) -> None:
    for said in ("lower_temperature", "good_job", "raise_temperature", "anything"):
        talk = Talk()
        reading = talk.reading(value)
        instruction = talk.instruction(said)
        findings = talk.findings()
        assert told(findings) == ([] if said == word else [(WRONG, instruction, [reading])])
        assert findings.checked == {LOOP: 1, WRONG: 1}


def test_a_reading_without_an_instruction_is_found() -> None:
    talk = Talk()
    talk.reading("20")
    talk.instruction("raise_temperature")
    silent = talk.reading("40")
    talk.reading("40")
    talk.instruction("lower_temperature")
    findings = talk.findings()
    assert told(findings) == [(LOOP, silent, [])]
    assert findings.checked == {LOOP: 3, WRONG: 2}


def test_the_instruction_must_be_the_rooms() -> None:
    talk = Talk()
    first = talk.reading("20", topic="temperature/room2")
    talk.reading("20", after_ms=3)
    talk.instruction("raise_temperature")
    assert told(talk.findings()) == [(LOOP, first, [])]


def test_rooms_whose_readings_cross_are_told_apart() -> None:
    talk = Talk()
    talk.reading("20")
    talk.reading("40", after_ms=3, topic="temperature/room2")
    talk.instruction("raise_temperature")
    talk.instruction("lower_temperature", topic="temperature/room2Instructions")
    findings = talk.findings()
    assert told(findings) == []
    assert findings.checked == {LOOP: 2, WRONG: 2}


def test_a_dashboard_that_only_watches_owes_nothing() -> None:
    talk = Talk()
    talk.reading("40")
    talk.reading("40")
    findings = talk.findings()
    assert told(findings) == []
    assert not findings.checked[LOOP]


@pytest.mark.parametrize("payload", ["Instructions_completed_as_per_request", "20.5", "", "cold", "٢٠"])
def test_what_is_no_whole_number_is_no_reading(payload: str) -> None:
    talk = Talk()
    talk.reading("20")
    talk.instruction("raise_temperature")
    talk.reading(payload)
    findings = talk.findings()
    assert told(findings) == []
    assert findings.checked[LOOP] == 1


def test_near_the_end_of_the_capture_the_answer_may_still_come() -> None:
    for quiet_ms, expected in ((900, 0), (1100, 1)):
        talk = Talk()
        talk.reading("20")
        talk.instruction("raise_temperature")
        talk.reading("20")
        findings = talk.findings(quiet_ms)
        assert len(told(findings)) == expected
        assert told(findings, INCONCLUSIVE) == []
        assert findings.checked[LOOP] == 1 + expected


def test_a_reading_that_the_network_repeats_is_one_reading() -> None:
    talk = Talk()
    talk.reading("40")
    talk.reading("40", after_ms=3)
    talk.instruction("lower_temperature")
    findings = talk.findings()
    assert told(findings) == told(findings, INCONCLUSIVE) == []


def test_after_a_loss_nobody_knows() -> None:
    """One forward that a client did not acknowledge: instructions may be lost as well."""
    talk = Talk()
    talk.reading("20")
    talk.instruction("raise_temperature")
    silent = talk.reading("40", is_acked=False)
    talk.reading("40")
    talk.instruction("lower_temperature")
    findings = talk.findings()
    assert told(findings) == []
    assert told(findings, INCONCLUSIVE) == [(LOOP, silent, [])]


def test_a_dashboard_that_has_gone_is_not_blamed() -> None:
    talk = Talk()
    talk.reading("20")
    talk.instruction("raise_temperature")
    lost = [talk.reading("40", is_acked=False), talk.reading("35", is_acked=False)]
    findings = talk.findings()
    assert told(findings) == []
    assert told(findings, INCONCLUSIVE) == [(LOOP, frame, []) for frame in lost]


def test_an_answer_that_had_to_wait_is_no_wrong_one() -> None:
    talk = Talk()
    talk.reading("20")
    talk.reading("40")
    talk.instruction("raise_temperature")
    talk.instruction("lower_temperature")
    assert told(talk.findings()) == []


def test_an_answer_one_reading_late_is_no_wrong_one() -> None:
    talk = Talk()
    talk.reading("20")
    last = talk.reading("40")
    talk.instruction("raise_temperature")
    findings = talk.findings()
    assert told(findings) == []
    assert told(findings, INCONCLUSIVE) == [(LOOP, last, [])]


# -- generated --------------------------------------------------------------------------------------------------------


@cache
def made(seed: int = 1, faults: tuple[tuple[str, float], ...] = (), scenario: str = "building", at: str = "") -> Made:
    capture = {"point": "any"} if at == "any" else {}
    client = at if at not in ("", "any") else None
    sizes = {"rounds": 20, "sensors": 4, "dashboards": 4}
    return generate(
        Order(scenario, seed, ("rolebyte",), faults=dict(faults), capture=capture, client=client, **sizes)  # type: ignore[arg-type]
    )


def checked(one: Made) -> Findings:
    file = BytesIO()
    write(one.capture, file)
    file.seek(0)
    decoder = Decoder([load_dialect("rolebyte")], None, READ, capture="run.pcap")
    return judged([decoder.decode(batch) for batch in read_file(file)])


@pytest.mark.parametrize("at", ["", "any", "dashboard1"])
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("fault", "rule"), [("loop-broken", LOOP), ("loop-wrong", WRONG)])
def test_what_is_found_is_what_was_done(fault: str, rule: str, seed: int, at: str) -> None:
    one = made(seed, ((fault, 0.3),), at=at)
    labels = [label for label in one.truth()["faults"] if label["frames"]]
    end = one.truth()["capture"]["frames"]
    findings = checked(one)
    assert labels
    assert [(name, frame) for name, frame, _ in told(findings)] == [
        (rule, frame) for frame in sorted(max(label["frames"]) for label in labels) if frame < end
    ]
    assert told(findings, INCONCLUSIVE) == []


@pytest.mark.parametrize("at", ["", "any", "dashboard1"])
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_found_where_nothing_is_wrong(seed: int, at: str) -> None:
    findings = checked(made(seed, at=at))
    assert findings.checked[LOOP] >= 19
    assert findings.checked[WRONG] >= 19
    assert not findings.rows


@pytest.mark.parametrize("at", ["", "any", "dashboard1"])
@pytest.mark.parametrize(
    "condition",
    ["network-loss", "network-duplicate", "network-reorder", "network-cut", "broker-restart", "capture-drop"],
)
def test_networks_and_captures_are_never_blamed_on_a_dashboard(condition: str, at: str) -> None:
    for seed in (1, 2, 3):
        assert told(checked(made(seed, ((condition, 0.1),), at=at))) == []


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_lossy_building_fails_nothing(seed: int) -> None:
    assert told(checked(made(seed, scenario="lossy"))) == []


@pytest.mark.parametrize("condition", ["capture-late", "capture-early-end"])
def test_part_of_a_run_has_nothing_wrong_in_it(condition: str) -> None:
    for seed in (1, 2):
        findings = checked(made(seed, ((condition, 0.4),)))
        assert findings.checked[LOOP]
        assert not findings.rows

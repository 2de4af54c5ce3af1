"""Readings and instructions: rows written by hand, and captures whose truth the generators tell."""

from __future__ import annotations

from functools import cache
from io import BytesIO

import pytest

from generators.capture.capture_point import write
from generators.capture.options import Point as Place
from generators.generate import GeneratedRun, GeneratorOptions, generate
from pcap_tools import load_dialect
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.read.reading import read_file
from spark_analysis.checker.findings.findings import INCONCLUSIVE
from tests.spark_analysis.checker.loop_talk import BROKER, DASHBOARD, READ, SECOND, Found, Talk, judged, told

LOOP, WRONG = "X-LOOP", "X-WRONG-INSTRUCTION"

# -- by hand ----------------------------------------------------------------------------------------------------------


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
        assert len(told(findings, INCONCLUSIVE)) == 1 - expected


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


def test_answers_to_several_readings_may_come_at_once() -> None:
    talk = Talk()
    talk.reading("22")
    talk.reading("26", after_ms=3)
    talk.reading("15")
    for word in ("raise_temperature", "good_job", "raise_temperature"):
        talk.instruction(word)
    findings = talk.findings()
    assert told(findings) == told(findings, INCONCLUSIVE) == []


def test_an_instruction_sent_again_for_want_of_an_ack_is_no_wrong_one() -> None:
    for is_acked in (True, False):
        talk = Talk()
        talk.reading("20")
        talk.instruction("raise_temperature", is_acked=is_acked)
        reading = talk.reading("40")
        again = talk.instruction("raise_temperature")
        findings = talk.findings()
        assert told(findings) == ([(WRONG, again, [reading])] if is_acked else [])
        assert told(findings, INCONCLUSIVE) == ([] if is_acked else [(LOOP, reading, [])])


def test_an_instruction_that_the_capture_missed_shows_in_its_ack() -> None:
    talk = Talk()
    talk.reading("20")
    talk.instruction("raise_temperature")
    silent = talk.reading("40")
    talk.say(BROKER, DASHBOARD, "ACK")
    findings = talk.findings()
    assert told(findings) == []
    assert told(findings, INCONCLUSIVE) == [(LOOP, silent, [])]


# -- generated --------------------------------------------------------------------------------------------------------


PLACES = ["broker", "any", "dashboard1"]


@cache
def made(
    seed: int = 1, faults: tuple[tuple[str, float], ...] = (), scenario: str = "building", at: str = "any"
) -> GeneratedRun:
    client = at if at not in list(Place) else None
    capture = {"point": Place.CLIENT if client else Place(at)}
    return generate(
        GeneratorOptions(
            scenario,
            seed,
            ("rolebyte",),
            faults=dict(faults),
            capture=capture,
            client=client,
            rounds=12,
            sensors=3,
            dashboards=3,
        )
    )


def checked(one: GeneratedRun) -> Found:
    file = BytesIO()
    write(one.capture, file)
    file.seek(0)
    decoder = Decoder([load_dialect("rolebyte")], None, READ, capture="run.pcap")
    return judged([decoder.decode(batch) for batch in read_file(file)])


@pytest.mark.parametrize("at", PLACES)
@pytest.mark.parametrize("seed", [1, 2, 5])
@pytest.mark.parametrize(("fault", "rule"), [("loop-broken", LOOP), ("loop-wrong", WRONG)])
def test_what_is_found_is_what_was_done(fault: str, rule: str, seed: int, at: str) -> None:
    """What was done in the last second of the capture cannot be told for sure."""
    one = made(seed, ((fault, 0.3),), at=at)
    labelled = sorted(max(label["frames"]) for label in one.truth()["faults"] if label["frames"])
    findings = checked(one)
    failed, unsure = told(findings), told(findings, INCONCLUSIVE)
    assert len(failed) >= 3
    assert [(name, frame) for name, frame, _ in [*failed, *unsure]] == [(rule, frame) for frame in labelled]
    end = findings.facts.end
    times = {row["frame"]: row["time_ns"] for row in findings.rows}
    assert all(times[frame] > end - SECOND for _, frame, _ in unsure)


@pytest.mark.parametrize("at", PLACES)
def test_nothing_is_found_where_nothing_is_wrong(at: str) -> None:
    findings = checked(made(at=at))
    assert findings.checked[LOOP] == findings.checked[WRONG] == (12 if at == "dashboard1" else 36)
    assert not findings.rows


@pytest.mark.parametrize("at", PLACES)
@pytest.mark.parametrize(
    "condition",
    ["network-loss", "network-duplicate", "network-reorder", "network-cut", "broker-restart", "capture-drop"],
)
def test_networks_and_captures_are_never_blamed_on_a_dashboard(condition: str, at: str) -> None:
    assert told(checked(made(3, ((condition, 0.1),), at=at))) == []


@pytest.mark.parametrize("seed", [1, 2])
def test_a_lossy_building_fails_nothing(seed: int) -> None:
    assert told(checked(made(seed, scenario="lossy", at="broker"))) == []


@pytest.mark.parametrize("condition", ["capture-late", "capture-early-end"])
def test_part_of_a_run_has_nothing_wrong_in_it(condition: str) -> None:
    findings = checked(made(1, ((condition, 0.4),)))
    assert findings.checked[LOOP]
    assert told(findings) == []

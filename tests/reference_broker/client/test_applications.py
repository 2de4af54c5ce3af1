"""What the nodes of the reports decide."""

import pytest

from pcap_tools import load_dialect
from reference_broker.client.applications import Actuator, Dashboard, Publish, Window, loop_of, reading

ROOM = b"temperature/room1"
LOOP = loop_of(load_dialect("rolebyte"))


@pytest.mark.parametrize(
    ("value", "instruction"),
    [
        (b"31", b"lower_temperature"),
        (b"30", b"good_job"),
        (b"25", b"good_job"),
        (b"24", b"raise_temperature"),
        (b"-5", b"raise_temperature"),
    ],
)
def test_a_dashboard_answers_a_reading_with_an_instruction(value: bytes, instruction: bytes) -> None:
    assert Dashboard(LOOP, ROOM).on_message(ROOM, value).publish == Publish(ROOM + b"Instructions", instruction)


@pytest.mark.parametrize("value", [b"Instructions_completed_as_per_request", b"", b"hot", b"1" * 5000, b"\xff", b"--1"])
def test_a_dashboard_does_not_answer_what_is_no_reading(value: bytes) -> None:
    assert Dashboard(LOOP, ROOM).on_message(ROOM, value).publish is None


@pytest.mark.parametrize("instruction", [b"lower_temperature", b"raise_temperature", b"good_job"])
def test_an_actuator_says_that_it_is_done(instruction: bytes) -> None:
    actuator = Actuator(LOOP, ROOM)
    assert actuator.filter == b"temperature/room1Instructions"
    done = actuator.on_message(actuator.filter, instruction).publish
    assert done == Publish(b"temperature/room1Instructions", b"Instructions_completed_as_per_request")


def test_an_actuator_does_nothing_it_does_not_know() -> None:
    assert Actuator(LOOP, ROOM).on_message(b"temperature/room1Instructions", b"explode").publish is None


def test_a_window_opens_above_50_and_closes_below() -> None:
    window = Window()
    states = []
    for value in (10, 50, 51, 90, 50, 49, 10):
        window.on_message(b"temperature", reading(load_dialect("topicbyte"), b"temperature", value))
        states.append(window.is_open)
    assert states == [False, False, True, True, True, False, False]
    assert window.on_message(b"temperature", b"Temperature:").says == "not a reading"

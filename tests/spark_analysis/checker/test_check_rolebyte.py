"""Talks of `rolebyte`: every hop is acknowledged by its receiver, and a forward is another message than the publish."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark_analysis.checker.checked import Talk, judged

Frames = dict[str, list[int]]

ROLEBYTE = """
    1    0  anna > broker   DASHBOARD_SUBSCRIBE filter=temperature/room1
    2    1  broker > anna   ACK code=10
    3  100  bert > broker   SENSOR_PUBLISH topic=temperature/room1 value=27
    4  101  broker > bert   ACK code=10
    5  102  broker > anna   BROKER topic=temperature/room1 value=27
    6  103  anna > broker   ACK code=10
"""
ROLEBYTE_CASES: dict[str, tuple[str, Frames]] = {
    "the actuator's reply comes under the room's topic": (
        """
    7  200  carla > broker  ACTUATOR_PUBLISH topic=temperature/room1Instructions value=done
    8  201  broker > carla  ACK code=10
    9  202  broker > anna   BROKER topic=temperature/room1 value=done
    10 203  anna > broker   ACK code=10
""",
        {},
    ),
    "the dashboard does not acknowledge": (
        """
    7  200  bert > broker   SENSOR_PUBLISH topic=temperature/room1 value=28
    8  201  broker > bert   ACK code=10
    9  202  broker > anna   BROKER topic=temperature/room1 value=28
""",
        {"A-CLIENT-MISSING": [9]},
    ),
    "a forward that is none": (
        """
    7  200  bert > broker   SENSOR_PUBLISH topic=temperature/room1 value=28
    8  201  broker > bert   ACK code=10
    9  202  broker > anna   SENSOR_PUBLISH topic=temperature/room1 value=28
    10 203  anna > broker   ACK code=10
""",
        {"D-MISSING": [7], "P-SPEAKER": [9]},
    ),
    "a length that does not fit": ("7 200 bert > broker hex:0320612062", {"W-BAD-LENGTH": [7]}),
}


@pytest.mark.parametrize("case", ROLEBYTE_CASES)
def test_rolebyte(case: str, tmp_path: Path) -> None:
    lines, expected = ROLEBYTE_CASES[case]
    count = 6 + lines.count(">")
    end = f"""
    {count + 1}  5000  dora > broker  SENSOR_PUBLISH topic=elsewhere value=1
    {count + 2}  5001  broker > dora  ACK code=10
"""
    said = judged(tmp_path, ROLEBYTE + lines + end, Talk("rolebyte"))
    assert (said.failed, said.doubted) == (expected, {})
    assert said.session.verdict == ("pass" if {*expected} <= {"A-CLIENT-MISSING"} else "fail")


def test_rolebyte_acks_stand_before_their_forwards(tmp_path: Path) -> None:
    """Three readings at once; the ACK of the second is lost, and the forward behind each tells whose ACK it is."""
    lines = """
    7  200  bert > broker   SENSOR_PUBLISH topic=temperature/room1 value=1
    8  201  bert > broker   SENSOR_PUBLISH topic=temperature/room1 value=2
    9  202  bert > broker   SENSOR_PUBLISH topic=temperature/room1 value=3
    10 203  broker > bert   ACK code=10
    11 204  broker > anna   BROKER topic=temperature/room1 value=1
    12 205  broker > anna   BROKER topic=temperature/room1 value=2
    13 206  broker > bert   ACK code=10
    14 207  broker > anna   BROKER topic=temperature/room1 value=3
    15 208  anna > broker   ACK code=10
    16 209  anna > broker   ACK code=10
    17 210  anna > broker   ACK code=10
    18 5000 dora > broker   SENSOR_PUBLISH topic=elsewhere value=1
    19 5001 broker > dora   ACK code=10
"""
    said = judged(tmp_path, ROLEBYTE + lines, Talk("rolebyte"))
    assert (said.failed, said.doubted) == ({"A-MISSING": [8]}, {})

"""Retained messages of `colon`: a later subscriber gets the last one of each topic, before its SUBACK."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark_analysis.checker.checked import Judged, judged

# Bert leaves a message about the fan and then a newer one, and one about the light.
OPENING = """
    1   0  bert > broker  PUBLISH topic=home/fan payload=1 retain=1
    2   1  broker > bert  PUBACK
    3  10  bert > broker  PUBLISH topic=home/fan payload=2 retain=1
    4  11  broker > bert  PUBACK
    5  20  bert > broker  PUBLISH topic=home/light payload=ON retain=1
    6  21  broker > bert  PUBACK
"""
NEW_FAN, LIGHT = "PUBLISH topic=home/fan payload=2 retain=1", "PUBLISH topic=home/light payload=ON retain=1"


def said_of(folder: Path, lines: str) -> Judged:
    count = 6 + lines.count(">")
    end = f"""
    {count + 1}  9000  dora > broker  PUBLISH topic=elsewhere payload=1
    {count + 2}  9001  broker > dora  PUBACK
"""
    return judged(folder, OPENING + lines + end)


CASES: dict[str, tuple[str, dict[str, list[int]]]] = {
    "the last one, then the ACK": (
        f"""
    7  1000  anna > broker  SUBSCRIBE filter=home/fan
    8  1001  broker > anna  {NEW_FAN}
    9  1002  broker > anna  SUBACK
""",
        {},
    ),
    "one of each topic that the filter takes": (
        f"""
    7  1000  anna > broker  SUBSCRIBE filter=home/*
    8  1001  broker > anna  {NEW_FAN}
    9  1001  broker > anna  {LIGHT}
    10 1002  broker > anna  SUBACK
""",
        {},
    ),
    "none": (
        """
    7  1000  anna > broker  SUBSCRIBE filter=home/fan
    8  1001  broker > anna  SUBACK
""",
        {"T-MISSING": [7]},
    ),
    "one of two": (
        f"""
    7  1000  anna > broker  SUBSCRIBE filter=home/*
    8  1001  broker > anna  {LIGHT}
    9  1002  broker > anna  SUBACK
""",
        {"T-MISSING": [7]},
    ),
    "an older one": (
        """
    7  1000  anna > broker  SUBSCRIBE filter=home/fan
    8  1001  broker > anna  PUBLISH topic=home/fan payload=1 retain=1
    9  1002  broker > anna  SUBACK
""",
        {"T-STALE": [8]},
    ),
    "behind the ACK": (
        f"""
    7  1000  anna > broker  SUBSCRIBE filter=home/fan
    8  1001  broker > anna  SUBACK
    9  1002  broker > anna  {NEW_FAN}
""",
        {"T-ORDER": [7]},
    ),
    "none any more since a plain publish": (
        """
    7   500  bert > broker  PUBLISH topic=home/fan payload=3 retain=0
    8   501  broker > bert  PUBACK
    9  1000  anna > broker  SUBSCRIBE filter=home/fan
    10 1001  broker > anna  SUBACK
""",
        {"T-CLEARED": [9]},
    ),
    "a plain publish leaves it alone": (
        f"""
    7   500  bert > broker  PUBLISH topic=home/fan payload=3 retain=0
    8   501  broker > bert  PUBACK
    9  1000  anna > broker  SUBSCRIBE filter=home/fan
    10 1001  broker > anna  {NEW_FAN}
    11 1002  broker > anna  SUBACK
""",
        {},
    ),
    "a plain publish in its place": (
        """
    7   500  bert > broker  PUBLISH topic=home/fan payload=3 retain=0
    8   501  broker > bert  PUBACK
    9  1000  anna > broker  SUBSCRIBE filter=home/fan
    10 1001  broker > anna  PUBLISH topic=home/fan payload=3 retain=0
    11 1002  broker > anna  SUBACK
""",
        {"T-STALE": [10]},
    ),
    "none of a topic that the filter does not take": (
        """
    7  1000  anna > broker  SUBSCRIBE filter=home
    8  1001  broker > anna  SUBACK
""",
        {},
    ),
    "one that was not asked for": (
        f"""
    7  1000  anna > broker  SUBSCRIBE filter=home/light
    8  1001  broker > anna  {LIGHT}
    9  1001  broker > anna  {NEW_FAN}
    10 1002  broker > anna  SUBACK
""",
        {"D-UNEXPECTED": [9]},
    ),
    "to one who subscribes again": (
        f"""
    7  1000  anna > broker  SUBSCRIBE filter=home/light
    8  1001  broker > anna  {LIGHT}
    9  1002  broker > anna  SUBACK
    10 3000  anna > broker  SUBSCRIBE filter=home/light
    11 3001  broker > anna  {LIGHT}
    12 3002  broker > anna  SUBACK
""",
        {},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_found_and_nothing_else(case: str, tmp_path: Path) -> None:
    lines, expected = CASES[case]
    said = said_of(tmp_path, lines)
    assert (said.failed, said.doubted) == (expected, {})
    wanted = "T-MISSING"
    assert said.verdicts[wanted] == ("fail" if wanted in expected else "pass" if "home/" in lines else "not exercised")


def test_findings_lead_to_what_was_retained(tmp_path: Path) -> None:
    missing = said_of(tmp_path, CASES["none"][0]).finding("T-MISSING")
    assert (missing.frames[1:], missing.topic, missing.client) == ((3,), "home/fan", "10.0.0.2:50000")
    assert said_of(tmp_path, CASES["an older one"][0]).finding("T-STALE").frames[1:] == (7, 3)
    assert said_of(tmp_path, CASES["none any more since a plain publish"][0]).finding("T-CLEARED").frames[1:] == (3, 7)
    assert said_of(tmp_path, CASES["behind the ACK"][0]).finding("T-ORDER").frames[1:] == (8, 9)


def test_padding_is_not_part_of_a_retained_message(tmp_path: Path) -> None:
    """The running system sends retained copies with its whole buffer; here 700 bytes of it."""
    padded = (b"\x01\x01home/light:ON" + bytes(700)).hex()
    lines = f"""
    7  1000  anna > broker  SUBSCRIBE filter=home/light
    8  1001  broker > anna  hex:{padded}
    9  1002  broker > anna  SUBACK
"""
    said = said_of(tmp_path, lines)
    assert (said.failed, said.doubted, said.verdicts["T-MISSING"]) == ({}, {}, "pass")


def test_a_second_copy_of_a_retained_message_is_a_duplicate(tmp_path: Path) -> None:
    lines = f"""
    7  1000  anna > broker  SUBSCRIBE filter=home/light
    8  1001  broker > anna  {LIGHT}
    9  1001  broker > anna  {LIGHT}
    10 1002  broker > anna  SUBACK
"""
    assert said_of(tmp_path, lines).failed == {"D-DUPLICATE": [9]}


def test_an_ack_of_a_subscription_is_one_occasion_of_one_rule(tmp_path: Path) -> None:
    """One retained message beside the SUBACK, and one forward beside a PUBACK."""
    said = judged(
        tmp_path,
        """
    1     0  bert > broker  PUBLISH retain=1 topic=home/fan payload=ON
    2     1  broker > bert  PUBACK
    3   100  anna > broker  SUBSCRIBE filter=home/fan
    4   101  broker > anna  PUBLISH retain=1 topic=home/fan payload=ON
    5   102  broker > anna  SUBACK
    6  1000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  1001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8  1002  broker > bert  PUBACK
""",
    )
    assert (said.failed, said.rule("T-ORDER").checked, said.rule("A-ORDER").checked) == ({}, 1, 1)

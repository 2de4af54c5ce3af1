"""Forwards that are missing, too many, altered or for somebody else, and the readings of filters that explain them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark_analysis.checker.checked import Judged, judged

# Anna has subscribed twice over, Carla once; Bert publishes. Of `home/fan` Anna gets two copies, one for each filter.
OPENING = """
    1   0  anna > broker   SUBSCRIBE filter=home/*
    2   1  broker > anna   SUBACK
    3  10  anna > broker   SUBSCRIBE filter=home/fan
    4  11  broker > anna   SUBACK
    5  20  carla > broker  SUBSCRIBE filter=*/light
    6  21  broker > carla  SUBACK
"""
FAN, LIGHT = "PUBLISH topic=home/fan payload=ON", "PUBLISH topic=home/light payload=7"


def said_of(folder: Path, lines: str) -> Judged:
    """With an end so late that all that is due has come."""
    count = 6 + lines.count(">")
    end = f"""
    {count + 1}  9000  dora > broker  PUBLISH topic=elsewhere payload=1
    {count + 2}  9001  broker > dora  PUBACK
"""
    return judged(folder, OPENING + lines + end)


# What is said, and the frames of what is wrong with it, by rule.
CASES: dict[str, tuple[str, dict[str, list[int]]]] = {
    "as many copies as filters": (
        f"""
    7  100  bert > broker  {FAN}
    8  101  broker > anna  {FAN}
    9  101  broker > anna  {FAN}
    10 102  broker > bert  PUBACK
""",
        {},
    ),
    "no copy at all": (
        f"""
    7  100  bert > broker  {LIGHT}
    8  101  broker > anna  {LIGHT}
    9  102  broker > bert  PUBACK
""",
        {"D-MISSING": [7]},
    ),
    "one copy for two filters": (
        f"""
    7  100  bert > broker  {FAN}
    8  101  broker > anna  {FAN}
    9  102  broker > bert  PUBACK
""",
        {"D-MISSING": [7]},
    ),
    "three copies for two filters": (
        f"""
    7  100  bert > broker  {FAN}
    8  101  broker > anna  {FAN}
    9  101  broker > anna  {FAN}
    10 101  broker > anna  {FAN}
    11 102  broker > bert  PUBACK
""",
        {"D-DUPLICATE": [10]},
    ),
    "a copy for somebody who did not ask": (
        f"""
    7  100  bert > broker   {FAN}
    8  101  broker > anna   {FAN}
    9  101  broker > anna   {FAN}
    10 101  broker > carla  {FAN}
    11 102  broker > bert   PUBACK
""",
        {"D-UNEXPECTED": [10]},
    ),
    "a copy for the publisher": (
        f"""
    7  100  bert > broker   {LIGHT}
    8  101  broker > anna   {LIGHT}
    9  101  broker > carla  {LIGHT}
    10 101  broker > bert   {LIGHT}
    11 102  broker > bert   PUBACK
""",
        {"D-UNEXPECTED": [10]},
    ),
    "somebody else gets it in place of a subscriber": (
        f"""
    7  100  bert > broker  {LIGHT}
    8  101  broker > anna  {LIGHT}
    9  101  broker > dora  {LIGHT}
    10 102  broker > bert  PUBACK
""",
        {"D-MISDIRECTED": [9]},
    ),
    "another payload than was published": (
        f"""
    7  100  bert > broker   {LIGHT}
    8  101  broker > anna   {LIGHT}
    9  101  broker > carla  PUBLISH topic=home/light payload=77
    10 102  broker > bert   PUBACK
""",
        {"D-ALTERED": [9]},
    ),
    "a message that nobody published": (
        """
    7  100  broker > carla  PUBLISH topic=garage/light payload=1
""",
        {"D-UNEXPECTED": [7]},
    ),
    "seconds late": (
        f"""
    7   100  bert > broker   {LIGHT}
    8   101  broker > anna   {LIGHT}
    9   102  broker > bert   PUBACK
    10 4200  broker > carla  {LIGHT}
""",
        {"D-LATE": [10]},
    ),
    "the newer message first": (
        """
    7  100  bert > broker   PUBLISH topic=a/light payload=1
    8  110  bert > broker   PUBLISH topic=a/light payload=2
    9  111  broker > carla  PUBLISH topic=a/light payload=2
    10 112  broker > bert   PUBACK
    11 113  broker > carla  PUBLISH topic=a/light payload=1
    12 114  broker > bert   PUBACK
""",
        {"D-REORDERED": [11]},
    ),
    "to a client whose subscription has ended": (
        """
    7  100  carla > broker  UNSUBSCRIBE filter=*/light
    8  101  broker > carla  UNSUBACK
    9  200  bert > broker   PUBLISH topic=a/light payload=1
    10 201  broker > carla  PUBLISH topic=a/light payload=1
    11 202  broker > bert   PUBACK
""",
        {"D-AFTER-UNSUBSCRIBE": [10]},
    ),
    "one filter of two has ended": (
        f"""
    7  100  anna > broker  UNSUBSCRIBE filter=home/fan
    8  101  broker > anna  UNSUBACK
    9  200  bert > broker  {FAN}
    10 201  broker > anna  {FAN}
    11 202  broker > bert  PUBACK
""",
        {},
    ),
    "subscribing again adds no copy": (
        """
    7  100  carla > broker  SUBSCRIBE filter=*/light
    8  101  broker > carla  SUBACK
    9  200  bert > broker   PUBLISH topic=a/light payload=1
    10 201  broker > carla  PUBLISH topic=a/light payload=1
    11 201  broker > carla  PUBLISH topic=a/light payload=1
    12 202  broker > bert   PUBACK
""",
        {"D-DUPLICATE": [11]},
    ),
    "while a subscription is being asked for either is right": (
        """
    7  100  carla > broker  SUBSCRIBE filter=b
    8  101  bert > broker   PUBLISH topic=b payload=1
    9  102  broker > bert   PUBACK
    10 103  broker > carla  SUBACK
    11 104  dora > broker   SUBSCRIBE filter=c
    12 105  bert > broker   PUBLISH topic=c payload=1
    13 106  broker > dora   PUBLISH topic=c payload=1
    14 107  broker > bert   PUBACK
    15 108  broker > dora   SUBACK
""",
        {},
    ),
    "the same value twice is two messages": (
        """
    7  100  bert > broker   PUBLISH topic=a/light payload=1
    8  101  broker > carla  PUBLISH topic=a/light payload=1
    9  102  broker > bert   PUBACK
    10 900  bert > broker   PUBLISH topic=a/light payload=1
    11 901  broker > bert   PUBACK
""",
        {"D-MISSING": [10]},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_found_and_nothing_else(case: str, tmp_path: Path) -> None:
    lines, expected = CASES[case]
    said = said_of(tmp_path, lines)
    assert (said.failed, said.doubted) == (expected, {})


def test_a_missing_forward_leads_to_the_subscription(tmp_path: Path) -> None:
    missing = said_of(tmp_path, CASES["no copy at all"][0]).finding("D-MISSING")
    assert (missing.frames[1:], missing.client, missing.topic) == ((5,), "10.0.0.4:50000", "home/light")


def test_an_altered_forward_is_that_of_the_last_publish(tmp_path: Path) -> None:
    """Of several messages under one topic that all lack their forward, the broker has just got the last one."""
    for count in range(2, 7):
        lines = ""
        for number in range(count - 1):
            frame, time = 7 + 2 * number, 100 + 10 * number
            lines += f"{frame} {time} bert > broker PUBLISH topic=a/light payload={number}\n"
            lines += f"{frame + 1} {time + 1} broker > bert PUBACK\n"
        last = 7 + 2 * (count - 1)
        lines += f"""
    {last}  200  bert > broker   PUBLISH topic=a/light payload={count}
    {last + 1}  201  broker > carla  PUBLISH topic=a/light payload=x
    {last + 2}  202  broker > bert   PUBACK
"""
        said = said_of(tmp_path, lines)
        assert said.failed == {"D-MISSING": list(range(7, last, 2)), "D-ALTERED": [last + 1]}
        assert said.finding("D-ALTERED").frames[1:] == (last,)


# A filter of Carla's, a topic, whether the broker passes it on, the rule, and what explains it.
READINGS = [
    ("home/*", "home/room/fan", False, "D-MISSING", "a wildcard stops at the end of a level"),
    ("home/*", "home", True, "D-UNEXPECTED", "a wildcard also matches the parent level"),
    ("Home/Fan", "home/fan", True, "D-UNEXPECTED", "large and small letters are taken for the same"),
    ("a.b", "axb", True, "D-UNEXPECTED", "a dot stands for any character, as in a regular expression"),
    ("room(1)", "room(1)", False, "D-MISSING", "the filter is taken for a regular expression"),
    ("*/temp", "home/temp", False, "D-MISSING", "only the exact topic is taken"),
]


@pytest.mark.parametrize(("text", "topic", "passed_on", "rule", "reading"), READINGS)
def test_a_wrong_reading_of_a_filter_is_named(
    text: str, topic: str, passed_on: bool, rule: str, reading: str, tmp_path: Path
) -> None:
    forward = f"4 101 broker > carla PUBLISH topic={topic} payload=1" if passed_on else ""
    number = 5 if passed_on else 4
    lines = f"""
    1    0  carla > broker  SUBSCRIBE "filter={text}"
    2    1  broker > carla  SUBACK
    3  100  bert > broker   PUBLISH "topic={topic}" payload=1
    {forward}
    {number}  102  broker > bert  PUBACK
    {number + 1}  900  bert > broker  PUBLISH topic=elsewhere payload=1
    {number + 2}  901  broker > bert  PUBACK
"""
    said = judged(tmp_path, lines)
    assert (said.failed, said.doubted) == ({rule: [4 if passed_on else 3]}, {})
    assert reading in said.finding(rule).text
    assert f'"{text}"' in said.finding(rule).text

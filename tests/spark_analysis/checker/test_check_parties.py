"""Who speaks to whom, what single datagrams show by themselves, and which end is taken for the broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark_analysis.checker.checked import Judged, Talk, judged

OPENING = """
    1     0  anna > broker  SUBSCRIBE filter=home/*
    2     1  broker > anna  SUBACK
    3  1000  bert > broker  PUBLISH topic=home/fan payload=ON
    4  1001  broker > anna  PUBLISH topic=home/fan payload=ON
    5  1002  broker > bert  PUBACK
"""


def said_of(folder: Path, lines: str) -> Judged:
    count = 5 + lines.count(">")
    end = f"""
    {count + 1}  20000  dora > broker  PUBLISH topic=elsewhere payload=1
    {count + 2}  20001  broker > dora  PUBACK
"""
    return judged(folder, OPENING + lines + end)


CASES: dict[str, tuple[str, dict[str, list[int]]]] = {
    "a client acknowledges": ("6 1100 anna > broker PUBACK", {"P-SPEAKER": [6]}),
    "the broker subscribes": ("6 1100 broker > anna SUBSCRIBE filter=x", {"P-SPEAKER": [6]}),
    "from one client to another": (
        "6 1100 bert > anna PUBLISH topic=home/fan payload=ON",
        {"P-CLIENT-TO-CLIENT": [6]},
    ),
    "a type that is not known": ("6 1100 bert > broker hex:0900", {"W-UNKNOWN-TYPE": [6]}),
    "no colon": ("6 1100 bert > broker hex:010061", {"W-NO-DELIMITER": [6]}),
    "only a type": ("6 1100 bert > broker hex:01", {"W-INCOMPLETE": [6]}),
    "a retain flag of 2": ("6 1100 bert > broker hex:0102613a62", {"W-BAD-VALUE": [6]}),
    "a topic that is no text": ("6 1100 bert > broker hex:0100ff3a62", {"W-BAD-TEXT": [6]}),
    "a wildcard is published and ignored": (
        "6 1100 bert > broker PUBLISH topic=home/* payload=1",
        {"W-WILDCARD-TOPIC": [6]},
    ),
    "a wildcard is published, passed on and acknowledged": (
        """
    6  1100  bert > broker  PUBLISH topic=home/* payload=1
    7  1101  broker > anna  PUBLISH topic=home/* payload=1
    8  1102  broker > bert  PUBACK
""",
        {"W-WILDCARD-TOPIC": [6]},
    ),
    "an ACK that is padded": (
        """
    6  1100  bert > broker  PUBLISH topic=away payload=1
    7  1101  broker > bert  hex:0200000000
""",
        {},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_found_and_nothing_else(case: str, tmp_path: Path) -> None:
    lines, expected = CASES[case]
    said = said_of(tmp_path, lines)
    assert (said.failed, said.doubted) == (expected, {})
    assert said.session.brokers == ["10.0.0.1:50000"]
    assert said.session.verdict == ("pass" if not expected or "P-CLIENT-TO-CLIENT" in expected else "fail")


def test_an_ack_with_a_body_is_an_error_of_the_wire_at_its_second_byte(tmp_path: Path) -> None:
    lines = """
    6  1100  bert > broker  PUBLISH topic=away payload=1
    7  1101  broker > bert  hex:02ff
"""
    said = said_of(tmp_path, lines)
    assert said.failed["W-TRAILING-BYTES"] == [7]
    assert "PUBACK" in said.finding("W-TRAILING-BYTES").text
    assert "(at byte 1)" in said.finding("W-TRAILING-BYTES").text


# Both ends have the same port, and a publish may come from either: nothing tells who is the broker.
UNTOLD = """
    1     0  anna > broker  PUBLISH topic=a payload=1 retain=1
    2  5000  anna > broker  PUBLISH topic=a payload=1 retain=1
    3  5100  bert > broker  PUBLISH topic=b payload=1 retain=1
    4 10000  anna > broker  PUBLISH topic=a payload=1 retain=1
    5 20000  bert > broker  PUBLISH topic=c payload=1 retain=1
"""


def test_the_broker_can_be_named(tmp_path: Path) -> None:
    assert judged(tmp_path, UNTOLD).session.brokers == []
    said = judged(tmp_path, UNTOLD, brokers=["10.0.0.1:50000"])
    assert said.session.brokers == ["10.0.0.1:50000"]
    assert said.doubted["A-MISSING"] == [1, 3, 5]  # it is never heard


def test_the_broker_can_be_named_without_its_port(tmp_path: Path) -> None:
    said = judged(tmp_path, OPENING, brokers=["10.0.0.1"])
    assert (said.failed, said.session.brokers) == ({}, ["10.0.0.1:50000"])


def test_the_broker_can_be_named_without_its_port_where_nothing_tells(tmp_path: Path) -> None:
    said = judged(tmp_path, UNTOLD, brokers=["10.0.0.1"])
    assert said.session.brokers == ["10.0.0.1:50000"]


def test_a_name_goes_over_what_the_traffic_says(tmp_path: Path) -> None:
    said = judged(tmp_path, OPENING, brokers=["10.0.0.9:50000"])
    assert said.session.brokers == ["10.0.0.9:50000"]
    assert said.failed == {"P-CLIENT-TO-CLIENT": [1, 2, 3, 4, 5], "P-SPEAKER": [2, 5]}


def test_two_brokers_are_kept_apart(tmp_path: Path) -> None:
    """Carla is a broker, too: what is subscribed at one is not due from the other."""
    lines = """
    6  1100  dora > carla  SUBSCRIBE filter=home/*
    7  1101  carla > dora  SUBACK
    8  1200  bert > carla  PUBLISH topic=home/fan payload=2
    9  1201  carla > dora  PUBLISH topic=home/fan payload=2
    10 1202  carla > bert  PUBACK
"""
    said = said_of(tmp_path, lines)
    assert (said.failed, said.doubted) == ({}, {})
    assert sorted(said.session.brokers) == ["10.0.0.1:50000", "10.0.0.4:50000"]


def test_who_subscribes_at_a_port_that_is_not_the_dialects_makes_a_broker_of_it(tmp_path: Path) -> None:
    lines = OPENING.replace("broker", "broker:7777")
    said = judged(tmp_path, lines, Talk())
    assert (said.failed, said.doubted, said.session.brokers) == ({}, {}, ["10.0.0.1:7777"])


def test_a_client_that_acknowledges_another_speaks_as_the_broker(tmp_path: Path) -> None:
    """Bert would take it for the broker's: colon tells ACKs apart by nothing but their order."""
    lines = """
    6  1100  carla > broker  SUBSCRIBE filter=x
    7  1101  broker > carla  SUBACK
    8  1200  carla > bert    PUBACK
"""
    said = said_of(tmp_path, lines)
    assert said.failed["P-SPEAKER"] == [8]
    assert said.session.verdict == "fail"


def test_a_capture_of_nothing_but_publishes_can_be_judged(tmp_path: Path) -> None:
    """Nobody subscribes, and the broker is down."""
    said = judged(tmp_path, UNTOLD.replace("retain=1", "retain=0"), brokers=["10.0.0.1:50000"])
    assert said.doubted["A-MISSING"] == [1, 3, 5]  # it is never heard

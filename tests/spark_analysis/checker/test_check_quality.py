"""What a capture cannot tell is `inconclusive`: it ends too soon, starts late, shows one client, or is all copies."""

from __future__ import annotations

from pathlib import Path

from tests.spark_analysis.checker.checked import CheckResult, Talk, check, judged

OPENING = """
    1     0  anna > broker  SUBSCRIBE filter=home/*
    2     1  broker > anna  SUBACK
    3  1000  bert > broker  PUBLISH topic=home/fan payload=ON
    4  1001  broker > anna  PUBLISH topic=home/fan payload=ON
    5  1002  broker > bert  PUBACK
"""


def test_what_may_still_come_when_the_capture_ends_is_not_missing(tmp_path: Path) -> None:
    """Frame 6 has no ACK within 4.9 s; a client would send it again after 5 s."""
    lines = """
    6  1100  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  1101  broker > anna  PUBLISH topic=home/fan payload=OFF
    8  6000  dora > broker  PUBLISH topic=elsewhere payload=1
    9  6001  broker > dora  PUBACK
"""
    said = judged(tmp_path, OPENING + lines)
    assert said.failed == {}
    assert said.doubted == {"A-MISSING": [6], "R-MISSING": [6]}
    assert said.session.verdict == said.verdicts["A-MISSING"] == "inconclusive"
    said = judged(tmp_path, OPENING + lines.replace("600", "700"))
    assert said.failed == {"A-MISSING": [6]}  # 5.9 s: due by now; whether it is sent again is not yet certain
    assert said.doubted == {"R-MISSING": [6]}


def test_a_forward_may_still_come_when_the_capture_ends(tmp_path: Path) -> None:
    lines = """
    6  1100  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  1101  broker > bert  PUBACK
"""
    said = judged(tmp_path, OPENING + lines)
    assert (said.failed, said.doubted) == ({}, {"D-MISSING": [6]})


def test_a_broker_that_says_nothing_at_all_may_be_away(tmp_path: Path) -> None:
    """Nobody is answered between 1 s and 20 s: that may be a restart, and it forgets who subscribed."""
    lines = """
    6   5000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  20000  dora > broker  PUBLISH topic=elsewhere payload=1
    8  20001  broker > dora  PUBACK
"""
    said = judged(tmp_path, OPENING + lines)
    assert said.failed == {}
    assert {*said.doubted} >= {"A-MISSING", "D-MISSING"}


# The capture begins when all have long subscribed.
LATE = """
    1     0  bert > broker   PUBLISH topic=home/fan payload=ON
    2     1  broker > anna   PUBLISH topic=home/fan payload=ON
    3     1  broker > carla  PUBLISH topic=home/fan payload=ON
    4     2  broker > bert   PUBACK
    5  1000  bert > broker   PUBLISH topic=home/fan payload=OFF
    6  1001  broker > anna   PUBLISH topic=home/fan payload=OFF
    7  1001  broker > carla  PUBLISH topic=home/fan payload=OFF
    8  1002  broker > bert   PUBACK
    9  9000  dora > broker   PUBLISH topic=elsewhere payload=1
    10 9001  broker > dora   PUBACK
"""


def test_forwards_for_subscriptions_before_the_capture_are_open(tmp_path: Path) -> None:
    said = judged(tmp_path, LATE)
    assert said.session.facts["starts_late"] is True
    assert (said.failed, said.doubted) == ({}, {"D-UNEXPECTED": [2, 3, 6, 7]})
    assert said.session.verdict == "inconclusive"


def test_an_ack_at_the_very_beginning_may_answer_what_came_before(tmp_path: Path) -> None:
    lines = """
    1     0  broker > bert  PUBACK
    2   100  anna > broker  SUBSCRIBE filter=home/*
    3   101  broker > anna  SUBACK
    4  9000  bert > broker  PUBLISH topic=elsewhere payload=1
    5  9001  broker > bert  PUBACK
"""
    said = judged(tmp_path, lines)
    assert (said.failed, said.doubted) == ({}, {"A-UNSOLICITED": [1]})


ONE_CLIENT = """
    1      0  bert > broker  PUBLISH topic=a payload=1
    2      1  broker > bert  PUBACK
    3   1000  bert > broker  PUBLISH topic=a payload=2
    4  20000  bert > broker  PUBLISH topic=a payload=3
    5  20001  broker > bert  PUBACK
"""


def test_at_one_client_a_request_may_be_lost_on_its_way(tmp_path: Path) -> None:
    said = judged(tmp_path, ONE_CLIENT)
    assert said.session.facts["point"] == "client"
    assert said.failed == {}
    assert said.doubted == {"A-MISSING": [3], "R-MISSING": [3]}


def test_at_a_subscriber_publishes_are_not_seen(tmp_path: Path) -> None:
    """What Anna gets was published by somebody whom the capture does not show."""
    lines = """
    1     0  anna > broker  SUBSCRIBE filter=home/*
    2     1  broker > anna  SUBACK
    3  1000  broker > anna  PUBLISH topic=home/fan payload=ON
    4  9000  anna > broker  UNSUBSCRIBE filter=home/*
    5  9001  broker > anna  UNSUBACK
"""
    said = judged(tmp_path, lines)
    assert (said.failed, said.session.facts["point"]) == ({}, "client")
    assert "D-MISSING" not in said.doubted


def test_frames_that_the_capture_doubles_are_no_resends_and_no_second_copies(tmp_path: Path) -> None:
    end = """
    6  9000  dora > broker  PUBLISH topic=elsewhere payload=1
    7  9001  broker > dora  PUBACK
"""
    said = judged(tmp_path, OPENING + end, Talk(copies=True))
    assert (said.failed, said.doubted, said.session.verdict) == ({}, {}, "pass")
    assert (said.session.datagrams, said.session.facts["point"]) == (7, "bridge")


def test_on_doubled_frames_findings_name_the_first_of_both(tmp_path: Path) -> None:
    """Line 6 is frame 11, and frame 12 its copy; three sends without an ACK are enough anywhere."""
    lines = """
    6   1100  bert > broker  PUBLISH topic=home/fan payload=OFF
    7   1101  broker > anna  PUBLISH topic=home/fan payload=OFF
    8   6100  bert > broker  PUBLISH topic=home/fan payload=OFF
    9   6101  broker > anna  PUBLISH topic=home/fan payload=OFF
    10 11100  bert > broker  PUBLISH topic=home/fan payload=OFF
    11 11101  broker > anna  PUBLISH topic=home/fan payload=OFF
    12 30000  dora > broker  PUBLISH topic=elsewhere payload=1
    13 30001  broker > dora  PUBACK
"""
    said = judged(tmp_path, OPENING + lines, Talk(copies=True))
    assert (said.failed, said.doubted) == ({"A-MISSING": [11]}, {})
    assert said.finding("A-MISSING").frames[1:] == (15, 19)


def test_without_a_datagram_of_a_dialect_there_is_no_session(tmp_path: Path) -> None:
    lines = "\n".join(f"{at} {at} anna:9 > broker:53 hex:ffffffffffff{at:02x}" for at in range(1, 9))
    path = Talk().write(tmp_path / "other.pcap", lines)
    assert check([str(path)], engine="local") == CheckResult()


# Publishes between ends with the same port: nothing tells who is the broker.
UNTOLD = """
    1  0  anna > broker  PUBLISH topic=a payload=1 retain=1
    2  9  anna > broker  PUBLISH topic=b payload=1 retain=1
"""


def test_a_session_without_a_known_broker_says_how_to_name_it(tmp_path: Path) -> None:
    said = judged(tmp_path, UNTOLD)
    notes = said.session.facts["notes"]
    assert isinstance(notes, list)
    assert any("--broker" in note for note in notes)


def test_a_session_without_a_known_broker_is_no_pass(tmp_path: Path) -> None:
    assert judged(tmp_path, UNTOLD).session.verdict == "inconclusive"

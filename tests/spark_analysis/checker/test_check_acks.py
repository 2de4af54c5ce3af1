"""ACKs and resends of `colon`, which has no ids: what is missing, late, twice, astray or out of order, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark_analysis.checker.checked import Judged, Talk, judged

# Anna subscribes, Bert publishes, all is well; then it is the turn of the test.
OPENING = """
    1     0  anna > broker  SUBSCRIBE filter=home/*
    2     1  broker > anna  SUBACK
    3  1000  bert > broker  PUBLISH topic=home/fan payload=ON
    4  1001  broker > anna  PUBLISH topic=home/fan payload=ON
    5  1002  broker > bert  PUBACK
"""


def later(*numbers: int, at: int = 20_000) -> str:
    """Somebody else is answered so much later: the broker is there, and nobody waits any more."""
    ask, answer = numbers
    return f"""
    {ask}  {at}  dora > broker  PUBLISH topic=elsewhere payload=1
    {answer}  {at + 1}  broker > dora  PUBACK
"""


def said_of(folder: Path, lines: str, end: str, talk: Talk | None = None) -> Judged:
    return judged(folder, OPENING + lines + end, talk)


def test_a_clean_talk_passes(tmp_path: Path) -> None:
    lines = """
    6  2000  anna > broker  UNSUBSCRIBE filter=home/*
    7  2001  broker > anna  UNSUBACK
    8  3000  bert > broker  PUBLISH topic=home/fan payload=OFF
    9  3001  broker > bert  PUBACK
"""
    said = said_of(tmp_path, lines, later(10, 11))
    assert (said.session.verdict, said.failed, said.doubted) == ("pass", {}, {})
    assert said.session.brokers == ["10.0.0.1:50000"]
    wanted = ("W-UNKNOWN-TYPE", "P-SPEAKER", "A-MISSING", "A-ORDER", "A-DUPLICATE", "D-MISSING", "D-UNEXPECTED")
    assert [said.verdicts[rule] for rule in wanted] == ["pass"] * len(wanted)
    assert (said.rule("A-MISSING").checked, said.rule("D-MISSING").checked) == (5, 1)
    assert [said.verdicts[rule] for rule in ("T-MISSING", "R-EARLY")] == ["not exercised"] * 2
    assert [said.verdicts[rule] for rule in ("X-LOOP", "N-ZERO", "A-STATUS-MISSING")] == ["n/a"] * 3


# What is said, and the frames of what is wrong with it, by rule. Line 6 is always the request in question.
CASES: dict[str, tuple[str, dict[str, list[int]]]] = {
    "no ACK, and it is not sent again": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
""",
        {"A-MISSING": [6], "R-MISSING": [6]},
    ),
    "no ACK for a subscription": (
        """
    6  1100  carla > broker  SUBSCRIBE filter=home/fan
    7  1200  bert > broker  PUBLISH topic=away payload=1
    8  1201  broker > bert  PUBACK
""",
        {"A-MISSING": [6], "R-MISSING": [6]},
    ),
    "no ACK, though it is sent three times": (
        """
    6   2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7   2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8   7000  bert > broker  PUBLISH topic=home/fan payload=OFF
    9   7001  broker > anna  PUBLISH topic=home/fan payload=OFF
    10 12000  bert > broker  PUBLISH topic=home/fan payload=OFF
    11 12001  broker > anna  PUBLISH topic=home/fan payload=OFF
""",
        {"A-MISSING": [6]},
    ),
    "the ACK comes after the resend time, and nothing is sent again": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8  8000  broker > bert  PUBACK
""",
        {"A-LATE": [8]},
    ),
    "the ACK comes after the resend": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8  7000  bert > broker  PUBLISH topic=home/fan payload=OFF
    9  7001  broker > anna  PUBLISH topic=home/fan payload=OFF
    10 8000  broker > bert  PUBACK
""",
        {"A-LATE": [10]},
    ),
    "two ACKs": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8  2002  broker > bert  PUBACK
    9  2003  broker > bert  PUBACK
""",
        {"A-DUPLICATE": [9]},
    ),
    "the ACK goes to another client": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8  2002  broker > carla  PUBACK
""",
        {"A-MISDIRECTED": [8]},
    ),
    "an ACK for nobody": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8  2002  broker > bert  PUBACK
    9  4000  broker > carla  PUBACK
""",
        {"A-UNSOLICITED": [9]},
    ),
    "an ACK of another kind": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8  2002  broker > bert  SUBACK
""",
        {"A-MISSING": [6], "R-MISSING": [6], "A-UNSOLICITED": [8]},
    ),
    "the ACK before the forward": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > bert  PUBACK
    8  2002  broker > anna  PUBLISH topic=home/fan payload=OFF
""",
        {"A-ORDER": [7]},
    ),
    "the ACK between two forwards": (
        """
    6  1100  carla > broker  SUBSCRIBE filter=home/fan
    7  1101  broker > carla  SUBACK
    8  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    9  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    10 2002  broker > bert  PUBACK
    11 2003  broker > carla  PUBLISH topic=home/fan payload=OFF
""",
        {"A-ORDER": [10]},
    ),
    "sent again after a second": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8  3000  bert > broker  PUBLISH topic=home/fan payload=OFF
    9  3001  broker > anna  PUBLISH topic=home/fan payload=OFF
    10 3002  broker > bert  PUBACK
""",
        {"R-EARLY": [8]},
    ),
    "sent again just after the ACK": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8  2002  broker > bert  PUBACK
    9  2022  bert > broker  PUBLISH topic=home/fan payload=OFF
    10 2023  broker > anna  PUBLISH topic=home/fan payload=OFF
    11 2024  broker > bert  PUBACK
""",
        {"R-AFTER-ACK": [9]},
    ),
    "sent again with another payload": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8  7000  bert > broker  PUBLISH topic=home/fan payload=OF
    9  7001  broker > anna  PUBLISH topic=home/fan payload=OF
    10 7002  broker > bert  PUBACK
""",
        {"R-ALTERED": [8]},
    ),
    "the same again much later is a new request": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8  2002  broker > bert  PUBACK
    9  3500  bert > broker  PUBLISH topic=home/fan payload=OFF
    10 3501  broker > anna  PUBLISH topic=home/fan payload=OFF
    11 3502  broker > bert  PUBACK
""",
        {},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_found_and_nothing_else(case: str, tmp_path: Path) -> None:
    lines, expected = CASES[case]
    count = 5 + lines.count(">")
    said = said_of(tmp_path, lines, later(count + 1, count + 2))
    assert (said.failed, said.doubted) == (expected, {})
    assert said.session.verdict == ("fail" if expected else "pass")


def test_findings_name_the_other_frames_of_the_matter(tmp_path: Path) -> None:
    lines, _ = CASES["no ACK, though it is sent three times"]
    missing = said_of(tmp_path, lines, later(12, 13)).finding("A-MISSING")
    assert (missing.frames[1:], missing.client, missing.topic) == ((8, 10), "10.0.0.3:50000", "home/fan")
    assert "sent 3 times" in missing.text
    lines, _ = CASES["the ACK goes to another client"]
    astray = said_of(tmp_path, lines, later(9, 10)).finding("A-MISDIRECTED")
    assert astray.frames[1:] == (6,)
    assert "10.0.0.4:50000; 10.0.0.3:50000 asked" in astray.text


def test_a_resend_with_another_retain_flag_is_a_note(tmp_path: Path) -> None:
    """The running system of report 000 does that itself: it does not fail a session."""
    lines = """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF retain=0
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF retain=0
    8  7000  bert > broker  PUBLISH topic=home/fan payload=OFF retain=1
    9  7001  broker > anna  PUBLISH topic=home/fan payload=OFF retain=1
    10 7002  broker > bert  PUBACK
"""
    said = said_of(tmp_path, lines, later(11, 12))
    assert said.failed == {"R-ALTERED-RETAIN": [8]}
    assert (said.rule("R-ALTERED-RETAIN").level, said.session.verdict) == ("note", "pass")


def test_what_the_network_doubles_is_nobodys_fault(tmp_path: Path) -> None:
    """The same IP id tells a datagram that came twice from one that was sent twice."""
    lines, _ = CASES["two ACKs"]
    said = said_of(tmp_path, lines, later(10, 11), Talk(same_id={9: 8}))
    assert (said.failed, said.doubted) == ({}, {})


# Three publishes are under way at once. Which ACK answers which is told by the forward just before it.
PIPELINED = """
    6  2000  bert > broker  PUBLISH topic=home/a payload=1
    7  2001  bert > broker  PUBLISH topic=home/b payload=2
    8  2002  bert > broker  PUBLISH topic=home/c payload=3
    9  2003  broker > anna  PUBLISH topic=home/a payload=1
    10 2004  broker > bert  PUBACK
    11 2005  broker > anna  PUBLISH topic=home/b payload=2
"""


def test_an_ip_id_of_zero_among_others_makes_no_doubles(tmp_path: Path) -> None:
    """A sender that counts comes to 0 once in 65,536 packets: the ACKs behind that one are no copies of it."""
    lines = """
    6  2000  bert > broker  PUBLISH topic=attic payload=1
    7  2001  broker > bert  PUBACK
    8  2002  bert > broker  PUBLISH topic=attic payload=2
    9  2003  broker > bert  PUBACK
    10 2004  bert > broker  PUBLISH topic=attic payload=3
    11 2005  broker > bert  PUBACK
"""
    said = said_of(tmp_path, lines, later(12, 13), Talk(same_id={7: 0}))
    assert (said.session.verdict, said.failed, said.doubted) == ("pass", {}, {})
    assert said.qualities["none"] == 0


def test_a_lost_ack_does_not_shift_those_behind_it(tmp_path: Path) -> None:
    """By order alone the ACK in frame 13 would be that of frame 7, and frame 8 would be unanswered."""
    lines = """
    12 2006  broker > anna  PUBLISH topic=home/c payload=3
    13 2007  broker > bert  PUBACK
"""
    said = said_of(tmp_path, PIPELINED + lines, later(14, 15))
    assert (said.failed, said.doubted) == ({"A-MISSING": [7], "R-MISSING": [7]}, {})
    # Frames 1 and 3 and the one at the end were alone; 6 and 8 are told by their forwards; 7 has none.
    assert said.qualities == {"exact": 3, "anchored": 2, "resent": 0, "queued": 0, "none": 1}


def test_all_acks_of_a_pipeline_find_their_requests(tmp_path: Path) -> None:
    lines = """
    12 2006  broker > bert  PUBACK
    13 2007  broker > anna  PUBLISH topic=home/c payload=3
    14 2008  broker > bert  PUBACK
"""
    said = said_of(tmp_path, PIPELINED + lines, later(15, 16))
    assert (said.failed, said.doubted) == ({}, {})
    assert said.qualities["none"] == said.qualities["queued"] == 0


def test_a_publish_without_subscribers_has_an_ack_without_forwards(tmp_path: Path) -> None:
    """Of two publishes under way one is passed on and one is not: the ACK behind the forward is that of the first."""
    lines = """
    6  1900  dora > broker  PUBLISH topic=elsewhere payload=0
    7  1901  broker > dora  PUBACK
    8  2000  bert > broker  PUBLISH topic=home/a payload=1
    9  2001  bert > broker  PUBLISH topic=away payload=2
    10 2002  broker > anna  PUBLISH topic=home/a payload=1
    11 2003  broker > bert  PUBACK
"""
    said = said_of(tmp_path, lines, later(12, 13))
    assert (said.failed, said.doubted) == ({"A-MISSING": [9], "R-MISSING": [9]}, {})

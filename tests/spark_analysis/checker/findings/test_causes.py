"""Findings that follow from others: talks by hand for each link, and for what looks alike and follows from nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from pcap_tools.dialect.load import builtin_text
from spark_analysis import check as checking
from spark_analysis import pipeline
from spark_analysis.checker.findings.findings import CANDIDATES, CONSEQUENCES, Causes, Link
from spark_analysis.checker.rulebook.catalogue import RULES
from tests.spark_analysis.checker.checked import Judged, Talk, check, judged, wanted_dialects

# (rule, frame) of each finding: (rule, frame) of its cause, or None.
Linked = dict[tuple[str, int], tuple[str, int] | None]

COLON = """
    1     0  anna > broker  SUBSCRIBE filter=home/*
    2     1  broker > anna  SUBACK
    3  1000  bert > broker  PUBLISH topic=home/fan payload=ON
    4  1001  broker > anna  PUBLISH topic=home/fan payload=ON
    5  1002  broker > bert  PUBACK
"""
# Line 6 is the request in question. As observed, a client retains what it sends again.
COLON_CASES: dict[str, tuple[str, Linked]] = {
    "no ACK, and it is not sent again": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
""",
        {("A-MISSING", 6): None, ("R-MISSING", 6): ("A-MISSING", 6)},
    ),
    "no ACK, and no forward either: nobody knows which mistake it is": (
        """
    6  1980  dora > broker  PUBLISH topic=else/1 payload=1
    7  1981  broker > dora  PUBACK
    8  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    9  2010  dora > broker  PUBLISH topic=else/1 payload=2
   10  2011  broker > dora  PUBACK
   11  7000  bert > broker  PUBLISH topic=home/fan payload=OFF
   12 12000  bert > broker  PUBLISH topic=home/fan payload=OFF
""",
        {("A-MISSING", 8): None, ("D-MISSING", 8): None},
    ),
    "every resend for want of an ACK": (
        """
    6   2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7   2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8   7000  bert > broker  PUBLISH retain=1 topic=home/fan payload=OFF
    9   7001  broker > anna  PUBLISH retain=1 topic=home/fan payload=OFF
    10 12000  bert > broker  PUBLISH retain=1 topic=home/fan payload=OFF
    11 12001  broker > anna  PUBLISH retain=1 topic=home/fan payload=OFF
""",
        {
            ("A-MISSING", 6): None,
            ("R-ALTERED-RETAIN", 8): ("A-MISSING", 6),
            ("R-ALTERED-RETAIN", 10): ("A-MISSING", 6),
        },
    ),
    "a resend that no ACK could have prevented": (
        """
    6   2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7   2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8   3000  bert > broker  PUBLISH retain=1 topic=home/fan payload=OFF
    9   3001  broker > anna  PUBLISH retain=1 topic=home/fan payload=OFF
    10  8000  bert > broker  PUBLISH retain=1 topic=home/fan payload=OFF
    11  8001  broker > anna  PUBLISH retain=1 topic=home/fan payload=OFF
""",
        {
            ("A-MISSING", 6): None,
            ("R-EARLY", 8): None,
            ("R-ALTERED-RETAIN", 8): None,
            ("R-ALTERED-RETAIN", 10): ("A-MISSING", 6),
        },
    ),
    "another payload in place of the resend": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8  7000  bert > broker  PUBLISH topic=home/fan payload=of
    9  7001  broker > anna  PUBLISH topic=home/fan payload=of
""",
        {("A-MISSING", 6): None, ("R-ALTERED", 8): ("A-MISSING", 6)},
    ),
    "a resend before a late ACK": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8  7000  bert > broker  PUBLISH retain=1 topic=home/fan payload=OFF
    9  7001  broker > anna  PUBLISH retain=1 topic=home/fan payload=OFF
    10 8000  broker > bert  PUBACK
""",
        {("A-LATE", 10): None, ("R-ALTERED-RETAIN", 8): ("A-LATE", 10)},
    ),
    "a resend, since the ACK went to another client": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8  2002  broker > carla  PUBACK
    9  7000  bert > broker  PUBLISH retain=1 topic=home/fan payload=OFF
    10 7001  broker > anna  PUBLISH retain=1 topic=home/fan payload=OFF
    11 7002  broker > bert  PUBACK
""",
        {("A-MISDIRECTED", 8): None, ("R-ALTERED-RETAIN", 9): ("A-MISDIRECTED", 8)},
    ),
    "a resend after the late ACK, which has another reason": (
        """
    6   2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7   2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8   7000  bert > broker  PUBLISH retain=1 topic=home/fan payload=OFF
    9   7001  broker > anna  PUBLISH retain=1 topic=home/fan payload=OFF
    10  8000  broker > bert  PUBACK
    11 12000  bert > broker  PUBLISH retain=1 topic=home/fan payload=OFF
    12 12001  broker > anna  PUBLISH retain=1 topic=home/fan payload=OFF
    13 12002  broker > bert  PUBACK
""",
        {("A-LATE", 10): None, ("R-ALTERED-RETAIN", 8): ("A-LATE", 10), ("R-ALTERED-RETAIN", 11): None},
    ),
    "two resends, since the ACKs went to another client: the first began it": (
        """
    6   2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7   2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8   2002  broker > carla  PUBACK
    9   7000  bert > broker  PUBLISH retain=1 topic=home/fan payload=OFF
    10  7001  broker > anna  PUBLISH retain=1 topic=home/fan payload=OFF
    11  7002  broker > carla  PUBACK
    12 12000  bert > broker  PUBLISH retain=1 topic=home/fan payload=OFF
    13 12001  broker > anna  PUBLISH retain=1 topic=home/fan payload=OFF
    14 12002  broker > bert  PUBACK
""",
        {
            ("A-MISDIRECTED", 8): None,
            ("A-MISDIRECTED", 11): None,
            ("R-ALTERED-RETAIN", 9): ("A-MISDIRECTED", 8),
            ("R-ALTERED-RETAIN", 12): ("A-MISDIRECTED", 8),
        },
    ),
    "the ACK of the resend went to another client: the resend was there before": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna  PUBLISH topic=home/fan payload=OFF
    8  7000  bert > broker  PUBLISH retain=1 topic=home/fan payload=OFF
    9  7001  broker > anna  PUBLISH retain=1 topic=home/fan payload=OFF
    10 7002  broker > carla  PUBACK
   11 12000  bert > broker  PUBLISH retain=1 topic=home/fan payload=OFF
   12 12001  broker > anna  PUBLISH retain=1 topic=home/fan payload=OFF
   13 12002  broker > bert  PUBACK
""",
        {
            ("A-MISDIRECTED", 10): None,
            ("R-ALTERED-RETAIN", 8): None,
            ("R-ALTERED-RETAIN", 11): ("A-MISDIRECTED", 10),
        },
    ),
    "of two requests each resend follows from its own": (
        """
    6  2000  bert > broker   PUBLISH topic=home/fan payload=OFF
    7  2001  broker > anna   PUBLISH topic=home/fan payload=OFF
    8  2100  carla > broker  PUBLISH topic=home/fan payload=OFF
    9  2101  broker > anna   PUBLISH topic=home/fan payload=OFF
    10 7000  bert > broker   PUBLISH retain=1 topic=home/fan payload=OFF
    11 7001  broker > anna   PUBLISH retain=1 topic=home/fan payload=OFF
    12 7100  carla > broker  PUBLISH retain=1 topic=home/fan payload=OFF
    13 7101  broker > anna   PUBLISH retain=1 topic=home/fan payload=OFF
    14 7102  broker > carla  PUBACK
""",
        {
            ("A-MISSING", 6): None,
            ("R-ALTERED-RETAIN", 10): ("A-MISSING", 6),
            ("R-ALTERED-RETAIN", 12): None,
        },
    ),
    "overtaken because it is late": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=1
    7  2001  broker > bert  PUBACK
    8  3000  bert > broker  PUBLISH topic=home/fan payload=2
    9  3001  broker > anna  PUBLISH topic=home/fan payload=2
    10 3002  broker > bert  PUBACK
    11 6000  broker > anna  PUBLISH topic=home/fan payload=1
""",
        {("D-LATE", 11): None, ("D-REORDERED", 11): ("D-LATE", 11)},
    ),
    "overtaken without being late": (
        """
    6  2000  bert > broker  PUBLISH topic=home/fan payload=1
    7  2001  broker > bert  PUBACK
    8  2100  bert > broker  PUBLISH topic=home/fan payload=2
    9  2101  broker > anna  PUBLISH topic=home/fan payload=2
    10 2102  broker > bert  PUBACK
    11 2200  broker > anna  PUBLISH topic=home/fan payload=1
    12 3000  bert > broker  PUBLISH topic=home/lamp payload=1
    13 3002  broker > bert  PUBACK
    14 6500  broker > anna  PUBLISH topic=home/lamp payload=1
""",
        {("D-REORDERED", 11): None, ("D-LATE", 14): None},
    ),
    "one of two copies goes to somebody else, the other to nobody": (
        """
    6  1100  anna > broker   SUBSCRIBE filter=*/fan
    7  1101  broker > anna   SUBACK
    8  2000  bert > broker   PUBLISH topic=home/fan payload=OFF
    9  2001  broker > carla  PUBLISH topic=home/fan payload=OFF
    10 2002  broker > bert   PUBACK
""",
        {("D-MISDIRECTED", 9): None, ("D-MISSING", 8): None},
    ),
}

TOPICNUMBER = """
    1     0  bert > broker  CREATION topic_number=1 text=temp
    2     1  broker > bert  ACK topic_number=1 text=temp
    3     2  broker > bert  MESSAGE text=created
    4     3  bert > broker  ACK text=created
    5   100  anna > broker  SUBSCRIPTION text=temp
    6   101  broker > anna  ACK text=temp
    7   102  broker > anna  MESSAGE text=subscribed
    8   103  anna > broker  ACK text=subscribed
    9   200  bert > broker  PUBLICATION topic_number=1 text=20
    10  201  broker > bert  ACK topic_number=1 text=20
    11  202  broker > anna  PUBLICATION topic_number=1 text=20
    12  203  broker > bert  MESSAGE text=published
    13  204  anna > broker  ACK topic_number=1 text=20
    14  205  bert > broker  ACK text=published
    15  300  bert > broker  PUBLICATION topic_number=1 text=21
    16  301  broker > bert  ACK topic_number=1 text=21
"""
TOPICNUMBER_CASES: dict[str, tuple[str, Linked]] = {
    "a forward to somebody who did not ask for it and does not acknowledge it": (
        """
    17  302  broker > anna  PUBLICATION topic_number=1 text=21
    18  303  broker > carla PUBLICATION topic_number=1 text=21
    19  304  broker > bert  MESSAGE text=published
    20  305  anna > broker  ACK topic_number=1 text=21
    21  306  bert > broker  ACK text=published
""",
        {("D-UNEXPECTED", 18): None, ("A-CLIENT-MISSING", 18): ("D-UNEXPECTED", 18)},
    ),
    "a forward that goes astray and is not acknowledged": (
        """
    17  303  broker > carla PUBLICATION topic_number=1 text=21
    18  304  broker > bert  MESSAGE text=published
    19  306  bert > broker  ACK text=published
""",
        {("D-MISDIRECTED", 17): None, ("A-CLIENT-MISSING", 17): ("D-MISDIRECTED", 17)},
    ),
    "a forward too many, and only one is acknowledged": (
        """
    17  302  broker > anna  PUBLICATION topic_number=1 text=21
    18  303  broker > bert  MESSAGE text=published
    19  304  anna > broker  ACK topic_number=1 text=21
    20  305  bert > broker  ACK text=published
    21  350  broker > anna  PUBLICATION topic_number=1 text=21
""",
        {("D-DUPLICATE", 21): None, ("A-CLIENT-MISSING", 21): ("D-DUPLICATE", 21)},
    ),
    "a forward after the subscription has ended": (
        """
    17  302  broker > anna  PUBLICATION topic_number=1 text=21
    18  304  broker > bert  MESSAGE text=published
    19  305  anna > broker  ACK topic_number=1 text=21
    20  306  bert > broker  ACK text=published
    21  400  anna > broker  UNSUBSCRIPTION text=temp
    22  401  broker > anna  ACK text=temp
    23  402  broker > anna  MESSAGE text=gone
    24  403  anna > broker  ACK text=gone
    25  500  bert > broker  PUBLICATION topic_number=1 text=22
    26  501  broker > bert  ACK topic_number=1 text=22
    27  502  broker > anna  PUBLICATION topic_number=1 text=22
    28  504  broker > bert  MESSAGE text=published
    29  506  bert > broker  ACK text=published
""",
        {("D-AFTER-UNSUBSCRIBE", 27): None, ("A-CLIENT-MISSING", 27): ("D-AFTER-UNSUBSCRIBE", 27)},
    ),
    "an altered forward was due, and so is its ACK": (
        """
    17  302  broker > anna  PUBLICATION topic_number=1 text=99
    18  304  broker > bert  MESSAGE text=published
    19  306  bert > broker  ACK text=published
""",
        {("D-ALTERED", 17): None, ("A-CLIENT-MISSING", 17): None},
    ),
    "not sent again in a dialect without resends": (
        """
    17  302  broker > anna  PUBLICATION topic_number=1 text=21
    18  303  broker > bert  MESSAGE text=published
    19  305  anna > broker  ACK topic_number=1 text=21
    20  306  bert > broker  ACK text=published
    21  400  bert > broker  PUBLICATION topic_number=1 text=22
    22  402  broker > anna  PUBLICATION topic_number=1 text=22
    23  403  broker > bert  MESSAGE text=published
    24  405  anna > broker  ACK topic_number=1 text=22
    25  406  bert > broker  ACK text=published
""",
        {("A-MISSING", 21): None},
    ),
}

ROLEBYTE = """
    1    0  anna > broker   DASHBOARD_SUBSCRIBE filter=temperature/room1
    2    1  broker > anna   ACK code=10
    3  100  bert > broker   SENSOR_PUBLISH topic=temperature/room1 value=27
    4  101  broker > bert   ACK code=10
    5  102  broker > anna   BROKER topic=temperature/room1 value=27
    6  103  anna > broker   ACK code=10
    7  104  anna > broker   DASHBOARD_PUBLISH topic=temperature/room1Instructions value=good_job
    8  105  broker > anna   ACK code=10
"""
ROLEBYTE_CASES: dict[str, tuple[str, Linked]] = {
    "no instruction to a reading of a room that nobody asked for": (
        """
    9  200  bert > broker   SENSOR_PUBLISH topic=temperature/room2 value=28
    10 201  broker > bert   ACK code=10
    11 202  broker > anna   BROKER topic=temperature/room2 value=28
    12 203  anna > broker   ACK code=10
""",
        {("D-UNEXPECTED", 11): None, ("X-LOOP", 11): ("D-UNEXPECTED", 11)},
    ),
    "no second instruction to a reading that comes twice": (
        """
    9  200  bert > broker   SENSOR_PUBLISH topic=temperature/room1 value=28
    10 201  broker > bert   ACK code=10
    11 202  broker > anna   BROKER topic=temperature/room1 value=28
    12 203  anna > broker   ACK code=10
    13 204  anna > broker   DASHBOARD_PUBLISH topic=temperature/room1Instructions value=good_job
    14 205  broker > anna   ACK code=10
    15 230  broker > anna   BROKER topic=temperature/room1 value=28
    16 231  anna > broker   ACK code=10
""",
        {("D-DUPLICATE", 15): None, ("X-LOOP", 15): ("D-DUPLICATE", 15)},
    ),
    "no instruction to a reading that was asked for": (
        """
    9  200  bert > broker   SENSOR_PUBLISH topic=temperature/room1 value=28
    10 201  broker > bert   ACK code=10
    11 202  broker > anna   BROKER topic=temperature/room1 value=28
    12 203  anna > broker   ACK code=10
""",
        {("X-LOOP", 11): None},
    ),
}
MQTTSN = """
    1    0  bert > broker  CONNECT clean_session=1 protocol_id=1 duration=60 client_id=bert
    2    1  broker > bert  CONNACK return_code=0
    3   10  bert > broker  REGISTER message_id=1 topic_name=home/fan
    4   11  broker > bert  REGACK topic_id=4 message_id=1 return_code=0
    5  100  dora > broker  CONNECT clean_session=1 protocol_id=1 duration=60 client_id=dora
    6  101  broker > dora  CONNACK return_code=0
    7  150  bert > broker  PUBLISH qos=1 topic_id=4 message_id=2 data=a
"""
MQTTSN_CASES: dict[str, tuple[str, Linked]] = {
    "the id again with another payload, when the ACK is late": (
        """
    8    250 dora > broker  PINGREQ
    9    251 broker > dora  PINGRESP
    10 10150 bert > broker  PUBLISH qos=1 topic_id=4 message_id=2 data=b
""",
        {("A-MISSING", 7): None, ("R-ALTERED", 10): ("A-MISSING", 7)},
    ),
    "the id again with another payload, before any ACK could come": (
        """
    8    200 bert > broker  PUBLISH qos=1 topic_id=4 message_id=2 data=b
    9    250 dora > broker  PINGREQ
    10   251 broker > dora  PINGRESP
""",
        {("A-MISSING", 7): None, ("R-ALTERED", 8): None},
    ),
}
# Somebody else is answered much later: the broker is there, and nobody waits any more.
ENDS = {
    "colon": "dora > broker PUBLISH topic=elsewhere payload=1; broker > dora PUBACK",
    "topicnumber": "dora > broker SUBSCRIPTION text=temp; broker > dora ACK text=temp; "
    "broker > dora MESSAGE text=subscribed; dora > broker ACK text=subscribed",
    "rolebyte": "dora > broker SENSOR_PUBLISH topic=elsewhere value=1; broker > dora ACK code=10",
    "mqttsn": "dora > broker PINGREQ; broker > dora PINGRESP",
}


def linked(said: Judged) -> Linked:
    places = {one.id: (one.rule, one.frame) for one in said.session.findings}
    return {(one.rule, one.frame): places[one.cause] if one.cause else None for one in said.session.findings}


def said_of(folder: Path, dialect: str, lines: str) -> Judged:
    end = [f"{lines.count('>') + at} {30_000 + at} {said}" for at, said in enumerate(ENDS[dialect].split("; "), 1)]
    said = judged(folder, "\n".join([lines, *end]), Talk(dialect))
    assert not said.doubted  # what is in doubt has no consequences
    return said


@pytest.fixture(params=["whole", "each frame a unit"])
def cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding and its cause come from other units and buckets, too."""
    if request.param != "whole":
        monkeypatch.setattr(checking, "UNIT_BYTES", 1)
        monkeypatch.setattr(pipeline, "BUCKET_ROWS", 1)


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("case", COLON_CASES)
def test_what_follows_from_the_brokers_mistakes(case: str, tmp_path: Path) -> None:
    lines, expected = COLON_CASES[case]
    assert linked(said_of(tmp_path, "colon", COLON + lines)) == expected


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("case", TOPICNUMBER_CASES)
def test_what_follows_from_forwards_that_clients_acknowledge(case: str, tmp_path: Path) -> None:
    lines, expected = TOPICNUMBER_CASES[case]
    assert linked(said_of(tmp_path, "topicnumber", TOPICNUMBER + lines)) == expected


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("case", ROLEBYTE_CASES)
def test_what_follows_from_readings(case: str, tmp_path: Path) -> None:
    lines, expected = ROLEBYTE_CASES[case]
    assert linked(said_of(tmp_path, "rolebyte", ROLEBYTE + lines)) == expected


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("case", MQTTSN_CASES)
def test_what_follows_where_acks_have_ids(case: str, tmp_path: Path) -> None:
    lines, expected = MQTTSN_CASES[case]
    assert linked(said_of(tmp_path, "mqttsn", MQTTSN + lines)) == expected


def test_a_finding_in_doubt_is_no_cause(tmp_path: Path) -> None:
    """At one client what is missing may have been lost on its way there."""
    lines = """
    1     0  anna > broker  SUBSCRIBE filter=home/*
    2     1  broker > anna  SUBACK
    3  2000  anna > broker  PUBLISH topic=else payload=OFF
    4 20000  anna > broker  UNSUBSCRIBE filter=home/*
    5 20001  broker > anna  UNSUBACK
"""
    said = judged(tmp_path, lines)
    assert said.doubted == {"A-MISSING": [3], "R-MISSING": [3]}
    assert set(linked(said).values()) == {None}


def test_a_rule_that_is_off_is_no_cause(tmp_path: Path) -> None:
    lines, _ = COLON_CASES["no ACK, and it is not sent again"]
    said_of(tmp_path, "colon", COLON + lines)
    own = tmp_path / "own.toml"
    own.write_text(builtin_text("colon").replace("[rules]", '[rules]\nA-MISSING = "off"'))
    said = Judged(check([str(tmp_path / "talk.pcap")], dialects=wanted_dialects([str(own)]), engine="local"))
    assert linked(said) == {("R-MISSING", 6): None}


def test_a_cause_is_told_though_its_rule_is_not_wanted(tmp_path: Path) -> None:
    lines, _ = COLON_CASES["no ACK, and it is not sent again"]
    said_of(tmp_path, "colon", COLON + lines)
    dialects = wanted_dialects(["colon"])
    whole = check([str(tmp_path / "talk.pcap")], dialects=dialects, rules=["R-MISSING"], engine="local")
    (found,) = whole.sessions[0].findings
    assert found.follows_from == ("A-MISSING", str(tmp_path / "talk.pcap"), 6)


def test_findings_about_no_request_are_not_linked_by_it() -> None:
    causes = Causes()
    causes.add({"rule": "A-LATE", "id": 1, "key": 0, "time": 1}, "late")
    causes.add({"rule": "A-LATE", "id": 2, "key": 7, "time": 2}, "later")
    assert [causes.of({"rule": "R-ALTERED", "id": 3, "key": key, "time": 1}) for key in (0, 7)] == [None, "later"]


def test_the_table_names_rules_and_has_no_cycle() -> None:
    consequences, causes = ({getattr(one, name) for one in CONSEQUENCES} for name in ("rule", "cause"))
    assert consequences | causes <= set(RULES)
    assert not consequences & causes
    assert {link.value for link in Link} <= set(CANDIDATES.names)
    assert len(set(CONSEQUENCES)) == len(CONSEQUENCES)

"""Talks of the other dialects: what each has that `colon` has not, judged by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from .checked import Talk, judged

Frames = dict[str, list[int]]

# -- topicbyte: 10 is temperature, 20 humidity; the broker acknowledges before it passes on ---------------------------

TOPICBYTE = """
    1    0  anna > broker   SUB topic=10
    2    1  broker > anna   ACK
    3   10  carla > broker  SUB topic=20
    4   11  broker > carla  ACK
    5  100  bert > broker   MESSAGE topic=10 text=Temperature:51
    6  101  broker > bert   ACK
    7  102  broker > anna   MESSAGE topic=10 text=Temperature:51
"""
TOPICBYTE_CASES: dict[str, tuple[str, Frames]] = {
    "all is well": (
        """
    8  200  bert > broker   MESSAGE topic=20 text=Humidity:38
    9  201  broker > bert   ACK
    10 202  broker > carla  MESSAGE topic=20 text=Humidity:38
""",
        {},
    ),
    "humidity is filed under temperature": (
        """
    8  200  bert > broker   MESSAGE topic=20 text=Humidity:38
    9  201  broker > bert   ACK
    10 300  bert > broker   MESSAGE topic=10 text=Temperature:7
    11 301  broker > bert   ACK
    12 302  broker > anna   MESSAGE topic=10 text=Temperature:7
    13 302  broker > carla  MESSAGE topic=10 text=Temperature:7
""",
        {"D-MISSING": [8], "D-UNEXPECTED": [13]},
    ),
    "no ACK": (
        """
    8  200  bert > broker   MESSAGE topic=20 text=Humidity:38
    9  202  broker > carla  MESSAGE topic=20 text=Humidity:38
""",
        {"A-MISSING": [8]},
    ),
    "the ACK behind the forward": (
        """
    8  200  bert > broker   MESSAGE topic=20 text=Humidity:38
    9  201  broker > carla  MESSAGE topic=20 text=Humidity:38
    10 202  broker > bert   ACK
""",
        {"A-ORDER": [10]},
    ),
    "a SUB that is repeated is a second copy": (
        """
    8  200  carla > broker  SUB topic=20
    9  201  broker > carla  ACK
    10 300  bert > broker   MESSAGE topic=20 text=Humidity:38
    11 301  broker > bert   ACK
    12 302  broker > carla  MESSAGE topic=20 text=Humidity:38
""",
        {"D-MISSING": [10]},
    ),
    "the broker acknowledges an ACK": (
        """
    8  200  anna > broker  ACK
    9  201  broker > anna  ACK
""",
        {"A-UNSOLICITED": [8], "A-ACK-OF-ACK": [9]},  # subscribers of topicbyte have nothing to acknowledge
    ),
}


@pytest.mark.parametrize("form", ["java", "documented"])
@pytest.mark.parametrize("case", TOPICBYTE_CASES)
def test_topicbyte(case: str, form: str, tmp_path: Path) -> None:
    lines, expected = TOPICBYTE_CASES[case]
    count = 7 + lines.count(">")
    end = f"""
    {count + 1}  5000  dora > broker  MESSAGE topic=10 text=Temperature:1
    {count + 2}  5001  broker > dora  ACK
    {count + 3}  5002  broker > anna  MESSAGE topic=10 text=Temperature:1
    {count + 4}  6000  dora > broker  SUB topic=10
    {count + 5}  6001  broker > dora  ACK
"""
    said = judged(tmp_path, TOPICBYTE + lines + end, Talk("topicbyte", form))
    assert (said.failed, said.doubted) == (expected, {})
    assert said.verdicts["R-MISSING"] == said.verdicts["T-MISSING"] == "n/a"


# -- portdigits: no ACKs; forwards go from any port to the port in the subscriber's header ----------------------------

PORTDIGITS = """
    1    0  anna > broker              SUBSCRIBE port=12346 topic=1
    2   10  carla > broker             SUBSCRIBE port=12349 topic=2
    3  100  bert > broker              PUBLISH port=12345 topic=1 text=14C
    4  101  broker:54155 > anna:12346  PUBLISH port=12345 topic=1 text=14C
    5  200  bert > broker              PUBLISH port=12345 topic=2 text=3km/h
    6  201  broker:54156 > carla:12349 PUBLISH port=12345 topic=2 text=3km/h
    7  300  bert > broker              PUBLISH port=12345 topic=1 text=15C
"""
PORTDIGITS_CASES: dict[str, tuple[str, Frames]] = {
    "to the header's port": ("8 301 broker:54157 > anna:12346 PUBLISH port=12345 topic=1 text=15C", {}),
    "to the port from which it was asked": (
        "8 301 broker:54157 > anna PUBLISH port=12345 topic=1 text=15C",
        {"D-MISDIRECTED": [8]},
    ),
    "to nobody": ("8 301 broker:54157 > carla:12349 PUBLISH port=12345 topic=2 text=3km/h", {"D-MISSING": [7]}),
    "altered": ("8 301 broker:54157 > anna:12346 PUBLISH port=12345 topic=1 text=15", {"D-ALTERED": [8]}),
}


@pytest.mark.parametrize("form", ["java", "documented"])
@pytest.mark.parametrize("case", PORTDIGITS_CASES)
def test_portdigits(case: str, form: str, tmp_path: Path) -> None:
    line, expected = PORTDIGITS_CASES[case]
    end = """
    9   5000  bert > broker              PUBLISH port=12345 topic=2 text=4km/h
    10  5001  broker:54158 > carla:12349 PUBLISH port=12345 topic=2 text=4km/h
    11  6000  dora > broker              PUBLISH port=12345 topic=3 text=8%
"""
    said = judged(tmp_path, f"{PORTDIGITS}\n{line}\n{end}", Talk("portdigits", form))
    found = {rule: frames for rule, frames in said.failed.items() if rule in expected or case != "to nobody"}
    assert (found, said.doubted) == (expected, {})
    assert {said.verdicts[rule] for rule in said.verdicts if rule[:2] in ("A-", "R-", "T-")} == {"n/a"}


# -- topicnumber: topics are created with a number; ACKs are echoes; a status message follows each request ------------

TOPICNUMBER = """
    1     0  bert > broker  CREATION topic_number=1 text=temp
    2     1  broker > bert  ACK topic_number=1 text=temp
    3     2  broker > bert  MESSAGE text=created
    4     3  bert > broker  ACK text=created
    5   100  anna > broker  SUBSCRIPTION text=temp
    6   101  broker > anna  ACK text=temp
    7   102  broker > anna  MESSAGE text=subscribed
    8   103  anna > broker  ACK text=subscribed
"""
PUBLISHED = """
    9   200  bert > broker  PUBLICATION topic_number=1 text=20
    10  201  broker > bert  ACK topic_number=1 text=20
    11  202  broker > anna  PUBLICATION topic_number=1 text=20
    12  203  broker > bert  MESSAGE text=published
    13  204  anna > broker  ACK topic_number=1 text=20
    14  205  bert > broker  ACK text=published
"""
TOPICNUMBER_CASES: dict[str, tuple[str, Frames]] = {
    "all is well": (PUBLISHED, {}),
    "no status message": (
        """
    9   200  bert > broker  PUBLICATION topic_number=1 text=20
    10  201  broker > bert  ACK topic_number=1 text=20
    11  202  broker > anna  PUBLICATION topic_number=1 text=20
    12  203  anna > broker  ACK topic_number=1 text=20
""",
        {"A-STATUS-MISSING": [9]},
    ),
    "an echo that is not equal": (
        PUBLISHED.replace("broker > bert  ACK topic_number=1 text=20", "broker > bert  ACK topic_number=1 text=21"),
        {"A-MISSING": [9], "A-UNSOLICITED": [10]},
    ),
    "the subscriber does not acknowledge": (
        PUBLISHED.replace("anna > broker  ACK topic_number=1 text=20", "anna > broker  ACK topic_number=1 text=2"),
        {"A-CLIENT-MISSING": [11], "A-UNSOLICITED": [13]},
    ),
    "one number for two topics": (
        """
    9   200  bert > broker  CREATION topic_number=0 text=wind
    10  201  broker > bert  ACK topic_number=0 text=wind
    11  202  broker > bert  MESSAGE text=created
    12  203  bert > broker  ACK text=created
    13  300  bert > broker  CREATION topic_number=0 text=rain
    14  301  broker > bert  ACK topic_number=0 text=rain
    15  302  broker > bert  MESSAGE text=created
    16  303  bert > broker  ACK text=created
""",
        {"N-ZERO": [13]},
    ),
    "a number that was not created": (
        """
    9   200  bert > broker  PUBLICATION topic_number=7 text=20
    10  201  broker > bert  ACK topic_number=7 text=20
    11  202  broker > bert  MESSAGE text=unknown
    12  203  bert > broker  ACK text=unknown
""",
        {"N-UNKNOWN-PUBLISH": [9]},
    ),
}


@pytest.mark.parametrize("case", TOPICNUMBER_CASES)
def test_topicnumber(case: str, tmp_path: Path) -> None:
    lines, expected = TOPICNUMBER_CASES[case]
    count = 8 + lines.count(">")
    end = f"""
    {count + 1}  5000  carla > broker  SUBSCRIPTION text=temp
    {count + 2}  5001  broker > carla  ACK text=temp
    {count + 3}  5002  broker > carla  MESSAGE text=subscribed
    {count + 4}  5003  carla > broker  ACK text=subscribed
"""
    said = judged(tmp_path, TOPICNUMBER + lines + end, Talk("topicnumber"))
    assert (said.failed, said.doubted) == (expected, {})


# -- rolebyte: every hop is acknowledged; a forward is another message than the publish -------------------------------

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


# -- mqttsn: a message id says which request an ACK answers -----------------------------------------------------------

MQTTSN = """
    1    0  bert > broker  CONNECT clean_session=1 protocol_id=1 duration=60 client_id=bert
    2    1  broker > bert  CONNACK return_code=0
    3    2  anna > broker  CONNECT clean_session=1 protocol_id=1 duration=60 client_id=anna
    4    3  broker > anna  CONNACK return_code=0
    5   10  bert > broker  REGISTER message_id=1 topic_name=home/fan
    6   11  broker > bert  REGACK topic_id=4 message_id=1 return_code=0
    7  100  bert > broker  PUBLISH qos=1 topic_id=4 message_id=2 data=a
    8  101  bert > broker  PUBLISH qos=1 topic_id=4 message_id=3 data=b
    9  102  bert > broker  PUBLISH qos=1 topic_id=4 message_id=4 data=c
"""
MQTTSN_CASES: dict[str, tuple[str, Frames]] = {
    "in another order": (
        """
    10  110  broker > bert  PUBACK topic_id=4 message_id=4 return_code=0
    11  111  broker > bert  PUBACK topic_id=4 message_id=2 return_code=0
    12  112  broker > bert  PUBACK topic_id=4 message_id=3 return_code=0
""",
        {},
    ),
    "in another order, and one is missing": (
        """
    10  110  broker > bert  PUBACK topic_id=4 message_id=4 return_code=0
    11  111  broker > bert  PUBACK topic_id=4 message_id=2 return_code=0
""",
        {"A-MISSING": [8], "R-MISSING": [8]},
    ),
    "an id that nobody used": (
        """
    10  110  broker > bert  PUBACK topic_id=4 message_id=4 return_code=0
    11  111  broker > bert  PUBACK topic_id=4 message_id=2 return_code=0
    12  112  broker > bert  PUBACK topic_id=4 message_id=3 return_code=0
    13  200  broker > bert  PUBACK topic_id=4 message_id=9 return_code=0
""",
        {"A-UNSOLICITED": [13]},
    ),
    "without quality of service there is no ACK": (
        """
    10  110  broker > bert  PUBACK topic_id=4 message_id=4 return_code=0
    11  111  broker > bert  PUBACK topic_id=4 message_id=2 return_code=0
    12  112  broker > bert  PUBACK topic_id=4 message_id=3 return_code=0
    13  200  bert > broker  PUBLISH qos=0 topic_id=4 message_id=0 data=d
""",
        {},
    ),
}


@pytest.mark.parametrize("case", MQTTSN_CASES)
def test_mqttsn(case: str, tmp_path: Path) -> None:
    lines, expected = MQTTSN_CASES[case]
    count = 9 + lines.count(">")
    end = f"""
    {count + 1}    400  anna > broker  PINGREQ
    {count + 2}    401  broker > anna  PINGRESP
    {count + 3}  40000  anna > broker  PINGREQ
    {count + 4}  40001  broker > anna  PINGRESP
"""
    said = judged(tmp_path, MQTTSN + lines + end, Talk("mqttsn"))
    assert (said.failed, said.doubted) == (expected, {})

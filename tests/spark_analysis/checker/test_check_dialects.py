"""Talks of `topicbyte`, `portdigits` and `topicnumber`: what each has that `colon` has not, judged by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark_analysis.checker.checked import Talk, judged

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
    "to nobody, while others are served": (
        """
    8  310  bert > broker              PUBLISH port=12345 topic=2 text=9km/h
    9  311  broker:54157 > carla:12349 PUBLISH port=12345 topic=2 text=9km/h
""",
        {"D-MISSING": [7]},
    ),
    "altered": ("8 301 broker:54157 > anna:12346 PUBLISH port=12345 topic=1 text=15", {"D-ALTERED": [8]}),
}


@pytest.mark.parametrize("form", ["java", "documented"])
@pytest.mark.parametrize("case", PORTDIGITS_CASES)
def test_portdigits(case: str, form: str, tmp_path: Path) -> None:
    lines, expected = PORTDIGITS_CASES[case]
    count = 7 + lines.count(">")
    end = f"""
    {count + 1}  5000  bert > broker              PUBLISH port=12345 topic=2 text=4km/h
    {count + 2}  5001  broker:54158 > carla:12349 PUBLISH port=12345 topic=2 text=4km/h
    {count + 3}  6000  dora > broker              PUBLISH port=12345 topic=3 text=8%
"""
    said = judged(tmp_path, f"{PORTDIGITS}\n{lines}\n{end}", Talk("portdigits", form))
    assert (said.failed, said.doubted) == (expected, {})
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

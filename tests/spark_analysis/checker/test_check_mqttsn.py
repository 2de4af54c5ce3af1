"""Talks of `mqttsn`: a message id says which request an ACK answers, whatever the order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark_analysis.checker.checked import Talk, judged

Frames = dict[str, list[int]]

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

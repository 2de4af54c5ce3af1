"""However a session is judged, the verdict is the same: whole or in parts, in this process or by Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest

from pcap_tools.codec.detect import Dialects
from spark_analysis import pipeline
from spark_analysis.sessions import unit_reading
from spark_analysis.sessions.unit_reading import read_head
from spark_analysis.sources.units import Unit
from tests.conftest import REPO
from tests.spark_analysis.checker.checked import SessionResult, Talk, check, cut, judged, wanted_dialects
from tests.spark_analysis.strung_captures import CAPTURES, RUNS, make

SAMPLE = 5  # of each dialect, judged in parts


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """All of them in one folder; by dialect."""
    return make(tmp_path_factory.mktemp("strung"))


def command(folder: Path, engine: str) -> object:
    """What the real command says, in a process of its own: only one Spark session can be open in each."""
    words = [sys.executable, "-m", "topicshark.main", "check", str(folder), "--engine", engine, "--format", "json"]
    words += ["--limit", "100000"]
    answer = subprocess.run(words, capture_output=True, cwd=REPO, timeout=280, check=False)
    assert answer.returncode == 1, answer.stderr.decode()
    return json.loads(answer.stdout)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("spark")
def test_spark_says_what_the_process_says(captures: dict[str, list[Path]]) -> None:
    folder = captures["colon"][0].parent
    local, spark = command(folder, "local"), command(folder, "spark")
    assert isinstance(local, dict)
    assert len(local["sessions"]) == CAPTURES
    assert sum(len(session["findings"]) for session in local["sessions"]) > 5 * CAPTURES
    assert local == spark


def told(session: SessionResult) -> list[tuple[object, ...]]:
    """All that is said of a session, in an order that does not depend on how it was found."""
    rules = [(rule.id, rule.verdict, rule.checked, rule.failed, rule.inconclusive) for rule in session.rules]
    findings = [(one.rule, one.verdict, one.frame, one.related, one.client, one.text) for one in session.findings]
    return [*rules, *sorted(findings), ("datagrams", session.datagrams), ("brokers", *session.brokers)]


@pytest.mark.parametrize("dialect", RUNS)
def test_parts_say_what_the_whole_says(
    dialect: str, captures: dict[str, list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = captures[dialect][:SAMPLE]
    sources, dialects = [str(path) for path in chosen], wanted_dialects([dialect])
    whole = check(sources, dialects=dialects, engine="local", limit=10_000, summaries=False)
    cut(monkeypatch, chosen, 4)
    parts = check(sources, dialects=dialects, engine="local", limit=10_000, summaries=False)
    other = {
        one.name: (sorted({*told(one)} - {*told(two)}, key=str), sorted({*told(two)} - {*told(one)}, key=str))
        for one, two in zip(whole.sessions, parts.sessions, strict=True)
        if told(one) != told(two)
    }
    assert other == {}


def no_head(unit: Unit, dialects: Dialects, rows: int) -> list[pa.RecordBatch]:
    return []


def turned_head(unit: Unit, dialects: Dialects, rows: int) -> list[pa.RecordBatch]:
    """All that was sent to the broker seems to come from it."""
    turned = {"src": "dst", "dst": "src", "sport": "dport", "dport": "sport"}
    heads = read_head(unit, dialects, rows)
    return [one.rename_columns([turned.get(name, name) for name in one.schema.names]) for one in heads]


@pytest.mark.parametrize("head", [no_head, turned_head])
@pytest.mark.parametrize("dialect", ["colon", "topicnumber", "portdigits"])
def test_a_wrong_guess_of_the_brokers_costs_a_pass_and_nothing_else(
    dialect: str, head: object, captures: dict[str, list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = captures[dialect][:2]
    sources, dialects = [str(path) for path in chosen], wanted_dialects([dialect])
    whole = check(sources, dialects=dialects, engine="local", limit=10_000, summaries=False)
    reads = mock.Mock(wraps=unit_reading.read_unit)
    monkeypatch.setattr(pipeline, "read_unit", reads)
    cut(monkeypatch, chosen, 4)
    check(sources, dialects=dialects, engine="local", limit=10_000, summaries=False)
    usual = reads.call_count
    monkeypatch.setattr(pipeline, "read_head", head)
    parts = check(sources, dialects=dialects, engine="local", limit=10_000, summaries=False)
    assert reads.call_count > 2 * usual
    assert [told(one) for one in parts.sessions] == [told(one) for one in whole.sessions]


# -- by hand: causes that lie long before what they explain, in another part ------------------------------------------

FAR: dict[str, tuple[Talk, str, dict[str, list[int]]]] = {
    "what was retained is gone since a plain publish": (
        Talk(),
        """
    1      0  bert > broker  PUBLISH topic=home/fan payload=1 retain=1
    2      1  broker > bert  PUBACK
    3   1000  bert > broker  PUBLISH topic=home/fan payload=2 retain=0
    4   1001  broker > bert  PUBACK
    5  20000  dora > broker  PUBLISH topic=elsewhere payload=1
    6  20001  broker > dora  PUBACK
    7  40000  dora > broker  PUBLISH topic=elsewhere payload=2
    8  40001  broker > dora  PUBACK
    9  60000  anna > broker  SUBSCRIBE filter=home/fan
    10 60001  broker > anna  SUBACK
    11 80000  dora > broker  PUBLISH topic=elsewhere payload=3
    12 80001  broker > dora  PUBACK
""",
        {"T-CLEARED": [9]},
    ),
    "the retained message of long ago": (
        Talk(),
        """
    1      0  bert > broker  PUBLISH topic=home/fan payload=1 retain=1
    2      1  broker > bert  PUBACK
    3  20000  dora > broker  PUBLISH topic=elsewhere payload=1
    4  20001  broker > dora  PUBACK
    5  40000  dora > broker  PUBLISH topic=elsewhere payload=2
    6  40001  broker > dora  PUBACK
    7  60000  anna > broker  SUBSCRIBE filter=home/fan
    8  60001  broker > anna  SUBACK
    9  80000  dora > broker  PUBLISH topic=elsewhere payload=3
    10 80001  broker > dora  PUBACK
""",
        {"T-MISSING": [7]},
    ),
    "the subscription of long ago, which was served then": (
        Talk("portdigits"),
        """
    1      0  anna > broker              SUBSCRIBE port=12346 topic=1
    2    100  bert > broker              PUBLISH port=12345 topic=1 text=14C
    3    101  broker:54155 > anna:12346  PUBLISH port=12345 topic=1 text=14C
    4  20000  bert > broker              PUBLISH port=12345 topic=2 text=5km/h
    5  40000  carla > broker             SUBSCRIBE port=12349 topic=2
    6  40100  bert > broker              PUBLISH port=12345 topic=2 text=6km/h
    7  40101  broker:54156 > carla:12349 PUBLISH port=12345 topic=2 text=6km/h
    8  59900  bert > broker              PUBLISH port=12345 topic=2 text=7km/h
    9  59901  broker:54157 > carla:12349 PUBLISH port=12345 topic=2 text=7km/h
    10 60000  bert > broker              PUBLISH port=12345 topic=1 text=15C
    11 60100  bert > broker              PUBLISH port=12345 topic=2 text=8km/h
    12 60101  broker:54158 > carla:12349 PUBLISH port=12345 topic=2 text=8km/h
    13 80000  dora > broker              PUBLISH port=12345 topic=3 text=8%
""",
        {"D-MISSING": [10]},
    ),
    "a forward that comes 20 s late": (
        Talk("topicbyte"),
        """
    1      0  anna > broker  SUB topic=10
    2      1  broker > anna  ACK
    3    100  bert > broker  MESSAGE topic=10 text=Temperature:1
    4    101  broker > bert  ACK
    5  10000  dora > broker  MESSAGE topic=20 text=Humidity:1
    6  10001  broker > dora  ACK
    7  12000  dora > broker  MESSAGE topic=20 text=Humidity:2
    8  12001  broker > dora  ACK
    9  20100  broker > anna  MESSAGE topic=10 text=Temperature:1
    10 30000  dora > broker  MESSAGE topic=20 text=Humidity:3
    11 30001  broker > dora  ACK
""",
        {"D-LATE": [9]},
    ),
    "sent again after growing pauses, never acknowledged": (
        Talk(),
        """
    1      0  anna > broker  SUBSCRIBE filter=home/*
    2      1  broker > anna  SUBACK
    3    100  bert > broker  PUBLISH topic=home/fan payload=1
    4    101  broker > anna  PUBLISH topic=home/fan payload=1
    5   5100  bert > broker  PUBLISH topic=home/fan payload=1
    6   5101  broker > anna  PUBLISH topic=home/fan payload=1
    7  20100  bert > broker  PUBLISH topic=home/fan payload=1
    8  20101  broker > anna  PUBLISH topic=home/fan payload=1
    9  45100  bert > broker  PUBLISH topic=home/fan payload=1
    10 45101  broker > anna  PUBLISH topic=home/fan payload=1
    11 80000  dora > broker  PUBLISH topic=elsewhere payload=3
    12 80001  broker > dora  PUBACK
""",
        {"A-MISSING": [3]},
    ),
}

FAR["sent again for a minute, never acknowledged"] = (
    Talk(),
    "1 0 anna > broker SUBSCRIBE filter=home/*\n2 1 broker > anna SUBACK\n"
    + "".join(
        f"{number} {time} bert > broker PUBLISH topic=home/fan payload=1\n"
        f"{number + 1} {time + 1} broker > anna PUBLISH topic=home/fan payload=1\n"
        for number, time in zip(range(3, 29, 2), range(100, 60_200, 5_000), strict=True)
    )
    + "29 80000 dora > broker PUBLISH topic=elsewhere payload=3\n30 80001 broker > dora PUBACK",
    {"A-MISSING": [3]},
)

FAR["acknowledged at the fourth send"] = (
    Talk(),
    "1 0 anna > broker SUBSCRIBE filter=home/*\n2 1 broker > anna SUBACK\n"
    "3 100 bert > broker PUBLISH topic=home/fan payload=1\n4 101 broker > anna PUBLISH topic=home/fan payload=1\n"
    + "".join(
        f"{number} {time} dora > broker PUBLISH topic=elsewhere payload={time}\n"
        f"{number + 1} {time + 1} broker > dora PUBACK\n"
        for number, time in zip(range(5, 25, 2), range(200, 1_200, 100), strict=True)
    )
    + "".join(
        f"{number} {time} bert > broker PUBLISH topic=home/fan payload=1\n"
        f"{number + 1} {time + 1} broker > anna PUBLISH topic=home/fan payload=1\n"
        for number, time in zip(range(25, 31, 2), range(5_100, 15_200, 5_000), strict=True)
    )
    + "31 15102 broker > bert PUBACK\n"
    + "32 40000 dora > broker PUBLISH topic=elsewhere payload=3\n33 40001 broker > dora PUBACK",
    {},
)


@pytest.mark.parametrize("case", FAR)
def test_what_is_far_apart_is_judged_alike(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    talk, lines, expected = FAR[case]
    whole = judged(tmp_path, lines, talk)
    cut(monkeypatch, [tmp_path / "talk.pcap"], 4)
    parts = judged(tmp_path, lines, talk)
    assert (whole.failed, whole.doubted) == (expected, {})
    assert (parts.failed, parts.doubted) == (expected, {})


def test_a_sign_of_the_network_counts_for_the_whole_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frame 3 is the network's double of 2. Where it doubles, what looks like an ACK of an ACK in frame 13 may answer
    such a double: neither the whole nor a part that begins long after is certain."""
    lines = """
    1      0  anna > broker  SUBSCRIPTION text=temp
    2      1  broker > anna  ACK text=temp
    3      2  broker > anna  ACK text=temp
    4      3  broker > anna  MESSAGE text=unknown
    5      4  anna > broker  ACK text=unknown
    6  20000  bert > broker  CREATION topic_number=1 text=wind
    7  20001  broker > bert  ACK topic_number=1 text=wind
    8  20002  broker > bert  MESSAGE text=created
    9  20003  bert > broker  ACK text=created
    10 40000  bert > broker  CREATION topic_number=2 text=rain
    11 40001  broker > bert  ACK topic_number=2 text=rain
    12 40002  broker > bert  MESSAGE text=created
    13 40003  bert > broker  ACK text=created
    14 40004  bert > broker  ACK topic_number=2 text=rain
    15 60000  bert > broker  CREATION topic_number=3 text=sun
    16 60001  broker > bert  ACK topic_number=3 text=sun
    17 60002  broker > bert  MESSAGE text=created
    18 60003  bert > broker  ACK text=created
"""
    talk = Talk("topicnumber", same_id={3: 2})
    whole = judged(tmp_path, lines, talk)
    cut(monkeypatch, [tmp_path / "talk.pcap"], 4)
    parts = judged(tmp_path, lines, talk)
    assert "A-ACK-OF-ACK" in {**whole.failed, **whole.doubted}
    assert (parts.failed, parts.doubted) == (whole.failed, whole.doubted)

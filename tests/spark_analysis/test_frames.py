"""DataFrames have the rows that the checker makes in this process, and only an action makes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from generators.capture_point import write
from generators.generate import Order, generate
from pcap_tools.errors import TopicsharkError
from spark_analysis import check, frames
from spark_analysis.checker.control import subscription_rows
from spark_analysis.checker.part_check import check_part
from spark_analysis.checker.session_jobs import EVER, look_alone
from spark_analysis.checker.session_plans import plan_sessions
from spark_analysis.ingest import ingest
from spark_analysis.planning import wanted_dialects
from tests.conftest import REPO
from tests.spark_analysis.traffic import codec_rows, spark_rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

# No lost ACKs: a request sent again for longer than the margin of a part is told otherwise than of the whole.
FAULTS = {"forward-missing": 0.1, "forward-altered": 0.1}
TABLES = ("exchanges", "deliveries", "findings", "subscriptions")
PARTS_OF = 2_500


def make(path: Path, dialect: str = "colon", seed: int = 1) -> Path:
    order = Order("building", seed, (dialect,), sensors=3, dashboards=2, actuators=1, rounds=8, faults=FAULTS)
    write(generate(order).capture, path)
    return path


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    make(folder / "one.pcap")
    make(folder / "two.pcap", "mqttsn", 2)
    return folder


def judged(*captures: Path) -> dict[str, set[str]]:
    """The tables of captures that are a session each: one part, in this process."""
    found: dict[str, list[pa.Table]] = {name: [] for name in TABLES}
    dialects = wanted_dialects()
    sessions, _ = plan_sessions(list(map(str, captures)), dialects, False, check.PART_BYTES, in_process)
    for session in sessions:
        for one in look_alone(session, dialects, ()):
            part = check_part(one.events, one.known.part(EVER), session.name, one.known.starts_late)
            found["exchanges"].append(part.exchanges)
            found["deliveries"].append(part.deliveries)
            found["findings"].append(part.findings)
            found["subscriptions"].append(subscription_rows(one.known.context.subscriptions, session.name))
    return {name: as_set(row for table in tables for row in table.to_pylist()) for name, tables in found.items()}


def in_process(function: Any, items: Any, label: str) -> list[Any]:
    return [function(item) for item in items]


def as_set(rows: Iterable[dict[str, Any]]) -> set[str]:
    return {repr(sorted(row.items())) for row in rows}


def rows_of(frame: DataFrame) -> set[str]:
    return as_set(row.asDict() for row in frame.drop("level").collect())


def test_rows_and_schemas_are_those_of_the_checker(spark: SparkSession, captures: Path) -> None:
    analysis = frames.analyse(spark, captures)
    expected = judged(captures / "one.pcap", captures / "two.pcap")
    assert analysis.failed == {}
    for name in TABLES:
        frame: DataFrame = getattr(analysis, name)
        assert expected[name], name
        assert rows_of(frame) == expected[name], name
        assert frame.schema == from_arrow_schema(frames.SCHEMAS[name]), name
    assert spark_rows(analysis.messages) == [
        row for name in ("one", "two") for row in codec_rows(captures / f"{name}.pcap", name)
    ]
    levels = {row.level for row in analysis.findings.select("rule", "level").where("rule = 'D-MISSING'").collect()}
    assert levels == {"error"}


def test_a_session_in_parts_has_the_same_rows(
    spark: SparkSession, captures: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From a capture that is cut, and from the files of an ingested folder."""
    monkeypatch.setattr(check, "PART_BYTES", PARTS_OF)
    monkeypatch.setattr("spark_analysis.checker.session_jobs.DENSE_ROWS", 0)
    one = captures / "one.pcap"
    expected = judged_whole(one, monkeypatch)
    ingest(spark, [str(one)], tmp_path / "in", split_bytes=PARTS_OF)
    for source, names in ((one, TABLES), (tmp_path / "in", ("findings",))):
        analysis = frames.analyse(spark, source)
        assert len(analysis._jobs) >= 3
        for name in names:
            assert rows_of(getattr(analysis, name)) == expected[name], (source, name)
        assert spark_rows(analysis.messages) == codec_rows(one, "one")


def judged_whole(capture: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    with monkeypatch.context() as patch:
        patch.setattr(check, "PART_BYTES", 1 << 30)
        return judged(capture)


def test_nothing_is_judged_before_an_action(spark: SparkSession, tmp_path: Path) -> None:
    """The capture goes away before the DataFrame is made: only the action misses it."""
    capture = make(tmp_path / "run.pcap")
    analysis = frames.analyse(spark, str(capture))
    capture.unlink()
    frame = analysis.deliveries.where("outcome = 'missing'")
    with pytest.raises(PySparkException, match=r"run\.pcap"):
        frame.count()


def test_rows_stay_with_spark(
    spark: SparkSession, captures: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    frame = frames.analyse(spark, captures / "one.pcap").deliveries
    asked: list[str] = []
    for name in ("collect", "toPandas", "toArrow", "toLocalIterator"):
        monkeypatch.setattr(type(frame), name, lambda *_, told=name: asked.append(told))
    expected = len(judged(captures / "one.pcap")["deliveries"])
    assert frame.count() == expected
    frame.write.parquet(str(tmp_path / "kept"))
    assert asked == []
    assert pq.read_table(tmp_path / "kept").num_rows == expected
    frame.collect()
    assert asked == ["collect"], "else nothing was watched"


def test_merged_captures_are_one_session(spark: SparkSession, tmp_path: Path) -> None:
    pair = [make(tmp_path / "a.pcap", seed=4), make(tmp_path / "b.pcap", seed=5)]
    analysis = frames.analyse(spark, pair, merge=True)
    (session,) = check.check(list(map(str, pair)), merge=True, engine="local", limit=10**6).sessions
    found = analysis.findings.collect()
    assert {row.session for row in found} == {"a"} == {row.session for row in analysis.messages.collect()}
    assert sorted((row.rule, row.level, row.verdict, row.capture, row.frame, row.text) for row in found) == sorted(
        (one.rule, one.level, one.verdict, one.capture, one.frame, one.text) for one in session.findings
    )
    assert {row.capture for row in found} == set(map(str, pair))


def test_what_cannot_be_read_is_told(spark: SparkSession, tmp_path: Path) -> None:
    make(tmp_path / "good.pcap")
    (tmp_path / "bad.pcap").write_text("no capture")
    analysis = frames.analyse(spark, tmp_path)
    assert list(analysis.failed) == [str(tmp_path / "bad.pcap")]
    assert analysis.messages.count() == len(codec_rows(tmp_path / "good.pcap", "good"))
    with pytest.raises(TopicsharkError, match=r"bad\.pcap"):
        frames.analyse(spark, tmp_path / "bad.pcap")


def test_the_five_functions_take_the_options(spark: SparkSession, captures: Path) -> None:
    two = captures / "two.pcap"
    assert frames.messages(spark, two, dialects=["colon"]).count() == 0
    assert frames.exchanges(spark, two, dialects=["colon"]).count() == 0
    assert frames.deliveries(spark, two, brokers=["192.0.2.1:9"]).count() == 0
    subscribed = frames.subscriptions(spark, captures, dialects=["mqttsn"])
    assert {row.session for row in subscribed.collect()} == {"two"}
    findings = frames.findings(spark, captures, merge=True)
    assert {row.session for row in findings.collect()} == {"one"}


def test_the_page_lists_every_column_with_its_type() -> None:
    page = (REPO / "docs" / "reference" / "schemas.md").read_text()
    for name, schema in frames.SCHEMAS.items():
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
        told = re.findall(r"^\| `(\w+)` \| `(\S+)` \|", section, re.M)
        spark_types = from_arrow_schema(schema)
        assert told == [(one.name, one.dataType.simpleString()) for one in spark_types], name

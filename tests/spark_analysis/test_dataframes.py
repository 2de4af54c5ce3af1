"""The DataFrames of `analyse` have the rows that the passes give in this process, and only an action makes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from generators.capture.capture_point import write
from generators.generate import GeneratorOptions, generate
from pcap_tools.errors import TopicsharkError
from spark_analysis import check, dataframes, pipeline
from spark_analysis.dataframes import Analysis, analyse
from spark_analysis.engine.engines import Packed, SparkEngine
from spark_analysis.ingest import ingest
from spark_analysis.results.verdicts import finding_of
from spark_analysis.sources.options import SOURCE_COLUMNS
from tests.conftest import REPO
from tests.spark_analysis.local_tables import TABLES, local_tables, texts
from tests.spark_analysis.traffic import codec_rows, spark_rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

# With loss, so that there is evidence too.
FAULTS = {"forward-missing": 0.1, "forward-altered": 0.1, "ack-missing": 0.1, "network-loss": 0.05}
# A capture in three units and three buckets.
UNIT_BYTES, BUCKET_ROWS = 3_000, 60
COLLECTED_KINDS = {"facts", "edges", "runs"}
MAY_BE_COLLECTED = {"retains"}  # an empty row: some topic has retained messages


def make(path: Path, dialect: str = "colon", seed: int = 1, rounds: int = 8) -> Path:
    order = GeneratorOptions(
        "building", seed, (dialect,), sensors=3, dashboards=2, actuators=1, rounds=rounds, faults=FAULTS
    )
    write(generate(order).capture, path)
    return path


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    make(folder / "one.pcap")
    make(folder / "two.pcap", "mqttsn", 2)
    return folder


@pytest.fixture
def in_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "UNIT_BYTES", UNIT_BYTES)
    monkeypatch.setattr(pipeline, "BUCKET_ROWS", BUCKET_ROWS)


@pytest.fixture
def analysed(spark: SparkSession) -> Iterator[Callable[..., Analysis]]:
    """`analyse`; what it keeps is released in the end."""
    made: list[Analysis] = []

    def run(source: Any, **options: Any) -> Analysis:
        made.append(analyse(spark, source, **options))
        return made[-1]

    yield run
    for one in made:
        one.release()


def rows_of(table: DataFrame) -> list[str]:
    return texts(row.asDict(recursive=True) for row in table.collect())


def written(folder: Path, name: str) -> list[str]:
    """Read without Spark."""
    return texts(pq.read_table(folder / name).to_pylist())


def test_rows_and_schemas_are_those_of_the_passes_here(analysed: Callable[..., Analysis], captures: Path) -> None:
    """Two sessions of one unit each; the schema is that of the table, and what Spark says it is."""
    analysis = analysed(captures)
    expected = local_tables(captures)
    assert analysis.failed == {}
    assert list(dataframes.SCHEMAS) == ["messages", *TABLES]
    for name in TABLES:
        table: DataFrame = getattr(analysis, name)
        assert table.schema == from_arrow_schema(dataframes.SCHEMAS[name]), name
        assert rows_of(table) == expected[name] != [], name
    assert analysis.messages.schema == from_arrow_schema(dataframes.SCHEMAS["messages"])
    expected_messages = [row for name in ("one", "two") for row in codec_rows(captures / f"{name}.pcap", name)]
    assert spark_rows(analysis.messages.select(*SOURCE_COLUMNS)) == expected_messages


def test_findings_and_verdicts_are_those_of_the_command(analysed: Callable[..., Analysis], captures: Path) -> None:
    """A row of `findings` is all that its sentence needs."""
    analysis = analysed(captures / "one.pcap")
    (session,) = check.check([str(captures / "one.pcap")], engine="local", limit=10**6).sessions
    found = [finding_of(row.asDict(recursive=True)) for row in analysis.findings.collect()]
    assert sorted(map(repr, found)) == sorted(map(repr, session.findings)) != []
    assert sorted(one.text for one in found) == sorted(one.text for one in session.findings)
    rules = [tuple(row) for row in analysis.verdicts.drop("session", "dialect").collect()]
    told = [(rule.id, rule.level, rule.verdict, rule.checked, rule.failed, rule.inconclusive) for rule in session.rules]
    assert sorted(rules) == sorted(told)


def test_tables_of_a_cut_session_are_written_and_read_back(
    analysed: Callable[..., Analysis], captures: Path, tmp_path: Path, in_units: None
) -> None:
    """It is read in units and judged in buckets of clients and topics."""
    analysis = analysed(captures / "one.pcap")
    assert len(analysis._sessions[0].units) >= 3
    expected = local_tables(captures / "one.pcap")
    analysis.write(tmp_path / "out")
    assert {name: written(tmp_path / "out", name) for name in TABLES} == expected
    assert all(expected.values())
    assert len(written(tmp_path / "out", "messages")) == len(codec_rows(captures / "one.pcap", "one"))
    for name, schema in dataframes.SCHEMAS.items():
        assert pq.read_table(tmp_path / "out" / name).schema.names == schema.names, name


def test_a_capture_that_could_not_be_read_is_read_again(analysed: Callable[..., Analysis], tmp_path: Path) -> None:
    """The error is not kept with the rows."""
    path = tmp_path / "run.pcap"
    write(generate(GeneratorOptions("building", 1, ("colon",), sensors=1, dashboards=1, rounds=1)).capture, path)
    analysis = analysed(str(path))
    path.rename(tmp_path / "away")
    with pytest.raises(PySparkException, match="cannot be opened"):
        analysis.verdicts.collect()
    (tmp_path / "away").rename(path)
    assert analysis.verdicts.collect() != []


def test_what_is_released_is_made_again(analysed: Callable[..., Analysis], tmp_path: Path) -> None:
    """What was kept needs no capture, also when it was made again; a table that was made before can be used still."""
    capture = make(tmp_path / "run.pcap")
    expected = local_tables(capture)
    analysis = analysed(capture)
    before = analysis.findings
    assert rows_of(before) == expected["findings"] != []
    analysis.release()
    assert rows_of(analysis.findings) == rows_of(before) == expected["findings"]
    moved = capture.rename(tmp_path / "moved")
    assert rows_of(analysis.deliveries) == expected["deliveries"], "from what was kept"
    analysis.release()
    with pytest.raises(PySparkException, match=r"run\.pcap"):
        analysis.findings.count()
    analysis.release()
    moved.rename(capture)
    assert rows_of(analysis.exchanges) == expected["exchanges"]


def test_an_ingested_folder_has_the_same_tables(
    spark: SparkSession, analysed: Callable[..., Analysis], captures: Path, tmp_path: Path, in_units: None
) -> None:
    """Its Parquet files are the units; the captures are gone."""
    capture = make(tmp_path / "run.pcap", seed=3)
    expected, messages = local_tables(capture), codec_rows(capture, "run")
    ingest(spark, [str(capture)], tmp_path / "in", split_bytes=UNIT_BYTES)
    capture.unlink()
    analysis = analysed(tmp_path / "in")
    assert len(analysis._sessions[0].units) >= 3
    assert rows_of(analysis.findings) == expected["findings"] != []
    assert rows_of(analysis.deliveries) == expected["deliveries"]
    assert spark_rows(analysis.messages.select(*SOURCE_COLUMNS)) == messages


def test_nothing_is_judged_before_an_action(analysed: Callable[..., Analysis], tmp_path: Path) -> None:
    """The capture goes away before the DataFrames are made: only the action misses it."""
    capture = make(tmp_path / "run.pcap")
    analysis = analysed(str(capture))
    capture.unlink()
    tables = [getattr(analysis, name).where("session = 'run'") for name in TABLES]
    with pytest.raises(PySparkException, match=r"run\.pcap"):
        tables[0].count()


@pytest.mark.parametrize("capture", ["one", "two"])  # topics are names, or numbers
def test_rows_stay_with_spark(
    capture: str, analysed: Callable[..., Analysis], captures: Path, monkeypatch: pytest.MonkeyPatch, in_units: None
) -> None:
    """To the driver come only facts about sessions, a few rows for each unit, by name: no table, no message."""
    kinds: list[str] = []
    analysis = analysed(captures / f"{capture}.pcap")
    units = len(analysis._sessions[0].units)
    frame = type(analysis.messages)
    collect, to_arrow = SparkEngine.collect, frame.toArrow

    def watched(*arguments: Any) -> list[Packed]:
        with monkeypatch.context() as patch:
            patch.setattr(frame, "toArrow", to_arrow)
            found = collect(*arguments)
        kinds.extend(row.kind for row in found)
        return found

    asked: list[str] = []
    for name in ("collect", "toPandas", "toArrow", "toLocalIterator"):
        monkeypatch.setattr(frame, name, lambda *_, told=name: asked.append(told))
    monkeypatch.setattr(SparkEngine, "collect", watched)
    expected = len(local_tables(captures / f"{capture}.pcap")["deliveries"])
    assert analysis.deliveries.count() == expected
    assert asked == []
    assert COLLECTED_KINDS <= set(kinds) <= COLLECTED_KINDS | MAY_BE_COLLECTED
    assert len(kinds) <= 2 + 2 * units
    analysis.deliveries.collect()
    assert asked == ["collect"], "else nothing was watched"


def test_merged_captures_are_one_session(analysed: Callable[..., Analysis], tmp_path: Path) -> None:
    pair = [make(tmp_path / "a.pcap", seed=4), make(tmp_path / "b.pcap", seed=5)]
    analysis = analysed(pair, merge=True)
    expected = local_tables(*pair, merge=True)
    found = analysis.findings.collect()
    assert texts(row.asDict(recursive=True) for row in found) == expected["findings"]
    assert {row.session for row in found} == {"a"} == {row.session for row in analysis.messages.collect()}
    assert {row.capture for row in found} == set(map(str, pair))


def test_what_cannot_be_read_is_told(analysed: Callable[..., Analysis], tmp_path: Path) -> None:
    good = make(tmp_path / "good.pcap")
    (tmp_path / "bad.pcap").write_text("no capture")
    analysis = analysed(tmp_path)
    assert list(analysis.failed) == [str(tmp_path / "bad.pcap")]
    assert analysis.messages.count() == len(codec_rows(good, "good"))
    assert rows_of(analysis.verdicts) == local_tables(good)["verdicts"]
    with pytest.raises(TopicsharkError, match=r"bad\.pcap"):
        analysed(tmp_path / "bad.pcap")


def test_damage_of_a_large_capture_is_told_at_once(
    analysed: Callable[..., Analysis], tmp_path: Path, in_units: None
) -> None:
    capture = make(tmp_path / "cut.pcap")
    assert analysed(capture).damage == []
    capture.write_bytes(capture.read_bytes()[:-5])
    (sentence,) = analysed(capture).damage
    assert sentence.startswith(f"{capture}: damaged at byte ")


def test_the_functions_take_the_options(spark: SparkSession, captures: Path) -> None:
    two = captures / "two.pcap"
    assert dataframes.messages(spark, two, dialects=["colon"]).count() == 0
    assert dataframes.exchanges(spark, two, dialects=["colon"]).count() == 0
    assert dataframes.deliveries(spark, two, brokers=["192.0.2.1:9"]).count() == 0
    subscribed = dataframes.subscriptions(spark, captures, dialects=["mqttsn"])
    assert {row.session for row in subscribed.collect()} == {"two"}
    findings = dataframes.findings(spark, captures, merge=True)
    assert {row.session for row in findings.collect()} == {"one"}


def test_tables_join_in_sql(spark: SparkSession, analysed: Callable[..., Analysis], captures: Path) -> None:
    """A finding about a missing forward, and the row of the copy that was due."""
    analysis = analysed(captures)
    analysis.findings.createOrReplaceTempView("findings")
    analysis.deliveries.createOrReplaceTempView("deliveries")
    joined = spark.sql("""
        SELECT f.session, f.frame, d.subscriber FROM findings f JOIN deliveries d
        ON f.session = d.session AND f.frame = d.publish.frame AND f.client = d.subscriber
        WHERE f.rule = 'D-MISSING' AND f.state = 'fail' AND d.outcome = 'missing'
    """)
    expected = [
        (one["session"], one["frame"], one["client"])
        for one in map(json.loads, local_tables(captures)["findings"])
        if (one["rule"], one["state"]) == ("D-MISSING", "fail")
    ]
    assert sorted(map(tuple, joined.collect())) == sorted(expected) != []


def test_the_page_lists_every_column_with_its_type() -> None:
    page = (REPO / "docs" / "reference" / "schemas.md").read_text()
    for name, schema in dataframes.SCHEMAS.items():
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
        told = re.findall(r"^\| `(\w+)` \| `(\S+)` \|", section, re.M)
        spark_types = from_arrow_schema(schema)
        assert told == [(one.name, one.dataType.simpleString()) for one in spark_types], name

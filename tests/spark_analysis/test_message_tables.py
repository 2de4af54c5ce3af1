"""Any DataFrame with the columns of `messages` gives the tables that the captures give."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from generators.capture.capture_point import write
from generators.generate import GeneratorOptions, generate
from pcap_tools import load_dialect
from pcap_tools.errors import TopicsharkError
from spark_analysis import message_tables, pipeline
from spark_analysis.checker.rulebook.catalogue import RULES
from spark_analysis.checker.rulebook.needs import needs_of
from spark_analysis.checker.session.events import COLUMNS
from spark_analysis.dataframes import Analysis, analyse
from spark_analysis.sources.options import ALL_SOURCE_COLUMNS
from tests.spark_analysis.local_tables import TABLES, local_tables, texts

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

FAULTS = {"forward-missing": 0.1, "forward-altered": 0.1, "ack-missing": 0.1, "network-loss": 0.05}
NEEDED = ("session", *COLUMNS)
OF_SOME = ("key", "number", "port", "accepted")  # of some dialects only


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("captures")
    paths = []
    for seed, dialect in enumerate(("colon", "topicnumber"), 1):
        order = GeneratorOptions(
            "building", seed, (dialect,), sensors=3, dashboards=2, actuators=1, rounds=6, faults=FAULTS
        )
        paths.append(folder / f"{dialect}.pcap")
        write(generate(order).capture, paths[-1])
    return paths


@pytest.fixture(scope="module")
def messages(spark: SparkSession, captures: list[Path]) -> pa.Table:
    """The rows of the data source, here."""
    reader = spark.read.format("topicshark").option("columns", ",".join(ALL_SOURCE_COLUMNS))
    return reader.load([str(path) for path in captures]).toArrow()


@pytest.fixture
def analysed(spark: SparkSession) -> Iterator[Callable[[DataFrame], Analysis]]:
    made: list[Analysis] = []

    def run(table: DataFrame) -> Analysis:
        made.append(analyse(spark, table))
        return made[-1]

    yield run
    for one in made:
        one.release()


def tables_of(analysis: Analysis, names: tuple[str, ...] = TABLES) -> dict[str, list[str]]:
    return {name: texts(row.asDict(recursive=True) for row in getattr(analysis, name).collect()) for name in names}


def shuffled(table: pa.Table) -> pa.Table:
    places = list(range(len(table)))
    random.Random(7).shuffle(places)
    return table.take(pa.array(places))


def test_shuffled_parquet_with_renamed_partitions(
    spark: SparkSession,
    analysed: Callable[[DataFrame], Analysis],
    captures: list[Path],
    messages: pa.Table,
    tmp_path: Path,
) -> None:
    """Plain Parquet, as another program would write it: columns in another order, more of them, sessions in folders."""
    columns = [*reversed(NEEDED), "length"]
    table = shuffled(messages).select(columns).rename_columns(["night" if one == "session" else one for one in columns])
    for number in range(3):
        part = table.slice(number * (len(table) // 3), len(table) if number == 2 else len(table) // 3)
        pq.write_to_dataset(
            part, tmp_path / "in", partition_cols=["night"], basename_template=f"{number}-{{i}}.parquet"
        )
    assert len(list((tmp_path / "in" / "night=colon").iterdir())) == 3
    found = tables_of(analysed(spark.read.parquet(str(tmp_path / "in")).withColumnRenamed("night", "session")))
    expected = local_tables(*captures)
    assert found == expected
    assert all(expected.values())


def test_the_data_source_gives_a_table_that_is_judged_in_blocks(
    spark: SparkSession,
    analysed: Callable[[DataFrame], Analysis],
    captures: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Blocks of frames are the units; only the columns that rules need are read."""
    monkeypatch.setattr(message_tables, "BLOCK_FRAMES", 40)
    monkeypatch.setattr(pipeline, "BUCKET_ROWS", 60)
    reader = spark.read.format("topicshark").option("columns", ",".join(NEEDED)).option("splitsize", "0.003")
    analysis = analysed(reader.load(str(captures[0])).orderBy("payload"))
    assert len(analysis._sessions[0].units) >= 3
    expected = local_tables(captures[0])
    names = ("findings", "exchanges")
    assert tables_of(analysis, names) == {name: expected[name] for name in names}


@pytest.mark.parametrize(
    ("column", "rules"),
    [
        ("key", "A-"),
        ("number", "N-"),
        ("ip_id", "A-DUPLICATE"),
        ("error", "W-"),
        ("copy_of", "all rules"),
        ("time_ns", "all rules"),
        ("session", "all rules"),
    ],
)
def test_a_column_that_a_rule_needs_is_missing(
    spark: SparkSession, messages: pa.Table, column: str, rules: str
) -> None:
    table = spark.createDataFrame(messages.select([name for name in NEEDED if name != column]))
    with pytest.raises(TopicsharkError) as told:
        analyse(spark, table)
    assert str(told.value).startswith(f"the table of messages lacks columns that rules need: {column} (")
    assert rules in str(told.value)


def test_all_missing_columns_are_named(spark: SparkSession, messages: pa.Table) -> None:
    table = spark.createDataFrame(messages.select(["session", "capture", "frame"]))
    with pytest.raises(TopicsharkError) as told:
        analyse(spark, table)
    for name in COLUMNS:
        assert (f" {name} (" in str(told.value)) == (name not in ("capture", "frame")), name


def test_a_column_that_no_rule_of_the_dialects_needs_may_be_missing(
    spark: SparkSession, analysed: Callable[[DataFrame], Analysis], captures: list[Path], messages: pa.Table
) -> None:
    """ACKs of colon come in order, its topics have no numbers."""
    rows = messages.filter(pc.equal(messages["dialect"], "colon"))
    table = spark.createDataFrame(rows.select([name for name in NEEDED if name not in OF_SOME]))
    expected = local_tables(captures[0])
    assert tables_of(analysed(table), ("findings", "exchanges")) == {
        name: expected[name] for name in ("findings", "exchanges")
    }


def test_a_rule_that_reads_codes_needs_them(
    spark: SparkSession, messages: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a dialect that has codes, and only there."""
    mqttsn, colon = load_dialect("mqttsn"), load_dialect("colon")
    assert needs_of([mqttsn])["accepted"] == "D-MISSING"  # a refused subscription demands nothing
    for name in ("A-LATE", "A-MISSING"):
        monkeypatch.setitem(RULES, name, replace(RULES[name], columns=("accepted",)))
    assert needs_of([colon, mqttsn])["accepted"] == "A-LATE, A-MISSING, D-MISSING"
    assert needs_of([load_dialect("mqttsn"), load_dialect("rolebyte")])["accepted"] == "A-LATE, A-MISSING, D-MISSING"
    assert "accepted" not in needs_of([colon])
    rows = messages.select([name for name in NEEDED if name != "accepted"])
    in_mqttsn = rows.set_column(rows.schema.get_field_index("dialect"), "dialect", pa.array(["mqttsn"] * len(rows)))
    with pytest.raises(TopicsharkError, match=r"rules need: accepted \(A-LATE, A-MISSING, D-MISSING\)"):
        analyse(spark, spark.createDataFrame(in_mqttsn))


def test_what_rules_say_they_read_is_read() -> None:
    assert {column for rule in RULES.values() for column in rule.columns} <= set(COLUMNS)


def test_an_empty_table(spark: SparkSession, messages: pa.Table) -> None:
    table = spark.createDataFrame(messages.select(NEEDED)).where("frame < 0")
    with pytest.raises(TopicsharkError, match="the table of messages is empty"):
        analyse(spark, table)

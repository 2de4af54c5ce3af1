"""`spark.read.format("topicshark")`: the rows of the codec, only what was asked for, errors that say what is wrong."""

from __future__ import annotations

import gzip
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pcap_tools.errors import UsageError
from spark_analysis.sources.data_source import CaptureReader, TopicsharkSource
from spark_analysis.sources.options import SOURCE_COLUMNS, arrow_schema, parse_options
from tests.conftest import REPO
from tests.spark_analysis.traffic import codec_rows, in_order, spark_rows, write_capture

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ODD_DIALECT = str(REPO / "tests" / "dialects" / "nestedack.toml")


def load(spark: SparkSession, path: object, **options: object) -> DataFrame:
    return (
        spark.read.format("topicshark").options(**{name: str(value) for name, value in options.items()}).load(str(path))
    )


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three dialects, one with gzip, a pcapng with fragments, copies and noise, one cut short."""
    folder = tmp_path_factory.mktemp("captures")
    for name in ("colon", "mqttsn", "rolebyte"):
        write_capture(folder / f"{name}.pcap", name)
    write_capture(folder / "fragments.pcapng", "colon", "rolebyte", format="pcapng", mtu=68, point="any")
    noisy = write_capture(folder / "noisy.pcap", "colon", point="any", copies=3, noise=0.5)
    (folder / "zipped.pcap.gz").write_bytes(gzip.compress(noisy.read_bytes()))
    (folder / "cut.pcap").write_bytes(noisy.read_bytes()[:-7])
    return folder


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield spark
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def expected(folder: Path, keep_other: bool = False) -> list[tuple[object, ...]]:
    files = sorted(path for path in folder.iterdir() if ".pcap" in path.name)
    return in_order(row for path in files for row in codec_rows(path, path.name.split(".")[0], None, keep_other))


# --- Rows -----------------------------------------------------------------------------------------------------------


def test_a_folder_gives_the_rows_of_the_codec_in_every_column(spark: SparkSession, captures: Path) -> None:
    assert spark_rows(load(spark, captures)) == expected(captures)


def test_small_splits_give_the_same_rows_in_more_partitions(spark: SparkSession, captures: Path) -> None:
    frame = load(spark, captures, splitsize=0.01, keepother="true")
    assert frame.rdd.getNumPartitions() > 2 * len(list(captures.iterdir()))
    assert spark_rows(frame) == expected(captures, keep_other=True)


def test_a_dialect_may_be_a_file_of_the_users(spark: SparkSession, tmp_path: Path) -> None:
    path = write_capture(tmp_path / "odd.pcap", ODD_DIALECT)
    rows = spark_rows(load(spark, path, dialect=f"{ODD_DIALECT}, colon"))
    assert rows
    assert [row[2:] for row in rows] == [row[2:] for row in codec_rows(path, "odd", ODD_DIALECT)]


def test_several_paths_and_one_session_for_all(spark: SparkSession, captures: Path) -> None:
    paths = [str(captures / "colon.pcap"), str(captures / "rolebyte.pcap")]
    frame = spark.read.format("topicshark").option("merge", "true").load(paths)
    sessions = {(row.session, row.dialect) for row in frame.select("session", "dialect").collect()}
    assert sessions == {("colon", "colon"), ("colon", "rolebyte")}


# --- Only what was asked for ----------------------------------------------------------------------------------------


def test_a_schema_chooses_columns_and_their_order(spark: SparkSession, captures: Path) -> None:
    frame = (
        spark.read.format("topicshark")
        .schema("topic STRING, session STRING, frame BIGINT")
        .load(str(captures / "colon.pcap"))
    )
    places = [SOURCE_COLUMNS.index(name) for name in ("topic", "session", "frame")]
    wanted = [tuple(row[place] for place in places) for row in codec_rows(captures / "colon.pcap", "colon")]
    assert [tuple(row) for row in frame.collect()] == wanted


def test_the_option_columns_does_the_same(spark: SparkSession, captures: Path) -> None:
    frame = load(spark, captures / "colon.pcap", columns="frame, session")
    assert frame.columns == ["frame", "session"]
    assert frame.count() == len(codec_rows(captures / "colon.pcap", ""))


def test_rows_are_counted_though_only_the_session_is_asked_for(spark: SparkSession, captures: Path) -> None:
    frame = load(spark, captures / "colon.pcap", columns="session")
    assert frame.count() == len(codec_rows(captures / "colon.pcap", ""))


def test_filters_are_answered_by_the_source_as_by_spark(pushing: SparkSession, captures: Path) -> None:
    path, condition = captures / "fragments.pcapng", "meaning IN ('ack', 'publish') AND frame % 2 = 0 AND dport = 50000"
    pushed = load(pushing, path).where(condition)
    plan = pushed._jdf.queryExecution().executedPlan().toString()
    assert "% 2" in plan
    assert "50000" not in plan
    rows = spark_rows(pushed)
    pushing.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    assert rows
    assert rows == spark_rows(load(pushing, path).where(condition))


# --- Planning -------------------------------------------------------------------------------------------------------


def reader_of(path: Path, **options: str) -> CaptureReader:
    source = TopicsharkSource({"path": str(path), **options})
    schema = source.schema()
    assert isinstance(schema, StructType)
    reader = source.reader(schema)
    assert isinstance(reader, CaptureReader)
    return reader


def test_planning_again_does_not_walk_again(captures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from spark_analysis.sources import planning

    reader = reader_of(captures / "colon.pcap", splitsize="0.01")
    first = reader.partitions()
    monkeypatch.delattr(planning, "plan_splits")  # who calls it now fails
    assert [pickle.dumps(one.unit.split) for one in reader.partitions()] == [
        pickle.dumps(one.unit.split) for one in first
    ]


def test_a_capture_that_changed_is_planned_anew(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "a.pcap", rounds=2)
    before = reader_of(path, splitsize="0.01").partitions()
    write_capture(path, rounds=8)
    after = reader_of(path, splitsize="0.01").partitions()
    assert len(after) > len(before)


def test_partitions_are_small(captures: Path) -> None:
    sizes = [len(pickle.dumps(one)) for one in reader_of(captures / "fragments.pcapng", splitsize="0.01").partitions()]
    assert len(sizes) > 3
    assert max(sizes) < 20_000


def test_options_are_those_of_the_docstring() -> None:
    documented = TopicsharkSource.__doc__ or ""
    values = {"dialect": "colon", "columns": "frame", "merge": "true", "keepother": "true"}
    for name in ("dialect", "columns", "merge", "keepother", "splitsize", "settle", "maxfilespertrigger"):
        assert f"\n    {name} " in documented
        assert parse_options({"path": "x", name.upper(): values.get(name, "5")})


# --- Errors ---------------------------------------------------------------------------------------------------------


def told(error: PySparkException) -> str:
    """The last line of Python's trace in Spark's error."""
    lines = [line for line in str(error).splitlines() if "Error: " in line and line[:1] not in " \t"]
    return lines[-1]


@pytest.mark.parametrize(
    ("path", "dialect", "says"),
    [
        ("/nowhere/at/all.pcap", "colon", "/nowhere/at/all.pcap: there is no such file or folder"),
        ("/nowhere/*.pcap", "colon", "/nowhere/*.pcap: no captures there"),
        ("/nowhere", "klingon", "klingon"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_line(spark: SparkSession, path: str, dialect: str, says: str) -> None:
    with pytest.raises(PySparkException) as caught:
        load(spark, path, dialect=dialect).count()
    assert says in told(caught.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"columns": "frame,colour"}, "topicshark has no column 'colour'; there are: session, "),
        ({"columns": "frame,frame"}, "the column 'frame' is asked for twice"),
        ({"columns": ","}, "the option columns names no column"),
        ({"splitsize": "huge"}, "the option splitsize is a number above 0, not 'huge'"),
        ({"settle": "-1"}, "the option settle is a number above 0, not '-1'"),
        ({"merge": "perhaps"}, "the option merge is true or false, not 'perhaps'"),
        ({"dialekt": "colon"}, "topicshark has no option 'dialekt'; there are: dialect, "),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        TopicsharkSource({"path": "a.pcap", **options}).schema()


def test_without_a_path_there_is_nothing_to_load() -> None:
    with pytest.raises(UsageError, match="nothing to load"):
        TopicsharkSource({}).schema()


def test_a_file_that_is_no_capture_is_named_before_any_task_runs(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_text("this is not a capture, whatever its name says")
    with pytest.raises(PySparkException) as caught:
        load(spark, tmp_path).count()
    assert str(tmp_path / "a.pcap") in told(caught.value)
    assert "Job aborted" not in str(caught.value)


def test_a_schema_of_other_types_is_refused(spark: SparkSession, captures: Path) -> None:
    with pytest.raises(PySparkException) as caught:
        spark.read.format("topicshark").schema("topic BIGINT").load(str(captures)).count()
    assert "the column 'topic' of topicshark is a string, not bigint" in told(caught.value)


def test_the_schema_is_that_of_messages_with_the_session_first(spark: SparkSession, captures: Path) -> None:
    frame = load(spark, captures)
    assert frame.columns == list(SOURCE_COLUMNS) == arrow_schema(SOURCE_COLUMNS).names
    assert frame.columns[0] == "session"


def test_java_takes_rows_without_looking_at_bounds(spark: SparkSession) -> None:
    """Most of the time goes there; `extraJavaOptions` are left to the user."""
    context = spark.sparkContext
    assert context._jvm is not None
    assert context._jvm.System.getProperty("arrow.enable_unsafe_memory_access") == "true"
    assert "arrow" not in (context.getConf().get("spark.driver.extraJavaOptions") or "")

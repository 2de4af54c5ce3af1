"""Verdicts on a stream are those of the batch, each row once, however the stream is cut and whenever it dies."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from generators.capture.capture_point import write
from generators.generate import GeneratorOptions, generate
from pcap_tools.errors import TopicsharkError
from spark_analysis import stream_analysis
from spark_analysis.dataframes import Analysis, analyse
from spark_analysis.sources.options import ALL_SOURCE_COLUMNS
from spark_analysis.stream_analysis import MADE, State, StreamAnalysis, follow

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

FAULTS = {"forward-missing": 0.1, "ack-missing": 0.1, "forward-duplicate": 0.1}
MINUTES = 90_000_000_000


def make(folder: Path, count: int) -> list[Path]:
    """Captures a minute and more apart, as a rotating tcpdump leaves them on a quiet line."""
    folder.mkdir()
    paths = []
    for number in range(count):
        order = GeneratorOptions(
            "building", number + 1, ("colon",), sensors=2, dashboards=2, actuators=1, rounds=3, faults=FAULTS
        )
        capture = generate(order).capture
        capture.frames = [replace(frame, time_ns=frame.time_ns + number * MINUTES) for frame in capture.frames]
        paths.append(folder / f"run{number:02}.pcap")
        write(capture, paths[-1])
    return paths


def stream_of(spark: SparkSession, captures: Path, **options: str) -> DataFrame:
    reader = spark.readStream.format("topicshark").options(columns=",".join(ALL_SOURCE_COLUMNS), **options)
    return reader.load(str(captures))


def rows_of(table: DataFrame, without: tuple[str, ...] = ()) -> Counter[str]:
    rows = (row.asDict(recursive=True) for row in table.collect())
    return Counter(repr(sorted((name, value) for name, value in row.items() if name not in without)) for row in rows)


def assert_as_batch(followed: StreamAnalysis, batch: Analysis, without: tuple[str, ...] = ()) -> None:
    for name in MADE:
        expected = rows_of(getattr(batch, name), without)
        assert expected or name == "evidence", name
        assert rows_of(followed.so_far(name), without) == expected, name


def run_all(followed: StreamAnalysis) -> None:
    """Until all that is there has been read."""
    query = followed.start(availableNow=True)
    assert query.awaitTermination(500)


def test_a_stream_gives_the_rows_of_the_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Two sessions; the second is open until the input ends. What another stream gets of the tables is the same."""
    paths = make(tmp_path / "in", 2)
    followed = follow(stream_of(spark, tmp_path / "in", settle="0.001"), tmp_path / "out", provisional=True)
    run_all(followed)
    assert {row.session for row in followed.so_far("verdicts").collect()} == {"run00"}
    assert list(followed.state.sessions) == ["run01"]
    assert {row.session for row in followed.provisional.collect()} == {"run01"}
    followed.settle()
    assert_as_batch(followed, analyse(spark, paths))
    assert (followed.state.rows, list((tmp_path / "out" / "open").rglob("*.parquet"))) == (0, [])

    query = (followed.findings.writeStream.format("memory").queryName("found").trigger(availableNow=True)).start()
    assert query.awaitTermination(500)
    assert rows_of(spark.table("found")) == rows_of(followed.so_far("findings"))


class Dies(Exception):
    """The process, in the test."""


@pytest.fixture
def deaths(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of steps; the calls of a step that is named go through, but for the one that takes its last name away."""
    planned: list[str] = []
    for name in ("_publish", "_settle", "_analysis"):
        before = getattr(stream_analysis._Steps, name)

        def dying(self: object, *given: object, name: str = name, before: object = before) -> object:
            if name in planned:
                planned.remove(name)
                if name not in planned:
                    raise Dies(name)
            return before(self, *given)  # type: ignore[operator]

        monkeypatch.setattr(stream_analysis._Steps, name, dying)
    return planned


@pytest.mark.long
def test_twenty_files_with_restarts_and_deaths(
    spark: SparkSession, tmp_path: Path, deaths: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Files come while the stream is stopped, twice, and it dies before, in and after the making of tables."""
    paths = make(tmp_path / "made", 20)
    (tmp_path / "in").mkdir()
    sizes: list[tuple[int, int, int, int, int]] = []

    def note(state: State) -> None:
        sizes.append((state.batch, len(state.sessions), state.rows, state.kept, state.bytes))

    # `_publish` is called before a batch, too: the second call follows the commit.
    for come, dies in ((7, ["_settle"]), (14, ["_publish", "_publish"]), (20, ["_analysis"])):
        for path in paths[:come]:
            shutil.copy(path, tmp_path / "in" / path.name)
        stream = stream_of(spark, tmp_path / "in", maxFilesPerTrigger="3", settle="0.001")
        followed = follow(stream, tmp_path / "out", on_batch=note)
        deaths.extend(dies)
        with pytest.raises(StreamingQueryException, match="Dies"):
            followed.start(availableNow=True).awaitTermination(500)
        run_all(followed)
    followed.settle()
    with capsys.disabled():
        print("\nbatch, open sessions, messages that wait, messages and bytes of folds:", *sizes)
    batch = analyse(spark, tmp_path / "in")
    largest = max(row["count"] for row in batch.messages.groupBy("session").count().collect())
    assert len(sizes) >= 7
    assert all(sessions == 1 and kept <= rows <= largest for _, sessions, rows, kept, _ in sizes), "only what is open"
    assert_as_batch(followed, batch)


@pytest.mark.long
def test_one_session_in_many_files(spark: SparkSession, tmp_path: Path) -> None:
    """Rotated files of one run are one session of the stream; but for its name all is as with `merge`. Exchanges and
    deliveries come before the session ends, and what is kept for them is less than all its messages."""
    (tmp_path / "in").mkdir()
    order = GeneratorOptions("building", 5, ("colon",), sensors=2, dashboards=2, actuators=1, rounds=6, faults=FAULTS)
    made = generate(order).capture
    run, count = made.frames, 6
    for number in range(count):
        made.frames = [replace(frame, time_ns=frame.time_ns + number * MINUTES // 2) for frame in run]
        write(made, tmp_path / "in" / f"run{number}.pcap")
    states: list[State] = []
    stream = stream_of(spark, tmp_path / "in", merge="true", maxFilesPerTrigger="1", settle="0.001")
    followed = follow(stream, tmp_path / "out", on_batch=states.append)
    run_all(followed)
    before = {name: rows_of(followed.so_far(name)) for name in MADE}
    assert {name for name, rows in before.items() if rows} == {"exchanges", "deliveries"}, "the session has not ended"
    assert [one.rows for one in states] == [len(run) * (number + 1) for number in range(count)]
    assert max(one.kept for one in states) <= 3 * len(run), "of the last minute and some seconds"
    followed.settle()
    assert_as_batch(followed, analyse(spark, tmp_path / "in", merge=True), without=("session", "id"))
    for name, rows in before.items():
        assert rows <= rows_of(followed.so_far(name)), "given out is given out"


def test_a_table_is_no_stream(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TopicsharkError, match="streaming DataFrame"):
        follow(spark.createDataFrame([], "a INT"), tmp_path / "out")
    make(tmp_path / "in", 1)
    with pytest.raises(TopicsharkError, match=r"lacks columns.*ip_id"):
        follow(spark.readStream.format("topicshark").load(str(tmp_path / "in")), tmp_path / "out")
    with pytest.raises(TopicsharkError, match="follow"):
        analyse(spark, stream_of(spark, tmp_path / "in"))

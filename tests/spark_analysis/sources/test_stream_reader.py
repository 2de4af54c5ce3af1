"""`spark.readStream.format("topicshark")`: every message of every finished file once, also over restarts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

from pcap_tools.capture import CaptureWriter, read_frames
from pcap_tools.errors import TopicsharkError
from spark_analysis.sources.data_source import TopicsharkSource
from spark_analysis.sources.stream_reader import FolderStreamReader, finished, written_order
from tests.spark_analysis.traffic import spark_rows, write_capture

FILES = 10
LONG_AGO = 1_700_000_000
NEVER = "999999"  # seconds to settle: only a successor finishes a file, however slow the machine is


def stream_reader(folder: Path, **options: str) -> FolderStreamReader:
    source = TopicsharkSource({"path": str(folder), "settle": NEVER, **options})
    reader = source.streamReader(source.schema())
    assert isinstance(reader, FolderStreamReader)
    return reader


@pytest.fixture(scope="module")
def rotated(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files into which `tcpdump -C` cuts a capture: run.pcap, run.pcap1, … run.pcap9, and one more: run.pcap10."""
    folder = tmp_path_factory.mktemp("rotated")
    frames = list(read_frames(write_capture(folder / "whole.pcap", rounds=8)))
    share = len(frames) // FILES
    paths = []
    for number in range(FILES + 1):
        paths.append(folder / f"run.pcap{number or ''}")
        with CaptureWriter(paths[-1], "pcap", 1) as writer:
            for frame in frames[number * share : (number + 1) * share]:
                writer.write(frame.data, frame.time_ns)
    return paths


def arrive(folder: Path, files: list[Path]) -> None:
    """All but the last have a successor; that one is being written to just now."""
    for file in files:
        shutil.copy(file, folder / file.name)


# --- Which files are finished ---------------------------------------------------------------------------------------


def test_numbers_in_names_count_as_numbers() -> None:
    names = ["/d/run.pcap10", "/d/run.pcap9", "/d/run.pcap", "/d/run.pcap1"]
    assert written_order(names) == ["/d/run.pcap", "/d/run.pcap1", "/d/run.pcap9", "/d/run.pcap10"]


def test_a_file_is_finished_when_the_next_one_of_its_series_is_there(tmp_path: Path) -> None:
    for name in ("a-0900.pcap", "a-1000.pcap", "b-0800.pcap"):
        (tmp_path / name).write_bytes(bytes(24))
    assert finished(map(str, tmp_path.iterdir()), settle=3600) == [str(tmp_path / "a-0900.pcap")]


def test_the_last_file_is_finished_when_it_has_not_changed_for_a_while(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(bytes(24))
    os.utime(path, (LONG_AGO, LONG_AGO))
    assert finished([str(path)], settle=10, now=lambda: LONG_AGO + 9.0) == []
    assert finished([str(path)], settle=10, now=lambda: LONG_AGO + 10.0) == [str(path)]


def test_a_file_into_which_nothing_was_written_yet_is_not_finished(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.touch()
    os.utime(path, (LONG_AGO, LONG_AGO))
    assert finished([str(path)], settle=10) == []


# --- Offsets --------------------------------------------------------------------------------------------------------


def test_an_offset_lists_what_was_read_and_is_still_there(tmp_path: Path, rotated: list[Path]) -> None:
    reader = stream_reader(tmp_path)
    arrive(tmp_path, rotated[:4])
    first = reader.latestOffset(reader.initialOffset(), ReadMaxFiles(2))
    assert first == {"files": [str(tmp_path / "run.pcap"), str(tmp_path / "run.pcap1")]}
    (tmp_path / "run.pcap").unlink()
    second = reader.latestOffset(first, ReadAllAvailable())
    assert second == {"files": [str(tmp_path / "run.pcap1"), str(tmp_path / "run.pcap2")]}
    assert [part.unit.capture for part in reader.partitions(first, second)] == [str(tmp_path / "run.pcap2")]


def test_without_anything_new_the_offset_stays(tmp_path: Path, rotated: list[Path]) -> None:
    reader = stream_reader(tmp_path)
    assert reader.latestOffset({"files": []}, ReadAllAvailable()) == {"files": []}
    arrive(tmp_path, rotated[:2])
    read = {"files": ["/gone.pcap", str(tmp_path / "run.pcap")]}
    assert reader.latestOffset(read, ReadAllAvailable()) == read


def test_a_file_that_finishes_late_is_read_though_later_ones_were(tmp_path: Path, rotated: list[Path]) -> None:
    reader = stream_reader(tmp_path)
    arrive(tmp_path, rotated[4:6])
    first = reader.latestOffset({"files": []}, ReadAllAvailable())
    arrive(tmp_path, rotated[2:3])
    second = reader.latestOffset(first, ReadAllAvailable())
    assert [part.unit.capture for part in reader.partitions(first, second)] == [str(tmp_path / "run.pcap2")]


def test_available_now_leaves_out_what_comes_later(tmp_path: Path, rotated: list[Path]) -> None:
    reader = stream_reader(tmp_path)
    arrive(tmp_path, rotated[:3])
    reader.prepareForTriggerAvailableNow()
    arrive(tmp_path, rotated[3:6])
    offset = reader.latestOffset({"files": []}, ReadAllAvailable())
    assert offset == {"files": [str(tmp_path / "run.pcap"), str(tmp_path / "run.pcap1")]}
    assert reader.latestOffset(offset, ReadAllAvailable()) == offset


def test_what_is_no_capture_is_told_before_it_is_noted_as_read(tmp_path: Path) -> None:
    for name in ("a1.pcap", "a2.pcap"):
        (tmp_path / name).write_text("not a capture at all, but long enough")
    with pytest.raises(TopicsharkError, match=r"a1\.pcap"):
        stream_reader(tmp_path).latestOffset({"files": []}, ReadAllAvailable())


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TopicsharkError, match="there is no such file or folder"):
        stream_reader(tmp_path / "nowhere").latestOffset({"files": []}, ReadAllAvailable())


# --- In Spark -------------------------------------------------------------------------------------------------------


def run_what_is_there(spark: SparkSession, folder: Path, out: Path, **options: str) -> int:
    """Start the query, let it read all that is finished, stop it; how many batches it took."""
    stream = spark.readStream.format("topicshark").options(settle=NEVER, **options).load(str(folder))
    query = (
        stream.writeStream.format("parquet")
        .option("checkpointLocation", str(out / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(out / "messages"))
    )
    assert query.awaitTermination(200)
    return len([progress for progress in query.recentProgress if progress.numInputRows])


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_each_message_of_rotated_files_arrives_once_over_restarts(
    spark: SparkSession, tmp_path: Path, rotated: list[Path]
) -> None:
    folder, out = tmp_path / "folder", tmp_path / "out"
    folder.mkdir()
    arrive(folder, rotated[:4])
    assert run_what_is_there(spark, folder, out, maxFilesPerTrigger="2") == 2
    arrive(folder, rotated[4:8])
    assert run_what_is_there(spark, folder, out) == 1
    assert run_what_is_there(spark, folder, out) == 0
    arrive(folder, rotated[8:])
    assert run_what_is_there(spark, folder, out) == 1
    (folder / rotated[-1].name).unlink()  # it is still being written to: not in the stream
    batch = spark.read.format("topicshark").load(str(folder / "run*"))
    assert batch.select("capture").distinct().count() == FILES
    streamed = spark.read.parquet(str(out / "messages")).select(batch.columns)
    assert spark_rows(streamed) == spark_rows(batch)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_batch_that_was_stopped_before_its_commit_is_read_again_alike(
    spark: SparkSession, tmp_path: Path, rotated: list[Path]
) -> None:
    folder, out = tmp_path / "folder", tmp_path / "out"
    folder.mkdir()
    arrive(folder, rotated[:4])
    run_what_is_there(spark, folder, out)
    # As after a crash between the work on batch 0 and the note that it is done; meanwhile a file has come.
    for note in (out / "checkpoint" / "commits").iterdir():
        note.unlink()
    shutil.rmtree(out / "messages")
    arrive(folder, rotated[4:6])
    run_what_is_there(spark, folder, out)
    streamed = spark.read.parquet(str(out / "messages"))
    finished_files = [str(folder / file.name) for file in rotated[:5]]
    batch = spark.read.format("topicshark").load(finished_files)
    assert spark_rows(streamed.select(batch.columns)) == spark_rows(batch)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_running_query_takes_files_as_they_come(spark: SparkSession, tmp_path: Path, rotated: list[Path]) -> None:
    arrive(tmp_path, rotated[:2])
    stream = spark.readStream.format("topicshark").options(settle=NEVER, columns="capture,frame").load(str(tmp_path))
    query = stream.writeStream.format("memory").queryName("coming").outputMode("append").start()
    try:
        query.processAllAvailable()
        arrive(tmp_path, rotated[2:4])
        query.processAllAvailable()
    finally:
        query.stop()
    assert query.exception() is None
    came = [row.capture for row in spark.table("coming").select("capture").distinct().orderBy("capture").collect()]
    assert came == [str(tmp_path / name) for name in ("run.pcap", "run.pcap1", "run.pcap2")]


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_stream_of_no_folder_says_so(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="there is no such file or folder"):
        run_what_is_there(spark, tmp_path / "nowhere", tmp_path / "out")

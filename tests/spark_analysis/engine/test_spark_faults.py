"""What can go wrong while Spark reads captures: the outcome is complete or clearly partial, never silently less, and
running again completes it. Executors that are killed: `test_cluster.py`; Ctrl-C: `test_ingest.py`."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from pcap_tools.codec.decoding import decode_capture
from pcap_tools.codec.detect import wanted_dialects
from pcap_tools.errors import TopicsharkError
from spark_analysis.check import judge
from spark_analysis.engine.engines import SparkEngine, Stage
from spark_analysis.ingest import Ingested, ingest
from spark_analysis.pipeline import Options
from spark_analysis.results.verdicts import CheckResult
from spark_analysis.sessions.ingested import find_sources
from spark_analysis.storage.manifest import load_manifest
from tests.conftest import REPO
from tests.spark_analysis.traffic import write_capture

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

MANY = int(os.environ.get("TOPICSHARK_MANY", "30"))  # captures of a set; `make fuzz` has 1,000


def before(label: str, deed: Callable[[], object]) -> Stage:
    """Does the deed when the job of that name begins: what was planned is not what is there any more."""

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        if name == label:
            deed()
        yield

    return stage


def messages_in(folder: Path) -> int:
    return int(ds.dataset(folder / "messages", partitioning="hive").count_rows())


def messages_of(*captures: Path) -> int:
    return sum(row.message is not None for capture in captures for row in decode_capture(capture))


def judged(spark: SparkSession, captures: Path, stage: Stage) -> CheckResult:
    return judge(find_sources([str(captures)]), Options(wanted_dialects()), False, SparkEngine(spark, stage))


@pytest.fixture
def pair(tmp_path: Path) -> list[Path]:
    return [write_capture(tmp_path / "in" / f"{name}.pcap", seed=seed) for seed, name in enumerate("ab", start=1)]


def assert_only_b_is_missing(done: Ingested, folder: Path, pair: list[Path]) -> None:
    assert list(done.failed) == [str(pair[1])]
    assert [entry.uri for entry in done.ingested] == [str(pair[0])]
    assert messages_in(folder) == messages_of(pair[0])


def test_a_corrupt_file_in_the_middle_of_many(spark: SparkSession, tmp_path: Path) -> None:
    good = write_capture(tmp_path / "in" / "0000.pcap", rounds=1).read_bytes()
    for number in range(1, MANY):
        (tmp_path / "in" / f"{number:04}.pcap").write_bytes(good)
    bad = tmp_path / "in" / f"{MANY // 2:04}.pcap"
    bad.write_bytes(b"\xff" * 1000)
    each = messages_of(tmp_path / "in" / "0000.pcap")

    done = ingest(spark, [str(tmp_path / "in")], tmp_path / "out")
    assert list(done.failed) == [str(bad)]
    assert "0xffffffff" in done.failed[str(bad)] or "capture" in done.failed[str(bad)]
    assert messages_in(tmp_path / "out") == (MANY - 1) * each

    result = judged(spark, tmp_path / "in", before("", lambda: None))
    assert list(result.failed) == [str(bad)]
    assert [session.datagrams for session in result.sessions] == [each] * (MANY - 1)

    bad.write_bytes(good)
    assert [entry.uri for entry in ingest(spark, [str(tmp_path / "in")], tmp_path / "out").ingested] == [str(bad)]
    assert messages_in(tmp_path / "out") == MANY * each


def test_a_capture_that_grows_while_it_is_read(spark: SparkSession, tmp_path: Path, pair: list[Path]) -> None:
    """It is what it was when it was planned, or it is refused; run again, it is all there."""
    more = write_capture(tmp_path / "more.pcap", seed=9).read_bytes()[24:]
    before_growth = messages_of(pair[1])

    def grow() -> None:
        with pair[1].open("ab") as file:
            file.write(more)

    done = ingest(spark, [str(tmp_path / "in")], tmp_path / "out", stage=before("decode", grow))
    held = messages_in(tmp_path / "out") - messages_of(pair[0])
    assert (list(done.failed), held) in [([str(pair[1])], 0), ([], before_growth)]
    ingest(spark, [str(tmp_path / "in")], tmp_path / "out")
    assert messages_in(tmp_path / "out") == messages_of(*pair) > messages_of(pair[0]) + before_growth


def test_a_source_removed_between_index_and_read(spark: SparkSession, tmp_path: Path, pair: list[Path]) -> None:
    content = pair[1].read_bytes()
    done = ingest(spark, [str(tmp_path / "in")], tmp_path / "out", stage=before("decode", pair[1].unlink))
    assert_only_b_is_missing(done, tmp_path / "out", pair)
    pair[1].write_bytes(content)
    ingest(spark, [str(tmp_path / "in")], tmp_path / "out")
    assert messages_in(tmp_path / "out") == messages_of(*pair)


def test_a_check_goes_on_without_a_source_that_was_removed(
    spark: SparkSession, tmp_path: Path, pair: list[Path]
) -> None:
    result = judged(spark, tmp_path / "in", before("check", pair[1].unlink))
    assert [session.captures for session in result.sessions] == [[str(pair[0])]]
    assert list(result.failed) == [str(pair[1])]
    assert str(pair[1]) in result.failed[str(pair[1])]


def test_a_check_says_so_if_a_source_was_cut(spark: SparkSession, tmp_path: Path, pair: list[Path]) -> None:
    """A capture of one unit is read as it is then: one frame, and the damage behind it."""
    result = judged(spark, tmp_path / "in", before("check", lambda: os.truncate(pair[1], 200)))
    assert {capture: session.datagrams for session in result.sessions for capture in session.captures} == {
        str(pair[0]): messages_of(pair[0]),
        str(pair[1]): messages_of(pair[1]),
    }
    assert 0 < messages_of(pair[1]) < 3
    (told,) = result.partial
    assert told.startswith(f"{pair[1]}: damaged at byte ")


def test_a_cancelled_job_leaves_nothing_and_running_again_completes_it(
    spark: SparkSession, tmp_path: Path, pair: list[Path]
) -> None:
    is_over = threading.Event()

    def cancel() -> None:
        while not is_over.wait(0.02):
            spark.sparkContext.cancelAllJobs()

    cancelling = threading.Thread(target=cancel, daemon=True)
    try:
        with pytest.raises(TopicsharkError, match=r"could not decode: .*cancel") as told:
            ingest(spark, [str(tmp_path / "in")], tmp_path / "out", stage=before("decode", cancelling.start))
    finally:
        is_over.set()
        cancelling.join()
    assert "\n" not in str(told.value)
    assert load_manifest(tmp_path / "out").sources == {}
    assert list((tmp_path / "out").rglob("*.parquet")) == []
    ingest(spark, [str(tmp_path / "in")], tmp_path / "out")
    assert messages_in(tmp_path / "out") == messages_of(*pair)


SMALL_DISK = """
mount -t tmpfs -o size=100k none "$1/out" || exit 77
"$2" -m topicshark.main ingest "$1/in" -o "$1/out"; code=$?
find "$1/out" -name '*.parquet' -o -name manifest.json
exit $code
"""


@pytest.mark.long
def test_a_full_disk(spark: SparkSession, tmp_path: Path) -> None:
    """A disk of 100 kB, which is seen by the command alone."""
    capture = write_capture(tmp_path / "in" / "a.pcap", rounds=400)
    (tmp_path / "out").mkdir()
    command = ["unshare", "-m", "bash", "-c", SMALL_DISK, "bash", str(tmp_path), sys.executable]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True)
    if done.returncode in (1, 77) and ("mount" in done.stderr or "unshare" in done.stderr):
        pytest.skip("needs the right to mount a disk of its own")
    assert done.returncode == 3, done.stderr
    assert "No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) <= 3, "a sentence, no trace"
    assert done.stdout == "", "nothing is there that looks complete"
    ingest(spark, [str(tmp_path / "in")], tmp_path / "out")
    assert messages_in(tmp_path / "out") == messages_of(capture)

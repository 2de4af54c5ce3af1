"""topicshark's own ways from a capture to rows: the columnar decoder alone, `ingest`, the data source; and a bare copy.

Captures are called DIALECT-PACKETS.pcap.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .clock import Measured, cost, peak_mb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pcap_tools.columnar.decode.decoder import Decoder
    from pcap_tools.columnar.read.sources import Feed

LONG_ENOUGH = 1.0  # seconds of passes over a capture
START_SECONDS = 3
COPIED = 256 << 20  # bytes: far beyond any cache
Job = Callable[["SparkSession", Path], int]


def packets_in(capture: Path) -> int:
    return int(capture.stem.split("-")[1])


def copying(capture: Path) -> Measured:
    """The capture's bytes from memory to memory, both of them touched before."""
    import numpy as np

    content = np.fromfile(capture, np.uint8)
    content = np.tile(content, -(-COPIED // len(content)))[:COPIED]
    target = content.copy()
    seconds = statistics.median(cost(lambda: np.copyto(target, content)) for _ in range(15))
    size = capture.stat().st_size
    return Measured(packets_in(capture), size, seconds * size / COPIED)


class TimedFeed:
    """A feed that notes how long the bytes took to come."""

    def __init__(self, feed: Feed) -> None:
        self.seconds = 0.0
        self._feed = feed

    @property
    def trouble(self) -> str:
        return self._feed.trouble

    def fill(self, view: memoryview) -> int:
        found: list[int] = []
        self.seconds += cost(lambda: found.append(self._feed.fill(view)))
        return found[0]


def kernel(captures: list[Path]) -> list[Measured]:
    """Bytes in memory to Arrow: what the decoder takes, less what it waits for the file."""
    return passes_over(captures, without_file)


def decoder(captures: list[Path]) -> list[Measured]:
    """Each capture read and decoded to Arrow, all columns; a batch is dropped when the next comes."""
    return passes_over(captures, with_file)


def passes_over(captures: list[Path], seconds_of: Callable[[Decoder, Path], float]) -> list[Measured]:
    from pcap_tools import load_dialect
    from pcap_tools.columnar.decode.decoder import Decoder

    def prepared(capture: Path) -> Decoder:
        return Decoder([load_dialect(capture.stem.split("-")[0])], capture=capture.name)

    start = cost(lambda: seconds_of(prepared(captures[0]), captures[0]))
    found = []
    for capture in captures:
        ready, passes = prepared(capture), list[float]()
        while sum(passes) < LONG_ENOUGH:
            passes.append(seconds_of(ready, capture))
        size = capture.stat().st_size
        found.append(Measured(packets_in(capture), size, statistics.median(passes), start, peak_mb()))
    return found


def with_file(ready: Decoder, capture: Path) -> float:
    """Seconds of one pass by a decoder that is there already."""
    from pcap_tools.columnar.read.reading import read_file

    return cost(lambda: check(sum(ready.decode(batch).num_rows for batch in read_file(capture)), capture))


def without_file(ready: Decoder, capture: Path) -> float:
    """The same, without the time in which bytes were read."""
    from pcap_tools.capture.damage import log_damage, log_warning
    from pcap_tools.columnar.read.copies import random_seed
    from pcap_tools.columnar.read.reading import Reading
    from pcap_tools.columnar.read.sources import open_bytes, whole_feed

    with open_bytes(str(capture)) as source:
        feed = TimedFeed(whole_feed(source))
        reading = Reading(capture.name, feed, random_seed(), log_damage, log_warning)
        reading.open()
        whole = cost(lambda: check(sum(ready.decode(batch).num_rows for batch in reading.batches()), capture))
    return whole - feed.seconds


def check(rows: int, capture: Path) -> None:
    """A datagram in fragments is one row of several packets."""
    if not 0.9 * packets_in(capture) < rows <= packets_in(capture):
        raise SystemExit(f"{capture}: {rows} rows")


# --- On Spark: the clock on the wall, since several processes work side by side ---------------------------------------


def ingest(spark: SparkSession, capture: Path) -> int:
    """To Parquet."""
    from spark_analysis.ingest import ingest as ingest_captures

    with tempfile.TemporaryDirectory(dir=capture.parent) as folder:
        return ingest_captures(spark, [str(capture)], Path(folder, "run")).rows


def data_source(spark: SparkSession, capture: Path) -> int:
    """Spark asks a Python source for all columns, also when it only counts."""
    return spark.read.format("topicshark").load(str(capture)).count()


def on_spark(job: Job, captures: list[Path], cores: int) -> list[Measured]:
    """The start is that of Spark, of a worker for each core, and of a first small job."""
    from spark_analysis.engine.spark_session import open_session
    from spark_analysis.engine.task_rows import run_rows

    began = time.perf_counter()
    with open_session(f"local[{cores}]") as spark:
        run_rows(spark, int, start_worker, [[number] for number in range(cores)], "start workers")
        job(spark, captures[0])
        start = time.perf_counter() - began
        found = []
        for capture in captures:
            forget_index(capture)
            began = time.perf_counter()
            rows = job(spark, capture)
            seconds = time.perf_counter() - began
            check(rows, capture)
            found.append(Measured(packets_in(capture), capture.stat().st_size, seconds, start, _workers_mb()))
    return found


def start_worker(number: int) -> int:
    """Loads what tasks need, and stays until the other workers have their task too."""
    import spark_analysis.ingest  # noqa: F401

    time.sleep(START_SECONDS)
    return number


def forget_index(capture: Path) -> None:
    """So that finding the borders of splits is counted."""
    for index in capture.parent.glob(f"{capture.name}.topicshark-index*"):
        index.unlink()


def _workers_mb() -> int:
    """The highest peak of Spark's Python workers, which live on between jobs."""
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,comm="], capture_output=True, text=True, check=True).stdout
    processes = [line.split(maxsplit=2) for line in listed.splitlines()]
    family = {str(os.getpid())}
    while grown := {pid for pid, parent, _ in processes if parent in family} - family:
        family |= grown
    family.remove(str(os.getpid()))
    return max((peak_mb(pid) for pid, _, name in processes if pid in family and name.startswith("python")), default=0)


SPARK_JOBS: dict[str, Job] = {"ingest": ingest, "data-source": data_source}

"""The whole ingest, with our Parquet encoder and with pyarrow's writer in turn: packets a second, bytes a packet.

    python -m benchmarks.parquet                              # 10 M packets, 3 rounds: 2 minutes, 3 GB of disk
    python -m benchmarks.parquet --packets 1e6 --rounds 1     # does it run?
    python -m benchmarks.parquet --settings --packets 2e6     # the writers alone, with each setting of pyarrow's

Everything counts but the start of Spark and of its workers: finding the splits, reading, decoding, encoding, writing to
the disk. Two tasks run at a time. The writers take turns within a round, and a ratio is the median of the ratios within
a round. pyarrow's writer is there with its defaults and with `TUNED`: the quickest settings of `--settings` that make
files as small as ours with the same statistics, then fewer statistics, then none.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.competitors.clock import cost
from benchmarks.competitors.ours import check, forget_index, start_worker
from benchmarks.measuring import make_capture, number
from pcap_tools import load_dialect
from pcap_tools.codec.detect import Dialects
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.decode.schema import ALL_COLUMNS
from pcap_tools.columnar.read.reading import read_file
from spark_analysis.engine.spark_session import open_session
from spark_analysis.engine.task_rows import run_rows
from spark_analysis.ingest import UnitFile, Written, ingest, write_unit
from spark_analysis.parquet.messages_file import GROUP_ROWS, MessagesFile
from spark_analysis.storage.folder import LocalFile, NewFile

CORES = 2
DELTAS = ("frame", "time_ns", "copy_of", "ip_id")
FEW = [name for name in ALL_COLUMNS if name not in {*DELTAS, "payload", "retain"}]
Settings = Mapping[str, Any]
# The same choices as ours: what is left of differences has no pattern for snappy, and nobody looks for a payload.
# More than 1024 values at a time make it 1.2 x as quick.
TUNED: Settings = {
    "use_dictionary": FEW,
    "column_encoding": dict.fromkeys(DELTAS, "DELTA_BINARY_PACKED"),
    "compression": {name: "NONE" if name in DELTAS else "SNAPPY" for name in ALL_COLUMNS},
    "write_statistics": [name for name in ALL_COLUMNS if name not in ("payload", "retain")],
    "write_batch_size": 8192,
}


def compressed(codec: str) -> Settings:
    return {"compression": {name: "NONE" if name in DELTAS else codec for name in ALL_COLUMNS}}


# What `--settings` tries.
TRIED: dict[str, Settings] = {
    "pyarrow, its defaults": {},
    "pyarrow, tuned": TUNED,
    "  1024 values at a time": {**TUNED, "write_batch_size": 1024},
    "  65536 values at a time": {**TUNED, "write_batch_size": 65536},
    "  pages of 256 KB": {**TUNED, "data_page_size": 1 << 18},
    "  pages of version 2": {**TUNED, "data_page_version": "2.0"},
    "  payload by its lengths": {
        **TUNED,
        "column_encoding": {**TUNED["column_encoding"], "payload": "DELTA_LENGTH_BYTE_ARRAY"},
    },
    "  no differences": {**TUNED, "column_encoding": None},
    "  topics without codes": {**TUNED, "use_dictionary": [name for name in FEW if name not in ("topic", "filter")]},
    "  no statistics": {**TUNED, "write_statistics": False},
    "  LZ4": {**TUNED, **compressed("LZ4")},
    "  zstd": {**TUNED, **compressed("ZSTD")},
    "  not compressed": {**TUNED, "compression": "NONE"},
}


class Sink:
    """What `pa.PythonFile` writes to."""

    closed = False

    def __init__(self, file: NewFile) -> None:
        self._file = file
        self.bytes = 0

    def write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self.bytes += len(data)

    def tell(self) -> int:
        return self.bytes

    def flush(self) -> None: ...


class PyarrowFile:
    """As `MessagesFile`, by pyarrow's writer."""

    def __init__(self, file: NewFile, settings: Settings = TUNED) -> None:
        self.rows = self.bytes = 0
        self.times: tuple[int, int] | None = None
        self._file, self._sink, self._settings = file, Sink(file), settings
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Batches wait for their row group: pyarrow gives up codes where a batch has another dictionary."""
        self._waiting.append(batch)
        if sum(one.num_rows for one in self._waiting) >= GROUP_ROWS:
            self._write_group()

    def _write_group(self) -> None:
        group, self._waiting = one_table(self._waiting), []
        if self._writer is None:
            out = pa.PythonFile(self._sink, "w")
            self._writer = pq.ParquetWriter(out, group.schema, store_schema=False, **self._settings)
        self._writer.write_table(group, row_group_size=group.num_rows)
        self.rows += group.num_rows
        here = pc.min_max(group["time_ns"]).as_py()
        least, most = self.times or (here["min"], here["max"])
        self.times = min(least, here["min"]), max(most, here["max"])

    def __enter__(self) -> PyarrowFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._file.discard()
            return
        if self._waiting:
            self._write_group()
        if self._writer is not None:
            self._writer.close()
            self._file.finish()
        self.bytes = self._sink.bytes


def one_table(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """With the last dictionary for all batches, in which the earlier ones are the beginning."""
    columns = []
    for place, field in enumerate(batches[0].schema):
        arrays = [batch.column(place) for batch in batches]
        if pa.types.is_dictionary(field.type):
            names = arrays[-1].dictionary
            arrays = [pa.DictionaryArray.from_arrays(array.indices, names, safe=False) for array in arrays]
        columns.append(pa.chunked_array(arrays, field.type))
    return pa.table(columns, batches[0].schema)


# --- The whole ingest -----------------------------------------------------------------------------------------------


def decode_with(writer: Callable[[NewFile], Any], dialects: Dialects, target: UnitFile) -> Written:
    """In a task: as `write_unit`, by another writer."""
    with mock.patch("spark_analysis.ingest.MessagesFile", writer):
        return write_unit(dialects, target)


def by_pyarrow(settings: Settings) -> Callable[[Dialects, UnitFile], Written]:
    return partial(decode_with, partial(PyarrowFile, settings=settings))


WRITERS = {
    "ours": write_unit,
    "pyarrow, tuned": by_pyarrow(TUNED),
    "  few statistics": by_pyarrow({**TUNED, "write_statistics": ["frame", "time_ns", "topic", "filter"]}),
    "  no statistics": by_pyarrow({**TUNED, "write_statistics": False}),
    "pyarrow, its defaults": by_pyarrow({}),
}


def one_ingest(spark: SparkSession, capture: Path, writer: str) -> tuple[float, int]:
    """Seconds by the clock on the wall, and bytes of Parquet."""
    forget_index(capture)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=capture.parent))
        stack.enter_context(mock.patch("spark_analysis.ingest.write_unit", WRITERS[writer]))
        start = time.perf_counter()
        done = ingest(spark, [str(capture)], Path(folder, "run"))
        seconds = time.perf_counter() - start
        check(done.rows, capture)
        return seconds, sum(file.bytes for entry in done.ingested for file in entry.files)


def compare(capture: Path, packets: int, rounds: int) -> None:
    seconds: dict[str, list[float]] = {writer: [] for writer in WRITERS}
    sizes: dict[str, int] = {}
    with open_session(f"local[{CORES}]") as spark:
        run_rows(spark, int, start_worker, [[task] for task in range(CORES)], "start workers")
        for writer in WRITERS:
            one_ingest(spark, capture, writer)
        for turn in range(rounds):
            for writer in WRITERS:
                taken, sizes[writer] = one_ingest(spark, capture, writer)
                seconds[writer].append(taken)
                print(f"round {turn + 1}: {writer:<24} {packets / taken:>12,.0f} packets/s", flush=True)
    for writer, times in seconds.items():
        ratio = statistics.median(other / ours for other, ours in zip(times, seconds["ours"], strict=True))
        rate, size = packets / statistics.median(times), sizes[writer] / packets
        print(f"{writer:<24} {rate:>12,.0f} packets/s, {size:5.2f} bytes a packet; ours has {ratio:.2f} x the speed")


# --- The writers alone ----------------------------------------------------------------------------------------------


def alone(capture: Path, packets: int, rounds: int) -> None:
    """What encoding costs, from decoded batches in memory: processor time, the quickest of the rounds."""
    decoder = Decoder([load_dialect("colon")], columns=ALL_COLUMNS, capture=capture.name)
    batches = [decoder.decode(batch) for batch in read_file(capture)]
    writers: dict[str, Callable[[NewFile], Any]] = {"ours": MessagesFile}
    writers |= {name: partial(PyarrowFile, settings=settings) for name, settings in TRIED.items()}
    with tempfile.TemporaryDirectory(dir=capture.parent) as folder:
        target = Path(folder, "x.parquet")
        for name, writer in writers.items():
            seconds = min(cost(partial(write, writer, batches, target)) for _ in range(rounds))
            print(
                f"{name:<28} {1e9 * seconds / packets:6.1f} ns, {os.path.getsize(target) / packets:6.2f} bytes a packet"
            )


def write(writer: Callable[[NewFile], Any], batches: Sequence[pa.RecordBatch], target: Path) -> None:
    with writer(LocalFile(str(target))) as file:
        for batch in batches:
            file.add(batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=number, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the capture is made and kept (a temporary one)")
    parser.add_argument("--settings", action="store_true", help="the writers alone, with each setting of pyarrow's")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        capture = make_capture(options.folder or Path(temporary), "colon", options.packets)
        (alone if options.settings else compare)(capture, options.packets, options.rounds)


if __name__ == "__main__":
    main()

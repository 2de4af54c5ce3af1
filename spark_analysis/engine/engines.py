"""Two engines that run the same passes over a session: this process, or Spark.

A pass turns *packed rows* into packed rows: a bucket of keys, a kind, and a table as bytes. `read` makes them from
units of captures; `fold` brings all rows of a bucket together and gives each bucket to a function. What is in the
bytes, and which passes there are, is the business of `pipeline.py`.

>>> engine = LocalEngine()
>>> rows = engine.fold([engine.read(str.upper, ["a"], "up")], ["letter"], 1, join, "join")     # doctest: +SKIP
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa

from .worker_gc import spared

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Stage = Callable[[str], AbstractContextManager[None]]
IN_MEMORY = 256 << 20  # of one pass's rows; the rest goes to a temporary file
LOOKED_THROUGH = 16  # partitions that one task looks through for a few rows
PACKED_SCHEMA = "bucket INT, kind STRING, data BINARY"  # for Spark
PACKED = pa.schema([("bucket", pa.int32()), ("kind", pa.string()), ("data", pa.binary())])


class Packed(NamedTuple):
    """One packed row."""

    bucket: int
    kind: str
    data: bytes


Read = Callable[[Any], Iterable[Packed]]
Fold = Callable[[int, dict[str, list[bytes]]], Iterable[Packed]]


class Engine(Protocol):
    """Rows are the engine's own: a DataFrame of ``PACKED``, or a file."""

    def read(self, function: Read, items: Sequence[Any], label: str) -> Any:
        """What the function makes of each item."""

    def fold(self, rows: Sequence[Any], kinds: Sequence[str], buckets: int, function: Fold, label: str) -> Any:
        """What the function makes of each bucket: it is given the rows of these kinds, by kind, in any order."""

    def keep(self, rows: Any) -> Any:
        """The same rows, made once however often they are used."""

    def collect(self, rows: Sequence[Any], kinds: Sequence[str], label: str) -> list[Packed]:
        """Rows of these kinds, which are few and small; all in one job."""


class LocalRows:
    """Packed rows in memory, and in a temporary file once they are many."""

    def __init__(self, rows: Iterable[Packed]) -> None:
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed with the last reference
        self._places: list[tuple[int, str, int, int]] = []
        self.size = 0
        for row in rows:
            self._file.write(row.data)
            self._places.append((row.bucket, row.kind, self.size, len(row.data)))
            self.size += len(row.data)

    def of(self, kinds: Sequence[str], bucket: int | None = None) -> Iterator[Packed]:
        for at, kind, offset, length in self._places:
            if kind in kinds and bucket in (None, at):
                self._file.seek(offset)
                yield Packed(at, kind, self._file.read(length))

    def buckets(self, kinds: Sequence[str]) -> set[int]:
        return {bucket for bucket, kind, _, _ in self._places if kind in kinds}


class LocalEngine:
    """Runs passes here, one bucket after the other."""

    def read(self, function: Read, items: Sequence[Any], label: str) -> LocalRows:
        return LocalRows(row for item in items for row in function(item))

    def fold(
        self, rows: Sequence[LocalRows], kinds: Sequence[str], buckets: int, function: Fold, label: str
    ) -> LocalRows:
        def made() -> Iterator[Packed]:
            for bucket in sorted(set().union(*(one.buckets(kinds) for one in rows))):
                yield from function(bucket, _by_kind(row for one in rows for row in one.of(kinds, bucket)))

        return LocalRows(made())

    def keep(self, rows: LocalRows) -> LocalRows:
        return rows

    def collect(self, rows: Sequence[LocalRows], kinds: Sequence[str], label: str) -> list[Packed]:
        return [row for one in rows for row in one.of(kinds)]


def _by_kind(rows: Iterable[Packed]) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for row in rows:
        found.setdefault(row.kind, []).append(row.data)
    return found


@dataclass(frozen=True)
class SparkRows:
    """Packed rows as a DataFrame, of so many partitions."""

    frame: DataFrame
    partitions: int


class SparkEngine:
    """Runs passes as Spark tasks, by DataFrames alone: in classic sessions and through Spark Connect.

    A read is one task per item; a fold is a shuffle of packed rows and one task per bucket.
    """

    def __init__(self, spark: SparkSession, stage: Stage | None = None) -> None:
        self.spark, self._stage = spark, stage
        self._kept: list[DataFrame] = []

    def read(self, function: Read, items: Sequence[Any], label: str) -> SparkRows:
        listed = list(items)
        # A range of n rows in n partitions: one task per item, and nothing to shuffle.
        numbers = self.spark.range(0, len(listed), 1, max(len(listed), 1))

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            numbered = (listed[number] for batch in batches for number in batch.column(0).to_pylist())
            yield from spared(as_batch(row) for item in numbered for row in function(item))

        return SparkRows(numbers.mapInArrow(run, PACKED_SCHEMA), max(len(listed), 1))

    def fold(
        self, rows: Sequence[SparkRows], kinds: Sequence[str], buckets: int, function: Fold, label: str
    ) -> SparkRows:
        from pyspark.sql import functions as f

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            found: dict[int, list[Packed]] = {}
            for batch in batches:
                for bucket, kind, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    found.setdefault(bucket, []).append(Packed(bucket, kind, data))
            folded = (function(bucket, _by_kind(found.pop(bucket))) for bucket in sorted(found))
            yield from spared(as_batch(row) for rows in folded for row in rows)

        count = max(buckets, 1)
        whole = _of_kinds(rows, kinds).repartitionById(count, f.col("bucket"))
        return SparkRows(whole.mapInArrow(run, PACKED_SCHEMA), count)

    def keep(self, rows: SparkRows) -> SparkRows:
        from pyspark import StorageLevel

        self._kept.append(rows.frame.persist(StorageLevel.DISK_ONLY))
        return SparkRows(self._kept[-1], rows.partitions)

    def collect(self, rows: Sequence[SparkRows], kinds: Sequence[str], label: str) -> list[Packed]:
        from .task_rows import run_job

        # To look for a few rows takes less time than to start a task: many partitions go to one.
        wanted = _of_kinds(rows, kinds).coalesce(-(-sum(one.partitions for one in rows) // LOOKED_THROUGH))
        with self._stage(label) if self._stage else nullcontext():
            found = run_job(self.spark, wanted.toArrow, label)
        return [Packed(*row) for row in zip(*(column.to_pylist() for column in found.columns), strict=True)]

    def release(self) -> None:
        """Forget what was kept."""
        for rows in self._kept:
            rows.unpersist()
        self._kept.clear()


def _of_kinds(rows: Sequence[SparkRows], kinds: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as f

    wanted = [one.frame.where(f.col("kind").isin(list(kinds))) for one in rows]
    return reduce(lambda one, other: one.unionAll(other), wanted)


@contextmanager
def spark_engine(master: str | None = None, stage: Callable[[Any], Stage] | None = None) -> Iterator[SparkEngine]:
    """On a Spark session of its own, as long as the block lasts. ``stage``: given it, what to enter with each job."""
    from .spark_session import LOCAL, PYTHON_WORK, open_session

    with open_session(master or LOCAL, PYTHON_WORK) as spark:
        yield SparkEngine(spark, stage(spark) if stage else None)


def as_batch(row: Packed) -> pa.RecordBatch:
    """A batch of its own: rows are large."""
    arrays = [pa.array([value], kind.type) for value, kind in zip(row, PACKED, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=PACKED)

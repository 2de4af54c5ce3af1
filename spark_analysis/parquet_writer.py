"""Messages to one Parquet file: as fast as can be read back by Spark, DuckDB, pandas and their like.

>>> with MessagesFile(path) as file:            # doctest: +SKIP
...     file.add(record_batch)
>>> file.rows, file.bytes, file.times

Batches are gathered to row groups, since the dictionaries of a column must be one for a group to be written without
hashing each value. Memory is bounded by one row group.
"""

from __future__ import annotations

import os
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

GROUP_ROWS = 1 << 19
GROUP_BYTES = 128 << 20
# Measured: snappy takes 8 % more time than nothing at a third of the size; zstd halves that again for 40 % more time.
_COMPRESSION = "snappy"
_FEW_VALUES = [
    *("capture", "src", "sport", "dst", "dport", "dialect", "form", "message", "meaning", "topic", "filter"),
    *("padding", "length", "error", "error_offset", "key", "number", "port"),
]
_RISING = ["frame", "time_ns"]
_BY_DIFFERENCE = dict.fromkeys([*_RISING, "ip_id"], "DELTA_BINARY_PACKED")  # an IP id is mostly near the last one


class MessagesFile:
    """A new file at `path`; complete, and safely on the disk, when the block ends without an error."""

    def __init__(self, path: str) -> None:
        self.rows = self.bytes = 0
        self.times: tuple[int, int] | None = None
        self._path = path
        self._writer: pq.ParquetWriter | None = None
        self._batches: list[pa.RecordBatch] = []
        self._waiting_rows = self._waiting_bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the rows of a batch."""
        if not batch.num_rows:
            return
        self.rows += batch.num_rows
        self._note_times(batch)
        self._batches.append(batch)
        self._waiting_rows += batch.num_rows
        self._waiting_bytes += batch.nbytes
        if self._waiting_rows >= GROUP_ROWS or self._waiting_bytes >= GROUP_BYTES:
            self._write_group()

    def _note_times(self, batch: pa.RecordBatch) -> None:
        low, high = (value.as_py() for value in pc.min_max(batch.column("time_ns")).values())
        self.times = (low, high) if self.times is None else (min(low, self.times[0]), max(high, self.times[1]))

    def _write_group(self) -> None:
        schema = self._batches[0].schema
        columns = [_one_column([batch.column(place) for batch in self._batches]) for place in range(len(schema))]
        table = pa.table(columns, schema=schema)
        self._batches, self._waiting_rows, self._waiting_bytes = [], 0, 0
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._path,
                table.schema,
                compression=_COMPRESSION,
                use_dictionary=_FEW_VALUES,
                column_encoding=_BY_DIFFERENCE,
                write_statistics=_RISING,  # a row group has all values of the other columns
                store_schema=False,  # else pyarrow gives dictionaries back, others strings
            )
        self._writer.write_table(table, row_group_size=table.num_rows)

    def __enter__(self) -> MessagesFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._batches:
            self._write_group()
        if self._writer is not None:
            self._writer.close()
            self._settle(kind is None)

    def _settle(self, complete: bool) -> None:
        if not complete:
            os.unlink(self._path)
            return
        with open(self._path, "rb") as file:
            os.fsync(file.fileno())
            self.bytes = os.fstat(file.fileno()).st_size


def _one_column(parts: list[pa.Array]) -> pa.ChunkedArray:
    """The parts of a column as one. Of one decoder's batches the last dictionary holds for all (see ``CodedColumn``);
    one that is much larger than the group is left to Arrow, which keeps what is used of it."""
    if not pa.types.is_dictionary(parts[0].type):
        return pa.chunked_array(parts)
    names = parts[-1].dictionary
    if len(names) > sum(map(len, parts)) // 4:
        return pa.chunked_array(parts).unify_dictionaries()
    same = [pa.DictionaryArray.from_arrays(part.indices, names, safe=False) for part in parts]
    return pa.chunked_array(same)

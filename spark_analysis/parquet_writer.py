"""Messages to one Parquet file: as fast as can be read back by Spark, DuckDB, pandas and their like.

>>> with MessagesFile(path) as file:            # doctest: +SKIP
...     file.add(record_batch)
>>> file.rows, file.bytes, file.times

A batch becomes a page of each column at once, while its values are in the processor's cache; only pages wait for their
row group to be complete. pyarrow's writer takes twice as long: it hashes texts that repeat, has no quick way for
columns of one value, and looks at all values again for each of encoding, levels and nulls.
"""

from __future__ import annotations

import os
from io import FileIO
from types import TracebackType

import pyarrow as pa

from .parquet.columns import Column
from .parquet.metadata import MAGIC, Chunk, footer

GROUP_ROWS = 1 << 19
GROUP_BYTES = 128 << 20  # uncompressed
_MANY_VALUES = frozenset({"frame", "time_ns", "payload", "copy_of", "ip_id"})


class MessagesFile:
    """A new file at `path`; complete, and safely on the disk, when the block ends without an error."""

    def __init__(self, path: str) -> None:
        self.rows = self.bytes = 0
        self.times: tuple[int, int] | None = None
        self._path = path
        self._file: FileIO | None = None
        self._schema: pa.Schema
        self._columns: dict[str, Column] = {}
        self._waiting = 0
        self._groups: list[tuple[int, list[Chunk]]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the rows of a batch."""
        if not batch.num_rows:
            return
        if self._file is None:
            self._begin(batch.schema)
        for array, column in zip(batch.columns, self._columns.values(), strict=True):
            column.add(array)
        self._waiting += batch.num_rows
        if self._waiting >= GROUP_ROWS or sum(one.raw_bytes for one in self._columns.values()) >= GROUP_BYTES:
            self._write_group()

    def _begin(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._columns = {field.name: Column(field, field.name not in _MANY_VALUES) for field in schema}
        self._file = FileIO(self._path, "w")
        self._write(MAGIC)

    def _write(self, data: bytes) -> None:
        assert self._file is not None  # noqa: S101 - `_begin` was called
        view = memoryview(data)
        while view:
            done = self._file.write(view)
            view = view[done:]
        self.bytes += len(data)

    def _write_group(self) -> None:
        self._note_times()
        chunks = []
        for column in self._columns.values():
            pages, chunk = column.finish(self.bytes)
            self._write(b"".join(pages))
            chunks.append(chunk)
        self._groups.append((self._waiting, chunks))
        self.rows += self._waiting
        self._waiting = 0

    def _note_times(self) -> None:
        limits = self._columns["time_ns"].limits if "time_ns" in self._columns else None
        if limits is not None:
            low, high = limits
            self.times = limits if self.times is None else (min(low, self.times[0]), max(high, self.times[1]))

    def __enter__(self) -> MessagesFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is None:
            return
        try:
            if kind is None:
                self._complete(self._file)
        except BaseException as failed:
            kind = type(failed)
            raise
        finally:
            self._file.close()
            if kind is not None:
                os.unlink(self._path)

    def _complete(self, file: FileIO) -> None:
        if self._waiting:
            self._write_group()
        self._write(footer(self._schema, self._groups))
        os.fsync(file.fileno())

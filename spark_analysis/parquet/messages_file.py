"""Messages to one Parquet file.

>>> with MessagesFile(open_folder("s3://bucket/run").new_file("a.parquet")) as file:     # doctest: +SKIP
...     file.add(record_batch)
>>> file.rows, file.bytes, file.times                                                    # doctest: +SKIP

A batch becomes a page of each column at once; only pages wait for their row group to be complete. The footer has the
least and the greatest value of each column of a row group, except of flags and of `payload`.
"""

from __future__ import annotations

from types import TracebackType

import pyarrow as pa

from pcap_tools.columnar.decode.schema import SCHEMA_VERSION

from ..storage import NewFile
from .columns import Column
from .encoders import joined
from .metadata import MAGIC, Chunk, footer

GROUP_ROWS = 1 << 19
GROUP_BYTES = 128 << 20  # uncompressed
SCHEMA_KEY = b"topicshark.schema"
_NOTES = {SCHEMA_KEY: str(SCHEMA_VERSION).encode()}
_MANY_VALUES = frozenset({"frame", "time_ns", "payload", "copy_of", "ip_id"})


class MessagesFile:
    """Writes a new file; it is complete when the block ends without an error. Without rows there is none."""

    def __init__(self, file: NewFile) -> None:
        self.rows = self.bytes = 0
        self.times: tuple[int, int] | None = None
        self._file = file
        self._schema: pa.Schema | None = None
        self._columns: dict[str, Column] = {}
        self._waiting = 0
        self._groups: list[tuple[int, list[Chunk]]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the rows of a batch."""
        if not batch.num_rows:
            return
        if self._schema is None:
            self._begin(batch.schema)
        for array, column in zip(batch.columns, self._columns.values(), strict=True):
            column.add(array)
        self._waiting += batch.num_rows
        if self._waiting >= GROUP_ROWS or sum(one.raw_bytes for one in self._columns.values()) >= GROUP_BYTES:
            self._write_group()

    def _begin(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._columns = {field.name: Column(field, field.name not in _MANY_VALUES) for field in schema}
        self._write(MAGIC)

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self.bytes += len(data)

    def _write_group(self) -> None:
        chunks = []
        for column in self._columns.values():
            pages, chunk = column.finish(self.bytes)
            self._write(b"".join(pages))
            chunks.append(chunk)
            if chunk.name == "time_ns":
                self.times = joined(self.times, chunk.limits)
        self._groups.append((self._waiting, chunks))
        self.rows += self._waiting
        self._waiting = 0

    def __enter__(self) -> MessagesFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._complete()
        except BaseException as failed:
            kind = type(failed)
            raise
        finally:
            if kind is not None:
                self._file.discard()

    def _complete(self) -> None:
        if self._schema is None:
            return
        if self._waiting:
            self._write_group()
        self._write(footer(self._schema, self._groups, _NOTES))
        self._file.finish()

"""Messages to one Parquet file.

>>> with MessagesFile(open_folder("s3://bucket/run").new_file("a.parquet")) as file:     # doctest: +SKIP
...     file.add(record_batch)
>>> file.rows, file.bytes, file.times                                                    # doctest: +SKIP

A batch becomes a page of each column at once; only pages wait for their row group to be complete. The footer has the
least and the greatest value of each column of a row group, except of flags and of `payload`.
"""

from __future__ import annotations

from types import TracebackType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcap_tools.columnar.decode.schema import SCHEMA_VERSION

from ..storage.folder import NewFile
from .encoders import Bytes, Coded, Deltas, Encoder, Flags, Numbers, Texts, Values, bits_of, joined
from .metadata import MAGIC, Chunk, Compression, Encoding, footer, page_header, plain_type
from .thrift import varint

_SNAPPY = pa.Codec("snappy")
_NO_VALUES = Values(Encoding.PLAIN, [])


class Column:
    """Takes the arrays of one column. `few`: its values are likely to repeat; else numbers rise, and texts differ.

    The footer gets the least and the greatest value of each row group, except of flags and of texts that are not `few`.
    """

    def __init__(self, field: pa.Field, few: bool) -> None:
        self._name, self._kind = field.name, plain_type(field.type)
        self._encoder = _encoder(field.type, few)
        # What is left of differences has no pattern.
        self._compression = Compression.NONE if isinstance(self._encoder, Deltas) else Compression.SNAPPY
        self._begin()

    def _begin(self) -> None:
        self._pages: list[Bytes] = []
        self._encodings: set[Encoding] = {Encoding.RLE}  # of the levels
        self._count = self._nulls = self.raw_bytes = 0

    def add(self, array: pa.Array) -> None:
        """A page of these rows."""
        count, nulls = len(array), array.null_count
        there = bits_of(array.buffers()[0], array) if nulls else None
        values = self._encoder.encode(array, there) if nulls < count else _NO_VALUES
        levels = _levels(there, count, nulls)
        self._add_page([len(levels).to_bytes(4, "little"), levels, *values.parts], count, values.encoding)
        self._count += count
        self._nulls += nulls

    def _add_page(self, parts: list[Bytes], count: int, encoding: Encoding) -> None:
        page, raw = self._page(parts, count, encoding, dictionary=False)
        self._pages.append(page)
        self._encodings.add(encoding)
        self.raw_bytes += raw

    def _page(self, parts: list[Bytes], count: int, encoding: Encoding, *, dictionary: bool) -> tuple[bytes, int]:
        """Header and body, and how many bytes they would be uncompressed."""
        body = b"".join(parts)
        packed = _SNAPPY.compress(body, asbytes=True) if self._compression is Compression.SNAPPY else body
        header = page_header(len(body), len(packed), count, encoding, dictionary=dictionary)
        return header + packed, len(header) + len(body)

    def finish(self, at: int) -> tuple[list[Bytes], Chunk]:
        """All pages of the row group, which is over, to be written at the offset `at`; and what the footer says."""
        pages = self._pages
        words, limits = self._encoder.finish()
        data_at = at
        if words is not None:
            page, raw = self._page([words.data], words.values, Encoding.PLAIN, dictionary=True)
            pages.insert(0, page)
            data_at += len(page)
            self.raw_bytes += raw
            self._encodings.add(Encoding.PLAIN)
        chunk = Chunk(
            name=self._name,
            kind=self._kind,
            encodings=sorted(self._encodings),
            compression=self._compression,
            values=self._count,
            nulls=self._nulls,
            raw_size=self.raw_bytes,
            size=sum(map(len, pages)),
            dictionary_at=None if words is None else at,
            data_at=data_at,
            limits=limits,
        )
        self._begin()
        return pages, chunk


def _encoder(kind: pa.DataType, few: bool) -> Encoder:
    if pa.types.is_dictionary(kind):
        return Coded()
    if pa.types.is_boolean(kind):
        return Flags()
    if pa.types.is_string(kind):
        return Texts(coded=few, limited=few)
    return Numbers(kind) if few else Deltas(kind)


def _levels(there: NDArray[np.uint8] | None, count: int, nulls: int) -> bytes:
    """Which rows have a value: one run, or a bit for each."""
    if there is None or nulls == count:
        return varint(count << 1) + bytes([there is None])
    return varint((count + 7) // 8 << 1 | 1) + np.packbits(there, bitorder="little").tobytes()


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

"""One column of a file: pages are gathered until their row group is written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .encoders import Bytes, Coded, Deltas, Encoder, Flags, Numbers, Texts, Values, bits_of
from .metadata import Chunk, Compression, Encoding, page_header, plain_type
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

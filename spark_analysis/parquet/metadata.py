"""Headers of pages and the footer of a file: parquet.thrift's structures, for the few kinds of columns we have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import pyarrow as pa

from .thrift import Value, binary, i32, i64, several, struct

MAGIC = b"PAR1"
_CREATED_BY = b"topicshark version 1.0.0"  # in the form that readers look for
_OPTIONAL, _UTF8, _VERSION = 1, 0, 2
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_LONGEST_LIMIT = 256  # in bytes; a longer text has no limits in the footer, rather than a part of one
_TYPES = {pa.bool_(): 0, pa.int32(): 1, pa.int64(): 2, pa.string(): 6}


Limits = tuple[Any, Any]  # two numbers, or two texts as bytes


class Encoding(IntEnum):
    """How the values of a page are written."""

    PLAIN = 0
    RLE = 3
    DELTA_BINARY_PACKED = 5
    RLE_DICTIONARY = 8


class Compression(IntEnum):
    """Of all pages of a chunk."""

    NONE = 0
    SNAPPY = 1


@dataclass(frozen=True)
class Chunk:
    """One column of one row group, as it lies in the file. `limits` are its least and its greatest value."""

    name: str
    kind: pa.DataType
    encodings: Sequence[Encoding]
    compression: Compression
    values: int
    nulls: int
    raw_size: int
    size: int
    dictionary_at: int | None
    data_at: int
    limits: Limits | None


def page_header(raw: int, compressed: int, count: int, encoding: Encoding, *, dictionary: bool = False) -> bytes:
    """What goes before the bytes of a page; `raw` and `compressed` are its sizes."""
    levels = None if dictionary else i32(Encoding.RLE)
    about = struct((1, i32(count)), (2, i32(encoding)), (3, levels), (4, levels))
    kind = _DICTIONARY_PAGE if dictionary else _DATA_PAGE
    return struct((1, i32(kind)), (2, i32(raw)), (3, i32(compressed)), (7 if dictionary else 5, about)).data


def footer(schema: pa.Schema, groups: Sequence[tuple[int, Sequence[Chunk]]], notes: Mapping[bytes, bytes]) -> bytes:
    """The end of a file; a group is its number of rows and its chunks. Readers find `notes` by their keys."""
    root = struct((4, binary(b"schema")), (5, i32(len(schema))))
    typed = struct((1, struct()))  # numbers are ordered as numbers, texts by their bytes
    pairs = [struct((1, binary(key)), (2, binary(value))) for key, value in notes.items()]
    about = struct(
        (1, i32(_VERSION)),
        (2, several([root, *map(_element, schema)])),
        (3, i64(sum(rows for rows, _ in groups))),
        (4, several([_group(rows, chunks) for rows, chunks in groups])),
        (5, several(pairs) if pairs else None),
        (6, binary(_CREATED_BY)),
        (7, several([typed] * len(schema))),
    ).data
    return about + len(about).to_bytes(4, "little") + MAGIC


def _element(field: pa.Field) -> Value:
    kind = plain_type(field.type)
    text = pa.types.is_string(kind)
    return struct(
        (1, i32(_TYPES[kind])),
        (3, i32(_OPTIONAL)),
        (4, binary(field.name.encode())),
        (6, i32(_UTF8) if text else None),
        (10, struct((1, struct())) if text else None),
    )


def plain_type(kind: pa.DataType) -> pa.DataType:
    """That of the values."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _group(rows: int, chunks: Sequence[Chunk]) -> Value:
    return struct(
        (1, several([_chunk(chunk) for chunk in chunks])),
        (2, i64(sum(chunk.raw_size for chunk in chunks))),
        (3, i64(rows)),
        (6, i64(sum(chunk.size for chunk in chunks))),
    )


def _chunk(chunk: Chunk) -> Value:
    least, most = _limits(chunk)
    statistics = struct((3, i64(chunk.nulls)), (5, most), (6, least))
    begin = chunk.data_at if chunk.dictionary_at is None else chunk.dictionary_at
    about = struct(
        (1, i32(_TYPES[chunk.kind])),
        (2, several([i32(encoding) for encoding in chunk.encodings])),
        (3, several([binary(chunk.name.encode())])),
        (4, i32(chunk.compression)),
        (5, i64(chunk.values)),
        (6, i64(chunk.raw_size)),
        (7, i64(chunk.size)),
        (9, i64(chunk.data_at)),
        (11, None if chunk.dictionary_at is None else i64(chunk.dictionary_at)),
        (12, statistics),
    )
    return struct((2, i64(begin)), (3, about))


def _limits(chunk: Chunk) -> tuple[Value | None, Value | None]:
    """As they are written: numbers in the size of their type, texts as they are."""
    if chunk.limits is None:
        return None, None
    size = 4 if chunk.kind == pa.int32() else 8
    least, most = (
        value if isinstance(value, bytes) else value.to_bytes(size, "little", signed=True) for value in chunk.limits
    )
    return (None, None) if max(len(least), len(most)) > _LONGEST_LIMIT else (binary(least), binary(most))

"""Headers of pages and the footer of a file: parquet.thrift's structures, for the few kinds of columns we have."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import pyarrow as pa

from .thrift import Value, binary, flag, i32, i64, several, struct

MAGIC = b"PAR1"
_CREATED_BY = b"topicshark version 1.0.0"  # in the form that readers look for
_OPTIONAL, _UTF8, _VERSION = 1, 0, 2
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_LONGEST_LIMIT = 256  # in bytes; of a longer text the footer has a bound
_SURROGATES, _BEHIND_SURROGATES = 0xD800, 0xE000  # no characters, so UTF-8 has none of them
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
        (12, statistics(chunk)),
    )
    return struct((2, i64(begin)), (3, about))


def statistics(chunk: Chunk) -> Value:
    """Numbers in the size of their type, texts as they are, or by their bounds."""
    nulls = (3, i64(chunk.nulls))
    if chunk.limits is None:
        return struct(nulls)
    least, most = chunk.limits
    if not isinstance(least, bytes):
        size = 4 if chunk.kind == pa.int32() else 8
        lower, upper = (binary(value.to_bytes(size, "little", signed=True)) for value in (least, most))
        return struct(nulls, (5, upper), (6, lower))
    short_least, short_most = lower_bound(least), upper_bound(most)
    if short_most is None:
        return struct(nulls)
    exact = [(7, flag(short_most == most)), (8, flag(short_least == least))]
    return struct(nulls, (5, binary(short_most)), (6, binary(short_least)), *exact)


def lower_bound(text: bytes) -> bytes:
    """A short text that is not greater: its beginning."""
    return text if len(text) <= _LONGEST_LIMIT else _beginning(text).encode()


def upper_bound(text: bytes) -> bytes | None:
    """A short text that is not less: its beginning with the last character replaced by the next one. None if all are
    the last character of Unicode."""
    if len(text) <= _LONGEST_LIMIT:
        return text
    kept = _beginning(text).rstrip(chr(sys.maxunicode))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return (kept[:-1] + chr(_BEHIND_SURROGATES if following == _SURROGATES else following)).encode()


def _beginning(text: bytes) -> str:
    """Whole characters."""
    return text[:_LONGEST_LIMIT].decode(errors="ignore")

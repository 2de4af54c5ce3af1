"""What Parquet says about its pages and chunks, in Thrift's compact protocol.

The structures are those of parquet.thrift (https://github.com/apache/parquet-format); fields are given as (number,
value) in rising order. A value is an int (`i32`, `i64`), a flag, bytes, a list of one kind, or a struct, which is a
list of such fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_TRUE_KIND, _FALSE_KIND = 1, 2
_I32_KIND, _I64_KIND, _BINARY_KIND, _LIST_KIND, _STRUCT_KIND = 5, 6, 8, 9, 12


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Value(NamedTuple):
    """A value as it is written, with the kind that goes before it."""

    kind: int
    data: bytes


def i32(value: int) -> Value:
    return Value(_I32_KIND, varint(value << 1 if value >= 0 else ~value << 1 | 1))


def i64(value: int) -> Value:
    return i32(value)._replace(kind=_I64_KIND)


def binary(value: bytes) -> Value:
    return Value(_BINARY_KIND, varint(len(value)) + value)


def flag(value: bool) -> Value:
    """In a struct it is all in its kind."""
    return Value(_TRUE_KIND if value else _FALSE_KIND, b"")


def several(values: Sequence[Value]) -> Value:
    """A list of values of one kind, at least one."""
    count, kind = len(values), values[0].kind
    head = bytes([count << 4 | kind]) if count < 15 else bytes([0xF0 | kind]) + varint(count)
    return Value(_LIST_KIND, head + b"".join(value.data for value in values))


def struct(*fields: tuple[int, Value | None]) -> Value:
    """Fields without a value are left out."""
    out, last = [], 0
    for number, value in fields:
        if value is not None:
            out += [bytes([number - last << 4 | value.kind]), value.data]
            last = number
    return Value(_STRUCT_KIND, b"".join(out) + b"\0")

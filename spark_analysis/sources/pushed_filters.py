"""Filters that Spark hands down to the source, answered on Arrow batches before the rows cross over to Java.

Only filters whose answer is surely Spark's own are taken; the others stay with Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

_COMPARISONS: dict[type[Filter], Callable[..., pa.Array]] = {
    EqualTo: pc.equal,
    GreaterThan: pc.greater,
    GreaterThanOrEqual: pc.greater_equal,
    LessThan: pc.less,
    LessThanOrEqual: pc.less_equal,
}
_TEXTS: dict[type[Filter], Callable[..., pa.Array]] = {
    StringStartsWith: pc.starts_with,
    StringEndsWith: pc.ends_with,
    StringContains: pc.match_substring,
}
_NULLS: dict[type[Filter], Callable[..., pa.Array]] = {IsNull: pc.is_null, IsNotNull: pc.is_valid}


def can_answer(asked: Filter, schema: pa.Schema) -> bool:
    """Whether the source may take a filter off Spark's hands."""
    if isinstance(asked, Not):
        return can_answer(asked.child, schema)
    path: tuple[str, ...] = getattr(asked, "attribute", ())
    if len(path) != 1 or path[0] not in schema.names:
        return False
    kind = schema.field(path[0]).type
    if type(asked) in _NULLS:
        return True
    if type(asked) in _TEXTS:
        return pa.types.is_string(kind) and isinstance(asked.value, str)  # type: ignore[attr-defined]
    if isinstance(asked, In):
        return all(_fits(value, kind) for value in asked.value)
    return type(asked) in _COMPARISONS and _fits(asked.value, kind)  # type: ignore[attr-defined]


def _fits(value: Any, kind: pa.DataType) -> bool:
    """The value is of the column's own type, so that nothing is converted on the way; null is not."""
    if pa.types.is_boolean(kind):
        return isinstance(value, bool)
    if pa.types.is_integer(kind):
        return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < kind.bit_width
    return isinstance(value, str)


def rows_that_pass(rows: pa.RecordBatch, filters: Sequence[Filter]) -> pa.RecordBatch:
    """The rows for which every filter is true; null is not true."""
    for asked in filters:
        rows = rows.filter(_answer(asked, rows), null_selection_behavior="drop")
    return rows


def _answer(asked: Any, rows: pa.RecordBatch) -> pa.Array:
    if isinstance(asked, Not):
        return pc.invert(_answer(asked.child, rows))
    column = rows.column(asked.attribute[0])
    kind = type(asked)
    if kind in _NULLS:
        return _NULLS[kind](column)
    if kind in _TEXTS:
        return _TEXTS[kind](column, asked.value)
    if kind is In:
        among = pc.is_in(column, value_set=pa.array(asked.value, column.type))
        return pc.if_else(pc.is_valid(column), among, pa.scalar(None, pa.bool_()))
    return _COMPARISONS[kind](column, pa.scalar(asked.value, column.type))

"""Counts by key that can be merged: parts counted in different tasks give the same sums, however a session is cut.

A tally is an Arrow table: columns of keys, each combination once and in order, then columns of counts. What hostile
traffic could make endless is folded: keys beyond the first so many, in the order of their names, become null, the key
of the rest. A key among the first of all is among the first of every part, so that this, too, is the same for any cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .packing import pack_tables, unpack_tables

OTHER = "(other)"  # what the rest is called where it is shown
LEAST, MOST = "least_", "most_"  # columns of these names hold minima and maxima, all others sums


def tally(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """One row for each combination of keys, all other columns put together."""
    values = [name for name in table.column_names if name not in keys]
    grouped = table.group_by(list(keys), use_threads=False).aggregate([(name, _how(name)) for name in values])
    grouped = grouped.select([*keys, *(f"{name}_{_how(name)}" for name in values)]).rename_columns([*keys, *values])
    wanted = pa.schema([table.schema.field(name) for name in (*keys, *values)])
    return grouped.cast(wanted).sort_by([(name, "ascending") for name in keys]).combine_chunks()


def _how(name: str) -> str:
    return "min" if name.startswith(LEAST) else "max" if name.startswith(MOST) else "sum"


def merged(tables: Sequence[pa.Table], keys: Sequence[str]) -> pa.Table:
    return tally(pa.concat_tables(tables), keys)


def last_kept(table: pa.Table, keys: Sequence[str], most: int) -> tuple[Any, ...] | None:
    """The last of the keys that are kept; None if all are. The table is a tally."""
    real = table.filter(pc.is_valid(table.column(keys[0])))
    if len(real) <= most:
        return None
    return tuple(real.column(name)[most - 1].as_py() for name in keys)


def folded(table: pa.Table, keys: Sequence[str], last: tuple[Any, ...] | None, by: Sequence[str] = ()) -> pa.Table:
    """Of a tally by these keys, and by more within each: what lies beyond the last key kept, under the key null."""
    if last is None:
        return table
    kept = _up_to(table, list(keys), last)
    for name in keys:
        column = table.column(name)
        nothing = pa.scalar(None, column.type)
        table = table.set_column(table.column_names.index(name), name, pc.if_else(kept, column, nothing))
    return tally(table, [*keys, *by])


def _up_to(table: pa.Table, keys: Sequence[str], last: tuple[Any, ...]) -> pa.ChunkedArray:
    """Whether the keys of a row come before these or are these; null counts as beyond."""
    column = table.column(keys[0])
    if len(keys) == 1:
        return pc.less_equal(column, last[0]).fill_null(False)
    same = pc.and_(pc.equal(column, last[0]), _up_to(table, keys[1:], last[1:]))
    return pc.or_(pc.less(column, last[0]), same).fill_null(False)


def run_starts(table: pa.Table, keys: Sequence[str]) -> NDArray[np.int64]:
    """Where each run of equal keys starts, and behind the last the length of the table."""
    starts = np.zeros(len(table), np.bool_)
    starts[:1] = True
    for name in keys:
        codes = table.column(name).combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
        starts[1:] |= codes[1:] != codes[:-1]
    return np.append(np.flatnonzero(starts), len(table)).astype(np.int64)


class Tallies:
    """A dataclass of tallies and numbers, which tasks hand over as bytes."""

    def packed(self) -> bytes:
        values = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        tables = {name: value for name, value in values.items() if isinstance(value, pa.Table)}
        numbers = pa.table({name: [value] for name, value in values.items() if name not in tables})
        return pack_tables({**tables, _NUMBERS: numbers})

    @classmethod
    def unpacked(cls, data: bytes) -> Self:
        tables = unpack_tables(data)
        numbers = tables.pop(_NUMBERS).to_pylist()
        return cls(**tables, **(numbers[0] if numbers else {}))


_NUMBERS = "numbers "  # no field has such a name

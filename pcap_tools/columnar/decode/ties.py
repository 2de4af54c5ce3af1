"""The columns that rules need besides: what is to be read for them in each layout, and their arrays.

These are key, number and port (``codec.answer_key``), code, accepted, qos and dup (``codec.message``). They cost a
second look at the rows, so only those who ask for them make a ``TieColumns``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcap_tools.codec.answer_key import COPY, ECHO, Tie, copy_of_request, is_repeated, tie_of
from pcap_tools.columnar.decode.decode_kernel import Results, field_room
from pcap_tools.columnar.decode.plans import offsets_of
from pcap_tools.columnar.decode.schema import ALL_MESSAGES
from pcap_tools.columnar.decode.tables import Tables
from pcap_tools.columnar.decode.text_columns import numbers, validity
from pcap_tools.columnar.decode.ties_kernel import WALK, How, TieColumn, new_ties, tie_rows
from pcap_tools.columnar.read.datagrams import DatagramBatch
from pcap_tools.dialect.program import Dialect, Extent, Kind, Layout, as_int64

_NUMBERS = (Kind.UINT, Kind.INT, Kind.BITS, Kind.DIGITS)


class TieColumns:
    """Those of one decoder; ``wanted`` are some of key, number, port, code, accepted, qos and dup."""

    def __init__(self, tables: Tables, wanted: Collection[str]) -> None:
        self._wanted = frozenset(wanted)
        self._program, self._fields = tables.program, field_room(tables.most_steps)
        self._listed: list[int] = []
        ties = [tie_of(dialect) for dialect in tables.dialects]
        rows = [
            self._row(tables.dialects[code], ties[code], layout)
            for code, (_, layout) in zip(tables.dialect_codes.tolist(), tables.layouts, strict=True)
        ]
        self._there = frozenset(name for name in self._wanted if any(_has(row, name) for row in rows))
        self._rows = np.array(rows, np.int64).ravel()
        self._lists = np.array(self._listed or [0], np.int64)

    def arrays(self, batch: DatagramBatch, results: Results) -> dict[str, pa.Array]:
        """The wanted columns of the rows that were kept."""
        count = len(results.row)
        found = new_ties(count, self._there)
        if self._there:
            tie_rows(
                self._program, self._rows, self._lists, batch.buffer, batch.start, batch.size, results.row,
                results.outcome, results.error, self._fields, found,
            )  # fmt: skip
        values = found._asdict()
        return {name: _array(name, count, values[name], values[f"has_{name}"]) for name in self._wanted}

    def _row(self, dialect: Dialect, tie: Tie | None, layout: Layout) -> list[int]:
        """A row of ``TieColumn``."""
        number = self._step(layout, dialect.spec.topics.number, "number")
        port = self._step(layout, dialect.spec.broker.subscriber_port, "port")
        code = self._step(layout, layout.code, "code", "accepted")
        qos, dup = self._step(layout, layout.qos, "qos"), self._step(layout, layout.dup, "dup")
        accepted = layout.steps[code].accepted if code >= 0 and "accepted" in self._wanted else ()
        levels = layout.steps[qos].word_numbers.items() if qos >= 0 else ()
        how, first, last = self._key(tie, layout) if tie and "key" in self._wanted else (How.NOTHING, 0, 0)
        read = {index for index in (number, port, code, qos, dup) if index >= 0}
        places = _places(layout, read | {first} if how == How.FIELD else read) if how != How.BYTES else None
        return [
            *(number, port, code, qos, dup, how, first, last),
            *self._list(accepted),
            *self._list(one for level in levels for one in level),
            *((WALK, 0) if places is None else self._list(places)),
        ]

    def _step(self, layout: Layout, name: str | None, *columns: str) -> int:
        """The step of a field that is a number, -1 if there is none or no column wants it."""
        index = _index(layout, name) if self._wanted.intersection(columns) else -1
        return index if index >= 0 and layout.steps[index].kind in _NUMBERS else -1

    def _list(self, numbers: Iterable[int]) -> tuple[int, int]:
        first = len(self._listed)
        self._listed += map(as_int64, numbers)
        return first, len(self._listed)

    def _key(self, tie: Tie, layout: Layout) -> tuple[int, int, int]:
        """How the key is made, and from which steps."""
        if tie.by == ECHO:
            return self._bytes_of([index for index, step in enumerate(layout.steps) if is_repeated(step)], layout)
        holder = tie.by
        if tie.by == COPY:
            copy = copy_of_request(layout) if layout.message in tie.acks else None
            if copy is None:
                return self._bytes_of(range(len(layout.steps)), layout)
            holder = copy.name
        index = _index(layout, holder)
        return (How.FIELD, index, index) if index >= 0 else (How.NOTHING, 0, 0)

    def _bytes_of(self, chosen: Collection[int], layout: Layout) -> tuple[int, int, int]:
        """Bits share their bytes: these count once, and only if all of them are chosen."""
        pieces, whole = [], True
        for index, step in enumerate(layout.steps):
            whole = (whole or step.kind is not Kind.BITS or step.opens_group) and index in chosen
            if whole and (step.kind is not Kind.BITS or step.closes_group):
                pieces.append(index)
        return How.BYTES, *self._list(pieces)


def _has(row: Sequence[int], column: str) -> bool:
    """Whether messages of a layout may have a column."""
    if column == "key":
        return row[TieColumn.HOW] != How.NOTHING
    if column == "accepted":
        return row[TieColumn.ACCEPTED] < row[TieColumn.ACCEPTED_END]
    return row[TieColumn[column.upper()]] >= 0


def _places(layout: Layout, steps: Collection[int]) -> list[int] | None:
    """Pairs of a step and its offset, if all of them are numbers that stand at the same place in each valid message."""
    head = layout.steps[: max(steps, default=-1) + 1]
    if any(step.extent is not Extent.FIXED or step.optional for step in head):
        return None
    if any(layout.steps[index].kind not in _NUMBERS for index in steps):
        return None
    offsets = list(offsets_of(head))
    return [one for index in sorted(steps) for one in (index, offsets[index])]


def _array(name: str, count: int, values: NDArray[Any], known: NDArray[np.uint8]) -> pa.Array:
    kind = ALL_MESSAGES.field(name).type
    if not known.any():
        return pa.nulls(count, kind)
    if kind == pa.bool_():
        return numbers(kind, count, np.packbits(values, bitorder="little"), validity(known))
    return numbers(kind, count, values.astype(kind.to_pandas_dtype(), copy=False), validity(known))


def _index(layout: Layout, name: str | None) -> int:
    return next((index for index, step in enumerate(layout.steps) if step.name == name), -1)

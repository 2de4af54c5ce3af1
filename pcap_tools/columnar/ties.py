"""The columns key, number and port: what is to be read for them in each layout, and their arrays.

They cost a second walk over the rows, so only those who ask for them make a ``TieColumns``.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcap_tools.answer_key import COPY, ECHO, Tie, copy_of_request, is_repeated, tie_of
from pcap_tools.dialect.program import Dialect, Kind, Layout

from .datagrams import DatagramBatch
from .decode_kernel import Results, field_room
from .schema import ALL_MESSAGES
from .tables import Tables
from .text_columns import numbers, validity
from .ties_kernel import How, new_ties, tie_rows

_NUMBERS = (Kind.UINT, Kind.INT, Kind.BITS, Kind.DIGITS)


class TieColumns:
    """Those of one decoder; ``wanted`` are some of key, number and port."""

    def __init__(self, tables: Tables, wanted: Collection[str]) -> None:
        self._wanted = frozenset(wanted)
        self._program, self._fields = tables.program, field_room(tables.most_steps)
        self._pieces: list[int] = []
        ties = [tie_of(dialect) for dialect in tables.dialects]
        rows = [
            self._row(tables.dialects[code], ties[code], layout)
            for code, (_, layout) in zip(tables.dialect_codes.tolist(), tables.layouts, strict=True)
        ]
        self._rows = np.array(rows, np.int64).ravel()
        self._listed = np.array(self._pieces or [0], np.int64)

    def arrays(self, batch: DatagramBatch, results: Results) -> dict[str, pa.Array]:
        """The wanted columns of the rows that were kept."""
        found, count = new_ties(len(results.row)), len(results.row)
        tie_rows(
            self._program, self._rows, self._listed, batch.buffer, batch.start, batch.size, results.row,
            results.outcome, results.error, self._fields, found,
        )  # fmt: skip
        columns: dict[str, tuple[NDArray[np.int64], NDArray[np.uint8]]] = {
            "key": (found.key, found.has_key),
            "number": (found.number, found.has_number),
            "port": (found.port, found.has_port),
        }
        return {name: _array(name, count, *columns[name]) for name in self._wanted}

    def _row(self, dialect: Dialect, tie: Tie | None, layout: Layout) -> list[int]:
        number = _number_step(layout, dialect.spec.topics.number) if "number" in self._wanted else -1
        port = _number_step(layout, dialect.spec.broker.subscriber_port) if "port" in self._wanted else -1
        return [number, port, *(self._key(tie, layout) if tie and "key" in self._wanted else (How.NOTHING, 0, 0))]

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
        first, whole = len(self._pieces), True
        for index, step in enumerate(layout.steps):
            whole = (whole or step.kind is not Kind.BITS or step.opens_group) and index in chosen
            if whole and (step.kind is not Kind.BITS or step.closes_group):
                self._pieces.append(index)
        return How.BYTES, first, len(self._pieces)


def _array(name: str, count: int, values: NDArray[np.int64], known: NDArray[np.uint8]) -> pa.Array:
    kind = ALL_MESSAGES.field(name).type
    if not known.any():
        return pa.nulls(count, kind)
    return numbers(kind, count, values.astype(kind.to_pandas_dtype(), copy=False), validity(known))


def _number_step(layout: Layout, name: str | None) -> int:
    """The step of a field that is a number, -1 if there is none."""
    index = _index(layout, name)
    return index if index >= 0 and layout.steps[index].kind in _NUMBERS else -1


def _index(layout: Layout, name: str | None) -> int:
    return next((index for index, step in enumerate(layout.steps) if step.name == name), -1)

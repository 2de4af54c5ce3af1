"""Every field of datagrams that were decoded already: each is walked once more, by the layout that was found for it.

``decode_fields`` does so for one datagram at a time, so that the kernels can be held against the codec.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcap_tools.codec.message import WireError
from pcap_tools.columnar.decode.decode_kernel import (
    _I32,
    _I64,
    _PROGRAM,
    _U8,
    OTHER,
    field_room,
    new_results,
    walk_rows,
)
from pcap_tools.columnar.decode.tables import FormColumn, LayoutColumn, Op, Program, StepColumn, Tables
from pcap_tools.columnar.decode.text_refs import PLACE_BITS
from pcap_tools.columnar.decode.walk_kernel import ERRORS, FieldColumn, walk
from pcap_tools.columnar.read.datagrams import DatagramBatch
from pcap_tools.dialect import Dialect, Layout
from pcap_tools.dialect.kinds import NUMBERS
from pcap_tools.dialect.program import Kind, Step, Value
from pcap_tools.kernels.jit import i64, kernel
from pcap_tools.kernels.words import item, put

_FIRST, _COUNT, _LAST_GUARD, _FORM = (int(LayoutColumn.FIRST) + index for index in range(4))
_NUL_PADDING, _FORM_SIZE = int(FormColumn.NUL_PADDING), len(FormColumn)
_OP, _DIGITS, _STEP = int(StepColumn.OP), int(Op.DIGITS), len(StepColumn)
_VALUE, _VALUE_END, _FIELD = int(FieldColumn.VALUE), int(FieldColumn.VALUE_END), len(FieldColumn)
_LAYOUT = len(LayoutColumn)


@kernel(_PROGRAM, _U8, _I64, _I32, _I32, _I32, _I64, _I64, _I32)
def walk_fields(
    program: Program,
    buffer: Any,
    starts: Any,
    sizes: Any,
    rows: Any,
    outcomes: Any,
    fields: Any,
    values: Any,
    read: Any,
) -> None:
    """How many fields each row has, and step after step their values for all rows: numbers, and marks of texts.

    ``rows`` and ``outcomes`` are those of ``Results``; ``fields`` has room for one datagram.
    """
    count = rows.size
    for kept in range(count):
        row, outcome = i64(item(rows, kept)), i64(item(outcomes, kept))
        base, size = item(starts, row), i64(item(sizes, row))
        found = i64(0)
        if outcome != OTHER and size > 0:
            layout = (outcome if outcome >= 0 else -1 - outcome) * _LAYOUT
            first = item(program.layouts, layout + _FIRST)
            _, _, _, _, found = walk(
                program.steps, program.pool, program.literals, first, item(program.layouts, layout + _COUNT),
                item(program.layouts, layout + _LAST_GUARD), buffer, base, size,
                item(program.forms, item(program.layouts, layout + _FORM) * _FORM_SIZE + _NUL_PADDING) != 0, fields,
            )  # fmt: skip
            for index in range(found):
                value = item(fields, index * _FIELD + _VALUE)
                if item(program.steps, first + index * _STEP + _OP) > _DIGITS:
                    value = (item(fields, index * _FIELD + _VALUE_END) - value) << PLACE_BITS | (base + value)
                put(values, index * count + kept, value)
        put(read, kept, found)


@dataclass(frozen=True, slots=True)
class RawField:
    """One field: where it stands in the datagram, and its value."""

    start: int
    end: int
    value: Value


@dataclass(frozen=True, slots=True)
class RawResult:
    """What the walk says of one datagram; ``layout`` is None if none was selected."""

    form: str
    layout: Layout | None
    error: WireError | None
    error_offset: int | None
    padding: int
    fields: dict[str, RawField]


def decode_fields(dialect: Dialect, batch: DatagramBatch) -> Iterator[RawResult]:
    """Walk each datagram of a batch in this dialect."""
    tables = Tables([dialect])
    fields, route, first = field_room(tables.most_steps), np.zeros(1, np.int16), np.zeros(1, np.int32)
    for row in range(batch.count):
        one, results = slice(row, row + 1), new_results(1)
        datagram = tables.program, batch.buffer, batch.start[one], batch.size[one], batch.length[one]
        read = walk_rows(*datagram, route, first, 1, results, fields)
        outcome, error = int(results.outcome[0]), int(results.error[0])
        form, layout = tables.layouts[outcome if outcome >= 0 else -1 - outcome]
        rows = fields.reshape(-1, len(FieldColumn))[:read].tolist()
        payload = batch.buffer[batch.start[row] : batch.start[row] + batch.size[row]].tobytes()
        yield RawResult(
            form.name,
            layout if outcome >= 0 else None,
            ERRORS[error - 1] if error else None,
            int(results.error_offset[0]) if error else None,
            int(results.padding[0]),
            {step.name: _field(step, numbers, payload) for step, numbers in zip(layout.steps, rows, strict=False)},
        )


def _field(step: Step, numbers: list[int], payload: bytes) -> RawField:
    start, end, value, value_end = numbers
    if step.kind not in NUMBERS:
        return RawField(start, end, payload[value:value_end])
    if value < 0 and step.kind is not Kind.INT:
        value += 1 << 64
    return RawField(start, end, value)

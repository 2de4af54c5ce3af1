"""From datagrams to columns: form and message are chosen as ``docs/decoding.md`` tells; texts are marked, not written.

A datagram is first tried by the plans of its layouts, which is quick and enough for nearly all that is valid; what they
are not sure of is walked. ``text_columns`` writes the texts that are wanted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import boolean, int64
from numba import types as numba_types
from numpy.typing import NDArray

from pcap_tools.columnar.decode.marks import ABSENT, FIRST_TAIL, KIND_SHIFT, NUMBER, PLACE_BITS
from pcap_tools.columnar.decode.plans import NO_FLAG, PlanColumn
from pcap_tools.columnar.decode.quick_kernel import MATCH, NO_MATCH, by_shape, quick
from pcap_tools.columnar.decode.tables import (
    FIRST_TRIES,
    DialectColumn,
    FormColumn,
    LayoutColumn,
    Op,
    Program,
    StepColumn,
)
from pcap_tools.columnar.decode.walk_kernel import CUT, EMPTY, FieldColumn, walk
from pcap_tools.kernels.jit import i64, inlined, kernel, type_of
from pcap_tools.kernels.words import item, load64, put

UNKNOWN = NO_FLAG

_FIRST_FORM, _FORMS, _FIRST_LAYOUT, _LAYOUTS = (int(column) for column in DialectColumn)
_NUL_PADDING, _BYTE, _DISPATCH = int(FormColumn.NUL_PADDING), int(FormColumn.BYTE), int(FormColumn.DISPATCH)
_FIRST, _COUNT, _LAST_GUARD, _FORM = (int(LayoutColumn.FIRST) + index for index in range(4))
_COLUMNS = int(LayoutColumn.TOPIC)
_START, _VALUE, _VALUE_END = int(FieldColumn.START), int(FieldColumn.VALUE), int(FieldColumn.VALUE_END)
_OP, _DIGITS = int(StepColumn.OP), int(Op.DIGITS)
_PLAN_COLUMNS, _RETAIN = int(PlanColumn.TOPIC), int(PlanColumn.RETAIN)
_RETAIN_MASK, _RETAIN_ZERO = int(PlanColumn.RETAIN_MASK), int(PlanColumn.RETAIN_ZERO)
_DIALECT, _FORM_SIZE, _LAYOUT = len(DialectColumn), len(FormColumn), len(LayoutColumn)
_STEP, _FIELD, _PLAN = len(StepColumn), len(FieldColumn), len(PlanColumn)
_SELECT, _FAIL, _FINAL = 0, 1, 2
_NUMBER = NUMBER << KIND_SHIFT


class Results(NamedTuple):
    """What is said of each row kept."""

    row: NDArray[np.int32]  # in the batch
    outcome: NDArray[np.int32]  # a layout that was selected; -1 - layout: not selected; OTHER: of no dialect
    retain: NDArray[np.uint8]
    topic: NDArray[np.int64]  # marks
    filter: NDArray[np.int64]
    payload: NDArray[np.int64]
    error: NDArray[np.uint8]  # a code of ``walk_kernel``, 0 for none. This and its offset come filled with 0
    error_offset: NDArray[np.int32]
    padding: NDArray[np.int32]


OTHER = -(1 << 31)
_I64 = numba_types.Array(int64, 1, "C")
_I32 = numba_types.Array(numba_types.int32, 1, "C")
_I16 = numba_types.Array(numba_types.int16, 1, "C")
_U8 = numba_types.Array(numba_types.uint8, 1, "C")
_PROGRAM = type_of(Program._make([*[np.zeros(1, np.int64)] * 10, np.zeros(1, np.uint8)]))


def new_results(rows: int) -> Results:
    """Room for so many rows."""
    kinds = [np.int32, np.int32, np.uint8, np.int64, np.int64, np.int64, np.uint8, np.int32, np.int32]
    return Results._make(np.zeros(rows, kind) for kind in kinds)


def field_room(most_steps: int) -> NDArray[np.int64]:
    """Room for the fields of one datagram."""
    return np.zeros(most_steps * len(FieldColumn), np.int64)


@inlined
def _picked(forms: Any, dispatch: Any, form: int, buffer: Any, base: int, size: int) -> tuple[int, int]:
    """The candidates that are worth trying."""
    offset = item(forms, form * _FORM_SIZE + _BYTE)
    byte = i64(item(buffer, base + offset)) if offset < size else 256
    picked = 2 * (item(forms, form * _FORM_SIZE + _DISPATCH) + byte)
    return item(dispatch, picked), item(dispatch, picked + 1)


@inlined
def _by_plan(program: Program, dialect: int, buffer: Any, base: int, size: int, tails: Any) -> tuple[int, int]:
    """The layout and the padding of a valid datagram; -1 if it takes the walk to tell."""
    form = item(program.dialects, dialect * _DIALECT + _FIRST_FORM)
    last_form = form + item(program.dialects, dialect * _DIALECT + _FORMS)
    while form < last_form:
        cursor, stop = _picked(program.forms, program.dispatch, form, buffer, base, size)
        while cursor < stop:
            layout = item(program.candidates, cursor)
            answer, padding = quick(
                program.plans, layout * _PLAN, program.looks, program.steps, program.pool, program.literals,
                buffer, base, size, tails,
            )  # fmt: skip
            if answer != NO_MATCH:
                return layout if answer == MATCH else -1, padding
            cursor += 1
        form += 1
    return -1, 0


@inlined
def _by_walk(
    program: Program, dialect: int, buffer: Any, base: int, size: int, fields: Any
) -> tuple[int, bool, int, int, int, int]:
    """Layout, whether it is selected, error, its offset, padding, fields read.

    First those layouts that the dispatch leaves are tried; if none is selected, all; and last the best one once more,
    so that the fields are its.
    """
    first_form = form = item(program.dialects, dialect * _DIALECT + _FIRST_FORM)
    first_layout = layout = item(program.dialects, dialect * _DIALECT + _FIRST_LAYOUT)
    last_layout = layout + item(program.dialects, dialect * _DIALECT + _LAYOUTS)
    if size == 0:
        return layout, False, EMPTY, 0, 0, 0
    phase, best, best_at = _SELECT, -1, -1
    cursor, stop = _picked(program.forms, program.dispatch, form, buffer, base, size)
    while True:
        if phase == _SELECT and cursor == stop:
            form += 1
            if form < first_form + item(program.dialects, dialect * _DIALECT + _FORMS):
                cursor, stop = _picked(program.forms, program.dispatch, form, buffer, base, size)
                continue
            phase = _FAIL if best < 0 else _FINAL
            cursor = first_layout
        if phase == _FAIL and cursor == last_layout:
            phase = _FINAL
        if phase == _FINAL:
            layout = best
        else:
            layout = item(program.candidates, cursor) if phase == _SELECT else cursor
            cursor += 1
        row = layout * _LAYOUT
        selected, error, error_at, padding, read = walk(
            program.steps, program.pool, program.literals, item(program.layouts, row + _FIRST),
            item(program.layouts, row + _COUNT), item(program.layouts, row + _LAST_GUARD), buffer, base, size,
            item(program.forms, item(program.layouts, row + _FORM) * _FORM_SIZE + _NUL_PADDING) != 0, fields,
        )  # fmt: skip
        if phase == _FINAL or (selected and error == 0):
            return layout, selected, error, error_at, padding, read
        if phase == _FAIL or selected:
            if error_at > best_at:
                best, best_at = layout, error_at
            if phase == _SELECT:
                cursor = stop


@inlined
def _planned_mark(mark: int, base: int, tails: Any) -> Any:
    if mark == ABSENT:
        return ABSENT
    return base + (mark if mark >= 0 else item(tails, FIRST_TAIL - mark))


@inlined
def _shaped_mark(mark: int, base: int, first: int, second: int) -> Any:
    if mark == ABSENT:
        return ABSENT
    return base + (mark if mark >= 0 else first if mark == FIRST_TAIL else second)


@inlined
def _retained(program: Program, plan: int, buffer: Any, base: int) -> Any:
    retain = item(program.plans, plan + _RETAIN)
    if retain < 0:
        return i64(UNKNOWN)
    word = i64(load64(buffer, base + retain)) ^ item(program.plans, plan + _RETAIN_ZERO)
    return i64(word & item(program.plans, plan + _RETAIN_MASK) != 0)


@inlined
def _first_try(program: Program, dialect: int, buffer: Any, base: int, size: int) -> Any:
    """The layout that the datagram most likely has, told by one byte; -1 if there is none."""
    tries = dialect * FIRST_TRIES
    offset = item(program.tries, tries)
    return item(program.tries, tries + 1 + i64(item(buffer, base + offset))) if offset < size else i64(-1)


@inlined
def _walked_mark(program: Program, layout: int, column: int, base: int, read: int, fields: Any) -> Any:
    index = item(program.layouts, layout * _LAYOUT + _COLUMNS + column)
    if index < 0 or index >= read:
        return ABSENT
    field, step = index * _FIELD, item(program.layouts, layout * _LAYOUT + _FIRST) + index * _STEP
    if item(program.steps, step + _OP) <= _DIGITS:
        return _NUMBER | step << PLACE_BITS | (base + item(fields, field + _START))
    value = item(fields, field + _VALUE)
    return (item(fields, field + _VALUE_END) - value) << PLACE_BITS | (base + value)


@inlined
def _walked_retain(program: Program, layout: int, read: int, fields: Any) -> Any:
    index = item(program.layouts, layout * _LAYOUT + _COLUMNS + 3)
    if index < 0 or index >= read:
        return UNKNOWN
    value = item(fields, index * _FIELD + _VALUE)
    step = item(program.layouts, layout * _LAYOUT + _FIRST) + index * _STEP
    if item(program.steps, step + _OP) > _DIGITS:
        value = item(fields, index * _FIELD + _VALUE_END) - value
    return 1 if value != 0 else 0


_BATCH = (_PROGRAM, _U8, _I64, _I32, _I32)


@kernel(*_BATCH, _I16, int64, boolean, type_of(new_results(1)), _I64, _I32)
def plan_rows(
    program: Program,
    buffer: Any,
    starts: Any,
    sizes: Any,
    lengths: Any,
    routes: Any,
    count: int,
    keep_other: bool,
    results: Results,
    tails: Any,
    unsure: Any,
) -> tuple[int, int]:
    """Decode by plans the datagrams whose route is a dialect; returns how many rows are kept and how many are unsure.

    ``unsure`` are those rows, among the kept ones, for ``walk_rows``.
    """
    kept = left = 0
    for row in range(count):
        dialect = i64(item(routes, row))
        if dialect < 0 and not keep_other:
            continue
        base, size = item(starts, row), i64(item(sizes, row))
        layout = padding = i64(-1)
        retain = first = second = i64(0)
        sure = False
        put(results.row, kept, row)
        if dialect >= 0 and size == i64(item(lengths, row)):
            layout = _first_try(program, dialect, buffer, base, size)
            if layout >= 0:
                sure, padding, retain, first, second = by_shape(program.plans, layout * _PLAN, buffer, base, size)
            if not sure:
                layout, padding = _by_plan(program, dialect, buffer, base, size, tails)
        plan = layout * _PLAN + _PLAN_COLUMNS
        put(results.outcome, kept, layout)
        put(results.retain, kept, retain)
        put(results.padding, kept, padding)
        if sure:
            put(results.topic, kept, _shaped_mark(item(program.plans, plan), base, first, second))
            put(results.filter, kept, _shaped_mark(item(program.plans, plan + 1), base, first, second))
            put(results.payload, kept, _shaped_mark(item(program.plans, plan + 2), base, first, second))
        elif layout >= 0:
            put(results.retain, kept, _retained(program, layout * _PLAN, buffer, base))
            put(results.topic, kept, _planned_mark(item(program.plans, plan), base, tails))
            put(results.filter, kept, _planned_mark(item(program.plans, plan + 1), base, tails))
            put(results.payload, kept, _planned_mark(item(program.plans, plan + 2), base, tails))
        else:
            put(unsure, left, kept)
            left += 1
        kept += 1
    return kept, left


@kernel(*_BATCH, _I16, _I32, int64, type_of(new_results(1)), _I64)
def walk_rows(
    program: Program,
    buffer: Any,
    starts: Any,
    sizes: Any,
    lengths: Any,
    routes: Any,
    unsure: Any,
    count: int,
    results: Results,
    fields: Any,
) -> Any:
    """Walk the rows that plans are not sure of; returns how many fields were read of the last."""
    read = 0
    for number in range(count):
        kept = i64(item(unsure, number))
        row = i64(item(results.row, kept))
        base, size, dialect = item(starts, row), i64(item(sizes, row)), i64(item(routes, row))
        layout, selected, error, error_at, padding, read = 0, False, 0, 0, 0, 0
        if dialect >= 0:
            layout, selected, error, error_at, padding, read = _by_walk(program, dialect, buffer, base, size, fields)
            if i64(item(lengths, row)) > size:
                error, error_at = CUT, size
        shown = read if selected else 0
        put(results.outcome, kept, OTHER if dialect < 0 else layout if selected else -1 - layout)
        put(results.topic, kept, _walked_mark(program, layout, 0, base, shown, fields))
        put(results.filter, kept, _walked_mark(program, layout, 1, base, shown, fields))
        put(results.payload, kept, _walked_mark(program, layout, 2, base, shown, fields))
        put(results.retain, kept, _walked_retain(program, layout, shown, fields))
        put(results.error, kept, error)
        put(results.error_offset, kept, error_at)
        put(results.padding, kept, padding)
    return read

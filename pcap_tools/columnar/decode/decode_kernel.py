"""From datagrams to columns: form and message are chosen as ``docs/decoding.md`` tells; texts are referred to, not
written.

A datagram is first tried by the plans of its layouts (see ``plans``), which is quick and enough for nearly all valid
ones: a plan gives the same result as the walk, or none. Datagrams that no plan is sure of are walked. ``text_columns``
writes the texts that are wanted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import boolean, int64
from numba import types as numba_types
from numpy.typing import NDArray

from pcap_tools.columnar.decode.plans import PlanColumn
from pcap_tools.columnar.decode.tables import (
    DialectColumn,
    Flag,
    FormColumn,
    LayoutColumn,
    Op,
    Program,
    StepColumn,
)
from pcap_tools.columnar.decode.text_kernel import first_bad_byte
from pcap_tools.columnar.decode.text_refs import ABSENT, FIRST_TAIL, KIND_SHIFT, NUMBER, PLACE_BITS
from pcap_tools.columnar.decode.walk_kernel import (
    CUT,
    EMPTY,
    FieldColumn,
    find,
    holds,
    is_allowed,
    read_number,
    read_prefixed,
    run_end,
    walk,
    without_nuls,
)
from pcap_tools.dialect.program import Counts
from pcap_tools.kernels.jit import i64, inlined, kernel, type_of
from pcap_tools.kernels.words import equal_in_block, item, load64, put, zeros_below

MATCH, NO_MATCH, UNSURE = 0, 1, 2

_SIZE, _PLAN_NUL_PADDING = int(PlanColumn.SIZE), int(PlanColumn.NUL_PADDING)
_GUARD_MASK, _GUARD_MASK_HIGH, _GUARD, _GUARD_HIGH = (int(PlanColumn.GUARD_MASK) + index for index in range(4))
_VALID_MASK, _VALID = int(PlanColumn.VALID_MASK), int(PlanColumn.VALID)
_HEAD_CHECKS, _HEAD_CHECKS_END, _TAIL, _TAIL_END = (int(PlanColumn.HEAD_CHECKS) + index for index in range(4))
_OP, _FLAGS, _STEP_SIZE = int(StepColumn.OP), int(StepColumn.FLAGS), int(StepColumn.SIZE)
_CHARSET, _COUNTS = int(StepColumn.CHARSET), int(StepColumn.COUNTS)
_LITERAL, _LITERAL_SIZE = int(StepColumn.LITERAL), int(StepColumn.LITERAL_SIZE)
_DIGITS, _UNTIL, _REST = int(Op.DIGITS), int(Op.UNTIL), int(Op.REST)
_HAS_GUARD, _HAS_ALLOWED, _IS_TEXT, _HAS_COUNTS = (
    int(flag) for flag in (Flag.GUARD, Flag.ALLOWED, Flag.TEXT, Flag.COUNTS)
)
_COUNTS_REST = int(Counts.REST)


@inlined
def quick(
    plans: Any,
    plan: int,
    head_checks: Any,
    steps: Any,
    pool: Any,
    literals: Any,
    buffer: Any,
    base: int,
    size: int,
    tails: Any,
) -> tuple[int, int]:
    """Whether the datagram is a valid one of this layout, and its padding; references to the texts go to ``tails``.

    NO_MATCH: the layout is not selected. UNSURE: it takes the walk to tell.
    """
    at = item(plans, plan + _SIZE)
    word = i64(load64(buffer, base))
    if at >= 0:
        if word & item(plans, plan + _GUARD_MASK) != item(plans, plan + _GUARD):
            return NO_MATCH, 0
        high = item(plans, plan + _GUARD_MASK_HIGH)
        if high != 0 and i64(load64(buffer, base + 8)) & high != item(plans, plan + _GUARD_HIGH):
            return NO_MATCH, 0
    if at < 0 or at > size or word & item(plans, plan + _VALID_MASK) != item(plans, plan + _VALID):
        return UNSURE, 0
    end = size
    told = False
    check, checks_end = item(plans, plan + _HEAD_CHECKS), item(plans, plan + _HEAD_CHECKS_END)
    while check < checks_end:  # a range with a step would begin with a division
        step, offset = item(head_checks, check), item(head_checks, check + 1)
        check += 2
        here = _check_head_field(steps, step, offset, pool, literals, buffer, base, end)
        if here < 0 or (told and here != end):
            return UNSURE, 0
        if item(steps, step + _FLAGS) & _HAS_COUNTS:
            end, told = here, True
    content = end
    if item(plans, plan + _PLAN_NUL_PADDING) and (not told or end < size):
        content = without_nuls(buffer, base, size)
        if told:
            if content > end:
                return UNSURE, 0
            content = end
    elif end < size:
        return UNSURE, 0
    if at > end:
        return UNSURE, 0
    tail = 0
    step, steps_end = item(plans, plan + _TAIL), item(plans, plan + _TAIL_END)
    while step < steps_end:
        op = item(steps, step + _OP)
        value = at
        if op == _REST:
            value_end = at = max(at, content)
        elif op == _UNTIL:
            length, literal = item(steps, step + _LITERAL_SIZE), item(steps, step + _LITERAL)
            found = equal_in_block(buffer, base + at, i64(item(literals, literal)))
            value_end = at + zeros_below(found)
            if length != 1 or found == 0:
                value_end = find(buffer, base, at, end, literals, literal, length)
            elif value_end >= end:
                return UNSURE, 0
            at = value_end + length
            if value_end < 0:
                return UNSURE, 0
        else:
            stop, value, at = read_prefixed(steps, step, buffer, base, at, end)
            value_end = at
            if stop:
                return UNSURE, 0
        if item(steps, step + _FLAGS) & _IS_TEXT:
            bad = first_bad_byte(buffer, base + value, base + value_end, item(steps, step + _CHARSET))
            if bad >= 0:
                return UNSURE, 0
        put(tails, tail, (value_end - value) << PLACE_BITS | value)
        tail += 1
        step += _STEP
    if at < content:
        return UNSURE, 0
    return MATCH, size - at


@inlined
def _check_head_field(
    steps: Any, step: int, offset: int, pool: Any, literals: Any, buffer: Any, base: int, end: int
) -> Any:
    """Where the message ends as this field of the head has it; -1 if anything is wrong with the field."""
    op, flags = item(steps, step + _OP), item(steps, step + _FLAGS)
    value, value_end = offset, offset + item(steps, step + _STEP_SIZE)
    if op <= _DIGITS:
        value = read_number(steps, step, op, buffer, base + offset)
        if op == _DIGITS and value < 0:
            return -1
    if flags & _HAS_GUARD and not holds(steps, step, op, pool, literals, buffer, base, value, value_end):
        return -1
    if flags & _HAS_ALLOWED and not is_allowed(steps, step, pool, value):
        return -1
    if flags & _IS_TEXT and first_bad_byte(buffer, base + value, base + value_end, item(steps, step + _CHARSET)) >= 0:
        return -1
    if flags & _HAS_COUNTS:
        return run_end(value_end if item(steps, step + _COUNTS) == _COUNTS_REST else 0, value, value_end, end)
    return end


UNKNOWN = 2  # of retain, beside 0 and 1

_FIRST_LAYOUT, _LAYOUTS, _BYTE, _DISPATCH = (int(column) for column in DialectColumn)
_NUL_PADDING = int(FormColumn.NUL_PADDING)
_FIRST, _COUNT, _LAST_GUARD, _FORM = (int(LayoutColumn.FIRST) + index for index in range(4))
_COLUMNS = int(LayoutColumn.TOPIC)
_START, _VALUE, _VALUE_END = int(FieldColumn.START), int(FieldColumn.VALUE), int(FieldColumn.VALUE_END)
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
    topic: NDArray[np.int64]  # text references
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
_PROGRAM = type_of(Program._make([*[np.zeros(1, np.int64)] * 9, np.zeros(1, np.uint8)]))


def new_results(rows: int) -> Results:
    """Room for so many rows."""
    kinds = [np.int32, np.int32, np.uint8, np.int64, np.int64, np.int64, np.uint8, np.int32, np.int32]
    return Results._make(np.zeros(rows, kind) for kind in kinds)


def field_room(most_steps: int) -> NDArray[np.int64]:
    """Room for the fields of one datagram."""
    return np.zeros(most_steps * len(FieldColumn), np.int64)


@inlined
def _picked(program: Program, dialect: int, buffer: Any, base: int, size: int) -> tuple[int, int]:
    """The candidates that are worth trying, in the order of the forms."""
    row = dialect * _DIALECT
    offset = item(program.dialects, row + _BYTE)
    byte = i64(item(buffer, base + offset)) if offset < size else 256
    picked = 2 * (item(program.dialects, row + _DISPATCH) + byte)
    return item(program.dispatch, picked), item(program.dispatch, picked + 1)


@inlined
def _by_plan(program: Program, dialect: int, buffer: Any, base: int, size: int, tails: Any) -> tuple[int, int]:
    """The layout and the padding of a valid datagram; -1 if only the walk can tell."""
    cursor, stop = _picked(program, dialect, buffer, base, size)
    while cursor < stop:
        layout = item(program.candidates, cursor)
        answer, padding = quick(
            program.plans, layout * _PLAN, program.head_checks, program.steps, program.pool, program.literals,
            buffer, base, size, tails,
        )  # fmt: skip
        if answer != NO_MATCH:
            return layout if answer == MATCH else -1, padding
        cursor += 1
    return -1, 0


@inlined
def _by_walk(
    program: Program, dialect: int, buffer: Any, base: int, size: int, fields: Any
) -> tuple[int, bool, int, int, int, int]:
    """Layout, whether it is selected, error, its offset, padding, fields read.

    First the candidates are tried: of each form the first that is selected counts. If none is selected, all layouts are
    tried; and last the best one once more, so that the fields are its.
    """
    first_layout = layout = item(program.dialects, dialect * _DIALECT + _FIRST_LAYOUT)
    last_layout = layout + item(program.dialects, dialect * _DIALECT + _LAYOUTS)
    if size == 0:
        return layout, False, EMPTY, 0, 0, 0
    phase, best, best_at, done_form = _SELECT, -1, -1, -1
    cursor, stop = _picked(program, dialect, buffer, base, size)
    while True:
        if phase == _SELECT and cursor == stop:
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
        form = item(program.layouts, row + _FORM)
        if phase == _SELECT and form == done_form:
            continue
        selected, error, error_at, padding, read = walk(
            program.steps, program.pool, program.literals, item(program.layouts, row + _FIRST),
            item(program.layouts, row + _COUNT), item(program.layouts, row + _LAST_GUARD), buffer, base, size,
            item(program.forms, form * _FORM_SIZE + _NUL_PADDING) != 0, fields,
        )  # fmt: skip
        if phase == _FINAL or (selected and error == 0):
            return layout, selected, error, error_at, padding, read
        if phase == _FAIL or selected:
            if error_at > best_at:
                best, best_at = layout, error_at
            if phase == _SELECT:
                done_form = form


@inlined
def _planned_ref(ref: int, base: int, tails: Any) -> Any:
    if ref == ABSENT:
        return ABSENT
    return base + (ref if ref >= 0 else item(tails, FIRST_TAIL - ref))


@inlined
def _retained(program: Program, plan: int, buffer: Any, base: int) -> Any:
    retain = item(program.plans, plan + _RETAIN)
    if retain < 0:
        return i64(UNKNOWN)
    word = i64(load64(buffer, base + retain)) ^ item(program.plans, plan + _RETAIN_ZERO)
    return i64(word & item(program.plans, plan + _RETAIN_MASK) != 0)


@inlined
def _walked_ref(program: Program, layout: int, column: int, base: int, read: int, fields: Any) -> Any:
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
        put(results.row, kept, row)
        if dialect >= 0 and size == i64(item(lengths, row)):
            layout, padding = _by_plan(program, dialect, buffer, base, size, tails)
        put(results.outcome, kept, layout)
        put(results.padding, kept, padding)
        if layout >= 0:
            plan = layout * _PLAN
            put(results.retain, kept, _retained(program, plan, buffer, base))
            put(results.topic, kept, _planned_ref(item(program.plans, plan + _PLAN_COLUMNS), base, tails))
            put(results.filter, kept, _planned_ref(item(program.plans, plan + _PLAN_COLUMNS + 1), base, tails))
            put(results.payload, kept, _planned_ref(item(program.plans, plan + _PLAN_COLUMNS + 2), base, tails))
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
        put(results.topic, kept, _walked_ref(program, layout, 0, base, shown, fields))
        put(results.filter, kept, _walked_ref(program, layout, 1, base, shown, fields))
        put(results.payload, kept, _walked_ref(program, layout, 2, base, shown, fields))
        put(results.retain, kept, _walked_retain(program, layout, shown, fields))
        put(results.error, kept, error)
        put(results.error_offset, kept, error_at)
        put(results.padding, kept, padding)
    return read

"""Key, number and port of datagrams that were decoded already: each is walked once more, by its layout.

What they are: ``pcap_tools.answer_key``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pcap_tools.answer_key import FNV_BASIS, FNV_PRIME, KEY_BITS, PORT_LIMIT

from .decode_kernel import _I32, _I64, _PROGRAM, _U8
from .jit import i64, inlined, kernel, type_of, u64
from .tables import FormColumn, LayoutColumn, Op, Program, StepColumn
from .walk_kernel import FieldColumn, walk
from .words import item, put


class How(IntEnum):
    """What the key of a layout is made of."""

    NOTHING = 0
    FIELD = 1  # the number in a step, or the hash of its text
    BYTES = 2  # the hash of the bytes of some steps


class TieColumn(IntEnum):
    """A row a layout. Steps are -1 for none."""

    NUMBER = 0  # steps
    PORT = 1
    HOW = 2
    FIRST = 3  # the step of FIELD; else where the steps to be hashed are listed
    LAST = 4


class Ties(NamedTuple):
    """The answers, and which rows have one."""

    key: NDArray[np.int64]
    number: NDArray[np.int64]
    port: NDArray[np.int64]
    has_key: NDArray[np.uint8]
    has_number: NDArray[np.uint8]
    has_port: NDArray[np.uint8]


_NUMBER, _PORT, _HOW, _FIRST_PIECE, _LAST_PIECE = (int(column) for column in TieColumn)
_NOTHING, _BY_FIELD, _TIE = int(How.NOTHING), int(How.FIELD), len(TieColumn)
_FIRST, _COUNT, _LAST_GUARD, _FORM = (int(LayoutColumn.FIRST) + index for index in range(4))
_NUL_PADDING, _FORM_SIZE, _LAYOUT = int(FormColumn.NUL_PADDING), len(FormColumn), len(LayoutColumn)
_OP, _DIGITS, _STEP = int(StepColumn.OP), int(Op.DIGITS), len(StepColumn)
_START, _END, _VALUE, _VALUE_END = (int(column) for column in FieldColumn)
_FIELD = len(FieldColumn)
_BASIS, _PRIME, _KEY_MASK = u64(FNV_BASIS), u64(FNV_PRIME), u64((1 << KEY_BITS) - 1)


def new_ties(rows: int) -> Ties:
    """Room for so many rows; no row has anything."""
    kinds = [np.int64] * 3 + [np.uint8] * 3
    return Ties._make(np.zeros(rows, kind) for kind in kinds)


@inlined
def _hashed(value: Any, buffer: Any, at: int, stop: int) -> Any:
    while at < stop:
        value = (value ^ u64(item(buffer, at))) * _PRIME
        at += 1
    return value


@inlined
def _key(
    steps: Any, first: int, ties: Any, tie: int, pieces: Any, buffer: Any, base: int, fields: Any, read: int
) -> Any:
    """The key, and whether there is one."""
    piece, stop = item(ties, tie + _FIRST_PIECE), item(ties, tie + _LAST_PIECE)
    value = _BASIS
    if item(ties, tie + _HOW) == _BY_FIELD:
        if piece >= read:
            return i64(0), False
        begin = item(fields, piece * _FIELD + _VALUE)
        if item(steps, first + piece * _STEP + _OP) <= _DIGITS:
            return begin, True
        value = _hashed(value, buffer, base + begin, base + item(fields, piece * _FIELD + _VALUE_END))
    else:
        while piece < stop:
            field = item(pieces, piece) * _FIELD
            if item(pieces, piece) < read:
                value = _hashed(value, buffer, base + item(fields, field + _START), base + item(fields, field + _END))
            piece += 1
    return i64(value & _KEY_MASK), True


@inlined
def _number(index: int, fields: Any, read: int) -> Any:
    """The number in a step, and whether it is there."""
    if index < 0 or index >= read:
        return i64(0), False
    return item(fields, index * _FIELD + _VALUE), True


@kernel(_PROGRAM, _I64, _I64, _U8, _I64, _I32, _I32, _I32, _U8, _I64, type_of(new_ties(1)))
def tie_rows(
    program: Program,
    ties: Any,
    pieces: Any,
    buffer: Any,
    starts: Any,
    sizes: Any,
    rows: Any,
    outcomes: Any,
    errors: Any,
    fields: Any,
    found: Ties,
) -> None:
    """``rows``, ``outcomes`` and ``errors`` are those of ``Results``; ``fields`` has room for one datagram."""
    for kept in range(rows.size):
        outcome = i64(item(outcomes, kept))
        if outcome < 0 or item(errors, kept) != 0:
            continue
        tie, layout = outcome * _TIE, outcome * _LAYOUT
        number, port, how = item(ties, tie + _NUMBER), item(ties, tie + _PORT), item(ties, tie + _HOW)
        if number < 0 and port < 0 and how == _NOTHING:
            continue
        row = i64(item(rows, kept))
        base, first = item(starts, row), item(program.layouts, layout + _FIRST)
        _, _, _, _, read = walk(
            program.steps, program.pool, program.literals, first, item(program.layouts, layout + _COUNT),
            item(program.layouts, layout + _LAST_GUARD), buffer, base, i64(item(sizes, row)),
            item(program.forms, item(program.layouts, layout + _FORM) * _FORM_SIZE + _NUL_PADDING) != 0, fields,
        )  # fmt: skip
        value, known = _number(number, fields, read)
        put(found.number, kept, value)
        put(found.has_number, kept, known)
        value, known = _number(port, fields, read)
        put(found.port, kept, value)
        put(found.has_port, kept, known and 0 <= value < PORT_LIMIT)
        if how != _NOTHING:
            value, known = _key(program.steps, first, ties, tie, pieces, buffer, base, fields, read)
            put(found.key, kept, value)
            put(found.has_key, kept, known)

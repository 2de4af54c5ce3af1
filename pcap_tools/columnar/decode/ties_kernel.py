"""Key, number, port, code, accepted, qos and dup of datagrams that were decoded already.

What they are: ``codec.answer_key`` and ``codec.message``. Numbers at places that are the same in each valid message
are read there; otherwise the datagram is walked once more, by its layout.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pcap_tools.codec.answer_key import FNV_BASIS, FNV_PRIME, KEY_BITS, PORT_LIMIT
from pcap_tools.codec.message import QOS_LIMIT
from pcap_tools.columnar.decode.decode_kernel import _I32, _I64, _PROGRAM, _U8
from pcap_tools.columnar.decode.tables import FormColumn, LayoutColumn, Op, Program, StepColumn
from pcap_tools.columnar.decode.walk_kernel import FieldColumn, read_number, walk
from pcap_tools.kernels.jit import i64, inlined, kernel, type_of, u64
from pcap_tools.kernels.words import item, put


class How(IntEnum):
    """What the key of a layout is made of."""

    NOTHING = 0
    FIELD = 1  # the number in a step, or the hash of its text
    BYTES = 2  # the hash of the bytes of some steps


class TieColumn(IntEnum):
    """A row a layout. Steps are -1 for none; lists are told by their places among all lists."""

    NUMBER = 0  # steps
    PORT = 1
    CODE = 2
    QOS = 3
    DUP = 4
    HOW = 5
    FIRST = 6  # the step of FIELD; of BYTES the list of those to be hashed
    LAST = 7
    ACCEPTED = 8  # codes that accept a request
    ACCEPTED_END = 9
    LEVELS = 10  # pairs: a number of the QoS, and what it is called
    LEVELS_END = 11
    PLACES = 12  # pairs: a step, and its offset in each valid message; or WALK
    PLACES_END = 13


class Ties(NamedTuple):
    """The answers, and which rows have one. Columns that nobody wants have no rows."""

    key: NDArray[np.int64]
    number: NDArray[np.int64]
    port: NDArray[np.int64]
    code: NDArray[np.int64]
    qos: NDArray[np.int64]
    accepted: NDArray[np.uint8]
    dup: NDArray[np.uint8]
    has_key: NDArray[np.uint8]
    has_number: NDArray[np.uint8]
    has_port: NDArray[np.uint8]
    has_code: NDArray[np.uint8]
    has_qos: NDArray[np.uint8]
    has_accepted: NDArray[np.uint8]
    has_dup: NDArray[np.uint8]


WALK = -1
_NUMBER, _PORT, _CODE, _QOS, _DUP = (int(TieColumn.NUMBER) + index for index in range(5))
_HOW, _FIRST_PIECE, _LAST_PIECE = int(TieColumn.HOW), int(TieColumn.FIRST), int(TieColumn.LAST)
_ACCEPTED, _ACCEPTED_END = int(TieColumn.ACCEPTED), int(TieColumn.ACCEPTED_END)
_LEVELS, _LEVELS_END = int(TieColumn.LEVELS), int(TieColumn.LEVELS_END)
_PLACES, _PLACES_END = int(TieColumn.PLACES), int(TieColumn.PLACES_END)
_NOTHING, _BY_FIELD, _TIE = int(How.NOTHING), int(How.FIELD), len(TieColumn)
_FIRST, _COUNT, _LAST_GUARD, _FORM = (int(LayoutColumn.FIRST) + index for index in range(4))
_NUL_PADDING, _FORM_SIZE, _LAYOUT = int(FormColumn.NUL_PADDING), len(FormColumn), len(LayoutColumn)
_OP, _DIGITS, _STEP = int(StepColumn.OP), int(Op.DIGITS), len(StepColumn)
_START, _END, _VALUE, _VALUE_END = (int(column) for column in FieldColumn)
_FIELD = len(FieldColumn)
_BASIS, _PRIME, _KEY_MASK = u64(FNV_BASIS), u64(FNV_PRIME), u64((1 << KEY_BITS) - 1)


def new_ties(rows: int, wanted: Collection[str]) -> Ties:
    """Room for so many rows; no row has anything."""
    wide, there = Ties._fields[:5], [name.removeprefix("has_") in wanted for name in Ties._fields]
    return Ties._make(
        np.zeros(rows if is_there else 0, np.int64 if name in wide else np.uint8)
        for name, is_there in zip(Ties._fields, there, strict=True)
    )


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
def _read_places(
    steps: Any, first: int, lists: Any, place: int, stop: int, buffer: Any, base: int, fields: Any
) -> None:
    """What a walk would leave in ``fields``, of those steps alone whose places are known."""
    while place < stop:
        index = item(lists, place)
        step = first + index * _STEP
        value = read_number(steps, step, item(steps, step + _OP), buffer, base + item(lists, place + 1))
        put(fields, index * _FIELD + _VALUE, value)
        place += 2


@inlined
def _level(lists: Any, level: int, stop: int, value: int) -> Any:
    while level < stop:
        if item(lists, level) == value:
            return item(lists, level + 1)
        level += 2
    return value


@inlined
def _holds(lists: Any, place: int, stop: int, value: int) -> Any:
    while place < stop:
        if item(lists, place) == value:
            return True
        place += 1
    return False


@kernel(_PROGRAM, _I64, _I64, _U8, _I64, _I32, _I32, _I32, _U8, _I64, type_of(new_ties(1, ())))
def tie_rows(
    program: Program,
    ties: Any,
    lists: Any,
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
        if outcome < 0:
            continue
        tie, layout, is_valid = outcome * _TIE, outcome * _LAYOUT, item(errors, kept) == 0
        number, port, code = item(ties, tie + _NUMBER), item(ties, tie + _PORT), item(ties, tie + _CODE)
        qos, dup, how = item(ties, tie + _QOS), item(ties, tie + _DUP), item(ties, tie + _HOW)
        place, stop = item(ties, tie + _PLACES), item(ties, tie + _PLACES_END)
        if place == stop or not (is_valid or code >= 0 or qos >= 0 or dup >= 0):
            continue
        row = i64(item(rows, kept))
        base, first = item(starts, row), item(program.layouts, layout + _FIRST)
        read = item(program.layouts, layout + _COUNT)
        if is_valid and place >= 0:
            _read_places(program.steps, first, lists, place, stop, buffer, base, fields)
        else:
            _, _, _, _, read = walk(
                program.steps, program.pool, program.literals, first, read,
                item(program.layouts, layout + _LAST_GUARD), buffer, base, i64(item(sizes, row)),
                item(program.forms, item(program.layouts, layout + _FORM) * _FORM_SIZE + _NUL_PADDING) != 0, fields,
            )  # fmt: skip
        if is_valid:
            if 0 <= number < read:
                put(found.number, kept, item(fields, number * _FIELD + _VALUE))
                put(found.has_number, kept, 1)
            if 0 <= port < read:
                value = item(fields, port * _FIELD + _VALUE)
                put(found.port, kept, value)
                put(found.has_port, kept, 0 <= value < PORT_LIMIT)
            if how != _NOTHING:
                value, known = _key(program.steps, first, ties, tie, lists, buffer, base, fields, read)
                put(found.key, kept, value)
                put(found.has_key, kept, known)
        if 0 <= code < read:
            value, accepted = item(fields, code * _FIELD + _VALUE), item(ties, tie + _ACCEPTED)
            if found.code.size:
                put(found.code, kept, value)
                put(found.has_code, kept, 1)
            if accepted < item(ties, tie + _ACCEPTED_END):
                put(found.accepted, kept, _holds(lists, accepted, item(ties, tie + _ACCEPTED_END), value))
                put(found.has_accepted, kept, 1)
        if 0 <= qos < read:
            value = item(fields, qos * _FIELD + _VALUE)
            value = _level(lists, item(ties, tie + _LEVELS), item(ties, tie + _LEVELS_END), value)
            put(found.qos, kept, value)
            put(found.has_qos, kept, -QOS_LIMIT < value < QOS_LIMIT)
        if 0 <= dup < read:
            put(found.dup, kept, item(fields, dup * _FIELD + _VALUE) != 0)
            put(found.has_dup, kept, 1)

"""The columns that only rules need: key, number, port, code, accepted, qos and dup of datagrams that were decoded
already.

``codec.answer_key`` defines key, number and port, ``codec.message`` the others. They cost a second look at the rows, so
only a decoder that is asked for one of them makes a ``RuleColumns``. Numbers at places that are the same in each valid
message are read there; otherwise the datagram is walked once more, by its layout.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcap_tools.codec.answer_key import (
    COPY,
    ECHO,
    FNV_BASIS,
    FNV_PRIME,
    KEY_BITS,
    PORT_LIMIT,
    RequestKey,
    copy_of_request,
    is_repeated,
    request_key_of,
)
from pcap_tools.codec.message import QOS_LIMIT
from pcap_tools.columnar.decode.decode_kernel import _I32, _I64, _PROGRAM, _U8, Results, field_room
from pcap_tools.columnar.decode.plans import offsets_of
from pcap_tools.columnar.decode.schema import ALL_MESSAGES
from pcap_tools.columnar.decode.tables import FormColumn, LayoutColumn, Op, Program, StepColumn, Tables
from pcap_tools.columnar.decode.text_columns import numbers, validity
from pcap_tools.columnar.decode.walk_kernel import FieldColumn, read_number, walk
from pcap_tools.columnar.read.datagrams import DatagramBatch
from pcap_tools.dialect.kinds import NUMBERS
from pcap_tools.dialect.program import Dialect, Extent, Kind, Layout, as_int64
from pcap_tools.kernels.jit import i64, inlined, kernel, type_of, u64
from pcap_tools.kernels.words import item, put


class KeySource(IntEnum):
    """What the key of a layout is made of."""

    NOTHING = 0
    FIELD = 1  # the number in a step, or the hash of its text
    BYTES = 2  # the hash of the bytes of some steps


class RuleColumn(IntEnum):
    """A row a layout. Steps are -1 for none; lists are told by their places among all lists."""

    NUMBER = 0  # steps
    PORT = 1
    CODE = 2
    QOS = 3
    DUP = 4
    KEY_SOURCE = 5
    FIRST = 6  # the step of FIELD; of BYTES the list of those to be hashed
    LAST = 7
    ACCEPTED = 8  # codes that accept a request
    ACCEPTED_END = 9
    LEVELS = 10  # pairs: a number of the QoS, and what it is called
    LEVELS_END = 11
    PLACES = 12  # pairs: a step, and its offset in each valid message; or WALK
    PLACES_END = 13


class RuleValues(NamedTuple):
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
_NUMBER, _PORT, _CODE, _QOS, _DUP = (int(RuleColumn.NUMBER) + index for index in range(5))
_KEY_SOURCE, _FIRST_PIECE, _LAST_PIECE = int(RuleColumn.KEY_SOURCE), int(RuleColumn.FIRST), int(RuleColumn.LAST)
_ACCEPTED, _ACCEPTED_END = int(RuleColumn.ACCEPTED), int(RuleColumn.ACCEPTED_END)
_LEVELS, _LEVELS_END = int(RuleColumn.LEVELS), int(RuleColumn.LEVELS_END)
_PLACES, _PLACES_END = int(RuleColumn.PLACES), int(RuleColumn.PLACES_END)
_NOTHING, _BY_FIELD, _RULE_ROW = int(KeySource.NOTHING), int(KeySource.FIELD), len(RuleColumn)
_FIRST, _COUNT, _LAST_GUARD, _FORM = (int(LayoutColumn.FIRST) + index for index in range(4))
_NUL_PADDING, _FORM_SIZE, _LAYOUT = int(FormColumn.NUL_PADDING), len(FormColumn), len(LayoutColumn)
_OP, _DIGITS, _STEP = int(StepColumn.OP), int(Op.DIGITS), len(StepColumn)
_START, _END, _VALUE, _VALUE_END = (int(column) for column in FieldColumn)
_FIELD = len(FieldColumn)
_BASIS, _PRIME, _KEY_MASK = u64(FNV_BASIS), u64(FNV_PRIME), u64((1 << KEY_BITS) - 1)


def new_rule_values(rows: int, wanted: Collection[str]) -> RuleValues:
    """Room for so many rows; no row has anything."""
    wide, there = RuleValues._fields[:5], [name.removeprefix("has_") in wanted for name in RuleValues._fields]
    return RuleValues._make(
        np.zeros(rows if is_there else 0, np.int64 if name in wide else np.uint8)
        for name, is_there in zip(RuleValues._fields, there, strict=True)
    )


@inlined
def _hashed(value: Any, buffer: Any, at: int, stop: int) -> Any:
    while at < stop:
        value = (value ^ u64(item(buffer, at))) * _PRIME
        at += 1
    return value


@inlined
def _key(
    steps: Any, first: int, rule_table: Any, rule_row: int, pieces: Any, buffer: Any, base: int, fields: Any, read: int
) -> Any:
    """The key, and whether there is one."""
    piece, stop = item(rule_table, rule_row + _FIRST_PIECE), item(rule_table, rule_row + _LAST_PIECE)
    value = _BASIS
    if item(rule_table, rule_row + _KEY_SOURCE) == _BY_FIELD:
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


@kernel(_PROGRAM, _I64, _I64, _U8, _I64, _I32, _I32, _I32, _U8, _I64, type_of(new_rule_values(1, ())))
def read_rule_columns(
    program: Program,
    rule_table: Any,
    lists: Any,
    buffer: Any,
    starts: Any,
    sizes: Any,
    rows: Any,
    outcomes: Any,
    errors: Any,
    fields: Any,
    found: RuleValues,
) -> None:
    """``rows``, ``outcomes`` and ``errors`` are those of ``Results``; ``fields`` has room for one datagram."""
    for kept in range(rows.size):
        outcome = i64(item(outcomes, kept))
        if outcome < 0:
            continue
        rule_row, layout, is_valid = outcome * _RULE_ROW, outcome * _LAYOUT, item(errors, kept) == 0
        number, port, code = (
            item(rule_table, rule_row + _NUMBER),
            item(rule_table, rule_row + _PORT),
            item(rule_table, rule_row + _CODE),
        )
        qos, dup, key_source = (
            item(rule_table, rule_row + _QOS),
            item(rule_table, rule_row + _DUP),
            item(rule_table, rule_row + _KEY_SOURCE),
        )
        place, stop = item(rule_table, rule_row + _PLACES), item(rule_table, rule_row + _PLACES_END)
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
            if key_source != _NOTHING:
                value, known = _key(program.steps, first, rule_table, rule_row, lists, buffer, base, fields, read)
                put(found.key, kept, value)
                put(found.has_key, kept, known)
        if 0 <= code < read:
            value, accepted = item(fields, code * _FIELD + _VALUE), item(rule_table, rule_row + _ACCEPTED)
            if found.code.size:
                put(found.code, kept, value)
                put(found.has_code, kept, 1)
            if accepted < item(rule_table, rule_row + _ACCEPTED_END):
                put(found.accepted, kept, _holds(lists, accepted, item(rule_table, rule_row + _ACCEPTED_END), value))
                put(found.has_accepted, kept, 1)
        if 0 <= qos < read:
            value = item(fields, qos * _FIELD + _VALUE)
            value = _level(lists, item(rule_table, rule_row + _LEVELS), item(rule_table, rule_row + _LEVELS_END), value)
            put(found.qos, kept, value)
            put(found.has_qos, kept, -QOS_LIMIT < value < QOS_LIMIT)
        if 0 <= dup < read:
            put(found.dup, kept, item(fields, dup * _FIELD + _VALUE) != 0)
            put(found.has_dup, kept, 1)


class RuleColumns:
    """Those of one decoder; ``wanted`` are some of key, number, port, code, accepted, qos and dup."""

    def __init__(self, tables: Tables, wanted: Collection[str]) -> None:
        self._wanted = frozenset(wanted)
        self._program, self._fields = tables.program, field_room(tables.most_steps)
        self._listed: list[int] = []
        request_keys = [request_key_of(dialect) for dialect in tables.dialects]
        rows = [
            self._row(tables.dialects[code], request_keys[code], layout)
            for code, (_, layout) in zip(tables.dialect_codes.tolist(), tables.layouts, strict=True)
        ]
        self._there = frozenset(name for name in self._wanted if any(_has(row, name) for row in rows))
        self._rows = np.array(rows, np.int64).ravel()
        self._lists = np.array(self._listed or [0], np.int64)

    def arrays(self, batch: DatagramBatch, results: Results) -> dict[str, pa.Array]:
        """The wanted columns of the rows that were kept."""
        count = len(results.row)
        found = new_rule_values(count, self._there)
        if self._there:
            read_rule_columns(
                self._program, self._rows, self._lists, batch.buffer, batch.start, batch.size, results.row,
                results.outcome, results.error, self._fields, found,
            )  # fmt: skip
        values = found._asdict()
        return {name: _array(name, count, values[name], values[f"has_{name}"]) for name in self._wanted}

    def _row(self, dialect: Dialect, request_key: RequestKey | None, layout: Layout) -> list[int]:
        """A row of ``RuleColumn``."""
        number = self._step(layout, dialect.spec.topics.number, "number")
        port = self._step(layout, dialect.spec.broker.subscriber_port, "port")
        code = self._step(layout, layout.code, "code", "accepted")
        qos, dup = self._step(layout, layout.qos, "qos"), self._step(layout, layout.dup, "dup")
        accepted = layout.steps[code].accepted if code >= 0 and "accepted" in self._wanted else ()
        levels = layout.steps[qos].word_numbers.items() if qos >= 0 else ()
        key_source, first, last = KeySource.NOTHING, 0, 0
        if request_key and "key" in self._wanted:
            key_source, first, last = self._key(request_key, layout)
        read = {index for index in (number, port, code, qos, dup) if index >= 0}
        places = (
            _places(layout, read | {first} if key_source == KeySource.FIELD else read)
            if key_source != KeySource.BYTES
            else None
        )
        return [
            *(number, port, code, qos, dup, key_source, first, last),
            *self._list(accepted),
            *self._list(one for level in levels for one in level),
            *((WALK, 0) if places is None else self._list(places)),
        ]

    def _step(self, layout: Layout, name: str | None, *columns: str) -> int:
        """The step of a field that is a number, -1 if there is none or no column wants it."""
        index = _index(layout, name) if self._wanted.intersection(columns) else -1
        return index if index >= 0 and layout.steps[index].kind in NUMBERS else -1

    def _list(self, numbers: Iterable[int]) -> tuple[int, int]:
        first = len(self._listed)
        self._listed += map(as_int64, numbers)
        return first, len(self._listed)

    def _key(self, request_key: RequestKey, layout: Layout) -> tuple[KeySource, int, int]:
        """KeySource the key is made, and from which steps."""
        if request_key.by == ECHO:
            return self._bytes_of([index for index, step in enumerate(layout.steps) if is_repeated(step)], layout)
        holder = request_key.by
        if request_key.by == COPY:
            copy = copy_of_request(layout) if layout.message in request_key.acks else None
            if copy is None:
                return self._bytes_of(range(len(layout.steps)), layout)
            holder = copy.name
        index = _index(layout, holder)
        return (KeySource.FIELD, index, index) if index >= 0 else (KeySource.NOTHING, 0, 0)

    def _bytes_of(self, chosen: Collection[int], layout: Layout) -> tuple[KeySource, int, int]:
        """Bits share their bytes: these count once, and only if all of them are chosen."""
        pieces, whole = [], True
        for index, step in enumerate(layout.steps):
            whole = (whole or step.kind is not Kind.BITS or step.opens_group) and index in chosen
            if whole and (step.kind is not Kind.BITS or step.closes_group):
                pieces.append(index)
        return KeySource.BYTES, *self._list(pieces)


def _has(row: Sequence[int], column: str) -> bool:
    """Whether messages of a layout may have a column."""
    if column == "key":
        return row[RuleColumn.KEY_SOURCE] != KeySource.NOTHING
    if column == "accepted":
        return row[RuleColumn.ACCEPTED] < row[RuleColumn.ACCEPTED_END]
    return row[RuleColumn[column.upper()]] >= 0


def _places(layout: Layout, steps: Collection[int]) -> list[int] | None:
    """Pairs of a step and its offset, if all of them are numbers that stand at the same place in each valid message."""
    head = layout.steps[: max(steps, default=-1) + 1]
    if any(step.extent is not Extent.FIXED or step.optional for step in head):
        return None
    if any(layout.steps[index].kind not in NUMBERS for index in steps):
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

"""Dialects as arrays of integers: what the kernels walk. The same tables as ``pcap_tools.dialect.program``, only flat.

One ``Program`` holds all dialects that one reading knows: dialects point at layouts (those of one form stand together),
layouts at steps, steps at numbers in a pool and at bytes among the literals. Nothing of a dialect is left out: there is
none to refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pcap_tools.codec.dispatch import pick_by_byte
from pcap_tools.columnar.decode.plans import PlanColumn, plan_of
from pcap_tools.dialect.program import Charset, Counts, Dialect, Extent, Form, Kind, Layout, Prefix, Step, as_int64
from pcap_tools.errors import UsageError
from pcap_tools.escaping import escape

MOST_NAMES = 32_767  # codes of names are int16
_PAD = 64  # so that blocks may be read from any literal


class Op(IntEnum):
    """How a step is read. Up to DIGITS the value is a number, up to RAW the size is fixed, but for VARINT."""

    NUMBER = 0  # uint, big-endian, and bits
    LITTLE = 1  # uint, little-endian
    SIGNED = 2
    SIGNED_LITTLE = 3
    VARINT = 4
    DIGITS = 5
    MAGIC = 6
    RAW = 7
    UNTIL = 8
    PREFIX = 9
    REST = 10


class Flag(IntEnum):
    """What else there is to a step."""

    OPTIONAL = 1
    MAY_BE_ABSENT = 2
    GUARD = 4
    ALLOWED = 8
    TEXT = 16
    COUNTS = 32
    SPAN_BEGINS = 64
    OR_END = 128
    KEEPS_DELIMITER = 256
    UNSIGNED = 512


class StepColumn(IntEnum):
    OP = 0
    FLAGS = 1
    SIZE = 2
    ADVANCE = 3  # by how much reading goes on: nothing within a run of bits
    SHIFT = 4  # of a word of 8 bytes, for numbers
    MASK = 5
    LITERAL = 6  # of digits: the byte that means 0
    LITERAL_SIZE = 7
    GUARD = 8
    GUARDS = 9
    ALLOWED = 10
    ALLOWEDS = 11
    ALLOWED_MASK = 12  # bit n: the number n is allowed
    CHARSET = 13
    COUNTS = 14
    SPAN_FIRST = 15
    SPAN_LAST = 16
    SPAN_LENGTH = 17
    PREFIX = 18
    NAMES = 19
    NAME_COUNT = 20


class LayoutColumn(IntEnum):
    FIRST = 0
    COUNT = 1
    LAST_GUARD = 2
    FORM = 3
    MESSAGE = 4
    MEANING = 5
    TOPIC = 6  # steps, -1 for none
    FILTER = 7
    PAYLOAD = 8
    RETAIN = 9


class FormColumn(IntEnum):
    NAME = 0
    NUL_PADDING = 1


class DialectColumn(IntEnum):
    FIRST_LAYOUT = 0
    LAYOUTS = 1
    BYTE = 2  # the offset of the byte by which layouts are picked
    DISPATCH = 3  # row 256 of a dialect's dispatch is for datagrams that end before that byte


class Program(NamedTuple):
    """What the kernels get: tables row after row, in flat arrays."""

    dialects: NDArray[np.int64]
    forms: NDArray[np.int64]
    dispatch: NDArray[np.int64]  # (first candidate, behind the last)
    candidates: NDArray[np.int64]
    layouts: NDArray[np.int64]
    steps: NDArray[np.int64]
    pool: NDArray[np.int64]
    plans: NDArray[np.int64]
    head_checks: NDArray[np.int64]
    literals: NDArray[np.uint8]


class Words(NamedTuple):
    """The dialects' words for numbers, escaped."""

    offsets: NDArray[np.int64]
    text: NDArray[np.uint8]


@dataclass(slots=True)
class Names:
    """Names and the codes that stand for them in columns."""

    codes: dict[str, int] = field(default_factory=dict)

    def code(self, name: str) -> int:
        if len(self.codes) >= MOST_NAMES:
            raise UsageError(f"more than {MOST_NAMES} names of one kind in the dialects given")
        return self.codes.setdefault(name, len(self.codes))


class Tables:
    """The program of some dialects, and the names that its codes stand for."""

    def __init__(self, dialects: Sequence[Dialect]) -> None:
        names = [dialect.name for dialect in dialects]
        if not names or len(set(names)) != len(names):
            raise UsageError("expected one or more dialects, each with a name of its own")
        self.dialects = tuple(dialects)
        self.names, self.forms, self.messages, self.meanings = Names(), Names(), Names(), Names()
        self.layouts: list[tuple[Form, Layout]] = []
        self._form_rows: list[list[int]] = []
        self._dispatch: list[tuple[int, int]] = []
        self._candidates: list[int] = []
        self._layout_rows: list[list[int]] = []
        self._steps: list[list[int]] = []
        self._pool: list[int] = []
        self._plans: list[list[int]] = []
        self._head_checks: list[int] = []
        self._literals = bytearray()
        self._words: list[bytes] = []
        rows = [self._dialect(dialect) for dialect in dialects]
        self.most_steps = max(row[LayoutColumn.COUNT] for row in self._layout_rows)
        self.program = Program(
            _array(rows),
            _array(self._form_rows),
            _array(self._dispatch),
            _array(self._candidates),
            _array(self._layout_rows),
            _array(self._steps),
            _array(self._pool or [0]),
            _array(self._plans),
            _array(self._head_checks or [0]),
            np.frombuffer(bytearray(self._literals + bytes(_PAD)), np.uint8),
        )
        self.form_codes = _array(
            [self._form_rows[row[LayoutColumn.FORM]][FormColumn.NAME] for row in self._layout_rows]
        )
        self.dialect_codes = np.repeat(np.arange(len(rows)), [row[DialectColumn.LAYOUTS] for row in rows])
        ends = np.cumsum([0, *map(len, self._words)], dtype=np.int64)
        self.words = Words(ends, np.frombuffer(bytearray(b"".join(self._words) + bytes(_PAD)), np.uint8))

    def _dialect(self, dialect: Dialect) -> list[int]:
        self.names.code(dialect.name)
        first_layout = len(self._layout_rows)
        for form in dialect.forms:
            self._form_rows.append([self.forms.code(form.name), form.nul_padding])
            for layout in form.layouts:
                self._layout(form, layout)
        layouts = [layout for form in dialect.forms for layout in form.layouts]
        offset, by_byte = pick_by_byte(layouts)
        row = [first_layout, len(layouts), offset, len(self._dispatch)]
        for picked in (*by_byte, range(len(layouts))):
            first = len(self._candidates)
            self._candidates += [first_layout + place for place in picked]
            self._dispatch.append((first, len(self._candidates)))
        return row

    def _layout(self, form: Form, layout: Layout) -> None:
        where = {step.name: index for index, step in enumerate(layout.steps)}
        columns = [where.get(name or "", -1) for name in (layout.topic, layout.filter, layout.payload, layout.retain)]
        self.layouts.append((form, layout))
        row = [len(self._steps) * len(StepColumn), len(layout.steps), layout.last_guard, len(self._form_rows) - 1]
        self._layout_rows.append(
            [*row, self.messages.code(layout.message), self.meanings.code(layout.meaning), *columns]
        )
        self._plans.append(self._plan(form, layout))
        self._steps += [self._step(step) for step in layout.steps]

    def _plan(self, form: Form, layout: Layout) -> list[int]:
        plan, head_checks = plan_of(form, layout, len(self._steps) * len(StepColumn), len(StepColumn))
        row = [plan.get(column, -1) for column in PlanColumn]
        row[PlanColumn.HEAD_CHECKS] = len(self._head_checks)
        self._head_checks += head_checks
        row[PlanColumn.HEAD_CHECKS_END] = len(self._head_checks)
        return row

    def _step(self, step: Step) -> list[int]:
        row = [0] * len(StepColumn)
        row[StepColumn.OP], row[StepColumn.FLAGS] = _op(step), _flags(step)
        row[StepColumn.SIZE] = step.size
        row[StepColumn.ADVANCE] = 0 if step.kind is Kind.BITS and not step.closes_group else step.size
        row[StepColumn.SHIFT] = 64 - 8 * min(step.size, 8) + step.shift
        row[StepColumn.MASK] = (1 << step.bits) - 1 if step.kind is Kind.BITS else -1
        if step.kind is Kind.DIGITS:
            row[StepColumn.LITERAL] = 0 if step.binary_digits else 0x30
        else:
            row[StepColumn.LITERAL], row[StepColumn.LITERAL_SIZE] = self._literal(step.literal)
        row[StepColumn.GUARD], row[StepColumn.GUARDS] = self._guard(step)
        row[StepColumn.ALLOWED], row[StepColumn.ALLOWEDS] = self._numbers(step.allowed or ())
        row[StepColumn.ALLOWED_MASK] = as_int64(sum(1 << number for number in step.allowed or () if 0 <= number < 64))
        row[StepColumn.CHARSET], row[StepColumn.COUNTS], row[StepColumn.PREFIX] = step.charset, step.counts, step.prefix
        row[StepColumn.SPAN_FIRST], row[StepColumn.SPAN_LAST] = step.span
        row[StepColumn.SPAN_LENGTH] = step.span_length
        row[StepColumn.NAMES], row[StepColumn.NAME_COUNT] = self._words_of(step)
        return row

    def _literal(self, literal: bytes) -> tuple[int, int]:
        first = len(self._literals)
        self._literals += literal
        return first, len(literal)

    def _numbers(self, numbers: Iterable[int]) -> tuple[int, int]:
        first = len(self._pool)
        self._pool += [as_int64(number) for number in numbers]
        return first, len(self._pool) - first

    def _guard(self, step: Step) -> tuple[int, int]:
        """Numbers stand in the pool by themselves, texts as the place and size of a literal."""
        guard = step.guard or ()
        first = len(self._pool)
        for value in guard:
            self._pool += [as_int64(value)] if isinstance(value, int) else self._literal(value)
        return first, len(guard)

    def _words_of(self, step: Step) -> tuple[int, int]:
        """Pairs of a number and its word. A word of no letters is none: then the number itself is shown."""
        first = len(self._pool)
        named = [(number, word) for number, word in step.names if word]
        for number, word in named:
            self._pool += [as_int64(number), len(self._words)]
            self._words.append(escape(word.encode()).encode())
        return first, len(named)


_BY_EXTENT = {Extent.UNTIL: Op.UNTIL, Extent.PREFIX: Op.PREFIX, Extent.REST: Op.REST}
_BY_KIND = {
    Kind.UINT: Op.NUMBER,
    Kind.INT: Op.SIGNED,
    Kind.BITS: Op.NUMBER,
    Kind.DIGITS: Op.DIGITS,
    Kind.VARINT: Op.VARINT,
    Kind.MAGIC: Op.MAGIC,
}
_LITTLE = {Kind.UINT: Op.LITTLE, Kind.INT: Op.SIGNED_LITTLE}


def _op(step: Step) -> Op:
    if step.extent in _BY_EXTENT:
        return _BY_EXTENT[step.extent]
    return _LITTLE[step.kind] if step.little else _BY_KIND.get(step.kind, Op.RAW)


def _flags(step: Step) -> int:
    may_be_absent = step.opens_group if step.kind is Kind.BITS else step.extent is not Extent.REST
    flags = {
        Flag.OPTIONAL: step.optional,
        Flag.MAY_BE_ABSENT: may_be_absent,
        Flag.GUARD: step.guard is not None,
        Flag.ALLOWED: step.allowed is not None,
        Flag.TEXT: step.charset is not Charset.ANY,
        Flag.COUNTS: step.counts is not Counts.NOTHING,
        Flag.SPAN_BEGINS: step.span_length >= 0,
        Flag.OR_END: step.or_end,
        Flag.KEEPS_DELIMITER: step.or_end and step.closes_run,
        Flag.UNSIGNED: step.kind is not Kind.INT,
    }
    return sum(flag for flag, holds in flags.items() if holds)


def _array(rows: Any) -> NDArray[np.int64]:
    return np.array(rows, np.int64).ravel()


PREFIX_SIGNED, PREFIX_LITTLE, PREFIX_ASCII = int(Prefix.SIGNED), int(Prefix.UNSIGNED_LITTLE), int(Prefix.ASCII)

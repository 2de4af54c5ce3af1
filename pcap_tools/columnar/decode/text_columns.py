"""Arrow arrays from what the kernels leave: numbers, codes with their names, and texts that are still to be written.

`write_texts` writes the texts that references point at, in the notation of ``escaping``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numba import int64
from numba import types as numba_types
from numpy.typing import NDArray

from pcap_tools.columnar.decode.decode_kernel import _I32, _I64, _PROGRAM, _U8
from pcap_tools.columnar.decode.tables import Flag, Program, StepColumn, Words
from pcap_tools.columnar.decode.text_kernel import GROWTH, MOST_DIGITS, SPARE, is_plain, printable, put_number, put_text
from pcap_tools.columnar.decode.text_refs import ABSENT, KIND_SHIFT, PLACE_BITS, PLACE_MASK, SIZE_MASK, TEXT, WORD
from pcap_tools.columnar.decode.walk_kernel import read_number
from pcap_tools.errors import UsageError
from pcap_tools.kernels.jit import i64, inlined, kernel, type_of
from pcap_tools.kernels.words import BLOCK, copy_block, item, put

_WORDS = type_of(Words(np.zeros(1, np.int64), np.zeros(1, np.uint8)))
_OP, _FLAGS, _IS_UNSIGNED = int(StepColumn.OP), int(StepColumn.FLAGS), int(Flag.UNSIGNED)
_CODES = numba_types.Array(numba_types.int16, 1, "C")
CODE_BITS = 16
_CODE = (1 << CODE_BITS) - 1
_NAMES, _NAME_COUNT = int(StepColumn.NAMES), int(StepColumn.NAME_COUNT)


@inlined
def _word_of(steps: Any, step: int, pool: Any, value: int) -> Any:
    """The dialect's word for a number, -1 if it has none."""
    names = item(steps, step + _NAMES)
    for name in range(names, names + 2 * item(steps, step + _NAME_COUNT), 2):
        if item(pool, name) == value:
            return item(pool, name + 1)
    return -1


@kernel(_U8, _I64, _PROGRAM, _WORDS, _U8, int64, int64, _I32, _U8, _U8)
def write_texts(
    buffer: Any,
    refs: Any,
    program: Program,
    words: Words,
    shown: Any,
    first: int,
    count: int,
    offsets: Any,
    known: Any,
    out: Any,
) -> Any:
    """Write one column; returns the row at which there was no more room, else the number of rows."""
    at = i64(item(offsets, first))
    room = i64(out.size) - SPARE
    for row in range(first, count):
        ref = item(refs, row)
        put(known, row, ref >= 0)
        kind, size, place = ref >> KIND_SHIFT, ref >> PLACE_BITS & SIZE_MASK, ref & PLACE_MASK
        if ref >> PLACE_BITS <= BLOCK and ref >= 0 and at <= room and is_plain(buffer, place, size):
            copy_block(buffer, place, out, at)
            at += size
        elif ref >= 0:
            if kind == TEXT:
                if at + GROWTH * size > room:
                    return row
                at = put_text(buffer, place, place + size, out, at, shown)
            else:
                word, value = size, i64(0)
                if kind != WORD:
                    value = read_number(program.steps, size, item(program.steps, size + _OP), buffer, place)
                    word = _word_of(program.steps, size, program.pool, value)
                needed = i64(MOST_DIGITS)
                if word >= 0:
                    place = item(words.offsets, word)
                    needed = item(words.offsets, word + 1) - place
                if at + needed > room:
                    return row
                if word >= 0:
                    for done in range(0, needed, BLOCK):
                        copy_block(words.text, place + done, out, at + done)
                    at += needed
                else:
                    at = put_number(value, item(program.steps, size + _FLAGS) & _IS_UNSIGNED != 0, out, at)
        put(offsets, row + 1, at)
    return count


@kernel(_I32, int64, _I64, int64, _CODES, _CODES)
def look_up(outcomes: Any, count: int, table: Any, zero: int, first: Any, second: Any) -> None:
    """The two codes of each outcome, which stand in one word of the table."""
    for row in range(count):
        word = item(table, max(i64(item(outcomes, row)) + zero, 0))
        put(first, row, word & _CODE)
        put(second, row, word >> CODE_BITS & _CODE)


_FIRST_ROOM = 1 << 16
_MOST = (1 << 31) - 1  # Arrow's strings have offsets of 32 bits


def validity(known: NDArray[np.bool_] | NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    """Flags as Arrow has them, None where all are set."""
    return None if known.all() else np.packbits(known, bitorder="little")


def numbers(kind: pa.DataType, count: int, values: NDArray[Any], known: NDArray[np.uint8] | None) -> pa.Array:
    """An array of numbers (or of bits) over memory that nobody else writes to."""
    return pa.Array.from_buffers(kind, count, [_buffer(known), pa.py_buffer(values)])


def _buffer(values: NDArray[Any] | None) -> pa.Buffer | None:
    return None if values is None else pa.py_buffer(values)


class TextWriter:
    """Writes one text column, batch after batch; how much room it takes is remembered."""

    def __init__(self, program: Program, words: Words) -> None:
        self.words = words
        self._program, self._room, self._shown = program, _FIRST_ROOM, printable()

    def write(self, buffer: NDArray[np.uint8], refs: NDArray[np.int64], count: int) -> pa.Array:
        offsets, known = np.empty(count + 1, np.int32), np.empty(count, np.uint8)
        out = np.empty(self._room + SPARE, np.uint8)
        offsets[0] = row = 0
        while True:
            row = write_texts(buffer, refs, self._program, self.words, self._shown, row, count, offsets, known, out)
            if row == count:
                break
            out = self._grown(out, int(offsets[row]), int(refs[row]))
        end = int(offsets[count])
        self._room = max(self._room, end + end // 4)
        buffers = [_buffer(validity(known)), pa.py_buffer(offsets), pa.py_buffer(out[:end])]
        return pa.Array.from_buffers(pa.string(), count, buffers)

    def _grown(self, out: NDArray[np.uint8], used: int, ref: int) -> NDArray[np.uint8]:
        """Room for the row that did not fit, and more."""
        size = ref >> PLACE_BITS & SIZE_MASK if ref >> KIND_SHIFT == TEXT else len(self.words.text)
        needed = used + GROWTH * size + _FIRST_ROOM
        if needed > _MOST:
            raise UsageError("a batch holds more than 2 GB of text; take fewer rows at a time")
        more = np.empty(min(max(2 * out.size, needed), _MOST) + SPARE, np.uint8)
        more[:used] = out[:used]
        return more


class GrowingNames:
    """Names as Arrow and the kernels want them. What is there stays where it is, so arrays made before stay right."""

    def __init__(self) -> None:
        self._count = 0
        self._offsets, self._ends = np.zeros(64, np.int32), np.zeros(64, np.int64)
        self._text = np.zeros(1024 + SPARE, np.uint8)
        self._made: pa.Array | None = None

    def __len__(self) -> int:
        return self._count

    def extend(self, names: Sequence[str]) -> None:
        """Take the names beyond those that are known."""
        words = [name.encode() for name in names[self._count :]]
        ends = np.cumsum([self._ends[self._count], *map(len, words)], dtype=np.int64)
        needed = self._count + len(words) + 1
        if needed > len(self._ends):
            self._ends, self._offsets = _larger(self._ends, 2 * needed), _larger(self._offsets, 2 * needed)
        if ends[-1] + SPARE > len(self._text):
            self._text = _larger(self._text, 2 * int(ends[-1]) + SPARE)
        self._text[ends[0] : ends[-1]] = np.frombuffer(b"".join(words), np.uint8)
        self._ends[self._count : needed] = self._offsets[self._count : needed] = ends
        self._count = needed - 1
        self._made = None

    def words(self) -> Words:
        return Words(self._ends, self._text)

    def array(self) -> pa.Array:
        if self._made is None:
            buffers = [None, pa.py_buffer(self._offsets), pa.py_buffer(self._text)]
            self._made = pa.Array.from_buffers(pa.string(), self._count, buffers)
        return self._made


def _larger(values: NDArray[Any], size: int) -> NDArray[Any]:
    grown = np.zeros(size, values.dtype)
    grown[: len(values)] = values
    return grown


class CodedColumn:
    """A column of few values: a dictionary, or spelled out where plain types are wanted. The names of one column may
    become more from batch to batch, and never others: so the last dictionary holds for all batches."""

    def __init__(self, program: Program, plain: bool) -> None:
        self._program, self._plain = program, plain
        self._first: str | None = None
        self._names = GrowingNames()
        self._writer: TextWriter | None = None

    def array(self, names: Sequence[str], codes: NDArray[Any], known: NDArray[Any] | None) -> pa.Array:
        """Codes are places among the names; ``known`` is None where all rows have one."""
        self._take(names)
        if self._writer is not None:
            refs = codes.astype(np.int64) << PLACE_BITS | WORD << KIND_SHIFT
            if known is not None:
                refs[~known] = ABSENT
            return self._writer.write(np.zeros(SPARE, np.uint8), refs, len(codes))
        kind = pa.from_numpy_dtype(codes.dtype)
        indices = numbers(kind, len(codes), codes, None if known is None else validity(known))
        return pa.DictionaryArray.from_arrays(indices, self._names.array(), safe=False)

    def nulls(self, names: Sequence[str], count: int) -> pa.Array:
        """The same for rows of which none has a name."""
        self._take(names)
        if self._plain:
            return pa.nulls(count, pa.string())
        return pa.DictionaryArray.from_arrays(pa.nulls(count, pa.int16()), self._names.array(), safe=False)

    def _take(self, names: Sequence[str]) -> None:
        if not names or (len(names) == len(self._names) and names[0] == self._first):
            return
        if names[0] != self._first:  # another reading, or another capture
            self._first, self._names = names[0], GrowingNames()
        self._names.extend(names)
        if self._plain:
            self._writer = self._writer or TextWriter(self._program, self._names.words())
            self._writer.words = self._names.words()

"""Writing columns: marks become text in the notation of ``escaping``, codes become other codes or words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64
from numba import types as numba_types

from pcap_tools.columnar.decode.decode_kernel import _I32, _I64, _PROGRAM, _U8
from pcap_tools.columnar.decode.marks import KIND_SHIFT, PLACE_BITS, PLACE_MASK, SIZE_MASK, TEXT, WORD
from pcap_tools.columnar.decode.tables import Flag, Program, StepColumn, Words
from pcap_tools.columnar.decode.text_kernel import GROWTH, MOST_DIGITS, SPARE, is_plain, put_number, put_text
from pcap_tools.columnar.decode.walk_kernel import read_number
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
    marks: Any,
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
        mark = item(marks, row)
        put(known, row, mark >= 0)
        kind, size, place = mark >> KIND_SHIFT, mark >> PLACE_BITS & SIZE_MASK, mark & PLACE_MASK
        if mark >> PLACE_BITS <= BLOCK and mark >= 0 and at <= room and is_plain(buffer, place, size):
            copy_block(buffer, place, out, at)
            at += size
        elif mark >= 0:
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

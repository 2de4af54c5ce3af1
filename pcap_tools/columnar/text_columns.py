"""Arrow arrays from what the kernels leave: numbers, codes with their names, and texts that are still to be written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcap_tools.errors import UsageError

from .marks import ABSENT, KIND_SHIFT, PLACE_BITS, SIZE_MASK, TEXT, WORD
from .tables import Program, Words
from .text_kernel import GROWTH, SPARE, printable
from .write_kernel import write_texts

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
        self._program, self._words, self._room, self._shown = program, words, _FIRST_ROOM, printable()

    def write(self, buffer: NDArray[np.uint8], marks: NDArray[np.int64], count: int) -> pa.Array:
        offsets, known = np.empty(count + 1, np.int32), np.empty(count, np.uint8)
        out = np.empty(self._room + SPARE, np.uint8)
        offsets[0] = row = 0
        while True:
            row = write_texts(buffer, marks, self._program, self._words, self._shown, row, count, offsets, known, out)
            if row == count:
                break
            out = self._grown(out, int(offsets[row]), int(marks[row]))
        end = int(offsets[count])
        self._room = max(self._room, end + end // 4)
        buffers = [_buffer(validity(known)), pa.py_buffer(offsets), pa.py_buffer(out[:end])]
        return pa.Array.from_buffers(pa.string(), count, buffers)

    def _grown(self, out: NDArray[np.uint8], used: int, mark: int) -> NDArray[np.uint8]:
        """Room for the row that did not fit, and more."""
        size = mark >> PLACE_BITS & SIZE_MASK if mark >> KIND_SHIFT == TEXT else len(self._words.text)
        needed = used + GROWTH * size + _FIRST_ROOM
        if needed > _MOST:
            raise UsageError("a batch holds more than 2 GB of text; take fewer rows at a time")
        more = np.empty(min(max(2 * out.size, needed), _MOST) + SPARE, np.uint8)
        more[:used] = out[:used]
        return more


class CodedColumn:
    """A column of few values: a dictionary, or spelled out where plain types are wanted."""

    def __init__(self, program: Program, plain: bool) -> None:
        self._program, self._plain = program, plain
        self._names: list[str] | None = None
        self._dictionary: pa.Array | None = None
        self._writer: TextWriter | None = None

    def array(self, names: Sequence[str], codes: NDArray[Any], known: NDArray[Any] | None) -> pa.Array:
        """Codes are places among the names; ``known`` is None where all rows have one."""
        if self._names is None or len(names) != len(self._names) or names[:1] != self._names[:1]:
            self._take(names)
        if self._writer is not None:
            marks = codes.astype(np.int64) << PLACE_BITS | WORD << KIND_SHIFT
            if known is not None:
                marks[~known] = ABSENT
            return self._writer.write(np.zeros(SPARE, np.uint8), marks, len(codes))
        kind = pa.from_numpy_dtype(codes.dtype)
        indices = numbers(kind, len(codes), codes, None if known is None else validity(known))
        return pa.DictionaryArray.from_arrays(indices, self._dictionary, safe=False)

    def _take(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._dictionary = pa.array(self._names, pa.string())
        if self._plain:
            words = [name.encode() for name in names]
            text = np.frombuffer(bytearray(b"".join(words) + bytes(SPARE)), np.uint8)
            ends = np.cumsum([0, *map(len, words)], dtype=np.int64)
            self._writer = TextWriter(self._program, Words(ends, text))

"""From the values of a batch to the bytes of a page, for each kind of column.

A dictionary is one for a row group, and grows from page to page; a column that has too many values for one goes over
to the encoding without. The least and the greatest value of a row group are taken from its dictionary where it has one,
so that rows need not be compared.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .kernels import FULL, delta, delta_room, mark, number_codes, pack, plain, text_codes
from .metadata import Encoding, Limits
from .thrift import varint

MOST_VALUES = 1 << 14
_MOST_NAMES = 1 << 16  # such as addresses, which are all in the dictionary of each row group
_MOST_TEXT = 1 << 20
_SLOTS = 4 * MOST_VALUES

Bytes = bytes | memoryview


class Values(NamedTuple):
    """The values of a page that are not null."""

    encoding: Encoding
    parts: Sequence[Bytes]


class Words(NamedTuple):
    """A dictionary: how many values, and these in PLAIN encoding."""

    values: int
    data: Bytes


class Encoder(Protocol):
    """Encodes the pages of one row group after the other."""

    def encode(self, array: pa.Array, there: NDArray[np.uint8] | None) -> Values:
        """`there` says of each row whether it has a value, None for all; one has."""

    def finish(self) -> Finished:
        """The row group is over."""


class Finished(NamedTuple):
    """What belongs to the whole of a row group.

    words   the values in PLAIN encoding to which codes refer; None if no page has codes
    limits  the least and the greatest value; None if there is none, or where nobody would look for it
    """

    words: Words | None = None
    limits: Limits | None = None


def joined(one: Limits | None, other: Limits | None) -> Limits | None:
    """The limits of both."""
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])


def numbers_of(array: pa.Array) -> NDArray[Any]:
    """The memory of an array of numbers, also what lies under its nulls."""
    kind = array.type.to_pandas_dtype()
    return np.frombuffer(array.buffers()[1], kind, array.offset + len(array))[array.offset :]


def _only(values: NDArray[Any], there: NDArray[np.uint8] | None) -> NDArray[Any]:
    return values if there is None else values[there.view(np.bool_)]


def _one_value(values: NDArray[Any]) -> bool:
    """Most columns have one value in a whole batch; to find that out takes a tenth of what codes take."""
    return bool(values.min() == values.max())


def _run(code: int, count: int) -> Values:
    """The same code so many times."""
    width = code.bit_length()
    head = bytes([width]) + varint(count << 1)
    return Values(Encoding.RLE_DICTIONARY, [head + code.to_bytes((width + 7) // 8, "little")])


def _packed_codes(codes: NDArray[np.int32]) -> Values:
    """Codes as one run if they are all the same, else bit by bit."""
    most = int(codes.max())
    if _one_value(codes):
        return _run(most, len(codes))
    width = most.bit_length()
    groups = (len(codes) + 7) // 8
    out = np.zeros(groups * width // 4 + 2, np.uint32)
    pack(codes, width, out)
    head = bytes([width]) + varint(groups << 1 | 1)
    return Values(Encoding.RLE_DICTIONARY, [head, out.view(np.uint8)[: groups * width].data])


class Deltas:
    """Numbers as differences."""

    def __init__(self, kind: pa.DataType) -> None:
        self._narrow = kind == pa.int32()
        self._deltas, self._words = np.zeros(128, np.int64), np.zeros(64, np.uint32)
        self._out = np.zeros(0, np.uint8)
        self._limits: Limits | None = None

    def encode(self, array: pa.Array, there: NDArray[np.uint8] | None) -> Values:
        """As of `Encoder`."""
        values = _only(numbers_of(array), there)
        self._limits = joined(self._limits, (int(values.min()), int(values.max())))
        return Values(Encoding.DELTA_BINARY_PACKED, [self.packed(values)])

    def packed(self, values: NDArray[Any]) -> memoryview:
        """Good until the next call."""
        room = delta_room(len(values))
        if room > len(self._out):
            self._out = np.zeros(room, np.uint8)
        wide = np.ascontiguousarray(values, np.int64)
        size = delta(_writable(wide), self._narrow, self._deltas, self._words, self._words.view(np.uint8), self._out)
        return self._out[:size].data

    def finish(self) -> Finished:
        """As of `Encoder`."""
        limits, self._limits = self._limits, None
        return Finished(limits=limits)


def _writable(values: NDArray[Any]) -> NDArray[Any]:
    """Kernels are compiled for arrays that may be written to, though these are not."""
    return values if values.flags.writeable else values.copy()


class Numbers:
    """Numbers of few values: codes; else differences."""

    def __init__(self, kind: pa.DataType) -> None:
        self._deltas = Deltas(kind)
        self._kind = kind.to_pandas_dtype()
        self._seed = np.uint64(int.from_bytes(os.urandom(8), "little"))
        self._known = np.zeros(MOST_VALUES, np.int64)
        self._slots = np.full(_SLOTS, -1, np.int32)
        self._used = 0
        self._too_many = False

    def encode(self, array: pa.Array, there: NDArray[np.uint8] | None) -> Values:
        """As of `Encoder`."""
        if self._too_many:
            return self._deltas.encode(array, there)
        values = _only(numbers_of(array), there)
        count = len(values)
        values = (values[:1] if _one_value(values) else values).astype(np.int64)
        codes = np.empty(len(values), np.int32)
        used = number_codes(values, self._seed, self._slots, self._known, self._used, codes)
        if used == FULL:
            self._too_many = True
            return self._deltas.encode(array, there)
        self._used = used
        return _packed_codes(codes) if len(codes) == count else _run(int(codes[0]), count)

    def finish(self) -> Finished:
        """As of `Encoder`; the next group begins without codes."""
        limits = self._deltas.finish().limits
        if not self._used:
            return Finished(limits=limits)
        known = self._known[: self._used]
        limits = joined(limits, (int(known.min()), int(known.max())))
        words = Words(self._used, known.astype(self._kind).tobytes())
        self._slots.fill(-1)
        self._used = 0
        return Finished(words, limits)


class Texts:
    """Texts, each with its length; if `coded`, codes as long as there are few. Limits only if `limited`."""

    def __init__(self, coded: bool, limited: bool) -> None:
        self._too_many = not coded
        self._limited = limited
        self._limits: Limits | None = None
        self._seed = np.uint64(int.from_bytes(os.urandom(8), "little"))
        room = MOST_VALUES if coded else 0
        self._hashes, self._ends = np.zeros(room, np.uint64), np.zeros(room + 1, np.int64)
        self._text = np.zeros(_MOST_TEXT if coded else 0, np.uint8)
        self._slots = np.full(_SLOTS if coded else 1, -1, np.int32)
        self._used = 0

    def encode(self, array: pa.Array, there: NDArray[np.uint8] | None) -> Values:
        """As of `Encoder`."""
        offsets, text = _text_of(array)
        rows = np.ones(len(array), np.uint8) if there is None else there
        if not self._too_many:
            codes = np.empty(int(np.count_nonzero(rows)), np.int32)
            used = text_codes(
                offsets, rows, text, self._seed, self._slots, self._hashes, self._ends, self._text, self._used, codes,
            )  # fmt: skip
            if used != FULL:
                self._used = used
                return _packed_codes(codes)
            self._too_many = True
        if self._limited:
            self._limits = joined(self._limits, _text_limits(array))
        return Values(Encoding.PLAIN, [_plain(offsets.astype(np.int64), rows, text)])

    def finish(self) -> Finished:
        """As of `Encoder`; the next group begins without codes."""
        limits, self._limits = self._limits, None
        if not self._used:
            return Finished(limits=limits)
        ends = self._ends[: self._used + 1]
        known = pa.Array.from_buffers(
            pa.binary(), self._used, [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(self._text)]
        )
        limits = joined(limits, _text_limits(known))
        words = _words(ends, self._text)
        self._slots.fill(-1)
        self._used = 0
        return Finished(words, limits)


def _text_limits(texts: pa.Array) -> Limits | None:
    """Texts are ordered by the bytes of UTF-8."""
    least = pc.min_max(texts.view(pa.binary()) if texts.type == pa.string() else texts).as_py()
    return None if least["min"] is None else (least["min"], least["max"])


def _words(ends: NDArray[np.int64], text: NDArray[np.uint8]) -> Words:
    count = len(ends) - 1
    return Words(count, _plain(ends, np.ones(count, np.uint8), text))


def _plain(ends: NDArray[np.int64], there: NDArray[np.uint8], text: NDArray[np.uint8]) -> memoryview:
    out = np.empty(int(ends[-1] - ends[0]) + 4 * len(there), np.uint8)
    return out[: plain(ends, there, text, out)].data


def _text_of(array: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """The offsets and the bytes of an array of texts, also of one that was cut out of another."""
    _, places, data = array.buffers()
    offsets = np.frombuffer(places, np.int32, array.offset + len(array) + 1)[array.offset :]
    return _writable(offsets), _writable(np.frombuffer(data or b"", np.uint8))


class Coded:
    """What has codes already. Of one decoder's batches the last dictionary holds for all (see ``CodedColumn``)."""

    def __init__(self) -> None:
        self._texts = Texts(coded=False, limited=True)
        self._names: pa.Array | None = None
        self._in_use = np.zeros(0, np.uint8)
        self._too_many = False

    def encode(self, array: pa.Array, there: NDArray[np.uint8] | None) -> Values:
        """As of `Encoder`."""
        self._too_many = self._too_many or len(array.dictionary) > _MOST_NAMES
        if self._too_many:
            return self._texts.encode(array.dictionary_decode(), there)
        self._names = array.dictionary
        codes = _only(numbers_of(array.indices), there)
        if len(self._in_use) < len(self._names):
            self._in_use = np.concatenate([self._in_use, np.zeros(len(self._names), np.uint8)])
        if _one_value(codes):
            self._in_use[codes[0]] = 1
            return _run(int(codes[0]), len(codes))
        wide = codes.astype(np.int32)
        mark(wide, self._in_use)
        return _packed_codes(wide)

    def finish(self) -> Finished:
        """As of `Encoder`. The dictionary has names of earlier groups, too; they are not in the limits."""
        names, self._names = self._names, None
        limits = self._texts.finish().limits
        if names is None:
            return Finished(limits=limits)
        limits = joined(limits, _text_limits(names.filter(pa.array(self._in_use[: len(names)].view(np.bool_)))))
        self._in_use[:] = 0
        offsets, text = _text_of(names)
        return Finished(_words(offsets.astype(np.int64), text), limits)


class Flags:
    """Bits."""

    def encode(self, array: pa.Array, there: NDArray[np.uint8] | None) -> Values:
        """As of `Encoder`."""
        values = _only(bits_of(array.buffers()[1], array), there)
        return Values(Encoding.PLAIN, [np.packbits(values, bitorder="little").data])

    def finish(self) -> Finished:
        """As of `Encoder`."""
        return Finished()


def bits_of(buffer: pa.Buffer, array: pa.Array) -> NDArray[np.uint8]:
    """A bitmap of an array as a byte for each row."""
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little", count=array.offset + len(array))
    return bits[array.offset :]

"""From the values of a batch to the bytes of a page, for each kind of column.

A dictionary is one for a row group, and grows from page to page; a column that has too many values for one goes over
to the encoding without.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .kernels import FULL, delta, delta_room, number_codes, pack, plain, text_codes
from .metadata import Encoding
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

    def dictionary(self) -> Words | None:
        """The values in PLAIN encoding to which codes refer, once a group; None if no page has codes."""


def numbers_of(array: pa.Array) -> NDArray[Any]:
    """The memory of an array of numbers, also what lies under its nulls."""
    kind = array.type.to_pandas_dtype()
    return np.frombuffer(array.buffers()[1], kind, array.offset + len(array))[array.offset :]


def _only(values: NDArray[Any], there: NDArray[np.uint8] | None) -> NDArray[Any]:
    return values if there is None else values[there.view(np.bool_)]


def _packed_codes(codes: NDArray[np.int32]) -> Values:
    """Codes as one run if they are all the same, else bit by bit."""
    least, most = int(codes.min()), int(codes.max())
    width = most.bit_length()
    head = bytes([width])
    if least == most:
        return Values(
            Encoding.RLE_DICTIONARY, [head + varint(len(codes) << 1) + most.to_bytes((width + 7) // 8, "little")]
        )
    groups = (len(codes) + 7) // 8
    out = np.zeros(groups * width // 4 + 2, np.uint32)
    pack(codes, width, out)
    return Values(Encoding.RLE_DICTIONARY, [head + varint(groups << 1 | 1), out.view(np.uint8)[: groups * width].data])


class Deltas:
    """Numbers as differences."""

    def __init__(self, kind: pa.DataType) -> None:
        self._narrow = kind == pa.int32()
        self._deltas, self._words = np.zeros(128, np.int64), np.zeros(64, np.uint32)
        self._out = np.zeros(0, np.uint8)

    def encode(self, array: pa.Array, there: NDArray[np.uint8] | None) -> Values:
        """As of `Encoder`."""
        return Values(Encoding.DELTA_BINARY_PACKED, [self.packed(_only(numbers_of(array), there))])

    def packed(self, values: NDArray[Any]) -> memoryview:
        """Good until the next call."""
        room = delta_room(len(values))
        if room > len(self._out):
            self._out = np.zeros(room, np.uint8)
        wide = np.ascontiguousarray(values, np.int64)
        size = delta(_writable(wide), self._narrow, self._deltas, self._words, self._words.view(np.uint8), self._out)
        return self._out[:size].data

    def dictionary(self) -> Words | None:
        """There is none."""
        return None


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
        values = _only(numbers_of(array), there).astype(np.int64)
        codes = np.empty(len(values), np.int32)
        used = number_codes(values, self._seed, self._slots, self._known, self._used, codes)
        if used == FULL:
            self._too_many = True
            return self._deltas.encode(array, there)
        self._used = used
        return _packed_codes(codes)

    def dictionary(self) -> Words | None:
        """As of `Encoder`; the next group begins without."""
        if not self._used:
            return None
        words = Words(self._used, self._known[: self._used].astype(self._kind).tobytes())
        self._slots.fill(-1)
        self._used = 0
        return words


class Texts:
    """Texts, each with its length. With `few`, codes as long as there are few."""

    def __init__(self, few: bool) -> None:
        self._too_many = not few
        self._seed = np.uint64(int.from_bytes(os.urandom(8), "little"))
        room = MOST_VALUES if few else 0
        self._hashes, self._ends = np.zeros(room, np.uint64), np.zeros(room + 1, np.int64)
        self._text = np.zeros(_MOST_TEXT if few else 0, np.uint8)
        self._slots = np.full(_SLOTS if few else 1, -1, np.int32)
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
        return Values(Encoding.PLAIN, [_plain(offsets.astype(np.int64), rows, text)])

    def dictionary(self) -> Words | None:
        """As of `Encoder`; the next group begins without."""
        if not self._used:
            return None
        words = _words(self._ends[: self._used + 1], self._text)
        self._slots.fill(-1)
        self._used = 0
        return words


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
        self._texts = Texts(few=False)
        self._names: pa.Array | None = None
        self._too_many = False

    def encode(self, array: pa.Array, there: NDArray[np.uint8] | None) -> Values:
        """As of `Encoder`."""
        self._too_many = self._too_many or len(array.dictionary) > _MOST_NAMES
        if self._too_many:
            return self._texts.encode(array.dictionary_decode(), there)
        self._names = array.dictionary
        return _packed_codes(_only(numbers_of(array.indices), there).astype(np.int32))

    def dictionary(self) -> Words | None:
        """As of `Encoder`."""
        names, self._names = self._names, None
        if names is None:
            return None
        offsets, text = _text_of(names)
        return _words(offsets.astype(np.int64), text)


class Flags:
    """Bits."""

    def encode(self, array: pa.Array, there: NDArray[np.uint8] | None) -> Values:
        """As of `Encoder`."""
        values = _only(bits_of(array.buffers()[1], array), there)
        return Values(Encoding.PLAIN, [np.packbits(values, bitorder="little").data])

    def dictionary(self) -> Words | None:
        """There is none."""
        return None


def bits_of(buffer: pa.Buffer, array: pa.Array) -> NDArray[np.uint8]:
    """A bitmap of an array as a byte for each row."""
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little", count=array.offset + len(array))
    return bits[array.offset :]

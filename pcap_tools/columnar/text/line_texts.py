"""Columns of text put together to lines with Arrow, many rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pcap_tools.columnar.decode.tables import Tables

_ZERO = np.uint8(0x30)


def joined(*parts: pa.Array | str, null: str = "") -> pa.Array:
    """The parts of each row one behind the other; ``null`` stands for a part that is null."""
    return pc.binary_join_element_wise(*parts, "", null_handling="replace", null_replacement=null)


def wrapped(before: str, texts: pa.Array, after: str = "") -> pa.Array:
    """Something before and after each text, null where there is none."""
    return pc.binary_join_element_wise(before, texts, after, "")


def decimal(numbers: pa.Array) -> pa.Array:
    """Numbers in decimal digits."""
    return numbers.cast(pa.string())


def quoted(texts: pa.Array) -> pa.Array:
    r"""Texts in the notation of ``escaping`` as JSON strings. They hold no control characters, so ``\`` and ``"`` are
    all that JSON cannot take as it is."""
    return wrapped('"', pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"'), '"')


def fixed_digits(numbers: NDArray[np.int64], widths: tuple[int, ...], mark: str) -> pa.Array:
    """Each number as groups of digits, the last ``widths`` ones, with a mark between the groups."""
    size = sum(widths) + len(widths) - 1
    out = np.full((len(numbers), size), ord(mark), np.uint8)
    rest, at = numbers.copy(), size
    for width in reversed(widths):
        for place in range(at - 1, at - 1 - width, -1):
            rest, digit = np.divmod(rest, 10)
            out[:, place] = digit.astype(np.uint8) + _ZERO
        at -= width + 1
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * np.int32(size)
    return pa.Array.from_buffers(pa.string(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(out)])


class ByOutcome:
    """One text for each outcome of a row, made once: whatever depends only on dialect, form and message."""

    def __init__(self, tables: Tables, other: str, text: Callable[[str, str, str | None, str | None], str]) -> None:
        self._count = len(tables.layouts)
        dialects = [tables.dialects[code].name for code in tables.dialect_codes]
        names = [(dialect, form.name, layout) for dialect, (form, layout) in zip(dialects, tables.layouts, strict=True)]
        selected = [text(dialect, form, layout.message, layout.meaning) for dialect, form, layout in names]
        unselected = [text(dialect, form, None, None) for dialect, form, _ in names]
        self._texts = pa.array([other, *reversed(unselected), *selected], pa.string())

    def of(self, outcomes: NDArray[Any]) -> pa.Array:
        places = np.maximum(outcomes.astype(np.int64) + self._count + 1, 0)
        return self._texts.take(pa.array(places))

"""From the outcome of a row to its names: dialect, form, message, meaning."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pcap_tools.columnar.decode.decode_kernel import OTHER
from pcap_tools.columnar.decode.tables import LayoutColumn, Tables
from pcap_tools.columnar.decode.write_kernel import CODE_BITS, look_up

Codes = tuple[NDArray[np.int16], NDArray[np.bool_] | None]
_PAIRS = (("dialect", "form"), ("message", "meaning"))


class Outcomes:
    """For each column a table of codes: first for datagrams of no dialect, then for layouts in which nothing was
    selected (the last one first), then for those that were; -1 where the column is null."""

    def __init__(self, tables: Tables) -> None:
        count = len(tables.layouts)
        rows = tables.program.layouts.reshape(count, -1)
        form, dialect = tables.form_codes, tables.dialect_codes
        nothing = np.full(count, -1)
        self._zero = count + 1
        self._tables = {
            name: np.concatenate(([-1], unselected[::-1], selected))
            for name, unselected, selected in (
                ("dialect", dialect, dialect),
                ("form", form, form),
                ("message", nothing, rows[:, LayoutColumn.MESSAGE]),
                ("meaning", nothing, rows[:, LayoutColumn.MEANING]),
            )
        }
        self._words = {
            pair: np.maximum(self._tables[pair[0]], 0) | np.maximum(self._tables[pair[1]], 0) << CODE_BITS
            for pair in _PAIRS
        }
        self._zeros = np.zeros(0, np.int16)
        self.names = {
            "dialect": list(tables.names.codes),
            "form": list(tables.forms.codes),
            "message": list(tables.messages.codes),
            "meaning": list(tables.meanings.codes),
        }

    def codes(self, outcomes: NDArray[np.int32], all_selected: bool) -> dict[str, Codes]:
        """The code of each row in all columns, and which rows have one (None: all)."""
        found: dict[str, NDArray[np.int16]] = {}
        for pair in _PAIRS:
            found |= zip(pair, self._look_up(outcomes, self._words[pair]), strict=True)
        if all_selected:
            return {name: (codes, None) for name, codes in found.items()}
        places = np.maximum(outcomes.astype(np.int64) + self._zero, 0)
        return {name: (codes, self._tables[name][places] >= 0) for name, codes in found.items()}

    def _look_up(
        self, outcomes: NDArray[np.int32], words: NDArray[np.int64]
    ) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
        """The codes of two columns. Where there is one dialect of one form both are always 0."""
        count = len(outcomes)
        if not words.any():
            if count > len(self._zeros):
                self._zeros = np.zeros(count, np.int16)
            return self._zeros[:count], self._zeros[:count]
        first, second = np.empty(count, np.int16), np.empty(count, np.int16)
        look_up(outcomes, count, words, self._zero, first, second)
        return first, second

    def others(self, outcomes: NDArray[np.int32]) -> int:
        """How many rows are of no dialect."""
        return int(np.count_nonzero(outcomes == OTHER))

"""From the outcome of a row to its names: dialect, form, message, meaning."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .decode_kernel import OTHER
from .tables import LayoutColumn, Tables
from .write_kernel import look_up


class Outcomes:
    """For each column a table of codes: first for datagrams of no dialect, then for layouts in which nothing was
    selected (the last one first), then for those that were; -1 where the column is null."""

    def __init__(self, tables: Tables, with_others: bool) -> None:
        count = len(tables.layouts)
        rows = tables.program.layouts.reshape(count, -1)
        form, dialect = tables.form_codes, tables.dialect_codes
        nothing = np.full(count, -1)
        self._zero = count + 1
        self._tables = {
            name: np.concatenate(([-1], unselected[::-1], selected)).astype(np.int16)
            for name, unselected, selected in (
                ("dialect", dialect, dialect),
                ("form", form, form),
                ("message", nothing, rows[:, LayoutColumn.MESSAGE]),
                ("meaning", nothing, rows[:, LayoutColumn.MEANING]),
            )
        }
        self._constant = {
            name for name, table in self._tables.items() if not with_others and not table[1:].any()
        }  # one name for all rows, as the dialect is where only one was given
        self.names = {
            "dialect": list(tables.names.codes),
            "form": list(tables.forms.codes),
            "message": list(tables.messages.codes),
            "meaning": list(tables.meanings.codes),
        }

    def codes(self, column: str, outcomes: NDArray[np.int32]) -> tuple[NDArray[np.int16], NDArray[np.bool_] | None]:
        """The code of each row, and which rows have one (None: all)."""
        if column in self._constant:
            return np.zeros(len(outcomes), np.int16), None
        codes, table = np.empty(len(outcomes), np.int16), self._tables[column]
        if not look_up(outcomes, len(outcomes), table, self._zero, codes):
            return codes, None
        places = np.maximum(outcomes.astype(np.int64) + self._zero, 0)
        return codes, table[places] >= 0

    def others(self, outcomes: NDArray[np.int32]) -> int:
        """How many rows are of no dialect."""
        return int(np.count_nonzero(outcomes == OTHER))

"""Batches of datagrams to Arrow: the columnar decoder. Says what ``pcap_tools.codec`` says, of whole batches at once.

    >>> from pcap_tools import load_dialect
    >>> from pcap_tools.columnar.decode.decoder import Decoder
    >>> decoder = Decoder([load_dialect("colon")], columns=["frame", "topic", "payload"])
    >>> decoder.schema.names
    ['frame', 'topic', 'payload']

Results are in memory of their own; the batch may be filled again at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcap_tools.codec.detect import Routes
from pcap_tools.columnar.decode.decode_kernel import (
    OTHER,
    UNKNOWN,
    Results,
    field_room,
    new_results,
    plan_rows,
    walk_rows,
)
from pcap_tools.columnar.decode.plans import MOST_TAILS
from pcap_tools.columnar.decode.routing import Router
from pcap_tools.columnar.decode.schema import ALL_COLUMNS, CODED, COLUMNS, schema_of
from pcap_tools.columnar.decode.tables import LayoutColumn, Tables
from pcap_tools.columnar.decode.text_columns import CODE_BITS, CodedColumn, TextWriter, look_up, numbers, validity
from pcap_tools.columnar.decode.text_refs import MOST_PLACES, MOST_SIZE
from pcap_tools.columnar.decode.walk_kernel import ERRORS
from pcap_tools.columnar.read.datagrams import NO_IDENT, DatagramBatch
from pcap_tools.dialect import Dialect
from pcap_tools.errors import UsageError

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


if TYPE_CHECKING:
    from pcap_tools.columnar.decode.rule_columns import RuleColumns

TEXTS = ("topic", "filter", "payload")
RULE_COLUMNS = frozenset({"key", "number", "port", "code", "accepted", "qos", "dup"})
_ERROR_NAMES = [error.value for error in ERRORS]


class Decoder:
    """Decodes batches of one reading.

    ``routes`` says which dialect a datagram is in; without, all are in the one dialect given. ``columns``: those of
    ``ALL_MESSAGES`` that are wanted, None for ``MESSAGES``. ``plain``: the exact types, no dictionaries.
    ``keep_other``: datagrams of no known dialect are rows too, with nulls. ``capture`` fills the column of that name.
    ``decoded`` and ``other`` count datagrams.
    """

    def __init__(
        self,
        dialects: Sequence[Dialect],
        routes: Routes | None = None,
        columns: Collection[str] | None = None,
        *,
        plain: bool = False,
        keep_other: bool = False,
        capture: str | None = None,
    ) -> None:
        unknown = set(columns or ()) - set(ALL_COLUMNS)
        if unknown:
            raise UsageError(f"no column {min(unknown)!r}; there are: {', '.join(ALL_COLUMNS)}")
        if routes is None and len(dialects) != 1:
            raise UsageError("several dialects take routes, to tell which datagram is in which")
        self.tables = Tables(dialects)
        self.schema = schema_of(frozenset(COLUMNS if columns is None else columns), plain)
        self.keep_other, self.capture = keep_other, capture
        self.decoded = self.other = self._unsure_rows = 0
        self._router = Router(routes, self.tables.names.codes) if routes else None
        program = self.tables.program
        self._writers = {name: TextWriter(program, self.tables.words) for name in TEXTS}
        self._coded = {name: CodedColumn(program, plain) for name in CODED}
        self._outcomes = Outcomes(self.tables)
        self._fields, self._tails = field_room(self.tables.most_steps), np.zeros(MOST_TAILS, np.int64)
        self._rule_columns = self._make_rule_columns()
        self._make_room(0)

    def _make_rule_columns(self) -> RuleColumns | None:
        """None if no such column is wanted; then their kernel is not loaded either."""
        wanted = RULE_COLUMNS.intersection(self.schema.names)
        if not wanted:
            return None
        from pcap_tools.columnar.decode.rule_columns import RuleColumns

        return RuleColumns(self.tables, wanted)

    def decode(self, batch: DatagramBatch) -> pa.RecordBatch:
        """The rows of a batch whose dialect is known (all with ``keep_other``), in order."""
        results = self._walk(batch)
        arrays = self._rule_columns.arrays(batch, results) if self._rule_columns else {}
        codes = self._outcomes.codes(results.outcome, not self._unsure_rows)
        for name in self.schema.names:
            if name in codes:
                arrays[name] = self._coded[name].array(self._outcomes.names[name], *codes[name])
            elif name not in arrays:
                arrays[name] = self._column(name, batch, results)
        return pa.RecordBatch.from_arrays([arrays[name] for name in self.schema.names], schema=self.schema)

    def _make_room(self, rows: int) -> None:
        self._room = rows
        self._results = new_results(rows)
        self._routes, self._unsure = np.zeros(rows, np.int16), np.zeros(rows, np.int32)

    def _walk(self, batch: DatagramBatch) -> Results:
        """Decode all rows; texts are marked, not yet written. The results are as long as there are rows."""
        count = batch.count
        if count > self._room:
            self._make_room(count)
        if len(batch.buffer) >= MOST_PLACES or (count and batch.size[:count].max() >= MOST_SIZE):
            raise UsageError("a batch with more bytes than places in it can be numbered")
        if self._router:
            self._router.route(batch, self._routes)
        self._results.error[:count] = 0
        results = self._results._replace(padding=np.empty(count, np.int32))
        datagrams = self.tables.program, batch.buffer, batch.start, batch.size, batch.length, self._routes
        kept, self._unsure_rows = plan_rows(*datagrams, count, self.keep_other, results, self._tails, self._unsure)
        if self._unsure_rows:
            results = results._replace(error_offset=np.zeros(count, np.int32))
            walk_rows(*datagrams, self._unsure, self._unsure_rows, results, self._fields)
        results = Results._make(column[:kept] for column in results)
        known = kept - self._outcomes.others(results.outcome) if self.keep_other else kept
        self.decoded += known
        self.other += count - known
        return results

    def _column(self, name: str, batch: DatagramBatch, results: Results) -> pa.Array:
        kept = len(results.row)
        if name in TEXTS:
            return self._writers[name].write(batch.buffer, getattr(results, name), kept)
        if name in CODED:
            return self._coded_column(name, batch, results)
        if name == "retain":
            values = np.packbits(results.retain & 1, bitorder="little")
            return numbers(pa.bool_(), kept, values, validity(results.retain != UNKNOWN))
        if name == "padding":
            return numbers(pa.int32(), kept, results.padding, None)
        if name == "error_offset":
            if not self._unsure_rows:
                return pa.nulls(kept, pa.int32())
            return numbers(pa.int32(), kept, results.error_offset, validity(results.error != 0))
        values = _kept(getattr(batch, name), batch.count, results)
        return numbers(self.schema.field(name).type, kept, values, _known(name, values))

    def _coded_column(self, name: str, batch: DatagramBatch, results: Results) -> pa.Array:
        column, kept = self._coded[name], len(results.row)
        if name == "capture":
            known = None if self.capture is not None else np.zeros(kept, np.bool_)
            return column.array([self.capture or ""], np.zeros(kept, np.int16), known)
        if name == "error":
            if not self._unsure_rows:
                return column.nulls(_ERROR_NAMES, kept)
            codes = np.maximum(results.error, 1).astype(np.int16) - np.int16(1)
            return column.array(_ERROR_NAMES, codes, results.error != 0)
        return column.array(batch.addresses, _kept(getattr(batch, name), batch.count, results), None)


def _known(name: str, values: NDArray[Any]) -> NDArray[np.uint8] | None:
    """Which rows of a column of the batch have a value; None for all."""
    if name == "copy_of":
        return validity(values != 0)
    return validity(values != NO_IDENT) if name == "ip_id" else None


def _kept(values: NDArray[Any], count: int, results: Results) -> NDArray[Any]:
    """The values of the rows kept. A copy where the batch has much more room than rows: it would be held too."""
    if len(results.row) < count:
        return values[results.row]
    return values[:count] if 2 * count > len(values) else values[:count].copy()

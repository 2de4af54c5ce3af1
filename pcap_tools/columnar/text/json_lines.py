"""The lines of ``topicshark decode --format jsonl``, whole batches at once: the text of ``Row.as_dict`` as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcap_tools.columnar.decode.decode_kernel import OTHER, Results
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.decode.fields import walk_fields
from pcap_tools.columnar.decode.schema import COLUMNS
from pcap_tools.columnar.decode.text_columns import TextWriter
from pcap_tools.columnar.read.datagrams import DatagramBatch
from pcap_tools.columnar.text.line_texts import ByOutcome, decimal, joined, quoted, wrapped
from pcap_tools.dialect.kinds import NUMBERS
from pcap_tools.dialect.program import Kind, Step

_NAMES = ("dialect", "form", "message", "meaning")
_COLUMNS = [name for name in COLUMNS if name not in ("capture", *_NAMES)]


class JsonLines(Decoder):
    """A decoder whose result is JSON, one object a line; ``capture`` is its first key, if there is one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._named = ByOutcome(self.tables, _names(*[None] * 4), _names)
        self._writer = TextWriter(self.tables.program, self.tables.words)
        self._begin = "{" if self.capture is None else '{"capture": ' + _json(self.capture) + ", "

    def lines(self, batch: DatagramBatch) -> pa.Array:
        """One line for each row, with its end."""
        results = self._walk(batch)
        column = {name: self._column(name, batch, results) for name in _COLUMNS}
        number = {name: decimal(array) for name, array in column.items() if pa.types.is_integer(array.type)}
        error = wrapped('"', column["error"].dictionary_decode(), '"')
        return joined(
            self._begin,
            '"frame": ', number["frame"], ', "time_ns": ', number["time_ns"],
            ', "src": "', column["src"].dictionary_decode(), '", "sport": ', number["sport"],
            ', "dst": "', column["dst"].dictionary_decode(), '", "dport": ', number["dport"],
            ", ", self._named.of(results.outcome),
            ', "topic": ', quoted(column["topic"]), ', "filter": ', quoted(column["filter"]),
            ', "retain": ', decimal(column["retain"]), ', "payload": ', quoted(column["payload"]),
            ', "fields": ', self._fields_of(batch, results),
            ', "padding": ', number["padding"], ', "length": ', number["length"],
            ', "error": ', error, ', "error_offset": ', number["error_offset"],
            ', "copy_of": ', number["copy_of"], "}\n",
            null="null",
        )  # fmt: skip

    def _fields_of(self, batch: DatagramBatch, results: Results) -> pa.Array:
        """The object of the fields. Rows that were read alike are written together, then put back in order."""
        count, most = len(results.row), self.tables.most_steps
        values, read = np.empty((most, count), np.int64), np.empty(count, np.int32)
        walk_fields(
            self.tables.program, batch.buffer, batch.start, batch.size, results.row, results.outcome, self._fields,
            values.ravel(), read,
        )  # fmt: skip
        alike = results.outcome.astype(np.int64) * (most + 1) + read
        order = np.argsort(alike, kind="stable")
        borders = np.flatnonzero(np.diff(alike[order])) + 1
        objects = []
        for rows in np.split(order, borders) if count else []:
            steps = self._steps_of(int(results.outcome[rows[0]]), int(read[rows[0]]))
            objects.append(self._object(batch, steps, [column[rows] for column in values[: len(steps)]], len(rows)))
        places = np.empty(count, np.int64)
        places[order] = np.arange(count)
        return pa.concat_arrays(objects or [pa.array([], pa.string())]).take(pa.array(places))

    def _steps_of(self, outcome: int, read: int) -> tuple[Step, ...]:
        if outcome == OTHER:
            return ()
        return self.tables.layouts[outcome if outcome >= 0 else -1 - outcome][1].steps[:read]

    def _object(
        self, batch: DatagramBatch, steps: tuple[Step, ...], values: list[NDArray[np.int64]], count: int
    ) -> pa.Array:
        if not steps:
            return pa.array(["{}"] * count, pa.string())
        parts: list[Any] = []
        for index, step in enumerate(steps):
            parts += [("{" if index == 0 else ", ") + _json(step.name) + ": ", self._values(batch, step, values[index])]
        return joined(*parts, "}")

    def _values(self, batch: DatagramBatch, step: Step, values: NDArray[np.int64]) -> pa.Array:
        if step.kind not in NUMBERS:
            return quoted(self._writer.write(batch.buffer, values, len(values)))
        return decimal(pa.array(values if step.kind is Kind.INT else values.view(np.uint64)))


def _names(*names: str | None) -> str:
    return ", ".join(f"{_json(key)}: {_json(name)}" for key, name in zip(_NAMES, names, strict=True))


def _json(text: str | None) -> str:
    return json.dumps(text, ensure_ascii=False)

"""The lines of ``topicshark decode`` for people, whole batches at once: those of ``line_of`` of that command."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pcap_tools.columnar.decode.decode_kernel import Results
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.read.datagrams import DatagramBatch
from pcap_tools.columnar.text.line_texts import ByOutcome, decimal, fixed_digits, joined, wrapped

FRAME_WIDTH, ENDS_WIDTH = 6, 42
_SECOND = 1_000_000_000
_DAY = 86_400


class TableLines(Decoder):
    """A decoder whose result is lines. ``width``: longer ones are cut, 0 for none."""

    def __init__(self, *args: Any, width: int = 0, **options: Any) -> None:
        super().__init__(*args, **options)
        self._width = width
        self._what = ByOutcome(self.tables, "UDP", lambda dialect, _, message, __: f"{dialect} {message or '?'}")
        self._form = ByOutcome(self.tables, "", lambda _, form, *__: "" if form == "documented" else f" ({form})")

    def lines(self, batch: DatagramBatch) -> pa.Array:
        """One line for each row, with its end."""
        results = self._walk(batch)
        line = joined(self._where(batch, results), *self._says(batch, results))
        if self._width:
            short = joined(pc.utf8_slice_codeunits(line, 0, max(0, self._width - 1)), "…")
            line = pc.if_else(pc.less_equal(pc.utf8_length(line), self._width), line, short)
        return joined(line, "\n")

    def _where(self, batch: DatagramBatch, results: Results) -> pa.Array:
        frame, src, dst = (self._column(name, batch, results) for name in ("frame", "src", "dst"))
        sport, dport = (decimal(self._column(name, batch, results)) for name in ("sport", "dport"))
        ends = joined(src.dictionary_decode(), ":", sport, " → ", dst.dictionary_decode(), ":", dport)
        number = pc.utf8_lpad(decimal(frame), FRAME_WIDTH, " ")
        time = _clock(batch.time_ns[results.row])
        return joined(number, "  ", time, "  ", pc.utf8_rpad(ends, ENDS_WIDTH, " "), "  ")

    def _says(self, batch: DatagramBatch, results: Results) -> list[pa.Array]:
        topic, filter_, payload, retain, padding, error, error_offset, copy_of = (
            self._column(name, batch, results)
            for name in ("topic", "filter", "payload", "retain", "padding", "error", "error_offset", "copy_of")
        )
        parts = [
            self._what.of(results.outcome),
            wrapped(" ", pc.coalesce(topic, filter_)),
            wrapped(' "', payload, '"'),
            pc.if_else(retain.fill_null(False), " retained", ""),
            self._form.of(results.outcome),
        ]
        if results.padding.any():
            parts.append(pc.if_else(pc.greater(padding, 0), wrapped(" +", decimal(padding), " NUL"), ""))
        if results.error.any():
            parts += [wrapped(" !! ", error.dictionary_decode()), wrapped(" at byte ", decimal(error_offset))]
        if copy_of.null_count < len(copy_of):
            parts.append(wrapped(" [copy of ", decimal(copy_of), "]"))
        return parts


def _clock(time_ns: Any) -> pa.Array:
    """``HH:MM:SS.ffffff``, in UTC; seconds as they are where they lie before the epoch."""
    seconds, rest = np.divmod(time_ns, _SECOND)
    of_day = seconds % _DAY
    digits = of_day // 3600 * 10_000 + of_day // 60 % 60 * 100 + of_day % 60
    clock = fixed_digits(digits, (2, 2, 2), ":")
    if (seconds < 0).any():
        clock = pc.if_else(pa.array(seconds >= 0), clock, decimal(pa.array(seconds)))
    return joined(clock, ".", fixed_digits(rest // 1000, (6,), "."))

"""Every field that the kernel reads of a datagram, one datagram at a time: so that it can be held against the codec."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pcap_tools.codec.wire_errors import WireError
from pcap_tools.columnar.decode.decode_kernel import field_room, new_results, walk_rows
from pcap_tools.columnar.decode.tables import Tables
from pcap_tools.columnar.decode.walk_kernel import ERRORS, FieldColumn
from pcap_tools.columnar.read.datagrams import DatagramBatch
from pcap_tools.dialect import Dialect, Layout
from pcap_tools.dialect.program import Kind, Step, Value


@dataclass(frozen=True, slots=True)
class RawField:
    """One field: where it stands in the datagram, and its value."""

    start: int
    end: int
    value: Value


@dataclass(frozen=True, slots=True)
class RawResult:
    """What the walk says of one datagram; ``layout`` is None if none was selected."""

    form: str
    layout: Layout | None
    error: WireError | None
    error_offset: int | None
    padding: int
    fields: dict[str, RawField]


def decode_fields(dialect: Dialect, batch: DatagramBatch) -> Iterator[RawResult]:
    """Walk each datagram of a batch in this dialect."""
    tables = Tables([dialect])
    fields, route, first = field_room(tables.most_steps), np.zeros(1, np.int16), np.zeros(1, np.int32)
    for row in range(batch.count):
        one, results = slice(row, row + 1), new_results(1)
        datagram = tables.program, batch.buffer, batch.start[one], batch.size[one], batch.length[one]
        read = walk_rows(*datagram, route, first, 1, results, fields)
        outcome, error = int(results.outcome[0]), int(results.error[0])
        form, layout = tables.layouts[outcome if outcome >= 0 else -1 - outcome]
        rows = fields.reshape(-1, len(FieldColumn))[:read].tolist()
        payload = batch.buffer[batch.start[row] : batch.start[row] + batch.size[row]].tobytes()
        yield RawResult(
            form.name,
            layout if outcome >= 0 else None,
            ERRORS[error - 1] if error else None,
            int(results.error_offset[0]) if error else None,
            int(results.padding[0]),
            {step.name: _field(step, numbers, payload) for step, numbers in zip(layout.steps, rows, strict=False)},
        )


def _field(step: Step, numbers: list[int], payload: bytes) -> RawField:
    start, end, value, value_end = numbers
    if step.kind in (Kind.TEXT, Kind.BYTES, Kind.MAGIC):
        return RawField(start, end, payload[value:value_end])
    if value < 0 and step.kind is not Kind.INT:
        value += 1 << 64
    return RawField(start, end, value)

"""From captures to the parts that tasks read, and from a part to Arrow batches.

A part is a split of a capture and what the whole of the capture has taught: its session, and which endpoint speaks
which dialect. A capture that is one part is not looked into before its task: thousands of small ones are planned in
the time it takes to list them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from pcap_tools.capture.damage import Corrupt, log_damage
from pcap_tools.columnar.datagrams import DatagramBatch
from pcap_tools.columnar.decoder import Decoder
from pcap_tools.columnar.feeds import is_gzip
from pcap_tools.columnar.formats import read_facts
from pcap_tools.columnar.learning import find_dialects
from pcap_tools.columnar.reading import read_batches, read_file
from pcap_tools.columnar.sources import ByteSource, open_bytes, read_at
from pcap_tools.columnar.splits import plan_splits
from pcap_tools.columnar.state import Split
from pcap_tools.detect import Detector, Routes
from pcap_tools.dialect import Dialect
from pcap_tools.escaping import escape_text

from .source_options import arrow_schema

_HEAD = 64
_PLANS_KEPT = 1024


@dataclass(frozen=True)
class Dialects:
    """Those to look for; `named` if the user named them."""

    wanted: tuple[Dialect, ...]
    named: bool

    def detector(self) -> Detector:
        """One that has learned nothing yet."""
        return Detector(self.wanted, self.named)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal content, also in another object."""
        return (self.named, *(repr(dialect) for dialect in self.wanted))


@dataclass(frozen=True)
class Part:
    """What one task reads; `routes` is None if the task itself must find the dialects."""

    split: Split
    session: str
    routes: Routes | None


def plan_capture(source: str, session: str, dialects: Dialects, split_bytes: int) -> list[Part]:
    """The parts of one capture; the second time costs nothing if the capture has not changed."""
    with open_bytes(source) as data:
        zipped, version = is_gzip(data), data.version
        if zipped or data.size <= split_bytes:
            if not zipped:
                _check_head(data)
            return [Part(Split(source, 0, data.size, version, (0, 0), None), session, None)]
    splits, routes = _plan_large(source, version, _Hashed(dialects), split_bytes)
    return [Part(split, session, routes) for split in splits]


class _Hashed:
    """Dialects as a key of a cache."""

    def __init__(self, dialects: Dialects) -> None:
        self.dialects = dialects
        self._key = dialects.key

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashed) and self._key == other._key


@lru_cache(_PLANS_KEPT)
def _plan_large(source: str, version: str, dialects: _Hashed, split_bytes: int) -> tuple[list[Split], Routes]:
    plan = plan_splits(source, split_bytes)
    for damage in plan.damage:
        log_damage(damage)
    wanted = dialects.dialects
    return plan.splits, find_dialects(read_file(source, _unsaid, _unsaid), wanted.detector()).routes


def _unsaid(about: object) -> None:
    """The plan has told it."""


def _check_head(data: ByteSource) -> None:
    """Better no query than one that fails in a task: raises `CaptureError` if the first bytes are of no capture."""
    try:
        read_facts(data.name, read_at(data, 0, _HEAD), "")
    except Corrupt:
        return  # damage, which the reading tells


# --- In a task ------------------------------------------------------------------------------------------------------


def part_batches(
    part: Part, dialects: Dialects, columns: Sequence[str], keep_other: bool = False
) -> Iterator[pa.RecordBatch]:
    """The messages of a part, with exactly these columns in this order, of plain types."""
    batches: Iterator[DatagramBatch] = read_batches(part.split)
    routes = part.routes
    if routes is None:
        batches, routes, _ = find_dialects(batches, dialects.detector())
    of_messages = [name for name in columns if name != "session"]
    # A row must be counted though nothing of it is asked for.
    decoder = Decoder(
        dialects.wanted,
        routes,
        of_messages or ["frame"],
        plain=True,
        keep_other=keep_other,
        capture=escape_text(part.split.source),
    )
    schema = arrow_schema(columns)
    for batch in batches:
        rows = decoder.decode(batch)
        if rows.num_rows:
            yield _arranged(rows, schema, part.session)


def _arranged(rows: pa.RecordBatch, schema: pa.Schema, session: str) -> pa.RecordBatch:
    arrays = [pa.repeat(session, rows.num_rows) if name == "session" else rows.column(name) for name in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)

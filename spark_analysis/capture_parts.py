"""From captures to the parts that tasks read, and from a part to Arrow batches.

A part is a split of a capture and what the whole of the capture has taught: its session, and which endpoint speaks
which dialect. A capture that is one part is not looked into before its task: thousands of small ones are planned in
the time it takes to list them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from pcap_tools.decoding import LEARN_DATAGRAMS
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

    def spoken(self, routes: Routes) -> tuple[Dialect, ...]:
        """Those that the routes lead to: tables of all the others would take as long to make as 100,000 packets."""
        names = {name for _, name in routes.endpoints.values()}.union(routes.ports.values())
        return tuple(dialect for dialect in self.wanted if dialect.name in names) or self.wanted[:1]

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
                check_head(data)
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
    first = read_file(source, _unsaid, _unsaid, LEARN_DATAGRAMS)
    return plan.splits, find_dialects(first, wanted.detector()).routes


def _unsaid(about: object) -> None:
    """The plan has told it."""


def check_head(data: ByteSource) -> None:
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
    spoken = dialects.spoken(routes)
    constants = {"session": part.session, "capture": escape_text(part.split.source)}
    if len(spoken) == 1 and not keep_other:
        constants["dialect"] = spoken[0].name
    # A row must be counted though nothing of it is asked for.
    wanted = [name for name in columns if name not in constants] or ["frame"]
    decoder = Decoder(spoken, routes, wanted, plain=True, keep_other=keep_other)
    arranged = _Arranged(arrow_schema(columns), constants)
    for batch in batches:
        rows = decoder.decode(batch)
        if rows.num_rows:
            yield arranged.rows(rows)


class _Arranged:
    """Puts columns in order. Those of one value are written once, for the longest batch; others have a part of it."""

    def __init__(self, schema: pa.Schema, constants: Mapping[str, str]) -> None:
        self._schema, self._constants = schema, constants
        self._repeated: dict[str, pa.Array] = {}
        self._room = 0

    def rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        count = rows.num_rows
        if count > self._room:
            self._room = count
            self._repeated = {name: pa.repeat(value, count) for name, value in self._constants.items()}
        arrays = [
            self._repeated[name][:count] if name in self._constants else rows.column(name)
            for name in self._schema.names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

"""Units of a session, each read by one task: a split of a capture, or a Parquet file of an ingested folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq

from pcap_tools.capture.damage import Damage
from pcap_tools.columnar.datagrams import DatagramBatch
from pcap_tools.columnar.decoder import Decoder
from pcap_tools.columnar.learning import find_dialects
from pcap_tools.columnar.reading import read_batches, read_file
from pcap_tools.columnar.schema import ALL_MESSAGES, CODED
from pcap_tools.columnar.state import Split
from pcap_tools.detect import Routes
from pcap_tools.errors import TopicsharkError
from pcap_tools.escaping import escape_text

from ..capture_parts import Dialects
from ..storage import open_input
from .events import COLUMNS

Batches = list[pa.RecordBatch]
# Columns that tell who says what to whom.
TALKS = ("time_ns", "src", "sport", "dst", "dport", "dialect", "message", "error", "copy_of")


@dataclass(frozen=True)
class Unit:
    """``capture`` as findings call it. Either ``split``, with ``routes`` unless its task has to find the dialects; or
    ``file``; or ``place``, its number among units that come as packed rows (`message_tables`), which are then ``rows``.
    ``weight`` is about how many messages it holds.
    """

    capture: str
    split: Split | None = None
    routes: Routes | None = None
    file: str = ""
    place: int = -1
    rows: pa.Table | None = None
    weight: int = 0


@dataclass(frozen=True)
class Read:
    """What a unit held: rows, sentences about what could not be read, and by dialect why it is believed."""

    batches: Batches
    damage: tuple[str, ...] = ()
    evidence: dict[str, list[str]] = field(default_factory=dict)


def read_unit(unit: Unit, dialects: Dialects, columns: tuple[str, ...] = COLUMNS) -> Read:
    """The messages of a unit; of columns that are left out nothing is decoded."""
    if unit.rows is not None:
        return Read(unit.rows.to_batches())
    damage: list[Damage] = []
    evidence: dict[str, list[str]] = {}
    try:
        if unit.split is None:
            rows = _of_file(unit.file, columns)
        else:
            rows = _of_split(unit.split, unit.routes, dialects, columns, damage, evidence)
        batches = [batch for batch in rows if len(batch)]
    except (OSError, pa.ArrowException) as error:
        raise TopicsharkError(f"{unit.file or unit.capture}: cannot be read: {error}") from error
    said = [f"{unit.capture}: damaged at byte {one.offset}: {one.text}" for one in damage]
    return Read(batches, tuple(said), evidence)


def read_head(unit: Unit, dialects: Dialects, rows: int) -> Batches:
    """About so many of the first messages of the capture that a unit is of; nothing of one that comes as packed rows,
    or that cannot be read, which is told when it is."""
    try:
        if unit.split is not None:
            datagrams = read_file(unit.split.source, lambda damage: None, lambda text: None, rows)
            head, routes = iter(list(islice(datagrams, 1))), unit.routes
            if routes is None:
                head, routes, _ = find_dialects(head, dialects.detector())
            decoder = Decoder(dialects.spoken(routes), routes, TALKS)
            return [decoder.decode(batch) for batch in head]
        if unit.file:
            with open_input(unit.file) as file:
                return list(islice(pq.ParquetFile(file).iter_batches(rows, columns=list(TALKS)), 1))
    except (TopicsharkError, OSError, pa.ArrowException):
        pass
    return []


def _of_split(
    split: Split,
    routes: Routes | None,
    dialects: Dialects,
    columns: tuple[str, ...],
    damage: list[Damage],
    evidence: dict[str, list[str]],
) -> Iterator[pa.RecordBatch]:
    batches: Iterator[DatagramBatch] = read_batches(split, on_damage=damage.append, on_warning=lambda text: None)
    if routes is None:
        batches, routes, found = find_dialects(batches, dialects.detector())
        for one in found:
            evidence.setdefault(one.dialect, []).append(str(one))
    decoder = Decoder(dialects.spoken(routes), routes, columns, capture=escape_text(split.source))
    for batch in batches:
        yield decoder.decode(batch)


def _of_file(path: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Columns that a file lacks are null: `needs` has told that no rule needs them."""
    coded = [name for name in columns if name in CODED]
    with open_input(path) as file:
        parquet = pq.ParquetFile(file, read_dictionary=coded, pre_buffer=True)
        table = parquet.read([name for name in columns if name in parquet.schema_arrow.names])
    for name in set(columns).difference(table.column_names):
        table = table.append_column(name, pa.nulls(len(table), ALL_MESSAGES.field(name).type))
    yield from table.select(columns).to_batches()

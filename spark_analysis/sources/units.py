"""What one task reads, a unit: a split of a capture, a Parquet file of an ingested folder, or packed rows. All who read
messages open units, by `open_batches`.

>>> for unit in plan_capture("run.pcap", dialects, 128 << 20).units:                            # doctest: +SKIP
...     for rows in open_batches(unit, dialects, ("frame", "topic"), plain=True):
...         print(rows.num_rows)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pcap_tools.capture.damage import OnDamage, OnWarning
from pcap_tools.codec.detect import Dialects, Evidence, Routes
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.decode.learning import open_decoder
from pcap_tools.columnar.decode.schema import ALL_MESSAGES, CODED
from pcap_tools.columnar.read.datagrams import DatagramBatch
from pcap_tools.columnar.read.frame_ranges import FrameRanges
from pcap_tools.columnar.read.reading import ROWS, Split, read_batches
from pcap_tools.dialect import Dialect
from pcap_tools.errors import TopicsharkError

from ..storage.folder import open_input
from .options import arrow_schema


@dataclass(frozen=True)
class Unit:
    """``capture`` as rows and findings call it. Either ``split``, with ``routes`` unless its task has to find the
    dialects; or ``file``; or ``place``, its number among units that come as packed rows (`message_tables`), which are
    then ``rows``. ``weight`` is about how many messages it holds. Small, and made to be pickled.
    """

    capture: str
    split: Split | None = None
    routes: Routes | None = None
    file: str = ""
    place: int = -1
    rows: pa.Table | None = None
    weight: int = 0

    @property
    def bytes(self) -> int:
        """Of the capture."""
        return 0 if self.split is None else self.split.end - self.split.begin


class Batches:
    """The messages of a unit, to be read once. ``evidence``: why the dialects are believed, if they had to be found."""

    def __init__(
        self, batches: Iterator[pa.RecordBatch], evidence: Sequence[Evidence] = (), decoder: Decoder | None = None
    ) -> None:
        self.evidence = evidence
        self._batches, self._decoder = batches, decoder

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return (batch for batch in self._batches if batch.num_rows)

    @property
    def other(self) -> int:
        """Datagrams of no known dialect in what was read so far."""
        return self._decoder.other if self._decoder else 0


def open_batches(
    unit: Unit,
    dialects: Dialects,
    columns: Sequence[str],
    *,
    plain: bool = False,
    session: str = "",
    keep_other: bool = False,
    frames: FrameRanges | None = None,
    batch_rows: int = ROWS,
    on_damage: OnDamage | None = None,
    on_warning: OnWarning | None = None,
) -> Batches:
    """The messages of a unit; of columns that are left out nothing is decoded.

    plain       exact types, and the columns in the order given, of which one may be ``session``; else those of few
                values are dictionaries
    keep_other  datagrams of no known dialect are rows too
    frames      only these, of plain types; the column ``frame`` must be among those wanted
    on_damage   as of `read_batches`

    Packed rows come as they are.
    """
    if unit.rows is not None:
        return Batches(iter(unit.rows.to_batches()))
    if unit.split is None and not plain:
        return Batches(_whole_file(unit.file, columns))
    constants = {"session": session}
    arranged = _Arranged(columns, constants)
    if unit.split is None:
        return Batches(map(arranged.rows, _of_file(unit.file, columns, frames, batch_rows)))

    def make(spoken: tuple[Dialect, ...], routes: Routes) -> Decoder:
        if not plain:
            return Decoder(spoken, routes, columns, keep_other=keep_other, capture=unit.capture)
        constants["capture"] = unit.capture
        if len(spoken) == 1 and not keep_other:
            constants["dialect"] = spoken[0].name
        # A row must be counted though nothing of it is asked for.
        wanted = [name for name in columns if name not in constants] or ["frame"]
        return Decoder(spoken, routes, wanted, plain=True, keep_other=keep_other)

    datagrams = read_batches(unit.split, batch_rows, on_damage, on_warning)
    batches, decoder, evidence = open_decoder(datagrams, dialects, make, unit.routes)
    rows = _decoded(batches, decoder, frames)
    return Batches(map(arranged.rows, rows) if plain else rows, evidence, decoder)


def _decoded(
    batches: Iterator[DatagramBatch], decoder: Decoder, frames: FrameRanges | None
) -> Iterator[pa.RecordBatch]:
    """Nothing is decoded of batches without a wanted frame."""
    for batch in batches:
        if frames is None:
            yield decoder.decode(batch)
            continue
        numbers = batch.frame[: batch.count]
        if numbers[0] > frames.last:
            return
        if frames.include(numbers).any():
            rows = decoder.decode(batch)
            yield rows.filter(pa.array(frames.include(rows.column("frame").to_numpy())))


class _Arranged:
    """Puts columns in order. Those of one value are written once, for the longest batch; others have a part of it.
    Columns that are not there are null."""

    def __init__(self, columns: Sequence[str], constants: Mapping[str, str]) -> None:
        self._schema, self._constants = arrow_schema(columns), constants
        self._repeated: dict[str, pa.Array] = {}
        self._room = -1

    def rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if rows.num_rows > self._room:
            self._room = rows.num_rows
            self._repeated = {name: pa.repeat(value, self._room) for name, value in self._constants.items()}
        return pa.RecordBatch.from_arrays([self._column(field, rows) for field in self._schema], schema=self._schema)

    def _column(self, field: pa.Field, rows: pa.RecordBatch) -> pa.Array:
        if field.name in self._constants:
            return self._repeated[field.name][: rows.num_rows]
        if field.name in rows.schema.names:
            return rows.column(field.name).cast(field.type)
        return pa.nulls(rows.num_rows, field.type)


# --- Parquet files --------------------------------------------------------------------------------------------------


def _whole_file(path: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Columns that a file lacks are null: `needs` has told that no rule needs them."""
    coded = [name for name in columns if name in CODED]
    with _opened(path, read_dictionary=coded, pre_buffer=True) as file:
        table = file.read([name for name in columns if name in file.schema_arrow.names])
    for name in set(columns).difference(table.column_names):
        table = table.append_column(name, pa.nulls(len(table), ALL_MESSAGES.field(name).type))
    yield from table.select(columns).to_batches()


def _of_file(
    path: str, columns: Sequence[str], frames: FrameRanges | None, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Row groups without a wanted frame are not read."""
    with _opened(path) as file:
        there = [name for name in columns if name in file.schema_arrow.names]
        groups = [place for place in range(file.num_row_groups) if frames is None or _may_have(file, place, frames)]
        for rows in file.iter_batches(batch_rows, groups, there) if groups else ():
            chosen = None if frames is None else frames.include(rows.column("frame").to_numpy())
            yield rows if chosen is None else rows.filter(pa.array(chosen))


def _may_have(file: pq.ParquetFile, group: int, frames: FrameRanges) -> bool:
    statistics = file.metadata.row_group(group).column(file.schema_arrow.names.index("frame")).statistics
    return statistics is None or not statistics.has_min_max or frames.overlap(statistics.min, statistics.max)


@contextmanager
def _opened(path: str, **options: Any) -> Iterator[pq.ParquetFile]:
    try:
        with open_input(path) as file:
            yield pq.ParquetFile(file, **options)
    except (OSError, pa.ArrowException) as error:
        raise TopicsharkError(f"{path}: cannot be read: {error}") from error

"""Pieces of a session, each read by one task: a split of a capture, or a Parquet file of an ingested folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pcap_tools.capture.damage import Damage
from pcap_tools.columnar.decoder import Decoder
from pcap_tools.columnar.reading import read_batches
from pcap_tools.columnar.schema import CODED
from pcap_tools.columnar.state import Split
from pcap_tools.detect import Routes
from pcap_tools.errors import TopicsharkError
from pcap_tools.escaping import escape_text

from ..capture_parts import Dialects
from .events import COLUMNS

Batches = list[pa.RecordBatch]
_CODED = [name for name in COLUMNS if name in CODED]


@dataclass(frozen=True)
class Piece:
    """``capture`` as findings call it. Either ``split`` with ``routes``, or ``file``."""

    capture: str
    split: Split | None = None
    routes: Routes | None = None
    file: str = ""


@dataclass(frozen=True)
class Read:
    """What a piece held: rows, and sentences about what could not be read."""

    batches: Batches
    damage: tuple[str, ...] = ()


def read_piece(piece: Piece, dialects: Dialects, within: tuple[int, int] | None = None) -> Read:
    """The messages of a piece, or of a time in it."""
    damage: list[Damage] = []
    try:
        rows = _of_file(piece.file, within) if piece.split is None else _of_split(piece, dialects, damage)
        batches = [_during(batch, within) if within else batch for batch in rows]
    except (OSError, pa.ArrowException) as error:
        raise TopicsharkError(f"{piece.file or piece.capture}: cannot be read: {error}") from error
    said = [f"{piece.capture}: damaged at byte {one.offset}: {one.text}" for one in damage]
    return Read([batch for batch in batches if len(batch)], tuple(said))


def _of_split(piece: Piece, dialects: Dialects, damage: list[Damage]) -> Iterator[pa.RecordBatch]:
    assert piece.split is not None  # noqa: S101 - for mypy; `read_piece` has looked
    decoder = Decoder(dialects.wanted, piece.routes, COLUMNS, capture=escape_text(piece.split.source))
    for batch in read_batches(piece.split, on_damage=damage.append, on_warning=lambda text: None):
        yield decoder.decode(batch)


def _of_file(path: str, within: tuple[int, int] | None) -> Iterator[pa.RecordBatch]:
    """Row groups of other times are not even read. Without partitioning: `session=` in the path is no column here."""
    times = [("time_ns", ">=", within[0]), ("time_ns", "<", within[1])] if within else None
    table = pq.read_table(path, columns=list(COLUMNS), filters=times, read_dictionary=_CODED, partitioning=None)
    yield from table.to_batches()


def _during(batch: pa.RecordBatch, within: tuple[int, int]) -> pa.RecordBatch:
    time = batch.column("time_ns")
    inside = pc.and_(pc.greater_equal(time, within[0]), pc.less(time, within[1]))
    return batch if pc.all(inside).as_py() else batch.filter(inside)

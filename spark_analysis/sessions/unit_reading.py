"""The messages of a unit as the checker reads them: all at once, or the first of its capture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from pcap_tools.capture.damage import Damage
from pcap_tools.codec.detect import Dialects
from pcap_tools.errors import TopicsharkError

from ..checker.session.events import COLUMNS
from ..sources.units import Unit, open_batches

# Columns that tell who says what to whom.
TALKS = ("time_ns", "src", "sport", "dst", "dport", "dialect", "message", "error", "copy_of")


@dataclass(frozen=True)
class Read:
    """What a unit held: rows, sentences about what could not be read, and by dialect why it is believed."""

    batches: list[pa.RecordBatch]
    damage: tuple[str, ...] = ()
    evidence: dict[str, list[str]] = field(default_factory=dict)


def read_unit(
    unit: Unit, dialects: Dialects, columns: tuple[str, ...] = COLUMNS, period: tuple[int, int] | None = None
) -> Read:
    """The messages of a unit; of columns that are left out nothing is decoded. ``period``: as of ``pipeline.Options``;
    ``time_ns`` must be among the columns."""
    damage: list[Damage] = []
    evidence: dict[str, list[str]] = {}
    try:
        opened = open_batches(unit, dialects, columns, on_damage=damage.append, on_warning=_ignore)
        batches = list(opened if period is None else _within(opened, period))
    except (OSError, pa.ArrowException) as error:
        raise TopicsharkError(f"{unit.capture}: cannot be read: {error}") from error
    for one in opened.evidence:
        evidence.setdefault(one.dialect, []).append(str(one))
    said = [f"{unit.capture}: damaged at byte {one.offset}: {one.text}" for one in damage]
    return Read(batches, tuple(said), evidence)


def _within(batches: Iterable[pa.RecordBatch], period: tuple[int, int]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time = batch.column("time_ns")
        rows = batch.filter(pc.and_(pc.greater_equal(time, period[0]), pc.less(time, period[1])))
        if rows.num_rows:
            yield rows


def read_head(unit: Unit, dialects: Dialects, rows: int) -> list[pa.RecordBatch]:
    """About so many of the first messages of the capture that a unit is of; nothing of one that comes as packed rows,
    or that cannot be read, which is told when it is."""
    if unit.split is not None:
        unit = replace(unit, split=replace(unit.split, state=None))
    elif not unit.file:
        return []
    try:
        opened = open_batches(unit, dialects, TALKS, plain=True, batch_rows=rows, on_damage=_ignore, on_warning=_ignore)
        return list(islice(opened, 1))
    except (TopicsharkError, OSError, pa.ArrowException):
        return []


def _ignore(about: object) -> None:
    """Warnings are of no use to the checker; damage of the first messages is told when all are read."""

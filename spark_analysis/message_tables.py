"""Any DataFrame of messages as units that the passes read: its rows in the order of captures, in blocks of frames.

Rows may come in any order and from anywhere. A block is a range of frames of one capture, so where blocks begin does
not depend on how Spark has cut the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pcap_tools.errors import TopicsharkError

from .checker.events import COLUMNS
from .checker.session_plans import SessionPlan
from .checker.units import Unit
from .engines import PACKED_SCHEMA, Packed, SparkEngine, SparkRows, as_batch
from .packing import pack

BLOCK_FRAMES = 1 << 19
# Why a column must be there, for those whose need is not plain from their name.
_NEEDED_BY = {
    "key": "all rules about ACKs that name what they answer (A-…)",
    "number": "rules about topic numbers (N-…) and all deliveries of dialects that have them",
    "port": "deliveries to subscribers that name a port",
    "ip_id": "rules about doubled datagrams (A-DUPLICATE, D-DUPLICATE)",
    "copy_of": "all rules: copies that the capture made are not to be judged",
    "error": "rules about the wire format (W-…)",
    "error_offset": "rules about the wire format (W-…)",
}


def check_columns(table: DataFrame) -> None:
    """Raises `TopicsharkError` if the table lacks a column that a rule needs."""
    missing = [name for name in ("session", *COLUMNS) if name not in table.columns]
    if missing:
        why = [f"{name} ({_NEEDED_BY.get(name, 'all rules')})" for name in missing]
        raise TopicsharkError(f"the table of messages lacks columns that rules need: {'; '.join(why)}")


def pack_messages(engine: SparkEngine, table: DataFrame) -> tuple[list[SessionPlan], Any]:
    """Sessions of the table, and their units as packed rows. Counts the captures, which reads the table once."""
    check_columns(table)
    rows = table.select("session", *COLUMNS).withColumn("block", (f.col("frame") / BLOCK_FRAMES).cast("long"))
    keys = ("session", "capture", "block")
    blocks = sorted(tuple(row) for row in rows.select(*keys).distinct().collect())
    units: dict[str, list[Unit]] = {}
    place: dict[tuple[str, str, int], int] = {}
    for session, capture, block in blocks:
        place[session, capture, block] = len(place)
        units.setdefault(session, []).append(Unit(capture, place=place[session, capture, block]))
    plans = [
        SessionPlan(name, tuple(dict.fromkeys(unit.capture for unit in several)), tuple(several))
        for name, several in units.items()
    ]
    if not plans:
        raise TopicsharkError("the table of messages is empty")

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given = [batch for batch in batches if len(batch)]
        for (session, capture, block), rows in _groups(pa.Table.from_batches(given)) if given else ():
            data = pack(rows.sort_by("frame").drop_columns(["session", "block"]))
            yield as_batch(Packed(place[session, capture, block], "unit", data))

    count = max(len(place), 1)
    packed = rows.repartition(count, *keys).mapInArrow(run, PACKED_SCHEMA)
    return plans, engine.keep(SparkRows(packed, count))


def _groups(table: pa.Table) -> Iterator[tuple[tuple[str, str, int], pa.Table]]:
    keys = ["session", "capture", "block"]
    numbered = table.append_column("row", pa.array(range(len(table)), pa.int64()))
    grouped = numbered.group_by(keys, use_threads=False).aggregate([("row", "list")])
    for row in grouped.to_pylist():
        yield tuple(row[name] for name in keys), table.take(pa.array(row["row_list"]))

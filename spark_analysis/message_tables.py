"""Any DataFrame of messages as units that the passes read: its rows in the order of captures, in blocks of frames.

Rows may come in any order and from anywhere. A block is a range of frames of one capture, so where blocks begin does
not depend on how Spark has cut the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from pcap_tools.columnar.decode.schema import ALL_MESSAGES
from pcap_tools.dialect import Dialect
from pcap_tools.errors import TopicsharkError

from .checker.rulebook.needs import needs_of
from .checker.session.events import COLUMNS
from .engine.engines import PACKED_SCHEMA, Packed, SparkEngine, SparkRows, as_batch
from .sessions.plans import SessionPlan
from .sources.units import Unit
from .tables.packing import pack

BLOCK_FRAMES = 1 << 19


def check_columns(table: DataFrame, dialects: Sequence[Dialect]) -> None:
    """Raises `TopicsharkError` if the table lacks a column that a rule of these dialects needs."""
    needs = {"session": "all rules", **needs_of(dialects)}
    missing = [f"{name} ({why})" for name, why in needs.items() if name not in table.columns]
    if missing:
        raise TopicsharkError(f"the table of messages lacks columns that rules need: {'; '.join(missing)}")


def _checked(table: DataFrame, dialects: Sequence[Dialect]) -> DataFrame:
    """The columns that are read; those that no rule of the table's dialects needs may be absent, and are null."""
    absent = [name for name in COLUMNS if name not in table.columns]
    if "dialect" in table.columns and not set(absent).isdisjoint(needs_of(dialects)):
        names = {row["dialect"] for row in table.select("dialect").distinct().collect()}
        dialects = [dialect for dialect in dialects if dialect.name in names]
    check_columns(table, dialects)
    types = from_arrow_schema(ALL_MESSAGES)
    nulls = [f.lit(None).cast(types[name].dataType).alias(name) for name in absent]
    return table.select("session", *(name for name in COLUMNS if name not in absent), *nulls)


def pack_messages(engine: SparkEngine, table: DataFrame, dialects: Sequence[Dialect]) -> tuple[list[SessionPlan], Any]:
    """Sessions of the table, and their units as packed rows. Counts the captures, which reads the table once."""
    rows = _checked(table, dialects).withColumn("block", (f.col("frame") / BLOCK_FRAMES).cast("long"))
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

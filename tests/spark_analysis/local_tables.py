"""The tables of the analysis made in this process, as sorted texts of rows: what the tables of Spark must equal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pcap_tools.codec.detect import wanted_dialects
from spark_analysis.dataframes import SCHEMAS
from spark_analysis.engine.engines import Engine, LocalEngine
from spark_analysis.pipeline import ROW_TABLES, Options, analyse_sessions
from spark_analysis.sessions.ingested import find_sources
from spark_analysis.sessions.plans import SessionPlan, plan_sources
from spark_analysis.tables.packing import unpack

# Of sessions; `messages` is what they are made from.
TABLES = ("endpoints", "subscriptions", "deliveries", "exchanges", "evidence", "findings", "verdicts")
ONE_UNIT = 1 << 40


def local_tables(
    *sources: Path | str, dialects: Sequence[str] | None = None, brokers: Sequence[str] = (), merge: bool = False
) -> dict[str, list[str]]:
    """Each capture is read in one piece."""
    found = arrow_tables(*sources, dialects=dialects, brokers=brokers, merge=merge)
    return {name: texts(table.to_pylist()) for name, table in found.items()}


def arrow_tables(
    *sources: Path | str, dialects: Sequence[str] | None = None, brokers: Sequence[str] = (), merge: bool = False
) -> dict[str, pa.Table]:
    """The same, for those that have many rows."""
    wanted = wanted_dialects(dialects)
    sessions, failed = plan_sources(find_sources([str(one) for one in sources]), wanted, merge, ONE_UNIT)
    assert failed == {}
    options = Options(wanted, tuple(brokers), summaries=False, tables=frozenset(ROW_TABLES))
    return tables_of(LocalEngine(), sessions, options)


def tables_of(engine: Engine, sessions: Sequence[SessionPlan], options: Options) -> dict[str, pa.Table]:
    """What the passes give, unpacked. A session that cannot be read fails the test."""
    kinds = [name for name in TABLES if name in ROW_TABLES]
    kinds += [f"{name}:{dialect.name}" for name in TABLES for dialect in options.dialects.wanted]
    found = {name: [SCHEMAS[name].empty_table()] for name in TABLES}
    for row in engine.collect(analyse_sessions(engine, sessions, options).rows, [*kinds, "failed"], "look"):
        assert row.kind != "failed", row.data
        found[row.kind.partition(":")[0]].append(unpack(row.data))
    return {name: pa.concat_tables(tables) for name, tables in found.items()}


def texts(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Sorted; a row that is there twice counts twice."""
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def digest(lines: Iterable[str]) -> str:
    """Of sorted texts, short enough to be printed."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()

"""Sessions of a stream between its batches, in tasks: `advance` reads what a session has remembered and its new
messages, and writes what is final now, and what is to be remembered next.

    FOLDER/<rows>/<table>/<session>-<dialect>.parquet    `exchanges`, `deliveries`, `findings`
    FOLDER/<memory>                                      states of `SessionFold`, one for each dialect
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from pcap_tools.codec.detect import Dialects

from .checker.session_fold import SessionFold
from .storage.folder import Folder, open_folder, open_input
from .tables.packing import pack_tables, together, unpack_tables
from .tables.schemas import DELIVERIES, EXCHANGES, FINDINGS

GIVEN = {"exchanges": EXCHANGES, "deliveries": DELIVERIES, "findings": FINDINGS}  # as `session_fold.Final` has them


@dataclass(frozen=True)
class Step:
    """One session: files of new messages, files to read from and to write to; ``key`` names the session in files."""

    session: str
    key: str
    messages: tuple[str, ...]
    remembered: str | None
    remember: str
    rows: str
    has_ended: bool


@dataclass(frozen=True)
class Standing:
    """How a session stands after a step: messages that are kept because something about them is open, bytes of all that
    is remembered, the time before which all exchanges and deliveries have been given out (0: none)."""

    kept: int
    bytes: int
    final_ns: int
    is_revised: bool


def advance(dialects: Dialects, brokers: Sequence[str], where: str, step: Step) -> Standing:
    """In a task: one step of one session."""
    folder = open_folder(where)
    states = _remembered(folder, step.remembered)
    batch = _messages(folder, step.messages)
    found = set(batch.column("dialect").unique().to_pylist()) if batch is not None else set()
    kept = 0
    final_ns: list[int] = []
    is_revised = False
    for dialect in dialects.wanted:
        if dialect.name not in found and dialect.name not in states:
            continue
        fold = SessionFold(step.session, dialect, brokers, states.get(dialect.name))
        if batch is not None:
            _write(folder, step, dialect.name, "new", fold.feed(batch))
        if step.has_ended:
            _write(folder, step, dialect.name, "last", fold.finish())
        states[dialect.name] = fold.state
        kept += fold.messages
        final_ns.append(fold.final_ns)
        is_revised |= fold.is_revised
    if step.has_ended:
        return Standing(0, 0, 0, is_revised)
    data = pack_tables({name: pa.table({"state": [pack_tables(state)]}) for name, state in states.items()})
    folder.write(step.remember, data)
    return Standing(kept, len(data), min(final_ns, default=0), is_revised)


def _remembered(folder: Folder, file: str | None) -> dict[str, dict[str, pa.Table]]:
    data = folder.read(file) if file else None
    if not data:
        return {}
    return {name: unpack_tables(table.column("state")[0].as_py()) for name, table in unpack_tables(data).items()}


def _messages(folder: Folder, files: Sequence[str]) -> pa.Table | None:
    if not files:
        return None
    tables = []
    for file in files:
        with open_input(folder.place(file)) as source:
            tables.append(pq.read_table(source))
    return together(tables)


def _write(folder: Folder, step: Step, dialect: str, when: str, final: Sequence[pa.Table]) -> None:
    """Names follow from the session, so that a task that is repeated writes the same files again."""
    for name, table in zip(GIVEN, final, strict=True):
        if len(table):
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, compression="zstd")
            folder.write(f"{step.rows}/{name}/{step.key}-{dialect}-{when}.parquet", sink.getvalue().to_pybytes())

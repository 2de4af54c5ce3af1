"""From sources to sessions: which captures belong together, and the pieces in which they are read.

Of an ingested folder its manifest tells both: a piece is a Parquet file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pcap_tools.errors import TopicsharkError, UsageError
from pcap_tools.escaping import escape_text

from ..capture_parts import Dialects
from ..manifest import SourceEntry
from ..planning import CapturePlan, plan_capture
from ..sessions import session_names
from .ingested import Folder, Sources, check_merge
from .pieces import Piece

Run = Callable[..., list[Any]]


@dataclass(frozen=True)
class SessionPlan:
    """``evidence`` says by dialect why it is believed; ``damage`` what could not be read."""

    name: str
    captures: tuple[str, ...]
    pieces: tuple[Piece, ...]
    evidence: dict[str, tuple[str, ...]] = field(default_factory=dict)
    damage: tuple[str, ...] = ()


def plan_sources(
    sources: Sources, dialects: Dialects, merge: bool, part_bytes: int, run: Run
) -> tuple[list[SessionPlan], dict[str, str]]:
    """Sessions of captures and of ingested folders; and the captures that cannot be read with the reason."""
    if merge:
        check_merge(sources)
    sessions, failed = plan_sessions(sources.captures, dialects, merge, part_bytes, run)
    for folder in sources.folders:
        folder.check_columns()
        sessions += [_ingested(folder, name, entries, dialects) for name, entries in folder.sessions.items()]
    for name, count in Counter(session.name for session in sessions).items():
        if count > 1:
            raise UsageError(f"there are {count} sessions {name!r}: give their sources one at a time")
    return sessions, failed


def plan_sessions(
    captures: Sequence[str], dialects: Dialects, merge: bool, part_bytes: int, run: Run
) -> tuple[list[SessionPlan], dict[str, str]]:
    """Sessions, and the captures that cannot be read with the reason."""
    plans = run(partial(_plan, dialects, part_bytes), captures, "plan")
    failed = {capture: plan for capture, plan in zip(captures, plans, strict=True) if isinstance(plan, str)}
    good = [plan for plan in plans if isinstance(plan, CapturePlan)]
    names = session_names([plan.source for plan in good], merge)
    by_session: dict[str, list[CapturePlan]] = {}
    for name, plan in zip(names, good, strict=True):
        by_session.setdefault(name, []).append(plan)
    return [_session(name, plans) for name, plans in by_session.items()], failed


def _plan(dialects: Dialects, part_bytes: int, capture: str) -> CapturePlan | str:
    """In a task: a plan, or why there is none."""
    try:
        return plan_capture(capture, dialects, part_bytes)
    except TopicsharkError as error:
        return str(error)


def _session(name: str, plans: Sequence[CapturePlan]) -> SessionPlan:
    evidence: dict[str, list[str]] = {}
    for plan in plans:
        for one in plan.evidence:
            evidence.setdefault(one.dialect, []).append(str(one))
    pieces = [Piece(escape_text(plan.source), split, plan.routes) for plan in plans for split in plan.splits]
    damage = [_damaged(plan.source, one.offset, one.text) for plan in plans for one in plan.damage]
    return SessionPlan(
        name,
        tuple(escape_text(plan.source) for plan in plans),
        tuple(pieces),
        {dialect: tuple(said[:3]) for dialect, said in evidence.items()},
        tuple(damage),
    )


def _damaged(source: str, offset: int, text: str) -> str:
    return f"{escape_text(source)}: damaged at byte {offset}: {text}"


def _ingested(folder: Folder, name: str, entries: Sequence[SourceEntry], dialects: Dialects) -> SessionPlan:
    evidence: dict[str, list[str]] = {}
    damage: list[str] = []
    for entry in entries:
        for dialect in entry.dialects:
            evidence.setdefault(dialect, []).extend(one for one in entry.evidence if one.startswith(f"{dialect} at "))
        damage += [_damaged(entry.uri, one["offset"], one["text"]) for one in entry.damage]
        damage += _unknown(entry, dialects)
    return SessionPlan(
        name,
        tuple(escape_text(entry.uri) for entry in entries),
        tuple(Piece(escape_text(entry.uri), file=file) for entry in entries for file in folder.files(entry)),
        {dialect: tuple(said[:3]) for dialect, said in evidence.items()},
        tuple(damage),
    )


def _unknown(entry: SourceEntry, dialects: Dialects) -> list[str]:
    """A dialect of the user's own must be named again, or its messages would be passed over in silence."""
    if dialects.named:
        return []
    known = {dialect.name for dialect in dialects.wanted}
    return [
        f"{escape_text(entry.uri)}: its messages in {name!r} are not judged; name that dialect's file with --dialect"
        for name in entry.dialects
        if name not in known
    ]

"""From sources to sessions: which captures belong together, and the units in which they are read.

Of an ingested folder its manifest tells both: a unit is a Parquet file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pcap_tools.codec.detect import Dialects
from pcap_tools.errors import TopicsharkError, UsageError
from pcap_tools.escaping import escape_text

from ..sources.planning import CapturePlan, plan_capture
from ..sources.session_names import session_names
from ..sources.units import Unit
from ..storage.manifest import SourceEntry
from .ingested import IngestedFolder, Sources, check_merge


@dataclass(frozen=True)
class SessionPlan:
    """``evidence`` says by dialect why it is believed; ``damage`` what could not be read."""

    name: str
    captures: tuple[str, ...]
    units: tuple[Unit, ...]
    evidence: dict[str, tuple[str, ...]] = field(default_factory=dict)
    damage: tuple[str, ...] = ()


def plan_sources(
    sources: Sources, dialects: Dialects, merge: bool, unit_bytes: int
) -> tuple[list[SessionPlan], dict[str, str]]:
    """Sessions of captures and of ingested folders; and the captures that cannot be read with the reason."""
    if merge:
        check_merge(sources)
    sessions, failed = plan_sessions(sources.captures, dialects, merge, unit_bytes)
    for folder in sources.folders:
        folder.check_columns(dialects.wanted)
        sessions += [_ingested(folder, name, entries, dialects) for name, entries in folder.sessions.items()]
    for name, count in Counter(session.name for session in sessions).items():
        if count > 1:
            raise UsageError(f"there are {count} sessions {name!r}: give their sources one at a time")
    return sessions, failed


def plan_sessions(
    captures: Sequence[str], dialects: Dialects, merge: bool, unit_bytes: int
) -> tuple[list[SessionPlan], dict[str, str]]:
    """Sessions, and the captures that cannot be read with the reason."""
    good: dict[str, CapturePlan] = {}
    failed: dict[str, str] = {}
    for capture in captures:
        try:
            good[capture] = plan_capture(capture, dialects, unit_bytes)
        except TopicsharkError as error:
            failed[capture] = str(error)
    by_session: dict[str, list[CapturePlan]] = {}
    for name, plan in zip(session_names(list(good), merge), good.values(), strict=True):
        by_session.setdefault(name, []).append(plan)
    return [_session(name, plans) for name, plans in by_session.items()], failed


def _session(name: str, plans: Sequence[CapturePlan]) -> SessionPlan:
    evidence: dict[str, list[str]] = {}
    for plan in plans:
        for one in plan.evidence:
            evidence.setdefault(one.dialect, []).append(str(one))
    damage = [_damaged(plan.source, one.offset, one.text) for plan in plans for one in plan.damage]
    return SessionPlan(
        name,
        tuple(escape_text(plan.source) for plan in plans),
        tuple(unit for plan in plans for unit in plan.units),
        {dialect: tuple(said[:3]) for dialect, said in evidence.items()},
        tuple(damage),
    )


def _damaged(source: str, offset: int, text: str) -> str:
    return f"{escape_text(source)}: damaged at byte {offset}: {text}"


def _ingested(folder: IngestedFolder, name: str, entries: Sequence[SourceEntry], dialects: Dialects) -> SessionPlan:
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
        tuple(
            Unit(escape_text(entry.uri), file=place, weight=file.rows)
            for entry in entries
            for file, place in zip(entry.files, folder.files(entry), strict=True)
        ),
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

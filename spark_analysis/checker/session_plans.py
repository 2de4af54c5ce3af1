"""From sources to sessions: which captures belong together, and the units in which they are read.

Of an ingested folder its manifest tells both: a unit is a Parquet file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pcap_tools.capture.damage import Damage
from pcap_tools.columnar.feeds import is_gzip
from pcap_tools.columnar.sources import open_bytes
from pcap_tools.columnar.state import Split
from pcap_tools.detect import Evidence
from pcap_tools.errors import TopicsharkError, UsageError
from pcap_tools.escaping import escape_text

from ..capture_parts import Dialects, check_head
from ..manifest import SourceEntry
from ..planning import plan_capture
from ..sessions import session_names
from .ingested import IngestedFolder, Sources, check_merge
from .units import Unit

_PACKET_BYTES = 90  # of small messages in a capture


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
    good: dict[str, _Planned] = {}
    failed: dict[str, str] = {}
    for capture in captures:
        try:
            good[capture] = _plan(capture, dialects, unit_bytes)
        except TopicsharkError as error:
            failed[capture] = str(error)
    by_session: dict[str, list[_Planned]] = {}
    for name, plan in zip(session_names(list(good), merge), good.values(), strict=True):
        by_session.setdefault(name, []).append(plan)
    return [_session(name, plans) for name, plans in by_session.items()], failed


@dataclass(frozen=True)
class _Planned:
    source: str
    units: list[Unit]
    evidence: Sequence[Evidence] = ()
    damage: Sequence[Damage] = ()


def _plan(capture: str, dialects: Dialects, unit_bytes: int) -> _Planned:
    """A small capture is one unit, and not looked into before its task."""
    name = escape_text(capture)
    with open_bytes(capture) as data:
        if is_gzip(data) or data.size <= unit_bytes:
            if not is_gzip(data):
                check_head(data)
            return _Planned(capture, [Unit(name, Split(capture, 0, data.size, data.version, (0, 0), None))])
    plan = plan_capture(capture, dialects, unit_bytes)
    units = [Unit(name, split, plan.routes, weight=(split.end - split.begin) // _PACKET_BYTES) for split in plan.splits]
    return _Planned(capture, units, plan.evidence, plan.damage)


def _session(name: str, plans: Sequence[_Planned]) -> SessionPlan:
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

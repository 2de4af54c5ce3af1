"""From sources to sessions: which captures belong together, and the pieces in which they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pcap_tools.errors import TopicsharkError
from pcap_tools.escaping import escape_text

from .capture_parts import Dialects
from .pieces import Piece
from .planning import CapturePlan, plan_capture
from .sessions import session_names

Run = Callable[..., list[Any]]


@dataclass(frozen=True)
class SessionPlan:
    """``evidence`` says by dialect why it is believed; ``damage`` what could not be read."""

    name: str
    captures: tuple[str, ...]
    pieces: tuple[Piece, ...]
    evidence: dict[str, tuple[str, ...]] = field(default_factory=dict)
    damage: tuple[str, ...] = ()


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
    damage = [
        f"{escape_text(plan.source)}: damaged at byte {one.offset}: {one.text}" for plan in plans for one in plan.damage
    ]
    return SessionPlan(
        name,
        tuple(escape_text(plan.source) for plan in plans),
        tuple(pieces),
        {dialect: tuple(said[:3]) for dialect, said in evidence.items()},
        tuple(damage),
    )

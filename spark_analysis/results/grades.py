"""The grade of a submission: its sessions, its verdict, the rules that it breaks."""

from __future__ import annotations

from dataclasses import dataclass

from .verdicts import FAIL, INCONCLUSIVE, PASS, Finding, SessionResult

NOTHING, UNREADABLE = "nothing to judge", "unreadable"
VERDICTS = (PASS, FAIL, INCONCLUSIVE, NOTHING, UNREADABLE)
LEVELS = ("error", "warning", "note")


@dataclass(frozen=True)
class Broken:
    """A rule that a submission breaks, and how often in all its sessions."""

    id: str
    level: str
    count: int


@dataclass(frozen=True)
class Grade:
    """One submission. Its sessions are named after it (``anna/run``); ``problems`` name files from its folder."""

    submission: str
    folder: str
    captures: int
    dialects: tuple[str, ...] = ()
    sessions: tuple[SessionResult, ...] = ()
    problems: tuple[str, ...] = ()
    unread: bool = False  # a capture, or the dialect file, could not be read at all

    @property
    def datagrams(self) -> int:
        return sum(session.datagrams for session in self.sessions)

    @property
    def verdict(self) -> str:
        """The worst of its sessions. What holds no datagram of its dialect is never a pass."""
        if not self.datagrams:
            return UNREADABLE if self.unread else NOTHING
        found = {session.verdict for session in self.sessions}
        return next(verdict for verdict in (FAIL, INCONCLUSIVE, PASS) if verdict in found)

    @property
    def broken(self) -> list[Broken]:
        """Worst level first, then as in the catalogue."""
        counts: dict[tuple[str, str], int] = {}
        for session in self.sessions:
            for rule in session.rules:
                if rule.verdict == FAIL:
                    counts[rule.id, rule.level] = counts.get((rule.id, rule.level), 0) + rule.failed
        found = [Broken(rule, level, count) for (rule, level), count in counts.items()]
        return sorted(found, key=lambda one: LEVELS.index(one.level))

    @property
    def errors(self) -> int:
        """How many rules of level error are broken."""
        return len({one.id for one in self.broken if one.level == "error"})

    @property
    def first(self) -> Finding | None:
        """The first of the worst findings: what to look at before all else."""
        found = [finding for session in self.sessions for finding in session.findings]
        return min(found, key=lambda one: (one.verdict != FAIL, LEVELS.index(one.level)), default=None)

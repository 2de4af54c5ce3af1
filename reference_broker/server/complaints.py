"""Refusals and losses in the log: the first of a kind at once, more of them as one line every ten seconds."""

from __future__ import annotations

from collections.abc import Callable

from reference_broker.broker.limits import OPTIONS

EVERY_NS = 10_000_000_000


class Complaints:
    """``say`` prints a line.

    >>> complaints = Complaints(print)
    >>> complaints.note("too quick", "10.0.0.9", now=0)
    refused: too quick, from 10.0.0.9 (see --requests-by-second)
    >>> complaints.note("too quick", "10.0.0.9", now=1)
    >>> complaints.note("too quick", "10.0.0.9", now=EVERY_NS)
    refused: too quick, from 10.0.0.9, 2 since the last line (see --requests-by-second)
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._unsaid: dict[str, int] = {}
        self._said_ns: dict[str, int] = {}

    def note(self, reason: str, host: str, now: int, verb: str = "refused") -> None:
        number = self._unsaid[reason] = self._unsaid.get(reason, 0) + 1
        said_ns = self._said_ns.get(reason)
        if said_ns is not None and 0 <= now - said_ns < EVERY_NS:
            return
        self._said_ns[reason], self._unsaid[reason] = now, 0
        what = f"{verb}: {reason}" + (f", from {host}" if host else "")
        more = f", {number} since the last line" if number > 1 else ""
        option = f" (see {OPTIONS[reason]})" if reason in OPTIONS else ""
        self._say(f"{what}{more}{option}")

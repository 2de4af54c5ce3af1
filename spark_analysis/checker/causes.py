"""Which findings follow from which: the ``cause`` of a finding is one without which it could not be there.

    R-MISSING at frame 3        PUBLISH is not sent again, though no ACK comes
    A-MISSING at frame 3        PUBLISH is never acknowledged                      <- its cause

Both are broken rules and both count. Only what the datagrams themselves make certain is linked: findings about one
datagram, or about one request; a finding that is in doubt is no cause. Two findings that one mistake may have brought
about (no ACK and no forward of one publish) do not follow from each other. The table is at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Link(Enum):
    """What a finding and its cause have in common. Each value is a column of ``findings.CANDIDATES``."""

    DATAGRAM = "id"
    REQUEST = "key"  # its first send


@dataclass(frozen=True)
class Consequence:
    """A finding of ``rule`` follows from one of ``cause``. ``after``: if it comes later than that."""

    rule: str
    cause: str
    link: Link
    after: bool = False


class Causes:
    """The findings of a session that may be causes: `add` each that is certain, then ask for the cause `of` any."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Link, int], tuple[int, int, str]] = {}

    def add(self, row: Mapping[str, Any], finding_id: str) -> None:
        """``row`` is its candidate. Of several with one link the first in time is kept."""
        for link in _LINKS.get(row["rule"], ()):
            where = row["rule"], link, row[link.value]
            told = row["time"], row["id"], finding_id
            self._found[where] = min(told, self._found.get(where, told))

    def of(self, row: Mapping[str, Any]) -> str | None:
        """The id of the cause of a candidate; None: none is certain."""
        for one in _OF_RULE.get(row["rule"], ()):
            found = self._found.get((one.cause, one.link, row[one.link.value])) if row[one.link.value] else None
            if found is not None and (not one.after or found[0] < row["time"]):
                return found[2]
        return None


def _grouped(pairs: Iterable[tuple[str, Any]]) -> dict[str, tuple[Any, ...]]:
    groups: dict[str, dict[Any, None]] = {}
    for name, value in pairs:
        groups.setdefault(name, {})[value] = None
    return {name: tuple(values) for name, values in groups.items()}


# Of several rows of one rule the first that fits decides. No rule is on both sides: causes have no causes.
CONSEQUENCES = (
    # Nothing had to be sent again if the ACK had come.
    Consequence("R-MISSING", "A-MISSING", Link.REQUEST),
    *(
        Consequence(rule, cause, Link.REQUEST, after)
        for rule in ("R-ALTERED", "R-ALTERED-RETAIN")
        for cause, after in (("A-MISSING", False), ("A-LATE", False), ("A-MISDIRECTED", True))
    ),
    # What is passed on at once is not overtaken by what is published later.
    Consequence("D-REORDERED", "D-LATE", Link.DATAGRAM),
    # Nobody had to react to a forward that should not have been sent.
    *(
        Consequence(rule, cause, Link.DATAGRAM)
        for rule in ("A-CLIENT-MISSING", "X-LOOP", "X-COMPLETION")
        for cause in ("D-UNEXPECTED", "D-DUPLICATE", "D-MISDIRECTED", "D-AFTER-UNSUBSCRIBE")
    ),
)
_OF_RULE = _grouped((one.rule, one) for one in CONSEQUENCES)
_LINKS = _grouped((one.cause, one.link) for one in CONSEQUENCES)

"""Findings: rows of data about places where a rule is broken, or where the capture cannot tell.

A step collects *candidates* (`Candidates.add`) while it judges some keys of a session. Whether one is certain may
depend on evidence about the whole session; `Settled` decides when all of that is known. `reports/` makes sentences.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...tables.schemas import DETAIL, FINDINGS
from ..rulebook.catalogue import level_of
from ..session.events import Col, Events, capture_and_frame
from ..session.facts import SessionFacts
from .evidence import CAPTURE_LOST, CUT, reason_of
from .reasons import NOT_KNOWN_TO_BROKER

Integers = NDArray[np.int64]
FAIL, INCONCLUSIVE = "fail", "inconclusive"
MOST_RELATED = 20

# ``doubt``: why it is inconclusive, null if nothing speaks against it. ``unless``: bits of evidence that make it so.
# ``key``: what else may decide about it (see `Settled`); of rules in `causes` the first send of the request that it is
# about, 0 for none.
CANDIDATES = pa.schema(
    [
        ("rule", pa.string()),
        ("doubt", pa.string()),
        ("unless", pa.int64()),
        ("key", pa.int64()),
        ("id", pa.int64()),
        ("time", pa.int64()),
        ("related", pa.list_(pa.int64())),
        ("client", pa.string()),
        ("topic", pa.string()),
        ("detail", DETAIL),
    ]
)
COUNTS = pa.schema([("rule", pa.string()), ("checked", pa.int64())])
_OF_ACKS = ("A-MISSING", "R-MISSING", "A-DUPLICATE", "A-UNSOLICITED", "A-ACK-OF-ACK")
# Rules that look at one datagram only, or at what is there: frames that the capture has lost change nothing.
_NOT_OF_LOSS = ("W-", "P-", "N-", "R-A")


@dataclass
class Candidates:
    """``checked`` counts by rule what could have been wrong."""

    events: Events
    facts: SessionFacts
    checked: Counter[str] = field(default_factory=Counter)
    rows: list[tuple[object, ...]] = field(default_factory=list)

    def check(self, rule: str, rows: Integers | int) -> None:
        """So many occasions for a rule to be broken."""
        self.checked[rule] += rows if isinstance(rows, int) else len(rows)

    def add(
        self,
        rule: str,
        row: int,
        detail: Mapping[str, object] | None = None,
        related: Iterable[int] = (),
        doubt: str | None = None,
        unless: int = 0,
        key: int = 0,
        topic: str | None = None,
        client: str | None = None,
    ) -> None:
        """One finding at a row of the events; ``related`` are ids of datagrams."""
        events = self.events
        unless |= 0 if rule.startswith("W-") else CUT
        unless |= 0 if rule.startswith(_NOT_OF_LOSS) else CAPTURE_LOST
        own = int(events[Col.ID][row])
        others = [int(one) for one in dict.fromkeys(related) if one >= 0 and one != own]
        self.rows.append(
            (
                rule,
                doubt,
                unless,
                key,
                own,
                int(events[Col.TIME][row]),
                others[:MOST_RELATED],
                client if client is not None else events.client(row),
                topic if topic is not None else self._topic(row),
                dict(detail or {}),
            )
        )

    def _topic(self, row: int) -> str | None:
        """The topic of a message; of a number that has a name both: ``home/kitchen (1)``."""
        text = self.events.text("topic", row)
        name = self.facts.bindings.texts.get(int(self.events[Col.NAME][row]))
        return f"{name} ({text})" if name is not None and name != text else text

    def ids(self, rows: Iterable[int]) -> list[int]:
        """Ids of rows of the events."""
        return [int(self.events[Col.ID][row]) for row in rows]

    def table(self) -> pa.Table:
        columns = list(zip(*self.rows, strict=True)) if self.rows else [()] * len(CANDIDATES)
        arrays = [pa.array(list(one), kind.type) for one, kind in zip(columns, CANDIDATES, strict=True)]
        return pa.table(arrays, schema=CANDIDATES)

    def counts(self) -> pa.Table:
        return pa.table([list(self.checked), list(self.checked.values())], schema=COUNTS)


@dataclass(frozen=True)
class Settled:
    """What decides about candidates in the end.

    bits     evidence about the whole session
    served   keys of subscriptions that got all of something; None: that does not matter in this dialect
    astray   ids of ACKs that went to the wrong client, and of the requests that they were meant for: these ACKs are no
             others', and nothing is missing
    """

    bits: int
    served: frozenset[int] | None = None
    astray: frozenset[int] = frozenset()

    def rows(self, candidates: pa.Table, facts: SessionFacts) -> pa.Table:
        """``FINDINGS``, in the order of time; what the dialect has switched off is left out."""
        found: list[tuple[dict[str, Any], dict[str, Any]]] = []
        causes = Causes()
        for row in candidates.to_pylist():
            if row["rule"] in _OF_ACKS and row["key"] in self.astray:
                continue
            if level_of(row["rule"], facts.policy.dialect) != "off":
                made = _finding(row, self.reason(row), facts)
                found.append((row, made))
                if made["state"] == FAIL:
                    causes.add(row, made["id"])
        for row, made in found:
            made["cause"] = causes.of(row)
        told = sorted((made for _, made in found), key=lambda one: (one["time_ns"], one["frame"], one["rule"]))
        return pa.Table.from_pylist(told, FINDINGS)

    def reason(self, row: Mapping[str, Any]) -> str | None:
        """Why a candidate is inconclusive; None: it is certain."""
        if row["doubt"]:
            return str(row["doubt"])
        if row["rule"] == "D-MISSING" and self.served is not None and row["key"] not in self.served:
            return NOT_KNOWN_TO_BROKER
        bits = row["unless"] & self.bits
        return reason_of(bits) if bits else None


def _finding(row: dict[str, Any], why: str | None, facts: SessionFacts) -> dict[str, Any]:
    capture, frame = _place(row["id"], facts)
    related = [_place(one, facts) for one in row["related"]]
    return {
        "session": facts.session,
        "dialect": facts.policy.dialect.name,
        "id": _stable_id(facts.session, row["rule"], capture, frame, row["client"], row["topic"], related),
        "rule": row["rule"],
        "level": level_of(row["rule"], facts.policy.dialect),
        "state": FAIL if why is None else INCONCLUSIVE,
        "capture": capture,
        "frame": frame,
        "time_ns": row["time"],
        "related": [{"capture": one, "frame": other} for one, other in related],
        "client": row["client"],
        "topic": row["topic"],
        "detail": row["detail"],
        "reason": why,
        "cause": None,
    }


def _place(datagram: int, facts: SessionFacts) -> tuple[str, int]:
    capture, frame = capture_and_frame(datagram)
    return facts.captures[capture], frame


def _stable_id(*about: object) -> str:
    """The same for the same finding, however and wherever it was found."""
    return hashlib.sha256("\0".join(map(str, about)).encode(errors="surrogatepass")).hexdigest()[:16]


def as_list(rows: NDArray[np.int64] | Sequence[int]) -> list[int]:
    return [int(row) for row in rows]


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

"""What `check` gives: a verdict for each rule and session, findings with frames, summaries of timing and fan-out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa

from ..checker.rulebook.catalogue import RULES, applies, level_of
from ..checker.session.facts import SessionFacts
from ..checker.session.policy import Policy
from ..summaries.ack_timing import TimingSummary
from ..summaries.fanout import FanoutSummary
from ..tables.schemas import VERDICTS

PASS, FAIL, INCONCLUSIVE, NOT_EXERCISED, NOT_APPLICABLE = "pass", "fail", "inconclusive", "not exercised", "n/a"


@dataclass(frozen=True)
class RuleVerdict:
    """``checked`` counts the occasions on which the rule could have been broken."""

    id: str
    level: str
    verdict: str
    checked: int
    failed: int
    inconclusive: int


class Place(NamedTuple):
    """A datagram."""

    capture: str
    frame: int


class Cause(NamedTuple):
    """The finding that another follows from, as reports name it."""

    rule: str
    capture: str
    frame: int


@dataclass(frozen=True)
class Finding:
    """One place where a rule is broken (``fail``), or where the capture cannot tell (``inconclusive``), as a row of
    ``schemas.FINDINGS``. ``cause`` is an id; ``follows_from`` names that finding, if all of the session are known."""

    id: str
    rule: str
    level: str
    verdict: str
    capture: str
    frame: int
    time_ns: int
    related: tuple[Place, ...]
    client: str | None
    topic: str | None
    detail: Mapping[str, Any]
    reason: str | None = None
    cause: str | None = None
    follows_from: Cause | None = None

    @property
    def text(self) -> str:
        """What is wrong, in a sentence."""
        from .finding_text import finding_text

        return finding_text(self)

    @property
    def frames(self) -> tuple[int, ...]:
        """Its own frame and the related ones of the same capture."""
        return (self.frame, *(place.frame for place in self.related if place.capture == self.capture))

    def _repr_html_(self) -> str:
        from .notebook import finding_html

        return finding_html(self)


@dataclass
class SessionResult:
    """One dialect in one session. ``findings`` may be cut to a limit; ``findings_total`` is not."""

    name: str
    captures: list[str]
    dialect: str
    brokers: list[str]
    datagrams: int
    facts: dict[str, object]
    rules: list[RuleVerdict]
    findings: list[Finding]
    findings_total: int
    timing: TimingSummary
    fanout: FanoutSummary

    @property
    def verdict(self) -> str:
        """``fail`` if a rule at error level is broken; ``pass`` if none is or is open, and the broker is known and
        sends something: one that is not running breaks no rule."""
        errors = [rule.verdict for rule in self.rules if rule.level == "error"]
        if FAIL in errors:
            return FAIL
        is_heard = self.brokers and self.facts.get("broker_heard", True)
        return INCONCLUSIVE if INCONCLUSIVE in errors or not is_heard else PASS

    def _repr_html_(self) -> str:
        from .notebook import session_html

        return session_html(self)


@dataclass
class CheckResult:
    """``partial``: sentences about what could not be read; ``failed``: captures of which nothing could be, and why."""

    sessions: list[SessionResult] = field(default_factory=list)
    partial: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        from .notebook import check_html

        return check_html(self)


def verdict_rows(facts: SessionFacts, counts: pa.Table, findings: pa.Table) -> pa.Table:
    """``VERDICTS`` of one dialect of a session: a row for each rule that the dialect has not switched off."""
    checked: Counter[str] = Counter()
    for row in counts.to_pylist():
        checked[row["rule"]] += row["checked"]
    states = Counter(zip(findings.column("rule").to_pylist(), findings.column("state").to_pylist(), strict=True))
    policy, rows = facts.policy, []
    for rule in RULES:
        level = level_of(rule, policy.dialect)
        if level == "off":
            continue
        failed, inconclusive = states[rule, FAIL], states[rule, INCONCLUSIVE]
        verdict = _verdict(rule, policy, checked[rule], failed, inconclusive)
        about = (facts.session, policy.dialect.name, rule, level, verdict, checked[rule], failed, inconclusive)
        rows.append(dict(zip(VERDICTS.names, about, strict=True)))
    return pa.Table.from_pylist(rows, VERDICTS)


def verdicts(table: pa.Table, wanted: Iterable[str] = ()) -> list[RuleVerdict]:
    """From rows of ``VERDICTS``, all or those of the rules wanted."""
    chosen = set(wanted)
    columns = ("rule", "level", "verdict", "checked", "failed", "inconclusive")
    rows = [row for row in table.to_pylist() if not chosen or row["rule"] in chosen]
    return [RuleVerdict(*(row[name] for name in columns)) for row in rows]


def _verdict(rule: str, policy: Policy, checked: int, failed: int, inconclusive: int) -> str:
    if failed:
        return FAIL
    if inconclusive:
        return INCONCLUSIVE
    if applies(rule, policy) is not None:
        return NOT_APPLICABLE
    return PASS if checked else NOT_EXERCISED


def findings_of(tables: Iterable[pa.Table], wanted: Iterable[str], limit: int) -> list[Finding]:
    """In the order of frames, failures before doubts; at most ``limit``, of each rule as evenly as can be."""
    chosen = set(wanted)
    tables = list(tables)
    causes = _causes(tables)
    rows = (row for table in tables for row in table.to_pylist() if not chosen or row["rule"] in chosen)
    found = [replace(finding_of(row), follows_from=causes.get(row["cause"])) for row in rows]
    found.sort(key=lambda one: (one.verdict != FAIL, one.time_ns, one.frame, one.rule, one.client or ""))
    if len(found) <= limit:
        return found
    rank: dict[str, int] = {}
    places = []
    for one in found:
        rank[one.rule] = rank.get(one.rule, 0) + 1
        places.append(rank[one.rule])
    kept = sorted(range(len(found)), key=lambda at: (places[at], at))[:limit]
    return [found[at] for at in sorted(kept)]


def _causes(tables: Iterable[pa.Table]) -> dict[str | None, Cause]:
    """By id: the findings that others follow from, also those of rules that are not wanted."""
    columns = [table.select(["id", "rule", "capture", "frame", "cause"]) for table in tables]
    named = {one for table in columns for one in table.column("cause").to_pylist()} - {None}
    rows = (row for table in columns for row in table.to_pylist() if row["id"] in named) if named else ()
    return {row["id"]: Cause(row["rule"], row["capture"], row["frame"]) for row in rows}


def finding_of(row: dict[str, Any]) -> Finding:
    """From a row of ``FINDINGS``; of a DataFrame: ``finding_of(row.asDict(recursive=True)).text``."""
    return Finding(
        row["id"],
        row["rule"],
        row["level"],
        row["state"],
        row["capture"],
        row["frame"],
        row["time_ns"],
        tuple(Place(one["capture"], one["frame"]) for one in row["related"]),
        row["client"],
        row["topic"],
        {name: value for name, value in row["detail"].items() if value is not None},
        row["reason"],
        row["cause"],
    )

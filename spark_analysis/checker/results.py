"""What `check` gives: a verdict for each rule and session, findings with frames, summaries of timing and fan-out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from pcap_tools.dialect import Dialect

from ..ack_timing import TimingSummary
from ..fanout import FanoutSummary
from .policy import Policy
from .rules import RULES, applies, level_of

PASS, FAIL, INCONCLUSIVE, NOT_EXERCISED, NOT_APPLICABLE = "pass", "fail", "inconclusive", "not exercised", "n/a"
Counts = dict[str, tuple[int, int, int]]


@dataclass(frozen=True)
class RuleVerdict:
    """``checked`` counts the occasions on which the rule could have been broken."""

    id: str
    level: str
    verdict: str
    checked: int
    failed: int
    inconclusive: int


@dataclass(frozen=True)
class Finding:
    """One place where a rule is broken (``fail``), or where the capture cannot tell (``inconclusive``)."""

    rule: str
    level: str
    verdict: str
    capture: str
    frame: int
    time_ns: int
    related: tuple[int, ...]
    client: str | None
    topic: str | None
    text: str

    def _repr_html_(self) -> str:
        from ..reports.notebook import finding_html

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
        """``fail`` if a rule at error level is broken; ``pass`` if none is or is open, and the broker is known."""
        errors = [rule.verdict for rule in self.rules if rule.level == "error"]
        if FAIL in errors:
            return FAIL
        return INCONCLUSIVE if INCONCLUSIVE in errors or not self.brokers else PASS

    def _repr_html_(self) -> str:
        from ..reports.notebook import session_html

        return session_html(self)


@dataclass
class CheckResult:
    """``partial``: sentences about what could not be read; ``failed``: captures of which nothing could be, and why."""

    sessions: list[SessionResult] = field(default_factory=list)
    partial: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        from ..reports.notebook import check_html

        return check_html(self)


def verdicts(counts: Counts, dialect: Dialect, wanted: Iterable[str] = ()) -> list[RuleVerdict]:
    """One for each rule of the catalogue, or of those wanted."""
    policy, chosen = Policy(dialect), set(wanted) or set(RULES)
    found = []
    for rule in RULES:
        level = level_of(rule, dialect)
        if rule not in chosen or level == "off":
            continue
        checked, failed, inconclusive = counts.get(rule, (0, 0, 0))
        found.append(
            RuleVerdict(
                rule, level, _verdict(rule, policy, checked, failed, inconclusive), checked, failed, inconclusive
            )
        )
    return found


def _verdict(rule: str, policy: Policy, checked: int, failed: int, inconclusive: int) -> str:
    if failed:
        return FAIL
    if inconclusive:
        return INCONCLUSIVE
    if applies(rule, policy) is not None:
        return NOT_APPLICABLE
    return PASS if checked else NOT_EXERCISED


def added(parts: Iterable[Counts]) -> Counts:
    """Counts of several parts as those of the whole."""
    total: Counts = {}
    for part in parts:
        for rule, numbers in part.items():
            before = total.get(rule, (0, 0, 0))
            total[rule] = (before[0] + numbers[0], before[1] + numbers[1], before[2] + numbers[2])
    return total


def findings_of(tables: Iterable[pa.Table], dialect: Dialect, wanted: Iterable[str], limit: int) -> list[Finding]:
    """In the order of frames, failures before doubts; at most ``limit``, of each rule as evenly as can be."""
    chosen = set(wanted)
    found = [
        Finding(
            row["rule"],
            level_of(row["rule"], dialect),
            row["verdict"],
            row["capture"],
            row["frame"],
            row["time_ns"],
            tuple(row["related"]),
            row["client"],
            row["topic"],
            row["text"],
        )
        for table in tables
        for row in table.to_pylist()
        if not chosen or row["rule"] in chosen
    ]
    found = [one for one in found if one.level != "off"]
    found.sort(key=lambda one: (one.verdict != FAIL, one.time_ns, one.frame, one.rule))
    if len(found) <= limit:
        return found
    rank: dict[str, int] = {}
    places = []
    for one in found:
        rank[one.rule] = rank.get(one.rule, 0) + 1
        places.append(rank[one.rule])
    kept = sorted(range(len(found)), key=lambda at: (places[at], at))[:limit]
    return [found[at] for at in sorted(kept)]

"""Two runs side by side: which findings are new and which are gone, and what has become of rules, ACKs and fan-out.

>>> old, new = check(["monday.pcap"]), check(["tuesday.pcap"])                         # doctest: +SKIP
>>> [run.findings.new for run in compare(old, new)]                                    # doctest: +SKIP

Frame numbers, ports and file names change from run to run. So findings are taken for the same if they have the same id,
and else if dialect, rule, verdict, host and topic are the same; of those that are equal in all of this as many are the
same as there are in both runs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pcap_tools.errors import TopicsharkError, UsageError

from ..summaries.ack_timing import TimingSummary
from ..summaries.fanout import FanoutSummary
from .safe_text import all_shown
from .verdicts import CheckResult, Finding, SessionResult

Key = tuple[str, ...]
_ORDER = ("fail", "inconclusive", "pass")


@dataclass(frozen=True)
class KnownFinding:
    """A finding of either run, as far as it is compared and shown."""

    id: str
    dialect: str
    rule: str
    level: str
    verdict: str
    capture: str
    frame: int
    client: str | None
    topic: str | None
    text: str

    @property
    def key(self) -> Key:
        """The same for the same mistake in another run."""
        host = (self.client or "").rpartition(":")[0]
        return self.dialect, self.rule, self.verdict, host, str(self.topic)

    @property
    def is_error(self) -> bool:
        """It is certain, and breaks a rule of level error."""
        return self.verdict == "fail" and self.level == "error"


def known_finding(dialect: str, finding: Finding) -> KnownFinding:
    """What is compared of it."""
    return KnownFinding(
        finding.id, dialect, finding.rule, finding.level, finding.verdict, finding.capture, finding.frame,
        finding.client, finding.topic, finding.text,
    )  # fmt: skip


@dataclass(frozen=True)
class Changes:
    """Of findings: those only in the new run, those only in the old one, and how many are in both."""

    new: list[KnownFinding] = field(default_factory=list)
    gone: list[KnownFinding] = field(default_factory=list)
    same: int = 0

    @property
    def is_worse(self) -> bool:
        """A rule of level error is broken where it was not."""
        return any(one.is_error for one in self.new)


def changes(old: Iterable[KnownFinding], new: Sequence[KnownFinding]) -> Changes:
    """
    >>> changes([], []).is_worse
    False
    """
    before = list(old)
    ids = {one.id for one in before} & {one.id for one in new}
    left = [one for one in before if one.id not in ids]
    room = Counter(one.key for one in left)
    found, matched = [], Counter[Key]()
    for one in new:
        if one.id in ids:
            continue
        if room[one.key] > matched[one.key]:
            matched[one.key] += 1
        else:
            found.append(one)
    gone = []
    for one in left:
        if matched[one.key]:
            matched[one.key] -= 1
        else:
            gone.append(one)
    return Changes(found, gone, len(new) - len(found))


def read_baseline(path: Path) -> list[KnownFinding]:
    """All findings of an output of `check --format json`. Raises `TopicsharkError` if it is none, and `UsageError` if
    it does not list all that it counts."""
    try:
        told = json.loads(path.read_text())
        sessions = told["sessions"]
        found = [_read(session["dialect"], one) for session in sessions for one in session["findings"]]
        total = sum(int(session["findings_total"]) for session in sessions)
    except OSError as error:
        raise TopicsharkError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise TopicsharkError(f"{path}: not an output of topicshark check --format json: {error!r}") from error
    if total > len(found):
        raise UsageError(f"{path}: lists {len(found):,} of its {total:,} findings; make it again with --limit {total}")
    return found


def _read(dialect: str, told: dict[str, Any]) -> KnownFinding:
    names = ("id", "rule", "level", "verdict", "capture", "text")
    client, topic = (None if told[name] is None else str(told[name]) for name in ("client", "topic"))
    about = {name: str(told[name]) for name in names}
    return KnownFinding(dialect=str(dialect), frame=int(told["frame"]), client=client, topic=topic, **about)


def since_baseline(old: Iterable[KnownFinding], result: CheckResult) -> Changes:
    """What has changed; the result needs all findings. Texts are compared as JSON has them."""
    found = [known_finding(session.dialect, one) for session in result.sessions for one in session.findings]
    return changes(old, [_read(one.dialect, all_shown(asdict(one))) for one in found])


@dataclass(frozen=True)
class Run:
    """All sessions of one dialect in one run."""

    sessions: int = 0
    datagrams: int = 0
    verdict: str = "not there"
    rules: dict[str, tuple[int, int, int]] = field(default_factory=dict)  # checked, failed, inconclusive
    timing: TimingSummary = field(default_factory=TimingSummary)
    fanout: FanoutSummary = field(default_factory=FanoutSummary)

    @classmethod
    def of(cls, sessions: Sequence[SessionResult]) -> Run:
        if not sessions:
            return cls()
        rules: dict[str, tuple[int, int, int]] = {}
        for rule in (rule for session in sessions for rule in session.rules):
            before = rules.get(rule.id, (0, 0, 0))
            rules[rule.id] = (before[0] + rule.checked, before[1] + rule.failed, before[2] + rule.inconclusive)
        return cls(
            len(sessions),
            sum(session.datagrams for session in sessions),
            min((session.verdict for session in sessions), key=_ORDER.index),
            rules,
            TimingSummary.merged(session.timing for session in sessions),
            FanoutSummary.merged(session.fanout for session in sessions),
        )


@dataclass(frozen=True)
class Comparison:
    """One dialect in both runs."""

    dialect: str
    old: Run
    new: Run
    findings: Changes

    def changed_rules(self) -> list[str]:
        """Those that are broken, or in doubt, more or less often; in the order of the rulebook."""
        names = dict.fromkeys([*self.old.rules, *self.new.rules])
        none = (0, 0, 0)
        return [name for name in names if self.old.rules.get(name, none)[1:] != self.new.rules.get(name, none)[1:]]

    def kinds(self) -> list[tuple[str, str]]:
        """Who asks, and the kind of request, of all that is acknowledged in either run."""
        rows = [*self.old.timing.kinds(), *self.new.timing.kinds()]
        return list(dict.fromkeys((row["asks"], row["kind"]) for row in rows))

    def timing(self, asks: str, kind: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """The rows of ``TimingSummary.kinds`` of both runs."""
        both = []
        for run in (self.old, self.new):
            rows = (row for row in run.timing.kinds() if (row["asks"], row["kind"]) == (asks, kind))
            both.append(next(rows, None))
        return both[0], both[1]


def compare(old: CheckResult, new: CheckResult) -> list[Comparison]:
    """By dialect, in the order in which they are met. Both results need all findings and their summaries."""
    dialects = dict.fromkeys(session.dialect for session in (*old.sessions, *new.sessions))
    return [_of_dialect(name, old, new) for name in dialects]


def _of_dialect(dialect: str, old: CheckResult, new: CheckResult) -> Comparison:
    sides = [[session for session in result.sessions if session.dialect == dialect] for result in (old, new)]
    known = [[known_finding(dialect, one) for session in side for one in session.findings] for side in sides]
    return Comparison(dialect, Run.of(sides[0]), Run.of(sides[1]), changes(*known))

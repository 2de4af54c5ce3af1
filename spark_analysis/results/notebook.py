"""What `check` gives as a notebook shows it: small tables, bounded, in which nothing from a packet becomes markup.

>>> FindingTable(session.findings)          # doctest: +SKIP

Sessions, findings and results show themselves; `FindingTable` is for a list of findings chosen by hand. Captures are
named without their folders: a notebook is passed on, and where files lay on one machine is nobody's business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from os.path import basename
from typing import TYPE_CHECKING

from pcap_tools.html_table import paragraph, table

from .finding_notes import doubt, follows, related_frames

if TYPE_CHECKING:
    from .verdicts import CheckResult, Finding, SessionResult

MOST_ROWS = 20
MOST_FRAMES = 8
_FINDING = ("rule", "level", "verdict", "capture", "frame", "related", "client", "topic", "what is wrong")


@dataclass(frozen=True)
class FindingTable:
    """Findings, one row each; the first ``most`` of them."""

    findings: Sequence[Finding]
    most: int = MOST_ROWS

    def _repr_html_(self) -> str:
        return table(_FINDING, [_row(one) for one in self.findings[: self.most]]) + _more(
            len(self.findings), self.most, "findings"
        )


def finding_html(finding: Finding) -> str:
    """One finding, a line for each thing known of it."""
    return table(("finding", finding.rule), list(zip(_FINDING[1:], _row(finding)[1:], strict=True)))


def session_html(session: SessionResult) -> str:
    """The verdict, the rules that are broken or open, and the first findings."""
    broken = [rule for rule in session.rules if rule.verdict in ("fail", "inconclusive")]
    counts = Counter(rule.verdict for rule in session.rules)
    parts = [
        paragraph(f"{session.name}: {session.verdict}", _about(session)),
        paragraph("Rules:", ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))),
    ]
    if broken:
        rows = [(one.id, one.level, one.verdict, one.checked, one.failed, one.inconclusive) for one in broken]
        parts.append(table(("rule", "level", "verdict", "checked", "failed", "inconclusive"), rows))
    if session.findings:
        parts.append(FindingTable(session.findings, MOST_ROWS // 2)._repr_html_())
    return "".join(parts)


def check_html(result: CheckResult) -> str:
    """One session in full; of several one row each."""
    if len(result.sessions) == 1:
        parts = [session_html(result.sessions[0])]
    else:
        rows = [_session_row(one) for one in result.sessions[:MOST_ROWS]]
        header = ("session", "dialect", "datagrams", "verdict", "broken rules")
        parts = [table(header, rows), _more(len(result.sessions), MOST_ROWS, "sessions")]
    captures = [capture for session in result.sessions for capture in session.captures]
    parts += [paragraph("Read in part:", _unplaced(one, captures)) for one in result.partial[:MOST_ROWS]]
    parts += [paragraph("Not read:", _unplaced(why, [name])) for name, why in list(result.failed.items())[:MOST_ROWS]]
    return "".join(parts)


def _about(session: SessionResult) -> str:
    captures = _some([basename(one) for one in session.captures])
    broker = f"broker {_some(session.brokers)}" if session.brokers else "no broker found"
    return f"{session.dialect}; {broker}; {session.datagrams:,} datagrams; {captures}"


def _session_row(session: SessionResult) -> tuple[object, ...]:
    broken = [f"{rule.id} ({rule.failed})" for rule in session.rules if rule.verdict == "fail"]
    return session.name, session.dialect, session.datagrams, session.verdict, ", ".join(broken)


def _row(finding: Finding) -> tuple[object, ...]:
    place = (basename(finding.capture), str(finding.frame), related_frames(finding, MOST_FRAMES))
    unsure = f" ({doubt(finding)})" if doubt(finding) else ""
    said = finding.text + unsure + (f"; {follows(finding)}" if finding.follows_from else "")
    return (finding.rule, finding.level, finding.verdict, *place, finding.client, finding.topic, said)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_FRAMES} more" if len(names) > MOST_FRAMES else ""
    return ", ".join(names[:MOST_FRAMES]) + more


def _more(total: int, shown: int, what: str) -> str:
    return paragraph(f"… and {total - shown:,} more {what}") if total > shown else ""


def _unplaced(sentence: str, captures: Sequence[str]) -> str:
    """A sentence that begins with the path of a capture, without the folders."""
    path = next((one for one in captures if sentence.startswith(one)), "")
    return basename(path) + sentence.removeprefix(path)

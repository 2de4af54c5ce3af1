"""Sequence diagrams of the frames around findings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...plots.sequence import Arrow, after, sequence
from ...results.finding_notes import other_capture
from ...results.frame_context import frames_near
from ..faults import worst_first
from .model import Diagram, Table, short
from .pictures import picture

if TYPE_CHECKING:
    from pcap_tools.codec.detect import Dialects

    from ...results.verdicts import Finding, SessionResult
    from ...sessions.ingested import Sources

# What did not come, where a rule says so: words, and whether the broker owes it.
_ABSENT = {
    "A-MISSING": ("no ACK", True),
    "A-STATUS-MISSING": ("no status message", True),
    "A-CLIENT-MISSING": ("no ACK", False),
    "R-MISSING": ("not sent again", False),
    "D-MISSING": ("not passed on", True),
    "T-MISSING": ("no retained message", True),
    "T-CLEARED": ("no retained message", True),
}


def diagrams_of(session: SessionResult, sources: Sources, dialects: Dialects, most: int) -> dict[str, list[Diagram]]:
    """By rule: one diagram of the first finding of each that is broken or in doubt, worst first, ``most`` in all."""
    rules = [rule.id for verdict in ("fail", "inconclusive") for rule in worst_first(session.rules, verdict)]
    firsts = [found for rule in rules if (found := _first(session.findings, rule)) is not None][:most]
    near = frames_near(sources, dialects, firsts, session.brokers)
    return {
        finding.rule: [_diagram(finding, rows, session)] for finding, rows in zip(firsts, near, strict=True) if rows
    }


def _first(findings: Sequence[Finding], rule: str) -> Finding | None:
    own = [one for one in findings if one.rule == rule]
    return min(own, key=lambda one: (one.verdict != "fail", one.time_ns, one.frame), default=None)


def _diagram(finding: Finding, rows: Sequence[dict[str, Any]], session: SessionResult) -> Diagram:
    marked = {(finding.capture, finding.frame), *finding.related}
    arrows = [
        Arrow(
            row["frame"],
            row["time_ns"],
            row["source"],
            row["target"],
            other_capture(row["capture"], finding) + said_by(row),
            (row["capture"], row["frame"]) in marked,
        )
        for row in rows
    ]
    arrows += _absent(finding, arrows, session.brokers)
    caption = f"Around frame {finding.frame}: {short(finding.text)}"
    alt = (
        f"Sequence diagram of {len(rows)} frames around frame {finding.frame}; the table below says the same in words."
    )
    brokers, zero = session.brokers, finding.time_ns
    drawn = picture(partial(sequence, arrows, brokers, zero_ns=zero), alt)
    return Diagram(caption, drawn, _frames(arrows, brokers, zero))


def said_by(row: dict[str, Any]) -> str:
    """A message in a few words."""
    if row["error"] is not None:
        return f"{row['message'] or 'datagram'} in error: {row['error']}"
    about = row["topic"] if row["topic"] is not None else row["filter"]
    words = [row["message"], about, "retain" if row["retain"] else None]
    text = " ".join(short(word, 60) for word in words if word)
    return f"{text} = {short(row['payload'], 40)}" if row["payload"] else text


def _absent(finding: Finding, arrows: Sequence[Arrow], brokers: Sequence[str]) -> list[Arrow]:
    """What should have come, if the finding says that something did not."""
    ends = {end for one in arrows for end in (one.source, one.target)}
    broker = next((one for one in brokers if one in ends), None)
    if finding.rule not in _ABSENT or broker is None or finding.client is None or finding.client in brokers:
        return []
    text, owes_broker = _ABSENT[finding.rule]
    text = text if finding.verdict == "fail" else f"{text}, as far as seen"
    source, target = (broker, finding.client) if owes_broker else (finding.client, broker)
    return [Arrow(None, arrows[-1].time_ns, source, target, text)]


def _frames(arrows: Sequence[Arrow], brokers: Sequence[str], zero_ns: int) -> Table:
    rows = [
        (
            "-" if one.frame is None else str(one.frame),
            "" if one.frame is None else after(one.time_ns - zero_ns),
            _end(one.source, brokers),
            _end(one.target, brokers),
            short(one.text) + (" (part of the finding)" if one.is_marked else ""),
        )
        for one in arrows
    ]
    return Table(
        "The frames in words",
        ("frame", "after", "from", "to", "message"),
        rows,
        0,
        frozenset({0, 1}),
        wide=frozenset({4}),
    )


def _end(end: str, brokers: Sequence[str]) -> str:
    return f"broker {short(end, 60)}" if end in brokers else short(end, 60)

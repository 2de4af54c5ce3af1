"""Findings as comments on the packets that they are about: what `annotate` puts into a capture.

One comment a finding, since Wireshark makes a line of its expert information of each. A frame with very many gets the
gravest ones, and a last comment that counts the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pcap_tools.escaping import shorten

from ..results.finding_notes import doubt, follows, related_frames
from ..results.safe_text import shown

if TYPE_CHECKING:
    from ..results.verdicts import Finding

MOST_ON_A_FRAME = 20
LONGEST = 1_000  # characters of a sentence; topics in it come from packets and may have thousands
_LEVELS = ("error", "warning", "note")


def packet_comments(findings: Iterable[Finding]) -> dict[int, tuple[str, ...]]:
    """Comments by frame, of the findings of one capture."""
    by_frame: dict[int, list[Finding]] = {}
    for finding in findings:
        by_frame.setdefault(finding.frame, []).append(finding)
    return {frame: _comments(found) for frame, found in by_frame.items()}


def _comments(findings: Sequence[Finding]) -> tuple[str, ...]:
    ordered = sorted(findings, key=lambda one: (one.verdict != "fail", _LEVELS.index(one.level), one.rule))
    texts = [comment(one) for one in ordered[:MOST_ON_A_FRAME]]
    rest = Counter(one.rule for one in ordered[MOST_ON_A_FRAME:])
    if rest:
        rules = ", ".join(f"{shown(rule)} {count:,}" for rule, count in rest.items())
        texts.append(f"topicshark: and {rest.total():,} more findings about this frame ({rules})")
    return tuple(dict.fromkeys(texts))


def comment(finding: Finding) -> str:
    """``topicshark A-MISSING (error): PUBLISH is never acknowledged, ... (related: frames 166, 277)``."""
    unsure = f", {doubt(finding)}" if doubt(finding) else ""
    said = f"topicshark {shown(finding.rule)} ({finding.level}{unsure}): {shorten(shown(finding.text), LONGEST)}"
    notes = [f"related: {related_frames(finding)}"] if finding.related else []
    notes += [follows(finding)] if finding.follows_from else []
    return f"{said} ({'; '.join(notes)})" if notes else said

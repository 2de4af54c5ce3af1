"""What all tables of grades tell of a submission, in words. All of it is safe to print, whatever a packet brought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from os.path import basename
from typing import TYPE_CHECKING

from pcap_tools.escaping import shorten

from ...results.finding_notes import whose
from ...results.grades import VERDICTS
from ...results.safe_text import shown

if TYPE_CHECKING:
    from ...results.grades import Grade
    from ...results.verdicts import Finding

SENTENCE = 300  # characters: a topic may have thousands
MOST_PROBLEMS = 5


def dialect(grade: Grade) -> str:
    return shown(", ".join(grade.dialects))


def broken(grade: Grade) -> str:
    """``A-MISSING 6, R-EARLY 1 (warning)``."""
    levels = {"error": ""}
    return ", ".join(f"{one.id} {one.count}{levels.get(one.level, f' ({one.level})')}" for one in grade.broken)


def first(grade: Grade) -> str:
    return sentence(grade.first) if grade.first else ""


def sentence(finding: Finding) -> str:
    """``run.pcap frame 23: PUBLISH is never acknowledged [home/x, 10.0.0.2:50000] (A-MISSING)``."""
    text = shorten(shown(finding.text), SENTENCE)
    rule = shown(finding.rule) if finding.verdict == "fail" else f"{shown(finding.rule)}, cannot tell"
    where = f"{shown(basename(finding.capture))} frame {finding.frame}"
    return f"{where}: {text}{whose(finding, SENTENCE // 3)} ({rule})"


def problems(grade: Grade, most: int = MOST_PROBLEMS) -> list[str]:
    told = [shorten(shown(one), SENTENCE) for one in grade.problems[:most]]
    more = len(grade.problems) - len(told)
    return [*told, f"… and {more:,} more"] if more else told


def summary(grades: Sequence[Grade]) -> str:
    """``6 submissions: 2 pass, 3 fail, 1 unreadable``."""
    counts = Counter(one.verdict for one in grades)
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    return f"{len(grades):,} submission{'s' if len(grades) != 1 else ''}: {parts}"

"""Two runs side by side as one self-contained HTML page: `comparison_page`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from os.path import basename
from typing import TYPE_CHECKING

from ...plots import comparison as plots
from ..columns import cell
from ..comparison import COUNTS, change_sentence, tables
from .model import Measures, Table, short
from .page import rendered
from .pictures import picture

if TYPE_CHECKING:
    from ...results.comparing import Changes, Comparison

MOST_FINDINGS = 20


@dataclass(frozen=True)
class DialectSection:
    """One dialect in both runs; ``old`` and ``new`` are verdicts."""

    dialect: str
    sentence: str
    old: str
    new: str
    findings: list[Table]
    measures: Measures


@dataclass(frozen=True)
class ComparisonPage:
    """The whole."""

    title: str
    old: str
    new: str
    version: str
    dialects: list[DialectSection]


def comparison_page(compared: Sequence[Comparison], names: tuple[str, str], most: int = MOST_FINDINGS) -> str:
    """``names`` of the two runs; ``most`` findings of either kind are shown."""
    worse = sum(len([one for one in each.findings.new if one.is_error]) for each in compared)
    title = f"{worse:,} new findings at error level" if worse else "No new findings at error level"
    old, new = (short(name, 200) for name in names)
    return rendered(
        "comparison.html.j2",
        ComparisonPage(title, old, new, version("topicshark"), [_dialect(one, most) for one in compared]),
    )


def _dialect(one: Comparison, most: int) -> DialectSection:
    drawings = [
        (partial(plots.round_trips, one.old.timing, one.new.timing), "Share of requests acknowledged within a time"),
        (partial(plots.copies, one.old.fanout, one.new.fanout, COUNTS[1:]), "Copies of messages in both runs"),
    ]
    made = [
        Table(caption, header, [tuple(cell(value) for value in row) for row in rows], codes=frozenset({0}))
        for caption, header, rows in tables(one)
        if rows
    ]
    return DialectSection(
        short(one.dialect, 60),
        f"{change_sentence(one.findings, 'A')}.",
        one.old.verdict,
        one.new.verdict,
        _findings(one.findings, most),
        Measures([], [picture(draw, alt) for draw, alt in drawings], made),
    )


def _findings(found: Changes, most: int) -> list[Table]:
    made = []
    for caption, findings in (("New in B", found.new), ("Gone in B", found.gone)):
        rows = [
            (
                each.rule,
                each.level if each.verdict == "fail" else each.verdict,
                short(basename(each.capture), 40),
                str(each.frame),
                short(each.text),
                short(each.topic or "", 60),
                short(each.client or "", 60),
            )
            for each in findings[:most]
        ]
        if rows:
            header = ("rule", "level", "capture", "frame", "finding", "topic", "client")
            more = len(findings) - len(rows)
            made.append(Table(caption, header, rows, more, frozenset({3}), frozenset({0, 5, 6}), frozenset({4})))
    return made

"""Grades for a terminal: a table with one row a submission, and below it what to look at first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...results.safe_text import shown
from ..columns import aligned
from . import cells

if TYPE_CHECKING:
    from ...results.grades import Grade

_HEADER = ("submission", "dialect", "captures", "datagrams", "verdict", "errors", "broken rules")


def lines(grades: Sequence[Grade]) -> Iterator[str]:
    rows = [
        (
            one.submission,
            cells.dialect(one) or None,
            one.captures,
            one.datagrams,
            one.verdict,
            one.errors,
            cells.broken(one),
        )
        for one in grades
    ]
    yield from aligned(_HEADER, rows, indent="")
    told = [one for one in grades if one.first or one.problems]
    for one in told:
        yield ""
        yield f"{shown(one.submission)}: {one.verdict}"
        if one.first:
            yield f"  {cells.first(one)}"
        for problem in cells.problems(one):
            yield f"  problem: {problem}"
    yield ""
    yield cells.summary(grades)

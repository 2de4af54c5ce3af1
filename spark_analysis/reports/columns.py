"""Tables for a terminal: columns as wide as what is in them, numbers to the right."""

from __future__ import annotations

from collections.abc import Sequence

from pcap_tools.escaping import shorten

from ..results.safe_text import shown

WIDEST = 60


def aligned(header: Sequence[str], rows: Sequence[Sequence[object]], indent: str = "  ") -> list[str]:
    """
    >>> aligned(("topic", "copies"), [("home/x", 1200), ("b", None)], "")
    ['topic   copies', 'home/x   1,200', 'b            -']
    """
    cells = [[cell(value) for value in row] for row in rows]
    widths = [max(len(row[at]) for row in [list(header), *cells]) for at in range(len(header))]
    right = [any(isinstance(row[at], int | float) for row in rows) for at in range(len(header))]
    return [
        indent
        + "  ".join(_placed(text, width, to) for text, width, to in zip(row, widths, right, strict=True)).rstrip()
        for row in [list(header), *cells]
    ]


def cell(value: object) -> str:
    """
    >>> cell(1200), cell(0.5), cell(None)
    ('1,200', '0.500', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.3f}"
    return f"{value:,}" if isinstance(value, int) else shorten(shown(str(value)), WIDEST)


def _placed(text: str, width: int, to_the_right: bool) -> str:
    return text.rjust(width) if to_the_right else text.ljust(width)

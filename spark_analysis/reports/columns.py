"""Tables for a terminal: columns as wide as what is in them, numbers to the right."""

from __future__ import annotations

from collections.abc import Sequence

from pcap_tools.escaping import shorten

from .safe_text import shown

WIDEST = 60


def aligned(header: Sequence[str], rows: Sequence[Sequence[object]], indent: str = "  ") -> list[str]:
    """
    >>> aligned(("topic", "copies"), [("home/x", 1200), ("b", None)], "")
    ['topic   copies', 'home/x   1,200', 'b            -']
    """
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(row[at]) for row in [list(header), *cells]) for at in range(len(header))]
    right = [any(isinstance(row[at], int | float) for row in rows) for at in range(len(header))]
    return [
        indent
        + "  ".join(_placed(cell, width, to) for cell, width, to in zip(row, widths, right, strict=True)).rstrip()
        for row in [list(header), *cells]
    ]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.3f}"
    return f"{value:,}" if isinstance(value, int) else shorten(shown(str(value)), WIDEST)


def _placed(cell: str, width: int, to_the_right: bool) -> str:
    return cell.rjust(width) if to_the_right else cell.ljust(width)

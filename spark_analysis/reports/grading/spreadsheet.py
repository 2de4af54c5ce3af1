"""Grades as CSV by RFC 4180, safe to open in a spreadsheet.

Students choose the names of folders and topics: a cell that a spreadsheet would take for a formula gets an apostrophe
in front, which it shows as text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...results.safe_text import shown
from . import cells

if TYPE_CHECKING:
    from ...results.grades import Grade

HEADER = (
    "submission",
    "dialect",
    "captures",
    "datagrams",
    "verdict",
    "errors",
    "broken rules",
    "first finding",
    "problems",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(grades: Sequence[Grade]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(HEADER)
    for one in grades:
        texts = (cells.broken(one), cells.first(one), "; ".join(cells.problems(one)))
        row = (one.submission, cells.dialect(one), one.captures, one.datagrams, one.verdict, one.errors, *texts)
        writer.writerow([_safe(value) if isinstance(value, str) else value for value in row])
    return out.getvalue()


def _safe(text: str) -> str:
    """
    >>> _safe("=1+1"), _safe("anna")
    ("'=1+1", 'anna')
    """
    return shown(f"'{text}" if text.startswith(_FORMULA) else text)

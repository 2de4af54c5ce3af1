"""Figures in docs/performance.md come from runs: a benchmark with ``--write`` replaces the lines between its marks."""

from __future__ import annotations

from pathlib import Path

from pcap_tools.errors import UsageError

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"


def write_part(name: str, text: str) -> None:
    """Put the text between the marks of ``benchmarks.<name>``."""
    first, last = f"<!-- {name}: written by benchmarks.{name} -->", f"<!-- {name}: end -->"
    page = PAGE.read_text()
    begin, end = page.find(first), page.find(last)
    if not 0 <= begin < end:
        raise UsageError(f"{PAGE}: the lines {first} and {last} are missing")
    PAGE.write_text(page[: begin + len(first)] + "\n" + text + "\n" + page[end:])

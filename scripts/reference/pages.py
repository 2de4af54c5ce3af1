"""Which pages there are, and what makes each."""

from collections.abc import Callable
from pathlib import Path

from scripts.reference import commands, dialect_format, exit_codes, lua_fields, schemas
from spark_analysis.checker.rulebook.page import page as rules_page

REPO = Path(__file__).resolve().parent.parent.parent

PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/command.md": commands.page,
    "docs/reference/dialect-format.md": dialect_format.page,
    "docs/reference/exit-codes.md": exit_codes.page,
    "docs/reference/lua-fields.md": lua_fields.page,
    "docs/reference/schemas.md": schemas.page,
    "docs/rules.md": rules_page,
}


def stale() -> list[str]:
    """Pages that are not what the code says now, or are not there."""
    return [name for name, page in PAGES.items() if _text(REPO / name) != page()]


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None

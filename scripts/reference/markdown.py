"""Tables and notes of Markdown, as GitHub shows them."""

from collections.abc import Iterable, Sequence

MADE = "<!-- Made by `python -m scripts.reference`: change the code, not this page. -->"


def cell(text: str) -> str:
    """A text that stays in its cell; what looks like a tag outside of code is shown and not taken for one."""
    parts = " ".join(text.split()).replace("|", "\\|").split("`")
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell(one) for one in line) + " |" for line in lines) + "\n"


def code(text: str) -> str:
    return f"`{text}`" if text else ""

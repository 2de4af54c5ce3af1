"""Small HTML tables for notebooks. Whatever stands in a cell stays text: packets and file names are hostile.

>>> print(table(("topic", "copies"), [("<b>", 1200)]))                              # doctest: +NORMALIZE_WHITESPACE
<table class="tex2jax_ignore mathjax_ignore"><thead><tr><th>topic</th><th>copies</th></tr></thead><tbody><tr>
<td>&lt;b&gt;</td><td>1,200</td></tr></tbody></table>
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from pcap_tools.escaping import escape_text, shorten

WIDEST = 300  # characters of a cell: a topic may have thousands
NO_MATH = 'class="tex2jax_ignore mathjax_ignore"'  # Jupyter would typeset what stands between two dollars


def cell(value: object) -> str:
    """One value as text that is no markup; decoders have escaped theirs, so only what cannot be printed is escaped."""
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = str(value)
    return escape(shorten(text if text.isprintable() else escape_text(text), WIDEST))


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A row of names above rows of values."""
    head = "".join(f"<th>{cell(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table {NO_MATH}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def paragraph(label: str, text: object = "") -> str:
    """A line above or below a table, with its beginning in bold."""
    return f"<p {NO_MATH}><b>{cell(label)}</b> {cell(text)}</p>".replace(" </p>", "</p>")

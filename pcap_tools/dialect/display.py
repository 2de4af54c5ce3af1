"""A dialect as a notebook shows it: title, ports, and one row a message with its fields as on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pcap_tools.html_table import paragraph, table

from .program import Extent, Kind

if TYPE_CHECKING:
    from .program import Dialect, Layout, Step

MOST_LAYOUTS = 60
MOST_PORTS = 4


def dialect_html(dialect: Dialect) -> str:
    """A small table; what comes from the file is escaped."""
    layouts = [(form.name, layout) for form in dialect.forms for layout in form.layouts]
    several = len(dialect.forms) > 1
    rows = [
        (*((form,) if several else ()), layout.message, layout.meaning, _fields(layout))
        for form, layout in layouts[:MOST_LAYOUTS]
    ]
    header = (*(("form",) if several else ()), "message", "means", "fields in the order of the wire")
    more = [paragraph(f"… and {len(layouts) - MOST_LAYOUTS} more")] if len(layouts) > MOST_LAYOUTS else []
    title = paragraph(dialect.name, dialect.spec.title)
    return "".join([title, paragraph("UDP ports:", _ports(dialect)), table(header, rows), *more])


def _ports(dialect: Dialect) -> str:
    return "; ".join(f"{role} {_some(ports)}" for role, ports in dialect.spec.ports.items())


def _some(ports: list[int]) -> str:
    """Ranges stand in the file as ranges, and come here as lists."""
    if len(ports) > MOST_PORTS and ports[-1] - ports[0] == len(ports) - 1:
        return f"{ports[0]}-{ports[-1]}"
    shown = ", ".join(str(port) for port in ports[:MOST_PORTS])
    return shown + (f" and {len(ports) - MOST_PORTS} more" if len(ports) > MOST_PORTS else "")


def _fields(layout: Layout) -> str:
    return " · ".join(f"{step.name}{_value(step)} ({_extent(step)})" for step in layout.steps)


def _value(step: Step) -> str:
    """What a field must be for this message."""
    if step.kind is Kind.MAGIC:
        return f" = {step.literal.hex(' ')}"
    if not step.guard:
        return ""
    words = (one.decode("utf-8", "backslashreplace") if isinstance(one, bytes) else str(one) for one in step.guard)
    return f" = {' or '.join(words)}"


def _extent(step: Step) -> str:
    if step.kind is Kind.BITS:
        return f"{step.bits} bits"
    if step.extent is Extent.UNTIL:
        return f"up to {step.literal.decode('utf-8', 'backslashreplace')!r}"
    if step.extent is Extent.PREFIX:
        return "length in front"
    if step.extent is Extent.REST:
        return "the rest"
    return f"{step.size} B" if step.extent is Extent.FIXED else step.kind.name.lower()

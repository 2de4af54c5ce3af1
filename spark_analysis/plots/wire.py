"""Datagrams byte by byte: what each byte is for, in the words of the dialect.

>>> from pcap_tools import load_dialect                                                        # doctest: +SKIP
>>> wire(load_dialect("colon"), [bytes.fromhex("010074656d703a313233")]).savefig("wire.png")     # doctest: +SKIP

One row a datagram, one square a byte; a field has the same colour in every row. A byte in grey belongs to no field.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pcap_tools.codec import Codec
from pcap_tools.codec.message import Message
from pcap_tools.dialect import Dialect

from .style import LIGHT, WIDTH, Theme, name, nothing

MOST_DATAGRAMS = 12
MOST_BYTES = 32
_ROW = 0.86  # inches
_LEFT = 1.25  # inches, for names of messages
_PRINTABLE = range(0x21, 0x7F)


def wire(dialect: Dialect, datagrams: Sequence[bytes], theme: Theme = LIGHT) -> Figure:
    """At most 12 datagrams, and the first 32 bytes of each."""
    shown = [(Codec(dialect).decode(datagram), datagram) for datagram in datagrams[:MOST_DATAGRAMS] if datagram]
    if not shown:
        return nothing("no datagrams to show", theme)
    columns = max(min(len(datagram), MOST_BYTES) + (len(datagram) > MOST_BYTES) for _, datagram in shown)
    figure = Figure(figsize=(WIDTH, 0.2 + _ROW * len(shown)), facecolor=theme.back)
    left = _LEFT / WIDTH
    axes = figure.add_axes((left, 0, 1 - left, 1))
    axes.set(xlim=(0, max(columns, 12) + 0.3), ylim=(len(shown) + 0.1, -0.1))
    axes.set_axis_off()
    colours: dict[str, str] = {}
    for row, (message, datagram) in enumerate(shown):
        _paint_title(axes, row, message, theme)
        _paint_bytes(axes, row, message, datagram, colours, theme)
        _paint_names(axes, row, message, len(datagram), theme)
    return figure


def _paint_title(axes: Axes, row: int, message: Message, theme: Theme) -> None:
    text = f"{message.message or '?'}\n{message.error or message.meaning or ''}"
    axes.annotate(text, (0, row + 0.62), (-8, 0), textcoords="offset points", ha="right", va="center",
                  color=theme.bad if message.error else theme.text, fontsize=9, annotation_clip=False,
                  parse_math=False)  # fmt: skip


def _paint_bytes(
    axes: Axes, row: int, message: Message, datagram: bytes, colours: dict[str, str], theme: Theme
) -> None:
    for at, byte in enumerate(datagram[:MOST_BYTES]):
        owner = "·".join(field for field, (begin, end) in message.ranges.items() if begin <= at < end)
        if owner and owner not in colours:
            colours[owner] = theme.series[len(colours) % len(theme.series)]
        colour = colours.get(owner, theme.grid)
        axes.add_patch(Rectangle((at, row + 0.38), 0.94, 0.5, facecolor=colour, alpha=0.28, linewidth=0))
        axes.text(at + 0.47, row + 0.54, f"{byte:02x}", ha="center", va="center", color=theme.text, fontsize=8,
                  family="monospace")  # fmt: skip
        letter = chr(byte) if byte in _PRINTABLE else "·"
        axes.text(at + 0.47, row + 0.76, letter, ha="center", va="center", color=theme.muted, fontsize=8,
                  family="monospace", parse_math=False)  # fmt: skip
    if len(datagram) > MOST_BYTES:
        axes.text(MOST_BYTES + 0.3, row + 0.64, "…", va="center", color=theme.muted)


def _paint_names(axes: Axes, row: int, message: Message, length: int, theme: Theme) -> None:
    """Above the bytes; fields that share bytes stand together."""
    places: dict[tuple[int, int], list[str]] = {}
    for field, place in message.ranges.items():
        if place[0] < min(length, MOST_BYTES):
            places.setdefault(place, []).append(field)
    for at, ((begin, end), fields) in enumerate(places.items()):
        label = name(" · ".join(fields), 40)
        # A name that is wider than its bytes would run into the next: every other one stands higher.
        lift = 0.1 if at % 2 and end - begin < 3 else 0.26
        axes.plot([begin + 0.04, min(end, MOST_BYTES) - 0.1], [row + 0.345] * 2, color=theme.muted, linewidth=0.8)
        axes.text(begin + 0.04, row + lift, label, ha="left", va="center", color=theme.muted, fontsize=7.5,
                  parse_math=False)  # fmt: skip

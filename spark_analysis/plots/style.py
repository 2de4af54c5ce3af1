"""How all pictures look: colours that colour-blind people can tell apart (Okabe and Ito), on light and on dark ground.

>>> figure, (axes,) = panels(1, 3.0, LIGHT)
>>> title(figure, "Round trips", LIGHT)
>>> svg(figure).startswith("<?xml")
True

Labels may come from packets: `name` makes them safe and short, and `$` in them is never read as mathematics.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from pcap_tools.escaping import shorten

from ..results.safe_text import shown

WIDTH = 8.0  # inches, of every picture
NAME_LENGTH = 34
_SMALL, _NORMAL = 9.0, 10.5
_TAG, _COLOUR = re.compile(r"<[^<>]+>"), re.compile(r"#[0-9a-f]{6}\b")


@dataclass(frozen=True)
class Theme:
    """Colours by what they say. ``series`` are for things that are neither good nor bad."""

    back: str
    text: str
    muted: str
    grid: str
    good: str
    bad: str
    doubt: str
    extra: str
    series: tuple[str, ...]


LIGHT = Theme(
    "#ffffff", "#1b1f24", "#59636e", "#d8dee4", "#0072b2", "#d55e00", "#e69f00", "#cc79a7",
    ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"),
)  # fmt: skip
DARK = Theme(
    "#161b22", "#e6edf3", "#9ea7b1", "#343b44", "#56b4e9", "#e8702a", "#e69f00", "#cc79a7",
    ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442"),
)  # fmt: skip


def panels(count: int, height: float, theme: Theme, shares: Sequence[float] | None = None) -> tuple[Figure, list[Axes]]:
    """A figure of this height in inches, with so many axes one above the other; they have one x axis in common."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained", facecolor=theme.back)
    grid = figure.subplots(count, 1, sharex=True, squeeze=False, height_ratios=shares)
    axes = [row[0] for row in grid]
    for one in axes:
        _dress(one, theme)
    return figure, axes


def _dress(axes: Axes, theme: Theme) -> None:
    axes.set_facecolor(theme.back)
    axes.set_axisbelow(True)
    axes.grid(True, color=theme.grid, linewidth=0.7)
    axes.tick_params(colors=theme.muted, labelsize=_SMALL, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def title(figure: Figure, text: str, theme: Theme) -> None:
    """What the picture shows, to its upper left."""
    figure.suptitle(text, x=0.008, ha="left", color=theme.text, fontsize=_NORMAL, fontweight="bold", parse_math=False)


def axis_label(axes: Axes, which: str, text: str, theme: Theme) -> None:
    """``which`` is x or y."""
    axes.set(**{f"{which}label": text})
    axes.yaxis.label.set(color=theme.muted, fontsize=_SMALL)
    axes.xaxis.label.set(color=theme.muted, fontsize=_SMALL)


def whole_numbers(axis: Axis, most: int) -> None:
    """At most so many labels, as 1,000."""
    axis.set_major_locator(MaxNLocator(most, integer=True))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def legend(axes: Axes, theme: Theme, columns: int = 4) -> None:
    """Above the axes, to the right, if there is anything to tell."""
    if axes.get_legend_handles_labels()[1]:
        box = axes.legend(
            loc="lower right", bbox_to_anchor=(1, 1), ncols=columns, frameon=False, fontsize=_SMALL, handlelength=1.4
        )
        for text in box.get_texts():
            text.set(color=theme.muted, parse_math=False)


def rows(axes: Axes, names: Sequence[str | None], theme: Theme) -> None:
    """Names of the rows of a chart, the first on top."""
    axes.set_yticks(range(len(names)), [name(one) for one in names], parse_math=False, color=theme.text)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(False, axis="y")


def note(axes: Axes, x: float, y: float, text: str, theme: Theme) -> None:
    """A few words to the right of a place."""
    axes.annotate(
        text, (x, y), (5, 0), textcoords="offset points", va="center", color=theme.muted, fontsize=_SMALL,
        parse_math=False, annotation_clip=False,
    )  # fmt: skip


def nothing(text: str, theme: Theme) -> Figure:
    """A picture that says that there is nothing to show."""
    figure, (axes,) = panels(1, 1.0, theme)
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, ha="center", va="center", color=theme.muted, fontsize=_NORMAL, parse_math=False)
    return figure


def name(text: str | None, width: int = NAME_LENGTH) -> str:
    r"""
    >>> name("home/\x1b[31m"), name("a" * 50, 5), name(None)
    ('home/\\x1b[31m', 'aaaa…', '?')
    """
    return "?" if text is None else shorten(shown(text), width)


def svg(figure: Figure) -> str:
    """The same bytes for the same figure. Text stays text: the viewer's fonts have letters that matplotlib's lack."""
    out = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "topicshark"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(out, format="svg", facecolor=figure.get_facecolor(), metadata={"Date": None, "Creator": None})
    return out.getvalue()


def in_theme(picture: str, old: Theme, new: Theme) -> str:
    """An SVG with the colours of another theme: sooner done than drawing it again.

    Only colours inside of tags are changed; in text `<` and `>` are escaped, so a topic like `#ffffff` stays as it is.
    """
    colours = dict(zip(_colours(old), _colours(new), strict=True))
    return _TAG.sub(lambda tag: _COLOUR.sub(lambda one: colours.get(one[0], one[0]), tag[0]), picture)


def _colours(theme: Theme) -> list[str]:
    *single, series = astuple(theme)
    return [*series, *single]

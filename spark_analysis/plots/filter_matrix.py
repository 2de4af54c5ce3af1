"""Filters by topics: how many copies of which topic each filter causes, and which of them never came.

>>> filter_matrix({"run": [Copies("home/*", "home/fan", 12, 3)]}).savefig("filters.png")          # doctest: +SKIP

One panel a session, side by side with the same rows and columns, so that two brokers can be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import LIGHT, WIDTH, Theme, name, nothing, title

MOST_PANELS = 3
MOST_FILTERS = 24
MOST_TOPICS = 24
_ROW = 0.27  # inches
_LARGEST = 170.0  # points squared, of a mark

Places = dict[str | None, int]


class Copies(NamedTuple):
    """Of one topic through one filter."""

    filter: str | None
    topic: str | None
    came: int
    missing: int


def filter_matrix(sessions: Mapping[str, Sequence[Copies]], theme: Theme = LIGHT) -> Figure:
    """The busiest filters and topics are shown, of at most three sessions."""
    shown = dict(list(sessions.items())[:MOST_PANELS])
    every = [one for copies in shown.values() for one in copies]
    filters = _busiest([(one.filter, one.came + one.missing) for one in every], MOST_FILTERS)
    topics = _busiest([(one.topic, one.came + one.missing) for one in every], MOST_TOPICS)
    if not filters:
        return nothing("no filter matched a message", theme)
    figure = Figure(figsize=(WIDTH, 2.3 + _ROW * len(filters)), layout="constrained", facecolor=theme.back)
    panels = figure.subplots(1, len(shown), sharex=True, sharey=True, squeeze=False)[0]
    most = max(1, *(count for one in every for count in (one.came, one.missing)))
    for axes, (session, copies) in zip(panels, shown.items(), strict=True):
        _dress(axes, filters, topics, theme)
        _paint_session(axes, session, copies, (topics, filters), most, theme)
    keys = dict(zip(*reversed(_keys(panels)), strict=True))
    if len(keys) > 1:
        figure.legend(keys.values(), keys.keys(), loc="outside upper right", ncols=2, frameon=False, fontsize=8.5,
                      labelcolor=theme.muted)  # fmt: skip
    title(figure, "Which filter causes which copies", theme)
    return figure


def _busiest(loads: Sequence[tuple[str | None, int]], most: int) -> Places:
    """Names with their places, those with most copies first."""
    sums: Counter[str | None] = Counter()
    for one, load in loads:
        sums[one] += load
    order = sorted(sums, key=lambda one: (-sums[one], one or ""))
    return {one: place for place, one in enumerate(order[:most])}


def _paint_session(
    axes: Axes, session: str, copies: Sequence[Copies], known: tuple[Places, Places], most: int, theme: Theme
) -> None:
    topics, filters = known
    seen = [one for one in copies if one.filter in filters and one.topic in topics]
    places = [(topics[one.topic], filters[one.filter]) for one in seen]
    _paint(axes, places, [one.came / most for one in seen], "came", theme.good)
    _paint(axes, places, [one.missing / most for one in seen], "missing", theme.bad)
    sums = f"{sum(one.came for one in copies):,} copies came, {sum(one.missing for one in copies):,} are missing"
    axes.set_title(f"{name(session)}\n{sums}", loc="left", fontsize=8.5, color=theme.text, parse_math=False)


def _paint(axes: Axes, places: Sequence[tuple[int, int]], shares: Sequence[float], label: str, colour: str) -> None:
    """A mark as large as the number of copies; missing ones are squares, for who sees no colours."""
    marks = [(x, y, 18 + _LARGEST * share) for (x, y), share in zip(places, shares, strict=True) if share]
    if marks:
        shape = "o" if label == "came" else "s"
        axes.scatter(*zip(*marks, strict=True), color=colour, marker=shape, alpha=0.9, linewidth=0, label=label)


def _dress(axes: Axes, filters: Places, topics: Places, theme: Theme) -> None:
    axes.set_facecolor(theme.back)
    axes.set_axisbelow(True)
    axes.grid(True, color=theme.grid, linewidth=0.7)
    axes.tick_params(colors=theme.muted, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlim(-0.7, len(topics) - 0.3)
    axes.set_ylim(len(filters) - 0.3, -0.7)
    axes.set_yticks(range(len(filters)), [name(one, 26) for one in filters], color=theme.text, fontsize=8,
                    parse_math=False)  # fmt: skip
    axes.set_xticks(range(len(topics)), [name(one, 26) for one in topics], rotation=50, ha="right",
                    rotation_mode="anchor", color=theme.text, fontsize=7.5, parse_math=False)  # fmt: skip


def _keys(panels: Sequence[Axes]) -> tuple[list[object], list[str]]:
    found = [axes.get_legend_handles_labels() for axes in panels]
    return [one for handles, _ in found for one in handles], [one for _, labels in found for one in labels]

"""Who gets what, as pictures: `by_topic` (copies that were due), `links` (who is due which topic) and
`by_filter`.

>>> by_topic(session.fanout).savefig("topics.png")                  # doctest: +SKIP
>>> links(session.fanout, most=10, theme=DARK)                      # doctest: +SKIP

All take a `FanoutSummary` and show the rows in which something went wrong first, then those with most messages.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from ..summaries.fanout import FanoutSummary
from .style import LIGHT, Theme, axis_label, legend, name, note, nothing, panels, rows, title, whole_numbers

MOST_ROWS = 15
MOST_COLUMNS = 24
_WRONG = ("missing", "unexpected", "duplicate")


def by_topic(fanout: FanoutSummary, most: int = MOST_ROWS, theme: Theme = LIGHT) -> Figure:
    """Copies by topic: delivered, missing, never asked for, doubled, or unclear; how many forwards a publish caused."""
    told = worst_topics(fanout, most)
    if not told:
        return nothing("nothing was published", theme)
    figure, (axes,) = panels(1, 1.1 + 0.28 * len(told), theme)
    begins = [0] * len(told)
    parts = (("delivered", "delivered", theme.good), ("missing", "missing", theme.bad),
             ("unexpected", "not asked for", theme.doubt), ("duplicate", "doubled", theme.extra),
             ("inconclusive", "cannot tell", theme.grid))  # fmt: skip
    for key, label, colour in parts:
        widths = [row[key] for row in told]
        if any(widths):
            axes.barh(range(len(told)), widths, 0.62, begins, color=colour, label=label)
            begins = [begin + width for begin, width in zip(begins, widths, strict=True)]
    for at, row in enumerate(told):
        note(axes, begins[at], at, _each(row), theme)
    axes.set_xlim(0, max([*begins, 1]) * 1.25)
    whole_numbers(axes.xaxis, 6)
    rows(axes, [row["topic"] for row in told], theme)
    axis_label(axes, "x", "copies, retained ones too", theme)
    title(figure, "Fan-out by topic", theme)
    legend(axes, theme, 5)
    return figure


def worst_topics(fanout: FanoutSummary, most: int = MOST_ROWS) -> list[dict[str, Any]]:
    """Rows of `FanoutSummary.topic_rows`, in the order of the picture."""
    return sorted(fanout.topic_rows(), key=lambda row: (-sum(row[key] for key in _WRONG), -row["delivered"]))[:most]


def _each(row: dict[str, Any]) -> str:
    publishes = row["publishes"]
    return f"{publishes:,} published" if publishes != 1 else "published once"


def links(fanout: FanoutSummary, most: int = MOST_ROWS, theme: Theme = LIGHT) -> Figure:
    """Topics by subscribers: a mark where a subscriber was due messages of a topic. The busiest of both are shown."""
    pairs = fanout.topic_links.filter(pc.is_valid(fanout.topic_links.column("topic")))
    linked = set(pc.unique(pairs.column("topic")).to_pylist())
    shown_topics = [row["topic"] for row in fanout.topic_rows() if row["topic"] in linked][:most]
    pairs = pairs.filter(pc.is_in(pairs.column("topic"), pa.array(shown_topics, pa.string())))
    busiest = Counter(pairs.column("subscriber").to_pylist()).most_common(MOST_COLUMNS)
    if not busiest:
        return nothing("no message was due to anybody", theme)
    subscribers = {one: at for at, (one, _) in enumerate(sorted(busiest))}
    places = {topic: at for at, topic in enumerate(shown_topics)}
    marks = [
        (subscribers[row["subscriber"]], places[row["topic"]])
        for row in pairs.to_pylist()
        if row["subscriber"] in subscribers
    ]
    figure, (axes,) = panels(1, 2.2 + 0.26 * len(shown_topics), theme)
    axes.plot(*zip(*marks, strict=True), "s", markersize=8, color=theme.good)
    rows(axes, shown_topics, theme)
    axes.set_xticks(range(len(subscribers)), [name(one, 24) for one in subscribers], rotation=45, ha="right",
                    rotation_mode="anchor", parse_math=False, color=theme.text)  # fmt: skip
    axes.set_xlim(-0.6, max(len(subscribers), 8) - 0.4)
    title(figure, "Who is due which topic", theme)
    return figure


def by_filter(fanout: FanoutSummary, most: int = MOST_ROWS, theme: Theme = LIGHT) -> Figure:
    """How often a filter matched a message, and how often its subscriber then got none."""
    told = sorted(fanout.filter_rows(), key=lambda row: (-row["missing"], -row["hits"]))[:most]
    if not told:
        return nothing("nobody subscribed", theme)
    figure, (axes,) = panels(1, 1.1 + 0.28 * len(told), theme)
    missing = [row["missing"] for row in told]
    got = [row["hits"] - row["missing"] for row in told]
    axes.barh(range(len(told)), got, 0.62, color=theme.good, label="passed on")
    if any(missing):
        axes.barh(range(len(told)), missing, 0.62, got, color=theme.bad, label="missing")
    for at, row in enumerate(told):
        many = row["subscribers"]
        if many is not None:
            note(axes, row["hits"], at, f"{many:,} subscriber{'s' if many != 1 else ''}", theme)
    axes.set_xlim(0, max([row["hits"] for row in told] + [1]) * 1.25)
    whole_numbers(axes.xaxis, 6)
    rows(axes, [row["filter"] for row in told], theme)
    axis_label(axes, "x", "messages that matched", theme)
    title(figure, "Fan-out by filter", theme)
    legend(axes, theme)
    return figure

"""A sequence diagram: who sent what to whom, one arrow a frame, time downwards.

>>> sequence([Arrow(7, 0, "10.0.0.2:50000", "10.0.0.1:50000", "PUBLISH home/x", is_marked=True)],
...          brokers=["10.0.0.1:50000"]).savefig("exchange.svg")    # doctest: +SKIP

Frames that are part of the finding are drawn strongly; what should have come and did not (``frame`` None) is dashed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .durations import said
from .style import LIGHT, WIDTH, Theme, name, nothing

MOST_ARROWS = 14
MOST_LANES = 6
_ROW, _HEAD = 0.34, 0.55  # inches
_FRAMES, _TIMES, _LEFT, _RIGHT = 0.45, 1.08, 1.75, 0.65  # inches: right ends of columns, then the outer lanes
_SIZE, _LETTERS = 8.5, 13.8  # points; letters of that size in an inch
_SHORTEST = 20  # letters that stand over an arrow, be it shorter


@dataclass(frozen=True)
class Arrow:
    """One message, or with ``frame`` None one that never came."""

    frame: int | None
    time_ns: int
    source: str
    target: str
    text: str
    is_marked: bool = False


def sequence(
    arrows: Sequence[Arrow], brokers: Collection[str] = (), theme: Theme = LIGHT, zero_ns: int | None = None
) -> Figure:
    """At most 14 arrows, in the order given, between at most 6 ends. Times are told from ``zero_ns`` on (the first)."""
    lanes = lanes_of(arrows, brokers)
    drawn = [one for one in arrows if one.source in lanes and one.target in lanes][:MOST_ARROWS]
    if not drawn:
        return nothing("no frames to show", theme)
    height = _HEAD + _ROW * (len(drawn) + 0.3)
    figure = Figure(figsize=(WIDTH, height), facecolor=theme.back)
    axes = figure.add_axes((0, 0, 1, 1 - _HEAD / height))  # x in inches, so that what fits between lanes is known
    axes.set(xlim=(0, WIDTH), ylim=(len(drawn) - 0.4, -0.7))
    axes.set_axis_off()
    step = (WIDTH - _LEFT - _RIGHT) / max(len(lanes) - 1, 1)
    places = {lane: _LEFT + at * step for at, lane in enumerate(lanes)}
    for lane, x in places.items():
        _paint_lane(axes, x, lane, lane in brokers, step, theme)
    for x, text in ((_FRAMES, "frame"), (_TIMES, "time")):
        axes.annotate(text, (x, 1), (0, 6), xycoords=("data", "axes fraction"), textcoords="offset points", ha="right",
                      va="bottom", color=theme.muted, fontsize=_SIZE, annotation_clip=False)  # fmt: skip
    begin = drawn[0].time_ns if zero_ns is None else zero_ns
    for row, arrow in enumerate(drawn):
        _paint_arrow(axes, row, arrow, places, theme)
        _paint_margin(axes, row, arrow, arrow.time_ns - begin, theme)
    return figure


def lanes_of(arrows: Sequence[Arrow], brokers: Collection[str]) -> list[str]:
    """Who sends stands to the left of the brokers, who gets or waits to their right; ends of the finding go first."""
    ends: dict[str, int] = {}
    for one in sorted(arrows, key=lambda arrow: (not arrow.is_marked, arrow.frame is not None)):
        for end in (one.source, one.target):
            ends.setdefault(end, len(ends))
    kept = sorted(ends, key=lambda end: (end not in brokers, ends[end]))[:MOST_LANES]
    clients = sorted((end for end in kept if end not in brokers), key=lambda end: ends[end])
    waiting = {one.target for one in arrows if one.frame is None}
    sending = {one.source for one in arrows if one.frame is not None} - waiting
    left = [end for end in clients if end in sending] or clients[:1]
    if len(left) == len(clients):
        left = left[: (len(left) + 1) // 2]
    return [*left, *(end for end in kept if end in brokers), *(end for end in clients if end not in left)]


def _paint_lane(axes: Axes, x: float, lane: str, is_broker: bool, step: float, theme: Theme) -> None:
    axes.axvline(x, color=theme.good if is_broker else theme.grid, linewidth=2.2 if is_broker else 1.4)
    label = name(lane, max(round(step * _LETTERS), 12))
    axes.annotate(f"broker\n{label}" if is_broker else label, (x, 1), (0, 6), xycoords=("data", "axes fraction"),
                  textcoords="offset points", ha="center", va="bottom", color=theme.text, fontsize=_SIZE,
                  fontweight="bold" if is_broker else "normal", parse_math=False, annotation_clip=False)  # fmt: skip


def _paint_arrow(axes: Axes, row: int, arrow: Arrow, places: dict[str, float], theme: Theme) -> None:
    begin, end = places[arrow.source], places[arrow.target]
    is_absent = arrow.frame is None
    colour = theme.bad if arrow.is_marked or is_absent else theme.muted
    axes.plot(
        [begin, end], [row, row], "--" if is_absent else "-", color=colour, linewidth=1.8 if arrow.is_marked else 1.1
    )
    head = ">" if end > begin else "<" if end < begin else "o"
    tip = end + (0.05 if end < begin else -0.05 if end > begin else 0)
    axes.plot([tip], [row], head, color=colour, markersize=6, fillstyle="none" if is_absent else "full")
    text = name(arrow.text, max(int((abs(end - begin) - 0.2) * _LETTERS), _SHORTEST))
    box = {"facecolor": theme.back, "edgecolor": "none", "pad": 0.6}  # over lanes that the text crosses
    axes.annotate(text, ((begin + end) / 2, row), (0, 4), textcoords="offset points", ha="center", va="bottom",
                  color=colour if arrow.is_marked or is_absent else theme.text, fontsize=_SIZE, parse_math=False,
                  bbox=box)  # fmt: skip


def _paint_margin(axes: Axes, row: int, arrow: Arrow, since_ns: int, theme: Theme) -> None:
    """Frame and time, to the left."""
    if arrow.frame is None:
        return
    weight = "bold" if arrow.is_marked else "normal"
    colour = theme.bad if arrow.is_marked else theme.muted
    for x, text in ((_FRAMES, f"{arrow.frame}"), (_TIMES, after(since_ns))):
        axes.text(x, row, text, ha="right", va="center", color=colour, fontsize=_SIZE, fontweight=weight)


def after(nanoseconds: int) -> str:
    r"""
    >>> after(-250_000), after(0), after(1_500_000)
    ('\u2212250 µs', '0', '+1.5 ms')
    """
    sign = "+" if nanoseconds > 0 else "\u2212" if nanoseconds < 0 else ""
    return sign + said(abs(nanoseconds))

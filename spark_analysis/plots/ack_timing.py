"""How long ACKs take, as pictures: `round_trips` (distribution), `over_time`, `by_client`.

>>> round_trips(session.timing).savefig("round-trips.png")          # doctest: +SKIP
>>> by_client(session.timing, most=10, theme=DARK)                  # doctest: +SKIP

All take a `TimingSummary`; round trips are those of matches that are sure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..summaries.ack_timing import TimingSummary
from ..tables.histograms import STEPS, percentiles
from ..tables.tallies import tally
from .durations import on_log_scale, said
from .style import LIGHT, Theme, axis_label, legend, name, note, nothing, panels, rows, title, whole_numbers

MOST_KINDS = 4  # each its colour
MOST_CLIENTS = 15
_BARS = 60  # at most, of a histogram
_NO_ACKS = "no round trip is known for certain"
_MS = 1e6


def round_trips(timing: TimingSummary, theme: Theme = LIGHT) -> Figure:
    """How often an ACK took how long, by kind of request; lines mark the median and the 99th percentile of all."""
    kinds = tally(timing.bins.drop_columns(["client"]), ("asks", "message", "bin")).to_pylist()
    if not kinds:
        return nothing(_NO_ACKS, theme)
    figure, (axes,) = panels(1, 3.0, theme)
    numbers = np.array([max(row["bin"], 1) for row in kinds])
    edges, place = _bars(numbers)
    counts = np.array([row["count"] for row in kinds])
    below = np.zeros(len(edges) - 1)
    for at, (kind, chosen) in enumerate(_by_kind(kinds)):
        heights = np.bincount(place[chosen], counts[chosen], len(edges) - 1)
        colour = theme.series[at % len(theme.series)]
        axes.bar(edges[:-1], heights, np.diff(edges), below, align="edge", color=colour, label=name(kind), linewidth=0)
        below += heights
    _mark(axes, numbers, counts, theme)
    on_log_scale(axes, "x", edges[0], edges[-1])
    whole_numbers(axes.yaxis, 5)
    axis_label(axes, "x", "from request to ACK", theme)
    axis_label(axes, "y", "requests", theme)
    title(figure, "How long ACKs take", theme)
    legend(axes, theme, MOST_KINDS + 1)
    return figure


def _bars(numbers: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Edges of bars that are some bins of `histograms` wide each, and the bar of each bin."""
    low, high = int(numbers.min()), int(numbers.max())
    width = next((width for width in (4, 8, 16, 32, 64) if (high - low) // width < _BARS), STEPS)
    first, last = low // width, high // width
    octave, step = np.divmod(np.arange(first, last + 2) * width, STEPS)
    return np.ldexp((STEPS + step) / STEPS, octave - 1), numbers // width - first


def _by_kind(kinds: list[dict[str, Any]]) -> list[tuple[str, NDArray[np.int64]]]:
    """Rows of each kind, those with most requests first; beyond so many they are one."""
    places: dict[str, list[int]] = {}
    for at, row in enumerate(kinds):
        said_by = "" if row["asks"] == "client" else f" of the {row['asks']}"
        places.setdefault(f"{row['message']}{said_by}", []).append(at)
    most = sorted(places.items(), key=lambda item: -sum(kinds[at]["count"] for at in item[1]))
    found = [(kind, np.array(at)) for kind, at in most[:MOST_KINDS]]
    rest = [place for _, at in most[MOST_KINDS:] for place in at]
    return [*found, ("others", np.array(rest))] if rest else found


def _mark(axes: Axes, numbers: NDArray[np.int64], counts: NDArray[np.int64], theme: Theme) -> None:
    """Of all kinds together."""
    order = np.argsort(numbers)
    values = percentiles(numbers[order], counts[order], 1, 1 << 62, (50, 99))
    for value, label, dashes in zip(values, ("median", "99 %"), ("--", ":"), strict=True):
        axes.axvline(value, color=theme.text, linewidth=1.2, linestyle=dashes, label=f"{label} {said(value)}")


def over_time(timing: TimingSummary, theme: Theme = LIGHT) -> Figure:
    """Above: median and 99th percentile of round trips by the time of the request. Below: requests, answered or not."""
    told = timing.over_time()
    if not told:
        return nothing("nothing was due an acknowledgement", theme)
    figure, (upper, lower) = panels(2, 4.0, theme, (3, 2))
    begin = min(row["time_ns"] for row in told)
    _paint_times(upper, told, begin, theme)
    _paint_counts(lower, told, begin, timing.width_ns / 1e9, theme)
    whole_numbers(lower.xaxis, 8)
    axis_label(lower, "x", "seconds since the first request", theme)
    title(figure, "ACKs over time", theme)
    legend(upper, theme)
    legend(lower, theme)
    return figure


def _paint_times(axes: Axes, told: list[dict[str, Any]], begin: int, theme: Theme) -> None:
    """Points, not a line: where nothing was asked there is nothing to tell."""
    timed = [row for row in told if row["rtt_ms"]["p50"] is not None]
    for at, asks in enumerate(sorted({row["asks"] for row in timed}, reverse=True)):
        own = [row for row in timed if row["asks"] == asks]
        seconds = [(row["time_ns"] - begin) / 1e9 for row in own]
        who = "" if asks == "client" else " (broker asks)"
        colour = theme.series[2 * at]
        axes.plot(seconds, [row["rtt_ms"]["p50"] * _MS for row in own], "o", color=colour, markersize=3.5,
                  label=f"median{who}")  # fmt: skip
        axes.plot(seconds, [row["rtt_ms"]["p99"] * _MS for row in own], "^", color=theme.series[2 * at + 1],
                  markersize=3.5, label=f"99 %{who}")  # fmt: skip
    if timed:
        lows, highs = [row["rtt_ms"]["min"] * _MS for row in timed], [row["rtt_ms"]["max"] * _MS for row in timed]
        on_log_scale(axes, "y", max(min(lows), 1.0), max(highs))
    axis_label(axes, "y", "from request to ACK", theme)


def _paint_counts(axes: Axes, told: list[dict[str, Any]], begin: int, width: float, theme: Theme) -> None:
    sums: dict[int, list[int]] = {}
    for row in told:
        both = sums.setdefault(row["time_ns"], [0, 0])
        both[0] += row["acked"]
        both[1] += row["unacked"]
    seconds = np.array([(time - begin) / 1e9 for time in sums])
    acked, unacked = np.array(list(sums.values())).T
    axes.bar(seconds, acked, width, align="edge", color=theme.good, label="answered")
    axes.bar(seconds, unacked, width, acked, align="edge", color=theme.bad, label="never answered")
    whole_numbers(axes.yaxis, 4)
    axis_label(axes, "y", "requests", theme)


def by_client(timing: TimingSummary, most: int = MOST_CLIENTS, theme: Theme = LIGHT) -> Figure:
    """Ranges of round trips, one row a client and kind: those with requests that were never answered first."""
    told = sorted(timing.rows(), key=lambda row: (-row["unacked"], -(row["rtt_ms"]["p90"] or 0)))[:most]
    if not told:
        return nothing("nothing was due an acknowledgement", theme)
    figure, (axes,) = panels(1, 1.1 + 0.28 * len(told), theme)
    timed = [(at, row) for at, row in enumerate(told) if row["rtt_ms"]["p50"] is not None]
    if timed:
        _paint_ranges(axes, timed, theme)
    else:
        axes.set_xticks([])
    for at, row in enumerate(told):
        if row["unacked"]:
            where = (row["rtt_ms"]["max"] or 0) * _MS or axes.get_xlim()[0]
            note(axes, where, at, f"{row['unacked']:,} of {row['requests']:,} never answered", theme)
    rows(axes, [f"{name(row['client'], 24)} {row['kind']}" for row in told], theme)
    axis_label(axes, "x", "from request to ACK", theme)
    title(figure, "ACKs by client", theme)
    legend(axes, theme)
    return figure


def _paint_ranges(axes: Axes, timed: list[tuple[int, dict[str, Any]]], theme: Theme) -> None:
    at = [place for place, _ in timed]
    low, half, most, high = (
        [row["rtt_ms"][key] * _MS or 1 for _, row in timed] for key in ("min", "p50", "p90", "max")
    )
    axes.hlines(at, low, high, color=theme.muted, linewidth=1, label="least to greatest")
    axes.hlines(at, half, most, color=theme.good, linewidth=5, label="median to 90 %")
    axes.plot(half, at, "o", color=theme.text, markersize=4, label="median")
    on_log_scale(axes, "x", min(low), max(high))

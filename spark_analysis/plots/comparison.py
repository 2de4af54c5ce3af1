"""Two runs in one picture: `round_trips` as shares of requests, `copies` as bars.

>>> round_trips(comparison.old.timing, comparison.new.timing).savefig("compared.png")          # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..summaries.ack_timing import TimingSummary
from ..summaries.fanout import FanoutSummary
from ..tables.histograms import STEPS
from ..tables.tallies import tally
from .durations import on_log_scale
from .style import LIGHT, Theme, axis_label, legend, nothing, panels, title, whole_numbers

NAMES = ("A", "B")


def round_trips(old: TimingSummary, new: TimingSummary, theme: Theme = LIGHT) -> Figure:
    """Which share of requests was answered within a time: the line further to the left is the quicker one."""
    curves = [_curve(run) for run in (old, new)]
    if all(curve is None for curve in curves):
        return nothing("no round trip is known for certain", theme)
    figure, (axes,) = panels(1, 3.0, theme)
    ends: list[float] = []
    for name, curve, colour, style in zip(NAMES, curves, (theme.series[0], theme.bad), ("-", "--"), strict=True):
        if curve is None:
            continue
        times, shares = curve
        axes.step(times, shares * 100, where="post", color=colour, linestyle=style, linewidth=2, label=name)
        ends += [float(times[0]), float(times[-1])]
    on_log_scale(axes, "x", min(ends), max(ends))
    axes.set_ylim(0, 103)
    axis_label(axes, "x", "from request to ACK", theme)
    axis_label(axes, "y", "% of requests", theme)
    title(figure, "Requests acknowledged within a time", theme)
    legend(axes, theme)
    return figure


def _curve(timing: TimingSummary) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Times in nanoseconds, and the share that took no longer."""
    rows = tally(timing.bins.select(["bin", "count"]), ("bin",)) if len(timing.bins) else None
    if rows is None:
        return None
    order = np.argsort(rows.column("bin").to_numpy())
    bins = np.maximum(rows.column("bin").to_numpy()[order], 1)
    counts = rows.column("count").to_numpy()[order]
    octave, step = np.divmod(bins + 1, STEPS)
    return np.ldexp((STEPS + step) / STEPS, octave - 1), np.cumsum(counts) / counts.sum()


def copies(old: FanoutSummary, new: FanoutSummary, names: Sequence[str], theme: Theme = LIGHT) -> Figure:
    """Counts of ``FanoutSummary.totals``, those of the two runs beside each other."""
    totals = [run.totals() for run in (old, new)]
    chosen = [name for name in names if any(one[name] for one in totals)]
    if not chosen:
        return nothing("no message was published", theme)
    figure, (axes,) = panels(1, 2.6, theme)
    places = np.arange(len(chosen))
    for at, (run, colour) in enumerate(zip(totals, (theme.series[0], theme.bad), strict=True)):
        axes.bar(places + (at - 0.5) * 0.38, [run[name] for name in chosen], 0.36, color=colour, label=NAMES[at])
    axes.set_xticks(places, chosen, color=theme.text)
    axes.grid(False, axis="x")
    whole_numbers(axes.yaxis, 5)
    axis_label(axes, "y", "copies", theme)
    title(figure, "Fan-out", theme)
    legend(axes, theme)
    return figure

"""Axes of durations in nanoseconds, labelled as people say them: 250 µs, 40 ms, 3 s."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_ROOM = 1.15
_STEPS = ((500, (1.0,)), (8, (1.0, 2.0, 5.0)), (0, (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)))


def said(nanoseconds: float) -> str:
    """
    >>> said(250_000), said(1.5e9), said(0)
    ('250 µs', '1.5 s', '0')
    """
    for size, unit in _UNITS:
        if abs(nanoseconds) >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return "0"


def on_log_scale(axes: Axes, which: str, low: float, high: float) -> None:
    """From a little below ``low`` to a little above ``high`` (``which`` is x or y); the less, the more labels."""
    low, high = max(low, 1.0) / _ROOM, max(high, 1.0) * _ROOM
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    axis = axes.xaxis if which == "x" else axes.yaxis
    reach = high / low
    axis.set_major_locator(LogLocator(10, next((steps for least, steps in _STEPS if reach > least), (1.0,))))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: said(value)))
    axis.set_minor_formatter(NullFormatter())

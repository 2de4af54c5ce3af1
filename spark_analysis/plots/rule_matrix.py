"""Who fails what: submissions or sessions down, rules across, and above them how much of the class each rule trips.

>>> rule_matrix({"anna": {"A-MISSING": 3}, "bert": {}}).savefig("class.png")          # doctest: +SKIP

Rules stand in the order of how many fail them, and who fails the same stands together: those with nothing at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from .style import LIGHT, WIDTH, Theme, axis_label, name, nothing, title

MOST_RULES = 30
MOST_NAMED = 40  # rows that have their names beside them
MOST_ROWS = 2_000  # more than a picture has lines
STEPS = (1, 2, 6, 21)  # findings of one cell from which on it is darker
LABELS = ("1", "2 to 5", "6 to 20", "more")
_SHADES = (
    "#9ecae1",
    "#4292c6",
    "#08519c",
    "#08183a",
)  # one hue from light to dark: also in grey they tell more from less


def rule_matrix(failed: Mapping[str, Mapping[str, int]], theme: Theme = LIGHT) -> Figure:
    """``failed`` has for each session how often it breaks which rule."""
    shares = Counter(rule for rules in failed.values() for rule, count in rules.items() if count)
    rules = [rule for rule, _ in sorted(shares.items(), key=lambda item: (-item[1], item[0]))][:MOST_RULES]
    if not rules:
        return nothing("nobody fails anything", theme)
    names = sorted(failed, key=lambda one: ([not failed[one].get(rule) for rule in rules], one))[:MOST_ROWS]
    cells = np.array([[failed[one].get(rule, 0) for rule in rules] for one in names])
    height = 1.8 + min(6.0, 0.2 * len(names) + 0.5)
    figure = Figure(figsize=(WIDTH, height), layout="constrained", facecolor=theme.back)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1.0, height - 1.8))
    _paint_shares(upper, [100 * shares[rule] / len(failed) for rule in rules], theme)
    _paint_cells(lower, cells, theme)
    _name_both(lower, names, rules, len(failed), theme)
    keys = [Patch(color=colour, label=label) for colour, label in zip(_SHADES, LABELS, strict=True)]
    figure.legend(handles=keys, title="findings", loc="outside upper right", ncols=len(keys), fontsize=7.5,
                  title_fontsize=7.5, labelcolor=theme.muted, frameon=False, handlelength=1.2)  # fmt: skip
    broken = sum(any(rules.values()) for rules in failed.values())
    title(figure, f"Who fails what: {broken} of {len(failed)} fail a rule", theme)
    return figure


def _paint_shares(axes: Axes, shares: list[float], theme: Theme) -> None:
    _bare(axes, theme)
    axes.bar(range(len(shares)), shares, 0.72, color=theme.bad)
    for at, share in enumerate(shares):
        axes.annotate(f"{share:.0f} %", (at, share), (0, 2), textcoords="offset points", ha="center", fontsize=7.5,
                      color=theme.muted)  # fmt: skip
    axes.set_ylim(0, max(shares) * 1.3)
    axes.set_yticks([])
    axis_label(axes, "y", "of all", theme)


def _paint_cells(axes: Axes, cells: NDArray[np.int64], theme: Theme) -> None:
    _bare(axes, theme)
    shade = np.searchsorted(STEPS, cells, side="right")
    colours = ListedColormap([theme.grid + "60", *_SHADES])
    axes.imshow(shade, cmap=colours, vmin=-0.5, vmax=len(STEPS) + 0.5, aspect="auto", interpolation="nearest")
    axes.set_xticks(np.arange(cells.shape[1] + 1) - 0.5, minor=True)
    axes.grid(True, which="minor", axis="x", color=theme.back, linewidth=1.5)


def _name_both(axes: Axes, names: list[str], rules: list[str], total: int, theme: Theme) -> None:
    axes.set_xticks(range(len(rules)), [name(rule) for rule in rules], rotation=45, ha="right", rotation_mode="anchor",
                    color=theme.text, fontsize=8, parse_math=False)  # fmt: skip
    if len(names) <= MOST_NAMED:
        axes.set_yticks(range(len(names)), [name(one) for one in names], color=theme.text, fontsize=7, parse_math=False)
        return
    axes.set_yticks([])
    shown = f"{total:,}" if len(names) == total else f"{len(names):,} of {total:,}"
    axis_label(axes, "y", f"{shown} captures, one line each", theme)


def _bare(axes: Axes, theme: Theme) -> None:
    axes.set_facecolor(theme.back)
    axes.tick_params(which="both", colors=theme.muted, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)

"""The picture of a soak: memory, open files, lag and findings over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # told apart by colour-blind eyes, too


def draw(samples: list[dict[str, Any]], place: Path) -> None:
    """A sample has ``minute``, ``megabytes`` and ``files`` by process, ``behind``, and ``findings`` by rule."""
    figure = Figure(figsize=(9, 9), layout="constrained")
    axes = figure.subplots(4, 1, sharex=True)
    _lines(axes[0], samples, "megabytes", "memory, MB")
    _lines(axes[1], samples, "files", "open files")
    minutes = [sample["minute"] for sample in samples]
    axes[2].plot(minutes, [sample["behind"] for sample in samples], color=COLOURS[0])
    axes[2].set_ylabel("messages captured,\nnot yet in the table")
    _lines(axes[3], samples, "findings", "findings")
    axes[3].set_xlabel("minutes")
    figure.savefig(place)


def _lines(axes: Any, samples: list[dict[str, Any]], what: str, label: str) -> None:
    minutes = [sample["minute"] for sample in samples]
    names = sorted({name for sample in samples for name in sample[what]})
    for colour, name in zip(COLOURS, names, strict=False):
        axes.plot(minutes, [sample[what].get(name, 0) for sample in samples], label=name, color=colour)
    if names:
        axes.legend(loc="upper left", fontsize="small")
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)

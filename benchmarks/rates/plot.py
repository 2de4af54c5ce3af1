"""The picture of `benchmarks.rates`: packets a second of every tool, on a logarithmic scale.

Ours and the others differ in colour (blue and orange of the Okabe-Ito palette), in lightness and in hatching, so the
picture can be read in grey and by the colour-blind.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.rates.report import OURS, TITLES, Results, significant

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#BBBBBB"


def plot(path: Path, results: Results) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "topicshark"  # the same picture is the same file
    from matplotlib import pyplot

    tools = sorted(TITLES, key=results.rate)
    rates = [results.rate(tool) for tool in tools]
    colours = [BLUE if tool in OURS else GREY if tool == "memcpy" else ORANGE for tool in tools]
    figure, axes = pyplot.subplots(figsize=(8, 4.2), layout="constrained")
    bars = axes.barh([TITLES[tool].replace("*", "") for tool in tools], rates, color=colours, edgecolor="black")
    for tool, bar, rate in zip(tools, bars, rates, strict=True):
        bar.set_hatch("" if tool in OURS else ".." if tool == "memcpy" else "//")
        axes.annotate(
            f" {significant(rate)}", (rate, bar.get_y() + bar.get_height() / 2), va="center", fontsize="small"
        )
    axes.set_xscale("log")
    axes.set_xlim(min(rates) / 3, max(rates) * 12)
    axes.set_xlabel("packets a second (logarithmic)")
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)

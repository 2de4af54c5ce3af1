"""What `benchmarks.rates` found, as Markdown: the tools side by side, how ours grow, and whether the goals are met."""

from __future__ import annotations

import operator
import platform
import re
import statistics
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.competitors.clock import Measured
from benchmarks.competitors.ours import SPARK_JOBS
from pcap_tools.errors import UsageError

Round = dict[str, list[Measured]]
Rate = Callable[[Measured], float]
PACKETS: Rate = operator.attrgetter("rate")
BYTES: Rate = operator.attrgetter("bandwidth")
OURS = ("kernel", "decoder", "ingest", "data-source")
TITLES = {
    "memcpy": "copying the bytes (memcpy)",
    "kernel": "**topicshark, kernels** of the columnar decoder",
    "decoder": "**topicshark, columnar decoder**",
    "ingest": "**topicshark ingest** (Spark)",
    "data-source": "**topicshark data source** (Spark)",
    "struct": "plain struct",
    "dpkt": "dpkt",
    "tshark-lines": "tshark + dissector.lua, lines",
    "tshark-fields": "tshark + dissector.lua, fields",
    "scapy": "scapy + our layer",
    "pyshark": "pyshark + dissector.lua",
}
MARKS = ("<!-- rates: written by benchmarks.rates -->", "<!-- rates: end -->")
LIBRARIES = ("dpkt", "scapy", "pyshark", "numpy", "numba", "pyarrow", "pyspark")


@dataclass(frozen=True)
class Results:
    """`main` is the place, among the sizes ours have read, of the capture that all have read."""

    main: int
    dialects: list[str]
    rounds: list[Round]
    loads: list[float]  # of the machine before each round: others that ran slow the tools on Spark most

    def at(self, tool: str, one: Round) -> Measured:
        """On the capture that all have read."""
        return one[tool][self.main if tool in OURS else 0]

    def median(self, value: Callable[[Round], float]) -> float:
        return statistics.median(value(one) for one in self.rounds)

    def rate(self, tool: str) -> float:
        return self.median(lambda one: self.at(tool, one).rate)

    def beside(self, tool: str, other: str) -> float:
        return self.median(lambda one: self.at(tool, one).rate / self.at(other, one).rate)

    def of_memcpy(self, tool: str) -> float:
        return self.median(lambda one: self.at(tool, one).bandwidth / self.at("memcpy", one).bandwidth)

    def to_colon(self, dialect: str, rate: Rate) -> float:
        """The kernels beside themselves, on captures of as many packets."""
        place, colon = self.dialects.index(dialect), self.dialects.index("colon")
        return self.median(lambda one: rate(one["dialects"][place]) / rate(one["dialects"][colon]))

    def slowest(self, rate: Rate) -> tuple[str, float]:
        """The dialect, colon apart, whose rate is least, and how it is beside colon's."""
        others = ((name, self.to_colon(name, rate)) for name in self.dialects if name != "colon")
        return min(others, key=lambda one: one[1])

    @property
    def sizes(self) -> list[int]:
        return [one.packets for one in self.rounds[0]["kernel"]]


def report(results: Results) -> str:
    parts = [conditions(results), side_by_side(results), growth(results), dialects(results), goals(results)]
    return "\n\n".join(parts)


def write_page(page: Path, results: Results) -> None:
    """Put the report between the two marks."""
    text = page.read_text()
    begin, end = text.find(MARKS[0]), text.find(MARKS[1])
    if not 0 <= begin < end:
        raise UsageError(f"{page}: the lines {MARKS[0]} and {MARKS[1]} are missing")
    page.write_text(text[: begin + len(MARKS[0])] + "\n" + report(results) + "\n" + text[end:])


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """All columns but the first are numbers."""
    names = list(head)
    lines = [names, ["---", *["---:"] * (len(names) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def conditions(results: Results) -> str:
    said = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=True).stdout
    tshark = (re.findall(r"\d+\.\d+\.\d+", said) or ["?"])[0]
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    machine = found[1] if found else platform.machine()
    return (
        f"{machine}, Python {platform.python_version()}, tshark {tshark}, {libraries}. "
        f"Medians of {len(results.rounds)} rounds on a capture of {results.sizes[results.main]:,} packets. "
        f"Load average of the machine before each: {', '.join(f'{load:.1f}' for load in results.loads)}."
    )


def side_by_side(results: Results) -> str:
    head = ["tool", "cores", "packets read", "packets/s", "x tshark, lines", "x tshark, fields", "x dpkt"]
    head += ["of memcpy", "start, s"]
    by_rate = sorted(TITLES, key=results.rate, reverse=True)
    rows = (
        [
            TITLES[tool],
            "2" if tool in SPARK_JOBS else "1",
            f"{results.at(tool, results.rounds[0]).packets:,}",
            significant(results.rate(tool)),
            *(significant(results.beside(tool, other)) for other in ("tshark-lines", "tshark-fields", "dpkt")),
            f"{100 * results.of_memcpy(tool):.2g} %" if tool != "memcpy" else "",
            f"{results.median(lambda one, tool=tool: results.at(tool, one).start):.1f}",  # type: ignore[misc]
        ]
        for tool in by_rate
    )
    return table(head, rows)


def growth(results: Results) -> str:
    def row(tool: str, place: int) -> list[str]:
        cost = results.median(lambda one: 1e9 / one[tool][place].rate)
        memory = results.median(lambda one: one[tool][place].memory_mb)
        return [TITLES[tool], f"{results.sizes[place]:,}", f"{cost:.0f}", significant(1e9 / cost), f"{memory:.0f}"]

    head = ["", "packets", "ns a packet", "packets/s", "peak memory of a worker, MB"]
    return table(head, (row(tool, place) for tool in OURS for place in range(len(results.sizes))))


def dialects(results: Results) -> str:
    def row(place: int, name: str) -> list[str]:
        one = results.rounds[0]["dialects"][place]
        rate = results.median(lambda one: one["dialects"][place].rate)
        bandwidth = results.median(lambda one: one["dialects"][place].bandwidth)
        copied = results.median(lambda one: one["dialects"][place].bandwidth / one["memcpy"][0].bandwidth)
        beside = [f"{results.to_colon(name, measure):.2f}" for measure in (PACKETS, BYTES)]
        size = f"{one.bytes / one.packets:.0f}"
        return [name, size, significant(rate), beside[0], significant(bandwidth / 1e6), beside[1], f"{copied:.1%}"]

    head = ["kernels, dialect", "bytes a packet", "packets/s", "x colon", "MB/s", "x colon", "of memcpy"]
    return table(head, (row(place, name) for place, name in enumerate(results.dialects)))


def goals(results: Results) -> str:
    def at_least(what: str, found: float, goal: float, unit: str) -> list[str]:
        return [what, f"at least {goal:g}{unit}", f"{significant(found)}{unit}", "yes" if found >= goal else "**no**"]

    def at_most(what: str, found: float, goal: float, unit: str) -> list[str]:
        return [what, f"at most {goal:g}{unit}", f"{significant(found)}{unit}", "yes" if found <= goal else "**no**"]

    def beside_tshark(what: str, tool: str, goal: float) -> list[list[str]]:
        """Its two ways: lines for people, which are quicker, and the columns that ours give."""
        return [
            at_least(f"{what}, beside tshark + Lua, {way}", results.beside(tool, f"tshark-{way}"), goal, " x")
            for way in ("lines", "fields")
        ]

    slow, bytes_ratio = results.slowest(BYTES)
    few, packets_ratio = results.slowest(PACKETS)
    memory = max(entry.memory_mb for one in results.rounds for entry in one["ingest"])
    rows = [
        *beside_tshark("kernels", "kernel", 400),
        at_least("kernels, beside dpkt", results.beside("kernel", "dpkt"), 250, " x"),
        at_least("kernels, of memcpy", 100 * results.of_memcpy("kernel"), 15, " %"),
        at_least(f"slowest other dialect by bytes ({slow}), beside colon", bytes_ratio, 0.5, " x"),
        at_least(f"slowest other dialect by packets ({few}), beside colon", packets_ratio, 0.5, " x"),
        *beside_tshark("ingest", "ingest", 100),
        *beside_tshark("data source", "data-source", 60),
        at_most("ingest, highest peak of a worker", memory, 1000, " MB"),
    ]
    what, sizes = "ingest, cost a packet at 100 M, beside 10 M", results.sizes
    if {10_000_000, 100_000_000} <= set(sizes):
        small, large = sizes.index(10_000_000), sizes.index(100_000_000)
        more = results.median(lambda one: one["ingest"][small].rate / one["ingest"][large].rate)
        rows.append(at_most(what, more, 1.3, " x"))
    else:
        rows.append([what, "at most 1.3 x", "not measured", ""])
    return table(["goal", "", "measured", "met"], rows)


def significant(value: float) -> str:
    """Three digits that count, thousands apart."""
    if value < 100:
        return f"{value:.3g}"
    digits = len(str(int(value)))
    return f"{round(value, 3 - digits):,.0f}"

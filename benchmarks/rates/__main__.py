"""Packets a second from a capture to rows: topicshark beside the tools one would use instead, on the same capture.

    python -m benchmarks.rates --packets 20_000 --quick           # one round in some 90 s: does it run?
    python -m benchmarks.rates --sizes 1e6,1e7,1e8 --write        # in earnest, into docs/performance.md (10 GB of disk)

Each tool has a process of its own, held to one core (Spark: two). Slow tools read the first part of the capture, and
packets a second are compared. The rounds are interleaved, and a ratio is the median of the ratios within a round.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import make_capture, measure, number, numbers
from benchmarks.rates.plot import plot
from benchmarks.rates.report import OURS, Results, Round, report, write_page
from pcap_tools.dialect import builtin_names

PARTS = {
    "struct": 1_000_000,
    "dpkt": 1_000_000,
    "tshark-lines": 300_000,
    "tshark-fields": 100_000,
    "scapy": 50_000,
    "pyshark": 10_000,
}
QUICK = 40  # --quick: such a part of the parts
DIALECT_PACKETS = 300_000
REPO = Path(__file__).parents[2]


def one_round(main: Path, sizes: Sequence[Path], dialects: Sequence[Path], parts: dict[str, int]) -> Round:
    found = {"memcpy": measure("memcpy", [main])}
    found |= {tool: measure(tool, [main], part) for tool, part in parts.items()}
    found |= {tool: measure(tool, sizes) for tool in OURS}
    return found | {"dialects": measure("kernel", dialects)}


def run(options: argparse.Namespace, folder: Path) -> Results:
    sizes = sorted({options.packets, *options.sizes})
    captures = [make_capture(folder, "colon", packets) for packets in sizes]
    few = min(options.packets, DIALECT_PACKETS)
    dialects = [make_capture(folder, name, few) for name in builtin_names()]
    parts = {tool: min(part // (QUICK if options.quick else 1), options.packets) for tool, part in PARTS.items()}
    rounds: list[Round] = []
    loads: list[float] = []
    for turn in range(1 if options.quick else options.rounds):
        loads.append(os.getloadavg()[0])
        print(f"round {turn + 1}, load {loads[-1]:.1f}", file=sys.stderr)
        rounds.append(one_round(captures[sizes.index(options.packets)], captures, dialects, parts))
    return Results(sizes.index(options.packets), list(builtin_names()), rounds, loads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=number, default=10_000_000, help="in the capture all tools read")
    parser.add_argument("--sizes", type=numbers, default=[], help="more captures for topicshark, as 1e6,1e7,1e8")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round, and small parts for the slow tools")
    parser.add_argument("--folder", type=Path, help="where captures are made and kept (a temporary one)")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md and its picture")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        results = run(options, options.folder or Path(temporary))
    print(report(results))
    if options.write:
        write_page(REPO / "docs" / "performance.md", results)
        plot(REPO / "docs" / "pictures" / "rates.svg", results)


if __name__ == "__main__":
    main()

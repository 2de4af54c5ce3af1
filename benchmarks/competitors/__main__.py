"""Run one tool over captures and print what it took, as JSON.

    python -m benchmarks.competitors dpkt --packets 1000000 colon-10000000.pcap
    python -m benchmarks.competitors ingest colon-1000000.pcap colon-10000000.pcap

The start of a tool (imports, Lua, Spark) is told apart and not in its seconds.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from .clock import Measured, cost
from .others import OTHERS
from .ours import SPARK_JOBS, copying, decoder, kernel, on_spark

PASSES = {"kernel": kernel, "decoder": decoder}


def other(name: str, capture: Path, packets: int) -> Measured:
    """The start is the cost of one packet."""
    found: list[int] = []
    start = cost(lambda: OTHERS[name](capture, 1))
    whole = cost(lambda: found.append(OTHERS[name](capture, packets)))
    if found != [packets]:
        raise SystemExit(f"{name}: {found} of {packets} packets are messages")
    # From the second time on Python has imported what it needs; a process of its own starts anew.
    again = cost(lambda: OTHERS[name](capture, 1))
    size = capture.stat().st_size * packets // int(capture.stem.split("-")[1])
    return Measured(packets, size, whole - again, start)


def run(name: str, captures: list[Path], packets: int, cores: int) -> list[Measured]:
    if name == "memcpy":
        return [copying(capture) for capture in captures]
    if name in PASSES:
        return PASSES[name](captures)
    if name in SPARK_JOBS:
        return on_spark(SPARK_JOBS[name], captures, cores)
    return [other(name, capture, packets) for capture in captures]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", choices=["memcpy", *PASSES, *SPARK_JOBS, *OTHERS])
    parser.add_argument("captures", nargs="+", type=Path)
    parser.add_argument("--packets", type=int, default=1000, help="so many of each capture, for the slow tools")
    parser.add_argument("--cores", type=int, default=2, help="for Spark")
    options = parser.parse_args()
    found = run(options.tool, options.captures, options.packets, options.cores)
    print(json.dumps([asdict(one) for one in found]))


if __name__ == "__main__":
    main()

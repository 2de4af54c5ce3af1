"""`topicshark check` with all rules beside tshark that merely decodes, with our dissector and without; how it grows.

    python -m benchmarks.checking                                  # 1 M and 10 M packets, some minutes
    python -m benchmarks.checking --sizes 1e7,1e8                  # 10 GB of disk

tshark reads the first part of the capture, and packets a second are compared. Spark has two cores and is started
before the clock is; how long that takes is told, too. Each capture is checked several times, and its quickest time
counts. In the *hot* captures one client or one topic has most of the traffic (`benchmarks/hot_captures.py`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.hot_captures import SHAPES, write_capture
from benchmarks.measuring import make_capture, measure, numbers
from pcap_tools.codec.detect import wanted_dialects
from spark_analysis.check import judge
from spark_analysis.engine.engines import SparkEngine
from spark_analysis.engine.spark_session import PYTHON_WORK, open_session
from spark_analysis.pipeline import Options
from spark_analysis.sessions.ingested import find_sources

TSHARK_PACKETS = 300_000
HOT_PACKETS = 2_000_000
TSHARK = {"tshark-lines": "with Lua, lines", "tshark-fields": "with Lua, fields", "tshark-plain": "without Lua"}


def check_seconds(spark: Any, capture: Path) -> tuple[float, int]:
    """How long all rules take, and how many datagrams were judged."""
    options = Options(wanted_dialects(["colon"]), summaries=False)

    start = time.perf_counter()
    engine = SparkEngine(spark)
    result = judge(find_sources([str(capture)]), options, False, engine)
    taken = time.perf_counter() - start
    engine.release()
    return taken, sum(session.datagrams for session in result.sessions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=numbers, default=[1_000_000, 10_000_000], help="packets (1e6,1e7)")
    parser.add_argument("--rounds", type=int, default=2, help="how often each capture is checked (2)")
    parser.add_argument("--folder", type=Path, help="where captures are kept for the next run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="topicshark-checking-") as temporary:
        folder = options.folder or Path(temporary)
        captures = {size: make_capture(folder, "colon", size) for size in sorted(options.sizes)}
        spread = {name: write_capture(name, folder / f"{name}.pcap", HOT_PACKETS) for name in SHAPES}
        smallest = captures[min(captures)]
        tshark = {tool: measure(tool, [smallest], TSHARK_PACKETS)[0].rate for tool in TSHARK}
        start = time.perf_counter()
        with open_session("local[2]", PYTHON_WORK) as spark:
            check_seconds(spark, spread["even"])  # workers start, kernels load
            print(f"Spark was ready after {time.perf_counter() - start:.1f} s", file=sys.stderr)

            def quickest(capture: Path) -> float:
                return min(check_seconds(spark, capture)[0] for _ in range(options.rounds))

            rates = {size: size / quickest(capture) for size, capture in captures.items()}
            seconds = {name: quickest(capture) for name, capture in spread.items()}
    for size, rate in rates.items():
        beside = ", ".join(f"{rate / tshark[tool]:.1f} x tshark {how}" for tool, how in TSHARK.items())
        print(f"{size:>12,} packets: {rate:>10,.0f}/s, {beside} (goal 30 with Lua, lines)")
    first, *rest = rates
    for size in rest:
        print(f"a packet of {size:,} costs {rates[first] / rates[size]:.2f} x one of {first:,}")
    for name, shape in SHAPES.items():
        if shape.even:
            print(f"{name}: {seconds[name] / seconds[shape.even]:.2f} x of {shape.even} (goal 1.5)")


if __name__ == "__main__":
    main()

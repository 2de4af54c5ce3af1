"""`topicshark check` with all rules beside tshark with our dissector that merely decodes; and how it grows.

    python -m benchmarks.checking                                  # 1 M and 10 M packets, some minutes
    python -m benchmarks.checking --sizes 1e7,1e8                  # 10 GB of disk

tshark reads the first part of the capture, and packets a second are compared. Spark has two cores and is started
before the clock is; how long that takes is told, too. In the *hot* capture one client publishes nine tenths of all.
"""

from __future__ import annotations

import argparse
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.rates import make_capture, measure, numbers
from spark_analysis.check import Options, judge
from spark_analysis.checker.ingested import find_sources
from spark_analysis.planning import wanted_dialects
from spark_analysis.spark_session import open_session
from spark_analysis.spark_tasks import run_tasks

TSHARK_PACKETS = 300_000
HOT_PACKETS = 2_000_000
HOT = bytes([10, 200, 0, 1])
FILE_HEADER, RECORD, ETHERNET_IP, HEADERS = 24, 16, 14, 42
BROKER = bytes([10, 0, 0, 1])
PUBLISH, PUBACK = 1, 2


def make_hot(capture: Path, share: float = 0.9) -> tuple[Path, float]:
    """The same talk, but one client publishes this share of it; and how many of all packets are that client's."""
    data = bytearray(capture.read_bytes())
    at, number, hot = FILE_HEADER, 0, 0
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at + 8)
        source = at + RECORD + ETHERNET_IP + 12
        kind, to_broker = data[at + RECORD + HEADERS], data[source + 4 : source + 8] == BROKER
        if (kind == PUBLISH and to_broker) or (kind == PUBACK and not to_broker):
            publisher = source if to_broker else source + 4
            if _tile(data, publisher) % 10 < 10 * share:
                data[publisher : publisher + 4] = HOT
                hot += 1
        at, number = at + RECORD + size, number + 1
    path = capture.with_name("hot.pcap")
    path.write_bytes(data)
    return path, hot / number


def _tile(data: bytearray, address: int) -> int:
    """Which of the segments that the capture is made of: hosts have another address in each."""
    return data[address + 1] << 8 | data[address + 2]


def check_seconds(spark: Any, capture: Path) -> tuple[float, int]:
    """How long all rules take, and how many datagrams were judged."""
    options = Options(wanted_dialects(["colon"]), summaries=False)

    def run(function: Callable[[Any], Any], items: Sequence[Any], label: str) -> list[Any]:
        return run_tasks(spark, function, items, label)

    start = time.perf_counter()
    result = judge(find_sources([str(capture)]), options, False, run)
    return time.perf_counter() - start, sum(session.datagrams for session in result.sessions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=numbers, default=[1_000_000, 10_000_000], help="packets (1e6,1e7)")
    parser.add_argument("--folder", type=Path, help="where captures are kept for the next run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="topicshark-checking-") as temporary:
        folder = options.folder or Path(temporary)
        captures = {size: make_capture(folder, "colon", size) for size in sorted(options.sizes)}
        even = make_capture(folder, "colon", HOT_PACKETS)
        hot, busy = make_hot(even)
        tshark = measure("tshark-lines", [min(captures.values())], TSHARK_PACKETS)[0].rate
        start = time.perf_counter()
        with open_session("local[2]") as spark:
            check_seconds(spark, even)  # workers start, kernels load
            print(f"Spark was ready after {time.perf_counter() - start:.1f} s", file=sys.stderr)
            rates = {size: size / check_seconds(spark, capture)[0] for size, capture in captures.items()}
            evenly, hotly = check_seconds(spark, even)[0], check_seconds(spark, hot)[0]
    for size, rate in rates.items():
        print(f"{size:>12,} packets: {rate:>10,.0f}/s, {rate / tshark:5.1f} x tshark with Lua (goal 20)")
    first, *rest = rates
    for size in rest:
        print(f"a packet of {size:,} costs {rates[first] / rates[size]:.2f} x one of {first:,}")
    print(f"one hot client, which has {busy:.0%} of the packets: {hotly / evenly:.2f} x of an even load (goal 1.5)")


if __name__ == "__main__":
    main()

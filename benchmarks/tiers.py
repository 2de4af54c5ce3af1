"""Each quick way of the columnar decoder switched off in turn: what the whole ingest costs without it.

    python -m benchmarks.tiers --packets 1e5 --rounds 1            # does it run?
    python -m benchmarks.tiers --write                             # into docs/performance.md, some minutes

The ingest runs in this process, without Spark: find the splits, read, decode, write Parquet. Times are those of the
processor. In each round every variant runs once, beside the ingest as it is; a figure is the median of the ratios
within a round. A quick way that buys less than 5 % on every capture does not stay in the code.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.measuring import make_capture, number
from benchmarks.page import write_part
from benchmarks.rates.report import table
from pcap_tools.codec.detect import wanted_dialects
from pcap_tools.columnar.decode import tables
from pcap_tools.columnar.decode.plans import PlanColumn
from pcap_tools.columnar.read import frames, reading, splits
from pcap_tools.errors import UsageError
from spark_analysis.ingest import UnitFile, write_unit
from spark_analysis.sources.planning import plan_capture

CAPTURES = (
    ("building", "colon"), ("building", "mqttsn"), ("building", "rolebyte"), ("building", "topicbyte"),
    ("building", "portdigits"), ("fragmented", "colon"),
)  # fmt: skip
SPLIT_BYTES = 32 << 20
Switch = Callable[[], AbstractContextManager[Any]]


@contextmanager
def _plans_changed(changes: dict[PlanColumn, int]) -> Iterator[None]:
    plain = tables.Tables.__init__

    def changed(self: tables.Tables, *arguments: Any) -> None:
        plain(self, *arguments)
        rows = self.program.plans.reshape(-1, len(PlanColumn))
        for column, value in changes.items():
            rows[:, column] = value

    with patch.object(tables.Tables, "__init__", changed):
        yield


def without_usual() -> AbstractContextManager[Any]:
    return patch.object(frames._PcapWalker, "usual", None)


def without_skim() -> AbstractContextManager[Any]:
    return patch.object(splits._Skimming, "_stride", reading.Reading._stride)


def without_plans() -> AbstractContextManager[Any]:
    return _plans_changed({PlanColumn.SIZE: -1})


TIERS: dict[str, Switch] = {
    "skim (the index hops over records)": without_skim,
    "usual (records of pcap straight to rows)": without_usual,
    "plans (only the walk is left)": without_plans,
}


def ingest(capture: Path, dialect: str) -> float:
    """Seconds of the processor, of all that `topicshark ingest` does with a capture but for Spark."""
    dialects = wanted_dialects([dialect])
    with tempfile.TemporaryDirectory(dir=capture.parent) as folder:
        for index in capture.parent.glob(f"{capture.name}.topicshark-index*"):
            index.unlink()
        start = time.process_time()
        rows = 0
        for place, unit in enumerate(plan_capture(str(capture), dialects, SPLIT_BYTES).units):
            rows += write_unit(dialects, UnitFile(unit, folder, str(place))).rows
        seconds = time.process_time() - start
    if not rows:
        raise UsageError(f"{capture}: no rows")
    return seconds


def measure(capture: Path, dialect: str, rounds: int) -> dict[str, float]:
    """For each tier, what the ingest costs without it, as a part of what it costs with it."""
    found: dict[str, list[float]] = {tier: [] for tier in TIERS}
    ingest(capture, dialect)
    for _ in range(rounds):
        whole = 0.0
        for tier, switch in {"": nullcontext, **TIERS}.items():
            with switch():
                seconds = ingest(capture, dialect)
            if tier:
                found[tier].append(seconds / whole)
            else:
                whole = seconds
    return {tier: statistics.median(ratios) for tier, ratios in found.items()}


def report(results: dict[str, dict[str, float]], packets: int, rounds: int) -> str:
    rows = [[tier, *(f"{100 * (one[tier] - 1):+.0f} %" for one in results.values())] for tier in TIERS]
    load = os.getloadavg()[0]
    head = f"{packets:,} packets a capture (in fragments a tenth), medians of {rounds} rounds; load average {load:.1f}."
    return f"{head}\n\n{table(['the whole ingest without', *results], rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=number, default=1_000_000, help="in each capture (1e6)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where captures are kept for the next run")
    parser.add_argument("--write", action="store_true", help="write the table into docs/performance.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="topicshark-tiers-") as temporary:
        folder = options.folder or Path(temporary)
        results = {
            f"{dialect}, {scenario}": measure(
                make_capture(folder, dialect, options.packets // (10 if scenario == "fragmented" else 1), scenario),
                dialect,
                options.rounds,
            )
            for scenario, dialect in CAPTURES
        }
    text = report(results, options.packets, options.rounds)
    print(text)
    if options.write:
        write_part("tiers", text)


if __name__ == "__main__":
    main()

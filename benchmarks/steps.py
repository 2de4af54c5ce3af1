"""What each step of the analysis costs: nanoseconds a packet on one core, and what it hands to the next step.

    python -m benchmarks.steps                                     # 2 M packets, some seconds
    python -m benchmarks.steps --packets 1e7 --scenario churn

The steps run here, one after the other: what Spark adds (starting tasks, handing rows over) is not in it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import make_capture, number
from pcap_tools.codec.detect import wanted_dialects
from spark_analysis.check import judge
from spark_analysis.engine.engines import Fold, LocalEngine, LocalRows, Read
from spark_analysis.pipeline import Options
from spark_analysis.sessions.ingested import find_sources


class TimedEngine(LocalEngine):
    """Adds up by step: processor seconds, and bytes that it gave."""

    def __init__(self) -> None:
        self.steps: dict[str, tuple[float, int]] = {}

    def read(self, function: Read, items: Sequence[Any], label: str) -> LocalRows:
        return self._timed(function, lambda: super(TimedEngine, self).read(function, items, label))

    def fold(
        self, rows: Sequence[LocalRows], kinds: Sequence[str], buckets: int, function: Fold, label: str
    ) -> LocalRows:
        return self._timed(function, lambda: super(TimedEngine, self).fold(rows, kinds, buckets, function, label))

    def _timed(self, function: Any, run: Any) -> LocalRows:
        name = getattr(function, "func", function).__name__.strip("_").replace("_", " ")
        start = time.process_time()
        rows: LocalRows = run()
        taken, size = self.steps.get(name, (0.0, 0))
        self.steps[name] = taken + time.process_time() - start, size + rows.size
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=number, default=2_000_000, help="in the capture (2e6)")
    parser.add_argument("--scenario", default="building", help="as of topicshark generate (building)")
    parser.add_argument("--dialect", default="colon")
    parser.add_argument("--folder", type=Path, help="where captures are kept for the next run")
    chosen = parser.parse_args()
    options = Options(wanted_dialects([chosen.dialect]), summaries=False)
    with tempfile.TemporaryDirectory(prefix="topicshark-steps-") as temporary:
        folder = chosen.folder or Path(temporary)
        capture = make_capture(folder, chosen.dialect, chosen.packets, chosen.scenario)
        sources = find_sources([str(capture)])
        judge(sources, options, False, LocalEngine())  # kernels are loaded
        engine = TimedEngine()
        result = judge(sources, options, False, engine)
    packets = sum(session.datagrams for session in result.sessions)
    print(f"{'step':<18} {'ns a packet':>11} {'bytes a packet':>14}")
    for name, (seconds, size) in engine.steps.items():
        print(f"{name:<18} {seconds / packets * 1e9:>11,.0f} {size / packets:>14.1f}")
    print(f"{'all':<18} {sum(seconds for seconds, _ in engine.steps.values()) / packets * 1e9:>11,.0f}")


if __name__ == "__main__":
    main()

"""How much memory `check` takes in a standalone cluster, and how that grows with the capture.

    python -m benchmarks.memory                                    # churn, 5 M and 20 M packets: some minutes
    python -m benchmarks.memory --write                            # and write the table into docs/performance.md
    python -m benchmarks.memory --scenario building --sizes 1e7,1e8

Told is the highest resident memory of each kind of process. A master and two workers of one core each run on this
machine; `check` runs with all rules, in a process of its own for each capture.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.cluster import command_of, offspring, standalone_cluster
from benchmarks.measuring import make_capture, numbers
from benchmarks.page import write_part
from benchmarks.rates.report import table

EVERY_S = 0.2
KINDS = ("driver, Python", "driver, Java", "executor, Java", "Python worker")
_HIGHEST = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)


def kind_of(process: int) -> str | None:
    """Which of ``KINDS`` a process is."""
    command = command_of(process)
    if "CoarseGrainedExecutorBackend" in command:
        return "executor, Java"
    if "pyspark.daemon" in command:
        return "Python worker"
    if "org.apache.spark.deploy.SparkSubmit" in command:
        return "driver, Java"
    return "driver, Python" if "topicshark.main" in command else None


def highest(process: int) -> int:
    """The most memory that it ever had, in bytes."""
    try:
        found = _HIGHEST.search(Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def check(capture: Path, dialect: str, url: str, workers: list[int]) -> tuple[dict[str, int], float]:
    """Bytes by kind, of the process that took most, and seconds."""
    words = ["check", str(capture), "--dialect", dialect, "--engine", "spark", "--master", url, "--format", "json"]
    start = time.perf_counter()
    running = subprocess.Popen(
        [sys.executable, "-m", "topicshark.main", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    most = dict.fromkeys(KINDS, 0)
    while running.poll() is None:
        every = [running.pid, *offspring(running.pid), *(child for worker in workers for child in offspring(worker))]
        for process in every:
            kind = kind_of(process)
            if kind:
                most[kind] = max(most[kind], highest(process))
        time.sleep(EVERY_S)
    taken = time.perf_counter() - start
    _, said = running.communicate()
    if running.returncode not in (0, 1):
        raise SystemExit(f"check failed:\n{said.decode(errors='replace')}")
    return most, taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=numbers, default=[5_000_000, 20_000_000], help="packets (5e6,2e7)")
    parser.add_argument("--scenario", default="churn", help="as of topicshark generate (churn)")
    parser.add_argument("--dialect", default="colon")
    parser.add_argument("--write", action="store_true", help="write the table into docs/performance.md")
    parser.add_argument("--folder", type=Path, help="where captures are kept for the next run")
    options = parser.parse_args()
    found, seconds = {}, {}
    with tempfile.TemporaryDirectory(prefix="topicshark-memory-") as temporary:
        folder = options.folder or Path(temporary)
        for size in sorted(options.sizes):
            capture = make_capture(folder, options.dialect, size, options.scenario)
            work = Path(temporary, str(size))
            work.mkdir()
            os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
            with standalone_cluster(work) as (url, workers):
                found[size], seconds[size] = check(capture, options.dialect, url, workers)
            print(f"{size:,} packets: {seconds[size]:.0f} s", file=sys.stderr, flush=True)
    text = report(found, seconds, f"{options.scenario}, {options.dialect}")
    print(text)
    if options.write:
        write_part("memory", text)


def report(found: dict[int, dict[str, int]], seconds: dict[int, float], what: str) -> str:
    """A table for docs/performance.md, in MB."""
    rows = [[kind, *(f"{most[kind] / 1e6:,.0f}" for most in found.values())] for kind in KINDS]
    rows.append(["seconds, start of Spark included", *(f"{one:.0f}" for one in seconds.values())])
    return table([f"highest memory, MB ({what})", *(f"{size:,} packets" for size in found)], rows)


if __name__ == "__main__":
    main()

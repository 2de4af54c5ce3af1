"""Captures to measure on, and one tool measured in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.competitors.clock import Measured
from benchmarks.competitors.ours import SPARK_JOBS


def number(text: str) -> int:
    return int(float(text))


def numbers(text: str) -> list[int]:
    return [number(part) for part in text.split(",")]


def make_capture(folder: Path, dialect: str, packets: int, scenario: str = "building") -> Path:
    path = folder / (f"{dialect}-{packets}.pcap" if scenario == "building" else f"{dialect}-{packets}-{scenario}.pcap")
    if not path.exists():
        order = [scenario, "--dialect", dialect, "--packets", str(packets), "-o", str(path)]
        subprocess.run(
            [sys.executable, "-m", "topicshark.main", "generate", *order], check=True, stdout=subprocess.DEVNULL
        )
    return path


def measure(tool: str, captures: Sequence[Path], packets: int = 0) -> list[Measured]:
    """In a process of its own."""
    cores = sorted(os.sched_getaffinity(0))[: 2 if tool in SPARK_JOBS else 1]
    pinned = ["taskset", "-c", ",".join(map(str, cores))] if shutil.which("taskset") else []
    options = ["--packets", str(packets), "--cores", str(len(cores))]
    command = [*pinned, sys.executable, "-m", "benchmarks.competitors", tool, *options, *map(str, captures)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{tool} failed:\n{done.stderr}")
    found = [Measured(**one) for one in json.loads(done.stdout)]
    told = ", ".join(f"{one.packets:,} at {one.rate:,.0f}/s" for one in found)
    print(f"  {tool:<14} {told}", file=sys.stderr, flush=True)
    return found

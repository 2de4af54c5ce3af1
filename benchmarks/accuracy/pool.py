"""Runs in two processes that are started once; what they write lies in a folder that goes away."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from benchmarks.accuracy.jobs import Job
from benchmarks.accuracy.judging import Outcome, run

PROCESSES = 2


def two_processes() -> ProcessPoolExecutor:
    """Started afresh and not forked: numba and Arrow have threads."""
    return ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn"))


def outcomes(pool: ProcessPoolExecutor, name: str, jobs: Sequence[Job], folder: str) -> list[Outcome]:
    """In the order of the jobs, whichever is done first; how far they are stands on stderr."""
    futures = {pool.submit(partial(_run_apart, folder), job): at for at, job in enumerate(jobs)}
    found: dict[int, list[Outcome]] = {}
    for future in as_completed(futures):
        found[futures[future]] = future.result()
        print(f"\r{name}: {len(found)} of {len(jobs)}", end="", file=sys.stderr, flush=True)
    print(end="\n" if jobs else "", file=sys.stderr)
    return [outcome for at in range(len(jobs)) for outcome in found[at]]


def _run_apart(folder: str, job: Job) -> list[Outcome]:
    """In a process of the pool: each has a folder of its own."""
    mine = Path(folder) / str(os.getpid())
    mine.mkdir(exist_ok=True)
    return run(job, mine)

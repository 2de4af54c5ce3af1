"""Simulated runs by the thousand: every network fault at once, invariants judged, each failure replayed from its seed.

    python -m fuzzing.simulations.run --seeds 10000 [--from N] [--dialect D] [--jobs 2]

Seed N is a play of the dialect number N modulo their number, or of the dialect named. Exits 1 if an invariant failed.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache

from fuzzing.simulations.judge import Failure, Judge
from fuzzing.simulations.log import Log
from fuzzing.simulations.random_runs import write_play
from generators.simulation.engine import Simulation
from pcap_tools.dialect import builtin_names
from tests.vectors import dialect_of, own_dialect_names

load = cache(dialect_of)
MAX_SHOWN = 20
CHUNK = 20
PROGRESS = 500


def dialects() -> list[str]:
    """The built-in ones and those of the tests."""
    return [*builtin_names(), *own_dialect_names()]


def dialect_for(seed: int) -> str:
    names = dialects()
    return names[seed % len(names)]


def judge(seed: int, dialect: str) -> tuple[list[Failure], Counter[str]]:
    """Play one seed; what failed, and what was judged."""
    play = write_play(load(dialect), seed)
    simulation = Simulation([play.site], seed, play.network, restarts=play.restarts)
    try:
        run = simulation.run()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return [Failure("no crash", f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})")], Counter()
    judging = Judge(Log(play, run))
    failures = list(judging.failures(simulation))
    judging.figures["datagrams"] += len(run.sent)
    judging.figures["datagrams lost"] += sum(not sent.transit.arrived_ns for sent in run.sent)
    judging.figures["datagrams doubled"] += sum(len(sent.transit.arrived_ns) > 1 for sent in run.sent)
    judging.figures["restarts"] += len(play.restarts)
    judging.figures["partitions"] += len(play.network.cuts)
    return failures, judging.figures


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    figures: Counter[str] = Counter()
    failed = 0
    start = time.monotonic()
    seeds = range(options.first, options.first + options.seeds)
    names = [options.dialect or dialect_for(seed) for seed in seeds]
    for seed, name, (failures, counted) in zip(seeds, names, _judged(seeds, names, options.jobs), strict=True):
        figures += counted
        failed += bool(failures)
        if failures and failed <= MAX_SHOWN:
            _show(seed, name, failures)
        if not (seed + 1 - options.first) % PROGRESS:
            print(f"{seed + 1 - options.first} seeds, {failed} failed", file=sys.stderr, flush=True)
    figures["seeds"], figures["seeds that failed"] = options.seeds, failed
    for name, count in figures.items():
        print(f"{name:52} {count:>12,}")
    print(f"{'seconds':52} {time.monotonic() - start:>12,.1f}")
    return 1 if failed else 0


def _judged(seeds: range, names: list[str], jobs: int) -> Iterator[tuple[list[Failure], Counter[str]]]:
    if jobs < 2:
        yield from map(judge, seeds, names)
        return
    with ProcessPoolExecutor(jobs) as workers:
        yield from workers.map(judge, seeds, names, chunksize=CHUNK)


def _show(seed: int, dialect: str, failures: list[Failure]) -> None:
    for failure in failures[:3]:
        print(f"seed {seed}, {dialect}: {failure.invariant}: {failure.text}")
    print(f"  again: python -m fuzzing.simulations.run --seeds 1 --from {seed} --dialect {dialect}", flush=True)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m fuzzing.simulations.run", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--seeds", type=lambda text: int(float(text)), default=1000, help="how many")
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="N", help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="so many processes")
    parser.add_argument("--dialect", choices=dialects(), help="one dialect for all seeds")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())

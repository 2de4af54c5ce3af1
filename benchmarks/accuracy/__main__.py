"""`python -m benchmarks.accuracy`: run all jobs in two processes and write the page, or print it for a part of them."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.accuracy import jobs as plan
from benchmarks.accuracy import pipelined
from benchmarks.accuracy.page import Results, page
from benchmarks.accuracy.pool import outcomes, two_processes
from generators.simulation.fault import CATALOGUE

PAGE = plan.ROOT / "docs" / "accuracy.md"
SEEDS, CLEAN_RUNS, DAMAGED_RUNS, PUBLISHES = 3, 500, 100, 10_000
QUICK_DIALECTS = ("colon", "rolebyte", "topicnumber")
DAMAGED_FROM = 10_000  # seeds of their own, this much higher
FIRST_SEED = 1_000_001  # lower ones are for development
_DEFAULTS = (("seeds", SEEDS), ("first_seed", FIRST_SEED))


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = _options(words)
    started = time.monotonic()
    parts = _jobs(options)
    with tempfile.TemporaryDirectory() as folder:
        with two_processes() as pool:
            faulty, clean, damaged = (outcomes(pool, name, part, folder) for name, part in parts.items())
        measured = _measured(options, Path(folder))
    took, day = time.monotonic() - started, f"{datetime.now(UTC):%Y-%m-%d}"
    results = Results(faulty, clean, damaged, measured, took, day, _command(options))
    if words and options.output is None:
        print(page(results))
    else:
        (options.output or PAGE).write_text(page(results))
    print("what must hold does" if results.is_good else "NOT all holds that must: see the page", file=sys.stderr)
    return 0 if results.is_good else 1


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"of each fault and dialect ({SEEDS})")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED, help=f"of all runs ({FIRST_SEED})")
    parser.add_argument("--clean", type=int, default=None, help=f"runs without faults in all ({CLEAN_RUNS})")
    parser.add_argument("--dialect", action="append", help="only this one; may be given again")
    faults = [name for name, fault in CATALOGUE.items() if not fault.is_condition]
    parser.add_argument("--fault", choices=faults, metavar="NAME", help="only this one, and no runs without faults")
    parser.add_argument("--point", choices=plan.POINTS, help="only captures taken there")
    parser.add_argument("--quick", action="store_true", help="three dialects, one seed")
    parser.add_argument("--output", type=Path, help="where to; docs/accuracy.md if there are no options, else stdout")
    options = parser.parse_args(words)
    if options.quick:
        options.dialect, options.seeds = options.dialect or list(QUICK_DIALECTS), 1
    return options


def _command(options: argparse.Namespace) -> str:
    """What was asked for; where the page went to is nobody's business."""
    asked = {name: value for name, value in vars(options).items() if name != "output"}
    words = ["python", "-m", "benchmarks.accuracy"]
    for name, value in asked.items():
        if value is True:
            words.append(f"--{name}")
        elif value is not None and value is not False and (name, value) not in _DEFAULTS:
            words += [
                word
                for one in (value if isinstance(value, list) else [value])
                for word in (f"--{name.replace('_', '-')}", str(one))
            ]
    return shlex.join(words)


def _jobs(options: argparse.Namespace) -> dict[str, list[plan.Job]]:
    dialects = options.dialect or plan.all_dialects()
    points = (options.point,) if options.point else plan.POINTS
    count = CLEAN_RUNS * len(dialects) // len(plan.all_dialects()) if options.clean is None else options.clean
    damaged = count * DAMAGED_RUNS // CLEAN_RUNS
    if options.fault:
        count = damaged = 0
    first = options.first_seed
    return {
        "faults": list(plan.faulty_jobs(dialects, options.seeds, points, options.fault, options.first_seed)),
        "clean": list(plan.clean_jobs(dialects, count, points, first_seed=first)),
        "damaged": list(plan.clean_jobs(dialects, damaged, points, plan.DAMAGED, first + DAMAGED_FROM)),
    }


def _measured(options: argparse.Namespace, folder: Path) -> list[pipelined.Matched]:
    if options.fault:
        return []
    publishes = PUBLISHES // 5 if options.quick else PUBLISHES
    wanted = [name for name in pipelined.DIALECTS if not options.dialect or name in options.dialect]
    return [pipelined.measure(name, folder, publishes) for name in wanted]


if __name__ == "__main__":
    sys.exit(main())

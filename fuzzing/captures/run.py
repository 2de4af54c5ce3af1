"""Mutated captures by the hundred thousand through both readers and `decode`.

    python -m fuzzing.captures.run --count 1e5 --seed 1 --save build/captures

Each is read in a worker process that the kernel kills after 10 s (SIGALRM, so also inside compiled code) and whose peak
of resident memory is told for each capture alone. A crash, a hang, an exception that is not ours, two readers that do
not agree, a frame lost that is before the damage, or more than 300 MB end in exit code 1, and the capture is saved.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from fuzzing.captures.mutants import MUTATORS, Mutant, make_mutant
from fuzzing.captures.trial import Verdict, try_capture

MEGABYTE = 1 << 20
SECONDS, MEGABYTES = 10.0, 300
# What a worker may take beyond that: then it is a MemoryError in there, and not the end of other programs here.
_HARD = 1 << 30

Trial = Callable[[Mutant, Path], Verdict]


@dataclass(frozen=True)
class Settings:
    """What is to be run; tests plant another `trial`."""

    count: int
    seed: int = 1
    jobs: int = 2
    seconds: float = SECONDS
    megabytes: int = MEGABYTES
    trial: Trial = try_capture


class Report(NamedTuple):
    """What became of one capture; `trouble` is the class of what was wrong, or empty."""

    number: int
    trouble: str = ""
    text: str = ""
    verdict: Verdict = Verdict(0, 0, False, False, ())
    megabytes: int = 0
    seconds: float = 0.0


@dataclass
class Figures:
    """What all reports say together."""

    captures: int = 0
    frames: int = 0
    datagrams: int = 0
    damaged: int = 0
    refused: int = 0
    megabytes: int = 0
    seconds: float = 0.0
    troubles: Counter[str] = field(default_factory=Counter)
    failures: list[Report] = field(default_factory=list)

    def add(self, report: Report) -> None:
        self.captures += 1
        self.frames += report.verdict.frames
        self.datagrams += report.verdict.datagrams
        self.damaged += report.verdict.damaged
        self.refused += report.verdict.refused
        self.megabytes = max(self.megabytes, report.megabytes)
        self.seconds = max(self.seconds, report.seconds)
        if report.trouble:
            self.troubles[report.trouble] += 1
            self.failures.append(report)


# --- In a worker ----------------------------------------------------------------------------------------------------


def _work(settings: Settings, numbers: range, out: Connection) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "capture"
        try_capture(make_mutant(0, 0), place)  # loads all kernels, which counts for no capture
        resource.setrlimit(resource.RLIMIT_DATA, (_status("VmData") + _HARD, resource.RLIM_INFINITY))
        for number in numbers:
            out.send(_judge(settings, number, place))


def _judge(settings: Settings, number: int, place: Path) -> Report:
    mutant = make_mutant(settings.seed, number)
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory is counted from here
    begin = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, settings.seconds)
    trouble, text, verdict = _tried(settings.trial, mutant, place)
    signal.setitimer(signal.ITIMER_REAL, 0)
    took, peak = time.monotonic() - begin, _status("VmHWM") // MEGABYTE
    if not trouble and peak >= settings.megabytes:
        trouble, text = "memory", f"{peak} MB"
    return Report(number, trouble, text, verdict, peak, took)


def _tried(trial: Trial, mutant: Mutant, place: Path) -> tuple[str, str, Verdict]:
    try:
        verdict = trial(mutant, place)
    except MemoryError:
        return "memory", f"more than {_HARD // MEGABYTE} MB", Report(0).verdict
    except Exception:
        return "foreign exception", traceback.format_exc(), Report(0).verdict
    return "disagreement" if verdict.complaints else "", "\n".join(verdict.complaints), verdict


def _status(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


# --- Over the workers -----------------------------------------------------------------------------------------------


@dataclass
class _Worker:
    """A process, and which captures are still to be done by it or, if it dies, by the next one."""

    process: BaseProcess
    reports: Connection
    numbers: range


def _start(settings: Settings, numbers: range) -> _Worker:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(settings, numbers, sender), daemon=True)
    process.start()
    sender.close()
    return _Worker(process, receiver, numbers)


def run(settings: Settings) -> Iterator[Report]:
    """One report for each capture, as they come."""
    shares = [range(first, settings.count, settings.jobs) for first in range(min(settings.jobs, settings.count))]
    workers = [_start(settings, share) for share in shares]
    while workers:
        ready = wait([worker.reports for worker in workers])
        for worker in [one for one in workers if one.reports in ready]:
            try:
                report = worker.reports.recv()
                worker.numbers = worker.numbers[1:]
            except (EOFError, OSError):
                workers.remove(worker)
                worker.process.join()
                if not worker.numbers:
                    continue
                report = _died(worker)
                if len(worker.numbers) > 1:
                    workers.append(_start(settings, worker.numbers[1:]))
            yield report


def _died(worker: _Worker) -> Report:
    """The capture that it had in hand."""
    code = worker.process.exitcode
    if code == -signal.SIGALRM:
        return Report(worker.numbers[0], "hang", "not done in time")
    return Report(worker.numbers[0], "crash", f"the process ended with {code}")


# --- The command ----------------------------------------------------------------------------------------------------


def save(settings: Settings, report: Report, folder: Path) -> None:
    """The capture, and what was wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    mutant = make_mutant(settings.seed, report.number)
    path = folder / f"{settings.seed}-{report.number}.capture"
    path.write_bytes(mutant.content)
    about = f"{report.trouble}: {mutant.kind}, from {mutant.origin}\n{report.text}\n"
    path.with_suffix(".txt").write_text(about)


def told(figures: Figures, settings: Settings) -> str:
    """The figures, for people."""
    found = ", ".join(f"{count} {name}" for name, count in figures.troubles.items()) or "nothing wrong"
    return (
        f"{figures.captures:,} mutated captures of {len(MUTATORS)} classes (seed {settings.seed}): "
        f"{figures.frames:,} frames and {figures.datagrams:,} datagrams read, {figures.damaged:,} captures damaged, "
        f"{figures.refused:,} refused; slowest {figures.seconds:.2f} s, most memory {figures.megabytes} MB: {found}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Mutated captures through both readers and decode.")
    parser.add_argument("--count", type=lambda text: int(float(text)), default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--save", type=Path, default=Path("build/captures"), help="where offending captures go")
    return parser.parse_args()


def main() -> int:
    given: Any = _arguments()
    settings, figures = Settings(given.count, given.seed, given.jobs), Figures()
    for report in run(settings):
        figures.add(report)
        if report.trouble:
            save(settings, report, given.save)
            print(f"capture {report.number}: {report.trouble}: {report.text.strip()[-500:]}", file=sys.stderr)
        if figures.captures % 10_000 == 0:
            print(told(figures, settings), file=sys.stderr)
    print(told(figures, settings))
    return 1 if figures.failures else 0


if __name__ == "__main__":
    sys.exit(main())

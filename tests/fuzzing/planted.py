"""A trial with faults planted in it, one at each of some captures, to see that the runner notices."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from pathlib import Path

from fuzzing.captures.mutants import Mutant, make_mutant
from fuzzing.captures.trial import Verdict, try_capture

SEED = 1
_GOOD = Verdict(0, 0, False, False, ())
_HELD: list[bytes] = []
_MUCH = 300 << 20


def faulty(mutant: Mutant, path: Path) -> Verdict:
    """Does what is planted at the number of this mutant."""
    for number, (plant, _) in PLANTED.items():
        if mutant == make_mutant(SEED, number):
            return plant(mutant, path)
    return _GOOD


def _crash(mutant: Mutant, path: Path) -> Verdict:
    """In compiled code, where no exception can be caught."""
    ctypes.string_at(0)
    return _GOOD


def _leave(mutant: Mutant, path: Path) -> Verdict:
    os._exit(0)


def _hang(mutant: Mutant, path: Path) -> Verdict:
    """For ever, unless the runner has set a timer. That may be a long one; here it runs out at once."""
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    if left:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        signal.pause()
    return _GOOD


def _spike(mutant: Mutant, path: Path) -> Verdict:
    """Much memory, which is given back before anyone looks."""
    return _GOOD if len(b"x" * _MUCH) else Verdict(0, 0, False, False, ("no memory",))


def _foreign(mutant: Mutant, path: Path) -> Verdict:
    raise KeyError("not one of ours")


def _lost_frame(mutant: Mutant, path: Path) -> Verdict:
    """What a reader that loses a frame before the damage would look like to the judge."""
    return try_capture(Mutant(mutant.kind, mutant.origin, mutant.content, (b"never read", *mutant.sound)), path)


def _leak(mutant: Mutant, path: Path) -> Verdict:
    _HELD.append(b"x" * _MUCH)
    return _GOOD


# By the number of the capture, with what the runner should call it. What leaks stays, so it comes last.
PLANTED: dict[int, tuple[Callable[[Mutant, Path], Verdict], str]] = {
    1: (_crash, "crash"),
    2: (_leave, "crash"),
    4: (_hang, "hang"),
    6: (_spike, "memory"),
    7: (_foreign, "foreign exception"),
    9: (_lost_frame, "disagreement"),
    10: (_leak, "memory"),
}
COUNT = 11

"""Work counted in lines of Python that ran: the same number on every machine, however busy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

MOST = 20_000_000


class TooManySteps(AssertionError):
    """The work has no end in sight: what would be a hang elsewhere."""


def steps_of(work: Callable[..., object], *arguments: object) -> int:
    """How many lines a call runs. Each round of a loop and each turn of a generator counts."""
    steps = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps > MOST:
            raise TooManySteps(f"more than {MOST:,} lines ran")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work(*arguments)
    finally:
        sys.settrace(before)
    return steps

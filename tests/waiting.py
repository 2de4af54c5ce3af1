"""Waiting for a condition. The only place where tests sleep and look at a clock.

The deadline is there to end a hang, so it is far longer than anything takes, on the busiest machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 60.0
LOOK_S = 0.01


def wait_until(condition: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    """Return as soon as the condition holds.

    >>> wait_until(lambda: path.exists(), "the capture is written")      # doctest: +SKIP
    """
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {patience_s:.0f} s in vain until {what}")
        time.sleep(LOOK_S)

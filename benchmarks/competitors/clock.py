"""What a run costs: processor time, which a busy machine disturbs less than the clock on the wall; and peak memory."""

from __future__ import annotations

import re
import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Measured:
    """One run of a tool over one capture. `memory_mb` is the peak of the process that held most."""

    packets: int
    bytes: int
    seconds: float
    start: float = 0.0
    memory_mb: int = 0

    @property
    def rate(self) -> float:
        """Packets a second."""
        return self.packets / self.seconds

    @property
    def bandwidth(self) -> float:
        """Bytes of the capture a second."""
        return self.bytes / self.seconds


def spent() -> float:
    """Processor seconds of this process and of its children that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def cost(work: Callable[[], object]) -> float:
    """Processor seconds of `work`."""
    before = spent()
    work()
    return spent() - before


def peak_mb(process: str = "self") -> int:
    """Of that process alone: `getrusage` would count the one it was forked from."""
    try:
        found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    except OSError:  # it has ended, or this is no Linux
        return 0
    return int(found[1]) // 1024 if found else 0

"""What a soak measures of its processes, from Linux's /proc: memory and open files of each with all its children."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Usage:
    """Of one process and its children: megabytes in memory, and open files."""

    megabytes: float = 0.0
    files: int = 0


def usage(pid: int) -> Usage:
    """Nothing, if it has ended."""
    family = _family(pid)
    return Usage(sum(map(_megabytes, family)), sum(map(_files, family)))


def _family(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        try:
            children = Path(f"/proc/{one}/task/{one}/children").read_text().split()
        except OSError:
            continue
        found += [int(child) for child in children]
    return found


def _megabytes(pid: int) -> float:
    """What is its own: pages that children share with it are not counted twice."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _files(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0

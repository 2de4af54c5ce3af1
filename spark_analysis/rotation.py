"""Which files of a folder into which captures are rotated are finished, and in which order they were written.

`tcpdump -G` puts the time into the name, `tcpdump -C` a number behind it: names rise, in the order of their numbers. A
file is finished when a later one of its series is there, for a writer opens the next one when it has closed this one;
or when it has not changed for a while, since the last one has no successor. A series is what has the same name but
for the numbers. Objects of a store appear when they are complete.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from posixpath import basename

from pcap_tools.columnar.read.sources import is_remote

_NUMBER = re.compile(r"\d+")
# The header of a pcap file. A shorter one waits for its writer's first flush, for however long; or holds nothing.
_LEAST = 24


def written_order(captures: Iterable[str]) -> list[str]:
    """Earlier ones first: numbers count as numbers, so 9 is before 10; a name without one is before those with it."""
    return sorted(captures, key=_order)


def _order(capture: str) -> tuple[list[tuple[int, str]], str]:
    """By texts and numbers in turn; the name itself tells apart what is equal so far (`7` and `07`)."""
    texts = _NUMBER.split(capture)
    numbers = [int(digits) for digits in _NUMBER.findall(capture)]
    return [(number, text) for number, text in zip([-1, *numbers], texts, strict=True)], capture


def finished(captures: Iterable[str], settle: float, now: Callable[[], float] = time.time) -> list[str]:
    """Those that nobody writes to any more, in the order in which they were written."""
    ordered = written_order(captures)
    newest = {_series(capture): capture for capture in ordered}
    return [
        capture
        for capture in ordered
        if is_remote(capture) or _is_finished(capture, newest[_series(capture)] != capture, now() - settle)
    ]


def _series(capture: str) -> str:
    name = basename(capture)
    return capture.removesuffix(name) + _NUMBER.sub("", name)


def _is_finished(path: str, has_successor: bool, settled: float) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False  # taken away since it was listed
    return status.st_size >= _LEAST and (has_successor or status.st_mtime <= settled)

"""A streaming query over a folder into which captures are rotated: each finished file, exactly once.

An offset is the sorted list of the files that were read up to there and are still in the folder. What a batch reads
is the difference of two offsets, both of which Spark has written to its checkpoint before: it is the same after a
restart, whatever has come meanwhile. Files may finish in any order, and the list is never longer than the folder's.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from glob import has_magic
from posixpath import basename
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from pcap_tools.columnar.read.sources import is_remote
from pcap_tools.errors import TopicsharkError

from ..engine.worker_gc import spared
from .captures import find_captures
from .reading import SourceReading, UnitPartition, plain_errors
from .session_names import session_names

Offset = dict[str, Any]


class FolderStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows a folder, or a glob."""

    def __init__(self, reading: SourceReading) -> None:
        self._reading = reading
        self._last: frozenset[str] | None = None

    def initialOffset(self) -> Offset:
        """Nothing read; what is in the folder already comes first."""
        return _offset([])

    def getDefaultReadLimit(self) -> ReadLimit:
        """The option ``maxfilespertrigger``."""
        most = self._reading.options.max_files
        return ReadMaxFiles(most) if most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """What finishes after this moment is for the next run."""
        with plain_errors():
            self._last = frozenset(self._finished(self._listed()))

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """`start` and the files that have finished since, as many as the limit allows."""
        with plain_errors():
            listed = self._listed()
            read = set(start["files"])
            fresh = [file for file in self._finished(listed) if file not in read]
        if self._last is not None:
            fresh = [file for file in fresh if file in self._last]
        if isinstance(limit, ReadMaxFiles):
            fresh = fresh[: limit.max_files]
        # Before Spark notes that they are to be read: once noted, what cannot be read stops the query for good.
        self._plan(fresh)
        return _offset([*read.intersection(listed), *fresh]) if fresh else start

    def partitions(self, start: Offset, end: Offset) -> Sequence[UnitPartition]:
        """The units of the files that are in `end` and not in `start`."""
        fresh = set(end["files"]).difference(start["files"])
        return self._plan(written_order(fresh))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a task."""
        return spared(self._reading.read(partition))

    def _plan(self, files: Sequence[str]) -> list[UnitPartition]:
        """The second time costs little. A session has the name that the file alone, or the folder, gives it."""
        options = self._reading.options
        named_by = [options.sources[0].rstrip("/")] * len(files) if options.merge else files
        with plain_errors():
            return self._reading.plan(files, [session_names([name])[0] for name in named_by])

    def _finished(self, listed: Sequence[str]) -> list[str]:
        return finished(listed, self._reading.options.settle)

    def _listed(self) -> list[str]:
        """All captures there are; of a folder or a glob there may be none yet."""
        return [capture for source in self._reading.options.sources for capture in _captures_in(source)]


def _captures_in(source: str) -> list[str]:
    try:
        return find_captures([source])
    except TopicsharkError:
        if _may_be_empty(source):
            return []
        raise


def _may_be_empty(source: str) -> bool:
    """A folder that can be looked into, or a glob."""
    path = os.path.expanduser(source.removeprefix("file://"))
    if is_remote(source):
        return False
    return os.access(path, os.R_OK | os.X_OK) if os.path.isdir(path) else has_magic(path)


def _offset(files: Sequence[str]) -> Offset:
    return {"files": sorted(files)}


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

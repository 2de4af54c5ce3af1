"""Sources of the checker: captures, and folders that `topicshark ingest` has filled, whose Parquet is read instead.

>>> find_sources(["monday.pcap", "week/"]).folders[0].sessions  # doctest: +SKIP
{'tuesday': [SourceEntry(uri='/captures/tuesday.pcap', ...)]}

The manifest says which files count; the captures themselves need not be there any more.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pcap_tools.columnar.sources import is_remote
from pcap_tools.errors import TopicsharkError, UsageError

from ..captures import find_captures
from ..manifest import NAME, SourceEntry, load_manifest
from ..store import MESSAGES
from .events import COLUMNS


@dataclass(frozen=True)
class Folder:
    """One that was ingested into."""

    path: Path

    @cached_property
    def sessions(self) -> dict[str, list[SourceEntry]]:
        """What was read from captures, by session. An entry without files is of a capture without messages."""
        found: dict[str, list[SourceEntry]] = {}
        for entry in load_manifest(self.path).sources.values():
            found.setdefault(entry.session, []).append(entry)
        return found

    @property
    def messages(self) -> Path:
        """Below it are the files, a folder for each session."""
        return self.path / MESSAGES

    def files(self, entry: SourceEntry) -> list[str]:
        """In the order of the capture."""
        return [str(self.path / file.name) for file in entry.files]

    def check_columns(self) -> None:
        """Raises `TopicsharkError` if a capture was ingested before all columns that rules need existed."""
        for entry in (entry for entries in self.sessions.values() for entry in entries if entry.files):
            first = self.files(entry)[0]
            try:
                missing = [name for name in COLUMNS if name not in pq.read_schema(first).names]
            except (OSError, pa.ArrowException) as error:
                raise TopicsharkError(f"{first}: cannot be read: {error}") from error
            if missing:
                raise TopicsharkError(
                    f"{self.path}: ingested by an older topicshark, without the columns {', '.join(missing)}; "
                    "ingest the captures again, into a new folder"
                )


@dataclass(frozen=True)
class Sources:
    """What a user named, told apart."""

    captures: tuple[str, ...]
    folders: tuple[Folder, ...] = ()

    @property
    def bytes(self) -> int | None:
        """Of all captures, also of those that were ingested; None if some are elsewhere."""
        if any(is_remote(capture) for capture in self.captures):
            return None
        entries = [entry for folder in self.folders for found in folder.sessions.values() for entry in found]
        return sum(map(_size, self.captures)) + sum(entry.size for entry in entries)


def find_sources(sources: Sequence[str]) -> Sources:
    """All that the sources name, each once. A source that gives nothing is a `TopicsharkError`."""
    folders = {source: Path(_absolute(source)) for source in sources if _is_ingested(source)}
    others = [source for source in sources if source not in folders]
    captures = find_captures(others) if others or not folders else []
    found = Sources(tuple(captures), tuple(Folder(path) for path in sorted(set(folders.values()))))
    for folder in found.folders:
        if not folder.sessions:
            raise TopicsharkError(f"{folder.path}: nothing was ingested into it")
    return found


def _size(capture: str) -> int:
    """Why one cannot be read is told when that is tried."""
    try:
        return os.path.getsize(capture)
    except OSError:
        return 0


def check_merge(sources: Sources) -> None:
    """Raises `UsageError` if captures that were ingested are to be merged: theirs is done."""
    if sources.folders:
        raise UsageError(
            f"{sources.folders[0].path}: the sessions of an ingested folder are made by topicshark ingest --merge; "
            "captures can be merged here"
        )


def _is_ingested(source: str) -> bool:
    """Other programs have a `manifest.json`, too."""
    if source == "-" or is_remote(source):
        return False
    folder = _absolute(source)
    return os.path.isfile(os.path.join(folder, NAME)) and os.path.isdir(os.path.join(folder, MESSAGES))


def _absolute(source: str) -> str:
    return os.path.abspath(os.path.expanduser(source.removeprefix("file://")))

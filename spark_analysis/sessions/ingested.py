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
from posixpath import basename

from pcap_tools.columnar.read.sources import is_remote
from pcap_tools.dialect import Dialect
from pcap_tools.errors import TopicsharkError, UsageError

from ..checker.rulebook.needs import needs_of
from ..sources.captures import find_captures, is_capture_name
from ..storage.manifest import Manifest, SourceEntry, check_columns, file_places, is_ingested, load_manifest


@dataclass(frozen=True)
class IngestedFolder:
    """One that was ingested into. ``where`` is an absolute path, or a URI."""

    where: str

    @cached_property
    def manifest(self) -> Manifest:
        return load_manifest(self.where)

    @cached_property
    def sessions(self) -> dict[str, list[SourceEntry]]:
        """What was read from captures, by session. An entry without files is of a capture without messages."""
        found: dict[str, list[SourceEntry]] = {}
        for entry in self.manifest.sources.values():
            found.setdefault(entry.session, []).append(entry)
        return found

    def files(self, entry: SourceEntry) -> list[str]:
        """In the order of the capture."""
        return file_places(self.where, entry)

    def check_columns(self, dialects: Sequence[Dialect]) -> None:
        """Raises `TopicsharkError` if a capture was ingested before all columns existed that rules of its dialects
        need."""

        def needs(names: Sequence[str]) -> dict[str, str]:
            return needs_of([dialect for dialect in dialects if dialect.name in names])

        check_columns(self.where, self.manifest, needs)


@dataclass(frozen=True)
class Sources:
    """What a user named, told apart."""

    captures: tuple[str, ...]
    folders: tuple[IngestedFolder, ...] = ()

    @property
    def bytes(self) -> int | None:
        """Of all captures, also of those that were ingested; None if some are elsewhere."""
        if any(is_remote(place) for place in (*self.captures, *(folder.where for folder in self.folders))):
            return None
        entries = [entry for folder in self.folders for found in folder.sessions.values() for entry in found]
        return sum(map(_size, self.captures)) + sum(entry.size for entry in entries)


def find_sources(sources: Sequence[str]) -> Sources:
    """All that the sources name, each once. A source that gives nothing is a `TopicsharkError`."""
    folders = {source: _absolute(source) for source in sources if _is_ingested(source)}
    others = [source for source in sources if source not in folders]
    captures = find_captures(others) if others or not folders else []
    found = Sources(tuple(captures), tuple(IngestedFolder(where) for where in sorted(set(folders.values()))))
    for folder in found.folders:
        if not folder.sessions:
            raise TopicsharkError(f"{folder.where}: nothing was ingested into it")
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
            f"{sources.folders[0].where}: the sessions of an ingested folder are made by topicshark ingest --merge; "
            "captures can be merged here"
        )


def _is_ingested(source: str) -> bool:
    """A store is not asked about what has the name of a capture."""
    if is_remote(source) and is_capture_name(basename(source.partition("?")[0])):
        return False
    return is_ingested(source)


def _absolute(source: str) -> str:
    return source if is_remote(source) else os.path.abspath(os.path.expanduser(source.removeprefix("file://")))

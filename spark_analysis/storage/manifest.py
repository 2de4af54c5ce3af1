"""`manifest.json`: what a folder of ingested messages holds, from which captures, and how well they could be read.

>>> manifest = load_manifest("s3://bucket/week")                       # or a path           # doctest: +SKIP
>>> [file_places("s3://bucket/week", entry) for entry in manifest.sources.values()]          # doctest: +SKIP

The manifest is the truth about the folder: a file that it does not list is no part of it. It is replaced at once or
not at all.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from pcap_tools.columnar.decode.schema import SCHEMA_VERSION
from pcap_tools.errors import TopicsharkError

from .folder import Folder, open_folder, open_input

NAME = "manifest.json"
VERSION = 2
_READABLE = (1, 2)  # 1 has no `schema`
_MOST_NAMED = 20


@dataclass(frozen=True)
class DataFile:
    """A Parquet file, by its path within the folder."""

    name: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class SourceEntry:
    """One capture.

    version      of the source: changes when its content does
    fingerprint  SHA-256 over the size (8 bytes, big-endian), the first and the last MiB
    wish         the same for calls that look for the same dialects and write the same columns
    dialects     those found, and `evidence` why: the strongest sentences
    frames       the number of its last frame; None for gzip
    decoded      datagrams that are rows; `other` are in no known dialect
    times        of the first and the last message, nanoseconds
    schema       the version of the files' columns; 0 from before there were versions
    """

    uri: str
    size: int
    version: str
    fingerprint: str
    wish: str
    session: str
    dialects: list[str]
    evidence: list[str]
    frames: int | None
    decoded: int
    other: int
    times: list[int] | None
    damage: list[dict[str, Any]]
    warnings: list[str]
    files: list[DataFile]
    schema: int = 0


@dataclass(frozen=True)
class Manifest:
    """All captures of a folder, by their names."""

    sources: dict[str, SourceEntry] = field(default_factory=dict)

    def with_entries(self, entries: Iterable[SourceEntry]) -> Manifest:
        """These in place of what was there of the same captures."""
        return Manifest({**self.sources, **{entry.uri: entry for entry in entries}})

    @property
    def files(self) -> set[str]:
        """The names of all files."""
        return {file.name for entry in self.sources.values() for file in entry.files}


def is_ingested(where: str | Path) -> bool:
    """Whether a path or URI is a folder that was ingested into. Other programs have a `manifest.json`, too."""
    if str(where) == "-":
        return False
    try:
        told = open_folder(where).read(NAME)
    except TopicsharkError:
        return False  # who reads captures there says what is wrong
    return told is not None and b'"sources"' in told


def load_manifest(where: str | Path) -> Manifest:
    """That of the folder at a path or URI, an empty one if there is none."""
    return read_manifest(open_folder(where))


def read_manifest(folder: Folder) -> Manifest:
    """The same of an open folder."""
    data, place = folder.read(NAME), f"{folder.name}/{NAME}"
    if data is None:
        return Manifest()
    try:
        told = json.loads(data.decode("ascii"))
        if told["version"] not in _READABLE:
            raise TopicsharkError(f"{place}: of version {told['version']}, this topicshark knows {VERSION}")
        return Manifest({one["uri"]: _entry(one) for one in told["sources"]})
    except (ValueError, KeyError, TypeError) as error:
        raise TopicsharkError(f"{place}: not a manifest of topicshark: {error!r}") from error


def _entry(told: dict[str, Any]) -> SourceEntry:
    """Names lead into the folder of their session and nowhere else, whoever wrote the manifest."""
    entry = SourceEntry(**{**told, "files": [DataFile(**file) for file in told["files"]]})
    place = ("messages", f"session={entry.session}")
    for file in entry.files:
        parts = PurePosixPath(file.name).parts
        if parts[:-1] != place or parts[-1] == "..":
            raise ValueError(f"{file.name!r} is no file of session {entry.session!r}")
    if "/" in entry.session or "\0" in entry.session:
        raise ValueError(f"{entry.session!r} is no session's name")
    return entry


def save_manifest(folder: Folder, manifest: Manifest) -> None:
    """Replace it at once. Names that are no text stay what they are: JSON in ASCII holds them."""
    entries = sorted(manifest.sources.values(), key=lambda entry: entry.uri)
    text = json.dumps({"version": VERSION, "sources": [asdict(entry) for entry in entries]}, indent=1)
    folder.write(NAME, f"{text}\n".encode("ascii"))


def file_places(where: str | Path, entry: SourceEntry) -> list[str]:
    """Paths or URIs of a capture's files, in the order of the capture; `open_input` opens them."""
    folder = open_folder(where)
    return [folder.place(file.name) for file in entry.files]


def check_columns(where: str | Path, manifest: Manifest, needs: Callable[[Sequence[str]], Mapping[str, str]]) -> None:
    """Raises `TopicsharkError` if a capture was ingested by a newer topicshark, or by an older one without a column
    that is needed; says the command that ingests it again. ``needs`` has the columns that dialects need, and why.
    """
    for entry in (entry for entry in manifest.sources.values() if entry.files):
        if entry.schema > SCHEMA_VERSION:
            raise TopicsharkError(
                f"{where}: {entry.uri} was ingested by a newer topicshark (schema {entry.schema}, this one knows "
                f"{SCHEMA_VERSION}); use that one, or ingest into a new folder"
            )
        missing = [] if entry.schema == SCHEMA_VERSION else _missing(where, entry, needs(entry.dialects))
        if missing:
            raise TopicsharkError(
                f"{where}: {entry.uri} was ingested by an older topicshark, without columns that rules need: "
                f"{'; '.join(missing)}; ingest again, with the options of the first time: {_command(where, manifest)}"
            )


def _missing(where: str | Path, entry: SourceEntry, needs: Mapping[str, str]) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    first = file_places(where, entry)[0]
    try:
        with open_input(first) as file:
            there = pq.read_schema(file).names
    except (OSError, pa.ArrowException) as error:
        raise TopicsharkError(f"{first}: cannot be read: {error}") from error
    return [f"{name} ({why})" for name, why in needs.items() if name not in there]


def _command(where: str | Path, manifest: Manifest) -> str:
    """All captures that are older; if these are many, the folders they are in."""
    old = [entry.uri for entry in manifest.sources.values() if entry.schema < SCHEMA_VERSION]
    named = sorted(old) if len(old) <= _MOST_NAMED else sorted({uri.rpartition("/")[0] for uri in old})
    return shlex.join(["topicshark", "ingest", *named, "-o", str(where)])

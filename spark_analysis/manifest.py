"""`manifest.json`: what a folder of ingested messages holds, from which captures, and how well they could be read.

The manifest is the truth about the folder: a file that it does not list is no part of it. It is replaced at once or
not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile
from typing import Any

from pcap_tools.errors import TopicsharkError

NAME = "manifest.json"
TEMPORARY = ".manifest-"
VERSION = 1


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


def load_manifest(folder: Path) -> Manifest:
    """That of a folder, an empty one if there is none."""
    place = folder / NAME
    try:
        text = place.read_text(encoding="ascii")
    except FileNotFoundError:
        return Manifest()
    except (OSError, ValueError) as error:
        raise TopicsharkError(f"{place}: cannot be read: {error}") from error
    try:
        told = json.loads(text)
        if told["version"] != VERSION:
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


def save_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace it at once. Names that are no text stay what they are: JSON in ASCII holds them."""
    entries = sorted(manifest.sources.values(), key=lambda entry: entry.uri)
    text = json.dumps({"version": VERSION, "sources": [asdict(entry) for entry in entries]}, indent=1)
    with NamedTemporaryFile("w", dir=folder, prefix=TEMPORARY, delete=False, encoding="ascii") as file:
        file.write(text + "\n")
        file.flush()
        os.fchmod(file.fileno(), 0o644)
        os.fsync(file.fileno())
    os.replace(file.name, folder / NAME)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Have its names on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""A folder of ingested messages: who may write to it, what is cleaned up, and how files appear in it.

    DIR/manifest.json
    DIR/messages/session=<name>/part-<capture>-<split>.parquet

Tasks write files whose names begin with `.`, which Spark and pyarrow do not see. Publishing renames them and replaces
the manifest. Whatever the manifest does not list was left by a run that died, or replaced by a later one: the next
run removes it. One run at a time: the lock is the operating system's, and gone with the process that held it.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pcap_tools.errors import TopicsharkError

from .manifest import TEMPORARY, SourceEntry, load_manifest, save_manifest, sync_folder

MESSAGES = "messages"
_LOCK = ".lock"
# Only what has such a name is ever removed.
_OURS = re.compile(r"\.?part-[0-9a-f]{16}-\d{5,}(-[0-9a-f]{32})?\.parquet")


class Store:
    """The folder, while this process may write to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = load_manifest(folder)

    def folder_of(self, session: str) -> Path:
        """Where the files of a session are."""
        return self.folder / MESSAGES / f"session={session}"

    def clean(self) -> None:
        """Remove what no manifest lists."""
        listed = self.manifest.files
        for place in self.folder.glob(f"{TEMPORARY}*"):
            place.unlink(missing_ok=True)
        for session in (self.folder / MESSAGES).glob("session=*/"):
            for place in session.iterdir():
                if _OURS.fullmatch(place.name) and str(place.relative_to(self.folder)) not in listed:
                    place.unlink(missing_ok=True)
            _remove_if_empty(session)

    def reveal(self, renames: Mapping[Path, Path]) -> None:
        """Give files their visible names."""
        for hidden, visible in renames.items():
            os.replace(hidden, visible)
        for folder in {visible.parent for visible in renames.values()}:
            sync_folder(folder)

    def commit(self, entries: Iterable[SourceEntry]) -> None:
        """From here on they count. What they replace goes."""
        manifest = self.manifest.with_entries(entries)
        save_manifest(self.folder, manifest)
        self.manifest = manifest
        self.clean()


@contextmanager
def open_store(folder: Path) -> Iterator[Store]:
    """The folder, made if it is not there, and clean; locked until the block ends."""
    try:
        (folder / MESSAGES).mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise TopicsharkError(f"{folder}: cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TopicsharkError(f"{folder}: another ingest is writing to it") from None
        store = Store(folder)
        store.clean()
        try:
            yield store
        finally:
            store.clean()
    finally:
        os.close(lock)


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:  # not empty
        return

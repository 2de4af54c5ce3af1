"""A folder of ingested messages, on a disk or in an object store: who may write to it, and how files appear in it.

    DIR/manifest.json
    DIR/messages/session=<name>/part-<capture>-<split>.parquet
    DIR/_staging/part-<capture>-<split>-<attempt>.parquet          while a run is writing
    DIR/.lock, or in a store DIR/_lock/<run>.json                  while a run is writing

One mechanism serves both. Each attempt of a task writes a file of its own to `_staging`, which is beside what readers
of Parquet are given. When all tasks have ended, the files of those attempts whose results Spark kept are moved to their
places below `messages`, and then the manifest, which lists them, is replaced. The name of a file there follows from the
capture, its version, what was looked for in it, and the split: a run that is repeated writes the same names again.

What holds: the manifest lists only whole files of attempts that ended well; it changes at once, and it is the last to
change. A reader that goes by the manifest never sees an unpublished file. One that lists `messages` instead sees none
while tasks run; it may see some of a run's files during the moves, and after a run that died during them. Whatever
the manifest does not list is removed by the next run.

One run at a time. On a disk the lock is the operating system's, and gone with the process that held it. A store has no
such lock: each run writes an object of its own to `_lock`, then lists `_lock`, and gives up if it is not alone. Where
listings are up to date (S3, Google's) two runs never both go on; at worst both give up. The object of a run that was
killed stays until somebody removes it; the error message says how. A run whose lock was removed while it was running
notices that before it publishes.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from pcap_tools.errors import TopicsharkError

from .folder import TEMPORARY, Folder, LocalFolder, open_folder
from .manifest import NAME, SourceEntry, read_manifest, save_manifest

MESSAGES, STAGING, LOCKS = "messages", "_staging", "_lock"
_LOCK = ".lock"
_MOVES_AT_ONCE = 8  # a store takes its time for each
# Only what has such a name is ever removed. The first is of releases that staged files beside the others.
_PART = r"part-[0-9a-f]{16}-\d{5,}"
_ATTEMPT = rf"{_PART}-[0-9a-f]{{32}}\.parquet"
_UNLISTED = re.compile(
    rf"{MESSAGES}/session=[^/]+/(\.{_ATTEMPT}|{_PART}\.parquet)|{STAGING}/{_ATTEMPT}|{re.escape(TEMPORARY + NAME)}-\w+"
)


def session_folder(session: str) -> str:
    """Where the files of a session are, within the folder."""
    return f"{MESSAGES}/session={session}"


class Store:
    """The folder, while this process may write to it. `check_lock` raises if it may not any more."""

    def __init__(self, folder: Folder, check_lock: Callable[[], None] = lambda: None) -> None:
        self.folder = folder
        self.manifest = read_manifest(folder)
        self._check_lock = check_lock

    def clean(self) -> None:
        """Remove what no manifest lists."""
        listed = self.manifest.files
        gone = [name for name in self.folder.list("") if _UNLISTED.fullmatch(name) and name not in listed]
        for name in gone:
            self.folder.delete(name)
        for part in {os.path.dirname(name) for name in gone} - {""} | {STAGING}:
            self.folder.prune(part)

    def publish(self, staged: Mapping[str, str], entries: Iterable[SourceEntry]) -> None:
        """Move files from `_staging` to their places, then list them. What they replace goes."""
        self._check_lock()
        with ThreadPoolExecutor(_MOVES_AT_ONCE) as pool:
            list(pool.map(self.folder.move, staged.keys(), staged.values()))
        self._check_lock()
        self.commit(entries)

    def commit(self, entries: Iterable[SourceEntry]) -> None:
        """From here on they count."""
        manifest = self.manifest.with_entries(entries)
        save_manifest(self.folder, manifest)
        self.manifest = manifest
        self.clean()


@contextmanager
def open_store(where: str | Path) -> Iterator[Store]:
    """The folder at a path or URI, made if it is not there, and clean; locked until the block ends."""
    folder = open_folder(where)
    with _flock(folder) if isinstance(folder, LocalFolder) else _lock_object(folder) as check_lock:
        store = Store(folder, check_lock)
        store.clean()
        try:
            yield store
        except BaseException:
            with suppress(TopicsharkError):  # the first error tells more
                store.clean()
            raise


@contextmanager
def _flock(folder: LocalFolder) -> Iterator[Callable[[], None]]:
    try:
        os.makedirs(folder.place(MESSAGES), exist_ok=True)
        lock = os.open(folder.place(_LOCK), os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise TopicsharkError(f"{folder.name}: cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TopicsharkError(f"{folder.name}: another ingest is writing to it") from None
        yield lambda: None
    finally:
        os.close(lock)


@contextmanager
def _lock_object(folder: Folder) -> Iterator[Callable[[], None]]:
    mine = f"{LOCKS}/{uuid4().hex}.json"
    who = {"host": socket.gethostname(), "process": os.getpid(), "since": datetime.now(UTC).isoformat(" ", "seconds")}

    def check() -> None:
        """Alone, and still there."""
        locks = folder.list(LOCKS)
        for other in locks:
            if other != mine:
                raise TopicsharkError(_taken(folder, other))
        if not locks:
            raise TopicsharkError(f"{folder.name}: the lock of this run was removed; nothing is published")

    folder.write(mine, json.dumps(who).encode())
    try:
        check()
        yield check
    finally:
        with suppress(TopicsharkError):  # the next run will say what to do
            folder.delete(mine)
            folder.prune(LOCKS)


def _taken(folder: Folder, lock: str) -> str:
    """Whose lock it is, and how to remove it."""
    try:
        who = json.loads(folder.read(lock) or b"{}")
    except ValueError:
        who = {}
    about = f" (process {who['process']} on {who['host']}, since {who['since']})" if len(who) == 3 else ""
    return (
        f"{folder.name}: another ingest is writing to it{about}; if that one has ended without removing its lock: "
        f"{folder.removal(lock)}"
    )

"""A file of small records that survives a kill at any moment: appended to line by line, rewritten whole now and then.

A line is a checksum, a space and JSON. Each checksum continues the one before, so a line that was altered, taken out or
moved is noticed. A rewrite makes a new file and puts it in the place of the old one in one step.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterable, Iterator
from typing import BinaryIO
from zlib import crc32

from pcap_tools.errors import TopicsharkError

Record = dict[str, str]

FORMAT = "state 1"
REWRITE_BYTES = 1 << 20
REWRITE_GROWTH = 4
MAX_LINE = 1 << 19
CHUNK = 1 << 20


class JournalError(TopicsharkError):
    """The file cannot be used or written; what was asked for has not happened."""


class _Damage(Exception):
    """Why a line cannot be trusted."""


class Journal:
    """Append records, then ``commit``: only then they are safe.

    >>> journal = Journal("/tmp/broker.state", "colon")       # doctest: +SKIP
    >>> kept = list(journal.load())                           # doctest: +SKIP
    >>> journal.rewrite(kept)                                 # doctest: +SKIP

    ``damage`` says after ``load`` what is wrong with the file, and where. ``is_broken`` says that the end of the file
    is unknown after a failed write: nothing is taken until a ``rewrite`` has worked.
    """

    def __init__(self, path: str, dialect: str, *, sync: bool = True) -> None:
        self.path = os.path.realpath(path)
        self.damage: str | None = None
        self.is_broken = False
        self.size = 0
        self._header = {"topicshark": FORMAT, "dialect": dialect}
        self._sync = sync
        self._check = 0
        self._unsynced = False
        self._rewrite_at = REWRITE_BYTES
        try:
            self._fd = _open_locked(self.path, os.O_CREAT)
        except OSError as error:
            raise JournalError(f"{path}: cannot be used to keep the state: {_why(error)}") from error

    # -- reading ------------------------------------------------------------------------------------------------

    def load(self) -> Iterator[Record]:
        """Every record up to the end or the first damage."""
        with open(os.dup(self._fd), "rb") as stream:
            stream.seek(0)
            try:
                for index, record in enumerate(self._records(stream)):
                    if index == 0:
                        self._check_header(record)
                    else:
                        yield record
            except _Damage as damage:
                self.damage = f"byte {self.size}: {damage}"
            except OSError as error:
                self.damage = f"byte {self.size}: {_why(error)}"

    def _records(self, stream: BinaryIO) -> Iterator[Record]:
        while line := stream.readline(MAX_LINE):
            record, check = _opened(line, self._check)
            yield record
            self._check = check
            self.size += len(line)

    def _check_header(self, header: Record) -> None:
        if header.get("topicshark") != FORMAT:
            raise JournalError(f"{self.path}: is not a state file that this version knows (wanted {FORMAT!r})")
        if header.get("dialect") != self._header["dialect"]:
            theirs, ours = header.get("dialect"), self._header["dialect"]
            raise JournalError(f"{self.path}: holds the state of a {theirs} broker, not of {ours}; use another file")

    # -- writing ------------------------------------------------------------------------------------------------

    @property
    def wants_rewrite(self) -> bool:
        return self.is_broken or self.damage is not None or not self.size or self.size > self._rewrite_at

    def append(self, record: Record) -> None:
        """Write one record behind the others, wholly or not at all."""
        if self.is_broken:
            raise JournalError(f"{self.path}: an earlier write failed")
        line, check = _sealed(record, self._check)
        self._unsynced = True
        try:
            _write_all(self._fd, line)
        except OSError as error:
            self._cut_back()
            raise JournalError(f"{self.path}: {_why(error)}") from error
        self._check = check
        self.size += len(line)

    def _cut_back(self) -> None:
        try:
            os.ftruncate(self._fd, self.size)
        except OSError:
            self.is_broken = True

    def commit(self) -> None:
        """Make safe what was appended. After a failure nobody knows what the disk holds, so the file is broken."""
        if not self._unsynced:
            return
        self._unsynced = False
        if self._sync:
            try:
                os.fdatasync(self._fd)
            except OSError as error:
                self.is_broken = True
                raise JournalError(f"{self.path}: {_why(error)}") from error

    def rewrite(self, records: Iterable[Record]) -> str | None:
        """Put a file with exactly these records in the place of this one. A damaged one is set aside: its new name."""
        self._rewrite_at = max(REWRITE_BYTES, 2 * self.size)  # if this fails, not again at once
        temporary = f"{self.path}.new"
        fd = -1
        try:
            fd = _open_locked(temporary, os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW)
            size, check = _write_records(fd, [self._header], records)
            os.fsync(fd)
            aside = self._set_aside() if self.damage else None
            os.replace(temporary, self.path)
        except OSError as error:
            if fd >= 0:
                os.close(fd)
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise JournalError(f"{self.path}: cannot be rewritten: {_why(error)}") from error
        os.close(self._fd)
        self._fd, self.size, self._check = fd, size, check
        self.damage, self._unsynced = None, False
        self._rewrite_at = max(REWRITE_BYTES, REWRITE_GROWTH * size)
        try:
            _sync_directory(self.path)
        except OSError as error:
            self.is_broken = True
            raise JournalError(f"{self.path}: cannot be rewritten: {_why(error)}") from error
        self.is_broken = False
        return aside

    def _set_aside(self) -> str:
        """Another name for the damaged file: a second one where links exist, so that the first never lacks a file."""
        number = 1
        while os.path.lexists(name := f"{self.path}.damaged-{number}"):
            number += 1
        try:
            os.link(self.path, name)
        except OSError:
            os.rename(self.path, name)
        return name

    def close(self) -> None:
        os.close(self._fd)


def _sealed(record: Record, previous: int) -> tuple[bytes, int]:
    text = json.dumps(record, separators=(",", ":")).encode()
    check = crc32(text, previous)
    return b"%08x %s\n" % (check, text), check


def _opened(line: bytes, previous: int) -> tuple[Record, int]:
    if not line.endswith(b"\n"):
        raise _Damage("the line was not finished")
    check = crc32(line[9:-1], previous)
    if line[:9] != b"%08x " % check:
        raise _Damage("the checksum is wrong")
    try:
        record = json.loads(line[9:-1])
    except (ValueError, RecursionError) as error:
        raise _Damage("the line is not JSON") from error
    if not isinstance(record, dict) or not all(isinstance(value, str) for value in record.values()):
        raise _Damage("the line is not a record")
    return record, check


def _write_records(fd: int, *parts: Iterable[Record]) -> tuple[int, int]:
    """Size and last checksum of what was written."""
    size = check = 0
    pending = bytearray()
    for records in parts:
        for record in records:
            line, check = _sealed(record, check)
            pending += line
            size += len(line)
            if len(pending) >= CHUNK:
                _write_all(fd, bytes(pending))
                pending.clear()
    _write_all(fd, bytes(pending))
    return size, check


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def _open_locked(path: str, flags: int) -> int:
    """A regular file that no other broker uses."""
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | flags, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(fd), os.stat(path)):  # replaced between open and lock
            raise BlockingIOError
    except BlockingIOError as error:
        os.close(fd)
        raise OSError(errno.EBUSY, "another broker is using it") from error
    except OSError:
        os.close(fd)
        raise
    return fd


def _sync_directory(path: str) -> None:
    fd = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _why(error: OSError) -> str:
    return error.strerror or type(error).__name__

"""Bytes of a capture by range: local files, and object stores through pyarrow.

    >>> with open_bytes("s3://bucket/run.pcap?endpoint_override=localhost:9000&scheme=http") as source:
    ...     source.size, source.version                                    # doctest: +SKIP

A version changes whenever the content does: size and mtime of a file, size and mtime of an object.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from pcap_tools.capture.damage import CaptureError

_NO_FILE = {
    stat.S_IFDIR: "it is a directory; name the captures in it",
    stat.S_IFIFO: "it is a pipe, which can be read only once; write it to a file first",
}
_INSTALL = {
    "hdfs": "it needs Hadoop's native client: install Hadoop, then set JAVA_HOME, HADOOP_HOME (or ARROW_LIBHDFS_DIR) "
    "and CLASSPATH=$(hadoop classpath --glob)",
    "viewfs": "it needs Hadoop's native client, as hdfs:// does",
}


class ByteSource(Protocol):
    """A source of known size that can be read from anywhere."""

    name: str
    size: int
    version: str

    def read_into(self, offset: int, view: memoryview) -> int:
        """Fill `view` with what begins at `offset`; how many bytes there were."""


def is_remote(name: str) -> bool:
    """A URI, and not a path."""
    scheme, colon, _ = name.partition("://")
    return bool(colon) and scheme.isalnum() and scheme != "file"


@contextmanager
def open_bytes(name: str) -> Iterator[ByteSource]:
    """The bytes of a path or a URI; raises `CaptureError` if it cannot be opened."""
    if is_remote(name):
        with _open_remote(name) as stream:
            yield stream
        return
    path = name.removeprefix("file://")
    try:
        # A pipe that nobody writes to is opened at once, too.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise cannot_be_opened(name, error) from error
    try:
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
        if kind != stat.S_IFREG:
            raise CaptureError(f"{name}: cannot be opened: {_NO_FILE.get(kind, 'it is not a file')}")
        yield LocalFile(name, descriptor)
    finally:
        os.close(descriptor)


def cannot_be_opened(name: str, error: Exception) -> CaptureError:
    """In the words of `read_frames`."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return CaptureError(f"{name}: cannot be opened: {reason}")


def read_at(source: ByteSource, offset: int, size: int) -> bytes:
    """Up to `size` bytes from `offset` on; raises `CaptureError` if the disk or the store does not give them."""
    data = bytearray(size)
    try:
        return bytes(data[: source.read_into(offset, memoryview(data))])
    except OSError as error:
        reason = f"reading failed: {error.strerror or error}"
        raise CaptureError(f"{source.name}: no capture can be read: {reason}") from error


class LocalFile:
    """An open file."""

    def __init__(self, name: str, descriptor: int) -> None:
        status = os.fstat(descriptor)
        self.name = name
        self.size = status.st_size
        self.version = f"{status.st_size}-{status.st_mtime_ns}"
        self._descriptor = descriptor

    def read_into(self, offset: int, view: memoryview) -> int:
        """As of `ByteSource`."""
        done = 0
        while done < len(view):
            got = os.preadv(self._descriptor, [view[done:]], offset + done)
            if got == 0:
                break
            done += got
        return done


class _RemoteFile:
    def __init__(self, name: str, stream: Any, size: int, version: str) -> None:
        self.name = name
        self.size = size
        self.version = version
        self._stream = stream

    def read_into(self, offset: int, view: memoryview) -> int:
        size = min(len(view), self.size - offset)
        if size <= 0:
            return 0
        data = memoryview(self._stream.read_at(size, offset))
        view[: len(data)] = data
        return len(data)


@contextmanager
def _open_remote(name: str) -> Iterator[_RemoteFile]:
    from pyarrow import fs  # only who reads from a store waits for it

    try:
        filesystem, path = fs.FileSystem.from_uri(name)
        info = filesystem.get_file_info(path)
        if info.type != fs.FileType.File:
            raise CaptureError(f"{name}: cannot be opened: there is no such file")
        stream = filesystem.open_input_file(path)
    except (OSError, ValueError, NotImplementedError) as error:
        hint = _INSTALL.get(name.partition("://")[0], "")
        reason = str(error).partition("\n")[0]
        raise CaptureError(f"{name}: cannot be opened: {reason}" + (f"; {hint}" if hint else "")) from error
    with stream:
        yield _RemoteFile(name, stream, info.size, f"{info.size}-{info.mtime_ns}")

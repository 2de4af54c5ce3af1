"""Bytes of a capture: by range from local files and object stores (through pyarrow), or in order from any stream.

    >>> with open_bytes("s3://bucket/run.pcap?endpoint_override=localhost:9000&scheme=http") as source:
    ...     source.size, source.version                                    # doctest: +SKIP

A version changes whenever the content does: size and mtime of a file, size and mtime of an object. A `Feed` fills the
one `Buffer` of a reading.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol, cast

import numpy as np

from pcap_tools.capture.damage import CaptureError
from pcap_tools.capture.streams import MAGIC_BYTES, compression, open_window

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


class Feed(Protocol):
    """`trouble` says why the bytes ended before their time, if they did."""

    @property
    def trouble(self) -> str: ...

    def fill(self, view: memoryview) -> int:
        """Put the next bytes into `view`; how many, 0 at the end."""


class RangeFeed:
    """The bytes of a source from `begin` to `end`."""

    def __init__(self, source: ByteSource, begin: int, end: int) -> None:
        self.trouble = ""
        self._source = source
        self._at = begin
        self._end = end

    def fill(self, view: memoryview) -> int:
        """As much as there is."""
        try:
            got = self._source.read_into(self._at, view[: max(0, self._end - self._at)])
        except OSError as error:
            self.trouble = f"reading failed: {error.strerror or error}"
            return 0
        self._at += got
        return got


class StreamFeed:
    """Any binary stream, also a compressed one; gives what a pipe has now and does not wait for more."""

    def __init__(self, stream: BinaryIO) -> None:
        self._window = open_window(stream)

    @property
    def trouble(self) -> str:
        """That of the stream or of the gzip data."""
        return self._window.trouble

    def fill(self, view: memoryview) -> int:
        """The next chunk."""
        window = self._window
        if not window.data and not window.need(0, 1):
            return 0
        size = min(len(view), len(window.data))
        view[:size] = window.data[:size]
        window.need(size, 0)
        return size


class _Sequential(io.RawIOBase):
    """A source as a stream, to be decompressed."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        got = self._source.read_into(self._at, memoryview(buffer))
        self._at += got
        return got


def whole_feed(source: ByteSource) -> Feed:
    """All bytes of a source, without its compression; also those that are written to it meanwhile."""
    return StreamFeed(cast(BinaryIO, _Sequential(source))) if is_compressed(source) else RangeFeed(source, 0, 1 << 62)


def is_compressed(source: ByteSource) -> bool:
    """It can be read only from its begin."""
    return bool(compression(read_at(source, 0, MAGIC_BYTES)))


# Kernels may read and write this far behind what they were asked to.
PADDING = 64


class Buffer:
    """`data[:room]` is for the capture; behind it payloads are appended until `clear`."""

    def __init__(self, room: int, spare: int = 1 << 16) -> None:
        self.room = room
        self.data = np.zeros(room + spare + PADDING, np.uint8)
        self.tail = room

    def view(self, have: int) -> memoryview:
        """The chunk's part behind its first `have` bytes, to be filled."""
        return self.data[have : self.room].data

    def clear(self) -> None:
        """Forget the payloads behind the chunk."""
        self.tail = self.room

    def widen(self, room: int, have: int) -> None:
        """Make the chunk's part larger, with its first `have` bytes kept and the payloads forgotten."""
        data = np.zeros(room + (len(self.data) - self.room), np.uint8)
        data[:have] = self.data[:have]
        self.data, self.room, self.tail = data, room, room

    def reserve(self, size: int) -> None:
        """Room for `size` bytes of payloads; the buffer may be another one then, with everything at its place."""
        if self.tail + size + PADDING > len(self.data):
            data = np.zeros(self.tail + 2 * size + PADDING, np.uint8)
            data[: self.tail] = self.data[: self.tail]
            self.data = data

    def append(self, payload: bytes) -> int:
        """Where the payload begins."""
        self.reserve(len(payload))
        start = self.tail
        self.tail += len(payload)
        self.data[start : self.tail] = np.frombuffer(payload, np.uint8)
        return start

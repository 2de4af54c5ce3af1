"""Bytes of a capture in order, into a buffer: from a range of a source, or from any stream."""

from __future__ import annotations

import io
from typing import BinaryIO, Protocol, cast

from pcap_tools.capture.streams import GZIP_MAGIC, open_window
from pcap_tools.columnar.read.sources import ByteSource, read_at


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
    """Any binary stream, also with gzip; gives what a pipe has now and does not wait for more."""

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
    """A source as a stream, for gzip."""

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
    """All bytes of a source, without its gzip; also those that are written to it meanwhile."""
    return StreamFeed(cast(BinaryIO, _Sequential(source))) if is_gzip(source) else RangeFeed(source, 0, 1 << 62)


def is_gzip(source: ByteSource) -> bool:
    """It can be read only from its begin."""
    return read_at(source, 0, len(GZIP_MAGIC)) == GZIP_MAGIC

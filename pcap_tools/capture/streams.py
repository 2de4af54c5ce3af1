"""Bytes of a capture source in order: files, stdin, open streams; plain, gzip, zstd or lz4; with bounded memory.

A source may not be seekable, so everything is read once and forwards. The parsers look at the stream through
a `Window`, which holds about one chunk, or one record if that is larger.
"""

from __future__ import annotations

import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, TypeAlias

from pcap_tools.capture.damage import CaptureError, Corrupt
from pcap_tools.errors import UsageError

Source: TypeAlias = str | os.PathLike[str] | BinaryIO

CHUNK = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"
# Those that pyarrow reads, by what a file begins with. Wireshark reads them, too.
_CODECS = {b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
MAGIC_BYTES = 4
# Output of one inflate call. An error loses what its call had decoded, so a copy of the state is kept for
# every slice and the good part is decoded again from there.
_SLICE = 1 << 16
# Input of one inflate call. What a call leaves over is copied, so a whole chunk would be copied for each of the
# thousands of slices or of empty members that may be in it.
_BITE = 1 << 14


class BrokenStream(Exception):
    """The bytes end early; the text is the reason."""


class Window:
    """The part of a stream that is being parsed: `data`, which begins at byte `start` of the stream."""

    __slots__ = ("_chunks", "_trouble", "data", "start")

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._trouble = ""
        self.data = b""
        self.start = 0

    def need(self, position: int, size: int) -> bool:
        """Forget all before `position`, which becomes 0, and have `size` bytes; False if the stream ends."""
        parts = [self.data[position:]]
        self.start += position
        have = len(parts[0])
        while have < size:
            chunk = self._next_chunk()
            if not chunk:
                break
            parts.append(chunk)
            have += len(chunk)
        self.data = b"".join(parts)
        return have >= size

    def finish(self, what: str) -> None:
        """The stream has ended: all right between two records, else `Corrupt`."""
        if self._trouble:
            raise Corrupt(self.start, self._trouble)
        if self.data:
            raise Corrupt(self.start, f"the file ends inside {what}, after {len(self.data)} bytes of it")

    @property
    def trouble(self) -> str:
        """Why the stream ended early, if it did."""
        return self._trouble

    def _next_chunk(self) -> bytes:
        try:
            return next(self._chunks, b"")
        except BrokenStream as error:
            self._trouble = str(error)
            return b""


@contextmanager
def open_source(source: Source) -> Iterator[tuple[str, BinaryIO]]:
    """The name and the stream of a source; closes only what it opened."""
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        if name == "-":
            yield name, sys.stdin.buffer
            return
        try:
            stream = open(name, "rb", buffering=0)  # noqa: SIM115  # closed below; only opening may fail here
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise CaptureError(f"{name}: cannot be opened: {reason}") from error
        with stream:
            yield name, stream
    elif hasattr(source, "read"):
        yield str(getattr(source, "name", "<stream>")), source
    else:
        raise UsageError(f"a capture source is a path, '-' or a binary stream, not {type(source).__name__}")


def open_window(stream: BinaryIO) -> Window:
    """A window with at least the magic number in it, unless the source is shorter; gzip, zstd and lz4 are taken off."""
    window = Window(_plain(stream))
    window.need(0, MAGIC_BYTES)
    kind = compression(window.data[:MAGIC_BYTES])
    if not kind:
        return window
    chunks = _resume(window)
    inner = Window(_gunzip(chunks) if kind == "gzip" else _decompressed(chunks, kind))
    inner.need(0, MAGIC_BYTES)
    return inner


def compression(head: bytes) -> str:
    """`gzip`, `zstd`, `lz4`, or nothing, by the first bytes of a file."""
    return "gzip" if head.startswith(GZIP_MAGIC) else _CODECS.get(head[:MAGIC_BYTES], "")


def _plain(stream: BinaryIO) -> Iterator[bytes]:
    # read1 gives what a pipe has now; read would wait for a whole chunk of a live capture.
    read: Callable[[int], bytes | None] = getattr(stream, "read1", stream.read)
    while True:
        try:
            chunk = read(CHUNK)
        except OSError as error:
            raise BrokenStream(f"reading failed: {error.strerror or error}") from error
        if not chunk:
            return
        if not isinstance(chunk, bytes):
            raise UsageError("a capture is read from a binary stream, this one is in text mode")
        yield chunk


def _resume(window: Window) -> Iterator[bytes]:
    yield window.data
    while window.need(len(window.data), 1):
        yield window.data
    if window.trouble:
        raise BrokenStream(window.trouble)


def _gunzip(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """All members of a gzip file; zeros after a member are padding, as gzip(1) has it."""
    member = zlib.decompressobj(31)
    for rest in _bites(chunks):
        pending = False
        while rest or pending:
            if member.eof:
                rest = rest.lstrip(b"\0")
                if not rest:
                    break
                member = zlib.decompressobj(31)
            before = member.copy()
            error = ""
            try:
                out = member.decompress(rest, _SLICE)
            except zlib.error as caught:
                error, out = str(caught), _salvage(before, rest)
            if out:
                yield out
            if error:
                raise BrokenStream(f"the gzip data is damaged ({error})")
            pending = len(out) == _SLICE
            rest = member.unused_data if member.eof else member.unconsumed_tail
    if not member.eof:
        raise BrokenStream("the gzip data ends early")


def _decompressed(chunks: Iterator[bytes], kind: str) -> Iterator[bytes]:
    """All frames of a zstd or lz4 file. Damage takes with it up to 64 KB that were good."""
    import pyarrow as pa  # only captures of these kinds wait for it

    with pa.CompressedInputStream(pa.PythonFile(_Chunks(chunks), mode="r"), kind) as stream:
        while True:
            try:
                out = stream.read(_SLICE)
            except OSError as error:
                raise BrokenStream(f"the {kind} data is damaged ({error})") from error
            if not out:
                return
            yield out


class _Chunks(io.RawIOBase):
    """Chunks as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._rest = chunks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._rest = self._rest or next(self._chunks, b"")
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _bites(chunks: Iterator[bytes]) -> Iterator[bytes]:
    return (chunk[at : at + _BITE] for chunk in chunks for at in range(0, len(chunk), _BITE))


def _salvage(member: zlib._Decompress, rest: bytes) -> bytes:
    """All that decodes before the error: the longest part of `rest` without it is found by halving."""
    good, bad = 0, len(rest)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            member.copy().decompress(rest[:middle], _SLICE)
            good = middle
        except zlib.error:
            bad = middle
    return member.decompress(rest[:good], _SLICE)

"""Frames into a pcap or pcapng file: `CaptureWriter`.

    >>> with CaptureWriter("out.pcapng", format="pcapng") as out:          # doctest: +SKIP
    ...     out.write(frame, time_ns, comments=("A-MISSING: no PUBACK within 1 s",))

A record is made whole before anything of it is written, so an exception never leaves half a record behind.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import BinaryIO, Literal, NamedTuple, Self, TypeAlias

from pcap_tools.capture import pcap, pcapng
from pcap_tools.capture.damage import CaptureError
from pcap_tools.capture.frame import MAX_CAPTURED
from pcap_tools.capture.pcapng_blocks import Blocks
from pcap_tools.errors import UsageError

Comments: TypeAlias = tuple[str, ...]


class Interface(NamedTuple):
    """An interface of a pcapng file."""

    link_type: int = 1
    name: str = ""


class CaptureWriter:
    """Writes to a path, to stdout ("-"), or to a binary stream, which stays open.

    `interfaces` (pcapng only) takes the place of `link_type`; `names` (pcapng only) maps addresses to host
    names, which Wireshark then shows. Frames longer than `snaplen` are cut, with their length kept. With
    resolution "us" times are rounded down.
    """

    def __init__(
        self,
        target: str | os.PathLike[str] | BinaryIO,
        format: Literal["pcap", "pcapng"] = "pcap",
        link_type: int = 1,
        *,
        interfaces: Sequence[Interface] = (),
        names: Mapping[str, str] | None = None,
        resolution: Literal["ns", "us"] = "ns",
        byte_order: Literal["little", "big"] = "little",
        snaplen: int = MAX_CAPTURED,
    ) -> None:
        _check(format in ("pcap", "pcapng"), f"format is pcap or pcapng, not {format!r}")
        _check(resolution in ("ns", "us"), f"resolution is ns or us, not {resolution!r}")
        _check(byte_order in ("little", "big"), f"byte_order is little or big, not {byte_order!r}")
        _check(0 < snaplen <= MAX_CAPTURED, f"snaplen is 1 to {MAX_CAPTURED}, not {snaplen}")
        order = "<" if byte_order == "little" else ">"
        encoder: _Pcap | _Pcapng
        if format == "pcap":
            _check(not interfaces, "a pcap file has one interface without a name; use pcapng for more")
            _check(not names, "a pcap file cannot hold names; use pcapng")
            encoder = _Pcap(order, resolution, link_type, snaplen)
        else:
            declared = tuple(interfaces) or (Interface(link_type),)
            encoder = _Pcapng(order, resolution, declared, names or {}, snaplen)
        self._encoder = encoder
        self._snaplen = snaplen
        self._stream, self._owned = _open(target)
        self._put(encoder.header())

    def write(
        self,
        data: bytes,
        time_ns: int,
        *,
        interface: int = 0,
        original_length: int | None = None,
        comments: Sequence[str] = (),
    ) -> None:
        """Append one frame; `original_length` is its length on the wire if `data` is less."""
        original = len(data) if original_length is None else original_length
        _check(0 <= original <= 0xFFFFFFFF, f"original_length must fit into 32 bits, not {original}")
        self._put(self._encoder.record(data[: self._snaplen], time_ns, interface, original, tuple(comments)))

    def add_interface(self, interface: Interface) -> int:
        """Describe one more interface (pcapng only); its number, for `write`."""
        block, number = self._encoder.added(interface)
        self._put(block)
        return number

    def close(self) -> None:
        """Finish the file; a stream that was given stays open but is flushed."""
        try:
            if self._owned:
                self._stream.close()
            else:
                self._stream.flush()
        except OSError as error:
            raise CaptureError(f"the capture cannot be written: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _put(self, record: bytes) -> None:
        try:
            self._stream.write(record)
        except OSError as error:
            raise CaptureError(f"the capture cannot be written: {error}") from error


class _Pcap:
    """Bytes of the pcap format."""

    def __init__(self, order: str, resolution: str, link_type: int, snaplen: int) -> None:
        _check(0 <= link_type <= pcap.LINK_TYPE_MASK, f"link type {link_type} does not exist")
        self._header = struct.Struct(order + "IHHiIII")
        self._record = struct.Struct(order + pcap.RECORD)
        self._magic = pcap.NANOSECONDS if resolution == "ns" else pcap.MICROSECONDS
        self._tick_ns = 1 if resolution == "ns" else 1000
        self._link_type = link_type
        self._snaplen = snaplen

    def header(self) -> bytes:
        return self._header.pack(self._magic, 2, 4, 0, 0, self._snaplen, self._link_type)

    def record(self, data: bytes, time_ns: int, interface: int, original: int, comments: Comments) -> bytes:
        _check(interface == 0, f"a pcap file has only interface 0, not {interface}")
        _check(not comments, "a pcap file cannot hold comments; use pcapng")
        seconds, nanoseconds = divmod(time_ns, 10**9)
        _check(0 <= seconds <= 0xFFFFFFFF, f"the time {time_ns} ns is not between 1970 and 2106")
        return self._record.pack(seconds, nanoseconds // self._tick_ns, len(data), original) + data

    def added(self, interface: Interface) -> tuple[bytes, int]:
        raise UsageError("a pcap file has one interface; use pcapng for more")


class _Pcapng:
    """Bytes of the pcapng format: one section, its interfaces, its names."""

    def __init__(
        self,
        order: str,
        resolution: str,
        interfaces: tuple[Interface, ...],
        names: Mapping[str, str],
        snaplen: int,
    ) -> None:
        self._blocks = Blocks(order)
        self._decimals = 9 if resolution == "ns" else 6
        self._tick_ns = 1 if resolution == "ns" else 1000
        self._interfaces = list(interfaces)
        self._names = names
        self._snaplen = snaplen

    def header(self) -> bytes:
        blocks = [self._blocks.section(), *(self._describe(one) for one in self._interfaces)]
        if self._names:
            blocks.append(self._blocks.names(self._names))
        return b"".join(blocks)

    def record(self, data: bytes, time_ns: int, interface: int, original: int, comments: Comments) -> bytes:
        last = len(self._interfaces) - 1
        _check(0 <= interface <= last, f"interface {interface} is not declared; the last one is {last}")
        ticks = time_ns // self._tick_ns
        _check(0 <= ticks < 1 << 64, f"the time {time_ns} ns does not fit into the format")
        return self._blocks.packet(interface, ticks, data, original, comments)

    def added(self, interface: Interface) -> tuple[bytes, int]:
        block = self._describe(interface)
        self._interfaces.append(interface)
        return block, len(self._interfaces) - 1

    def _describe(self, interface: Interface) -> bytes:
        _check(0 <= interface.link_type <= 0xFFFF, f"link type {interface.link_type} does not exist")
        options = [(pcapng.IF_NAME, interface.name.encode())] if interface.name else []
        options.append((pcapng.IF_TSRESOL, bytes([self._decimals])))
        return self._blocks.interface(interface.link_type, self._snaplen, options)


def _check(right: bool, otherwise: str) -> None:
    if not right:
        raise UsageError(otherwise)


def _open(target: str | os.PathLike[str] | BinaryIO) -> tuple[BinaryIO, bool]:
    """The stream and whether it is ours to close."""
    if not isinstance(target, (str, os.PathLike)):
        return target, False
    if os.fspath(target) == "-":
        return sys.stdout.buffer, False
    try:
        return open(target, "wb"), True
    except (OSError, ValueError) as error:
        raise CaptureError(f"{os.fspath(target)}: cannot be written: {error}") from error


@contextmanager
def new_file(target: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Written beside `target` and renamed at the end; an error leaves what was there before.

    A link is followed, so that it stays a link. Not `tempfile`: its files are the user's alone, this one is made for
    others to read as any new file is.
    """
    path = os.path.realpath(os.fspath(target))
    folder, name = os.path.split(path)
    hidden = os.path.join(folder, f".{name[:200]}.{os.getpid()}.part")
    try:
        with open(hidden, "wb") as stream:
            yield stream
        os.replace(hidden, path)
    except OSError as error:
        raise CaptureError(f"{os.fspath(target)}: cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            os.unlink(hidden)

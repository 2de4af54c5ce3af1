"""Captures of any size: a segment of simulated traffic, tiled.

    >>> tiling = write_bulk(segment, 100_000_000, "big.pcap")               # doctest: +SKIP
    >>> tiling.number(frame=0, tile=7)                                      # doctest: +SKIP

In tile k each frame is k periods later, the varying hosts are others (see `tile_addresses`), the identifications of the
fixed hosts go on, each counter is k * step higher, and the checksums fit. Tile 0 is the segment itself. Memory is
bounded by the segment and two buffers: while one is written the other one is filled.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import BinaryIO, Literal, cast

import numpy as np

from generators.bulk import kernel
from generators.bulk.kernel import set_tiles
from generators.bulk.patches import Patches
from generators.bulk.segment import Segment, Tiling
from pcap_tools.capture import CaptureError, CaptureWriter
from pcap_tools.capture.ip import read_packet
from pcap_tools.capture.link import PARSERS
from pcap_tools.errors import UsageError

_BUFFER = 4 << 20
_TIME_LIMIT_NS = {"pcap": 2**32 * 10**9, "pcapng": 2**63}


def write_bulk(
    segment: Segment,
    packets: int,
    target: str | os.PathLike[str] | BinaryIO,
    *,
    format: Literal["pcap", "pcapng"] = "pcap",
    resolution: Literal["us", "ns"] = "ns",
    progress: Callable[[int], None] | None = None,
) -> Tiling:
    """Exactly `packets` frames to a path, to stdout ("-") or to a stream, which stays open; the last tile may be cut.

    `progress` is told now and then how many frames there are so far.
    """
    records = TileRecords(segment, format, resolution)
    prologue, body = len(segment.prologue), len(segment.body)
    if packets < max(1, prologue):
        raise UsageError(f"{packets} packets cannot be: the prologue has {prologue} and at least 1 is needed")
    tiles, cut = -((prologue - packets) // body), (prologue - packets) % body
    if max(time_ns for time_ns, _ in segment.body) + (tiles - 1) * segment.period_ns >= _TIME_LIMIT_NS[format]:
        raise UsageError(f"{packets} packets would take longer than the times of {format} reach; shorten the period")
    maker = _TileMaker(segment, records)
    most = maker.addresses.tiles
    if segment.once and most is not None and tiles > most:
        raise UsageError(
            f"{packets} packets are {tiles} repeats of {body}, each in a network of its own, and there are addresses "
            f"for {most}; more rounds or sensors make a repeat longer, and IPv6 has more addresses"
        )
    size = (tiles - 1) * len(records.tile) + records.ends[-1 - cut] if tiles else 0
    with _opened(target) as stream:
        _put(stream, memoryview(records.head))
        for made in maker.write(stream, size):
            if progress:
                progress(min(packets, prologue + made * body))
    frames = [*segment.prologue, *(segment.body[: body - cut] if tiles else ())]
    return Tiling(
        prologue=prologue,
        body=body,
        tiles=tiles,
        packets=packets,
        first_ns=frames[0][0],
        last_ns=frames[-1][0] + max(0, tiles - 1) * segment.period_ns,
        size=len(records.head) + size,
        addresses=maker.addresses,
    )


class _TileMaker:
    """Tiles of one segment, made buffer by buffer."""

    def __init__(self, segment: Segment, records: TileRecords) -> None:
        patches = Patches(segment, records.frames)
        self.addresses = patches.addresses
        self._tables = (records.times, *patches.tables)
        self._records = records
        self._period_ns = segment.period_ns
        self._modulus = 10**segment.digits
        self._step = segment.step % self._modulus

    def write(self, stream: BinaryIO, size: int) -> Iterator[int]:
        """Writes tiles up to `size` bytes, and yields how many tiles are written so far."""
        length = len(self._records.tile)
        tiles = -(-size // length)
        rows = max(1, min(tiles, _BUFFER // length))
        # The bytes that stay are copied only here: making a tile writes over all those that change.
        full, empty = (np.tile(self._records.tile, (rows, 1)) for _ in range(2))
        with ThreadPoolExecutor(1) as thread:
            writing: Future[None] | None = None
            for first in range(0, tiles, rows):
                full, empty = empty, full
                self._make(full, first)
                if writing:
                    writing.result()
                    yield first
                flat = full.reshape(-1).data[: size - first * length]
                writing = thread.submit(_put, stream, flat)
            if writing:
                writing.result()
                yield tiles

    def _make(self, rows: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], first: int) -> None:
        middles = self.addresses.in_tiles(np.arange(first, first + len(rows)))
        sums = self.addresses.sums(middles)
        more = first * self._step % self._modulus
        counting = (more, self._step, self._modulus)
        set_tiles(rows, first, self._period_ns, self._records.kind, self._tables, middles, sums, counting)


@contextmanager
def _opened(target: str | os.PathLike[str] | BinaryIO) -> Iterator[BinaryIO]:
    """The stream to write to; closed only if it was opened here."""
    if isinstance(target, (str, os.PathLike)) and os.fspath(target) != "-":
        with _telling_trouble():
            stream = open(target, "wb", buffering=0)  # noqa: SIM115  # closed below; only opening may fail here
        with stream:
            yield cast(BinaryIO, stream)
    else:
        given = sys.stdout.buffer if isinstance(target, (str, os.PathLike)) else target
        yield given
        with _telling_trouble():
            given.flush()


def _put(stream: BinaryIO, data: memoryview) -> None:
    """All of `data`, even if an unbuffered stream takes it in parts."""
    with _telling_trouble():
        while len(data):
            data = data[stream.write(data) :]


@contextmanager
def _telling_trouble() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise CaptureError(f"the capture cannot be written: {error}") from error


_KINDS = {
    ("pcap", "us"): kernel.PCAP_US,
    ("pcap", "ns"): kernel.PCAP_NS,
    ("pcapng", "us"): kernel.PCAPNG_US,
    ("pcapng", "ns"): kernel.PCAPNG_NS,
}
# In a record: where the time is, and where the frame is.
_PLACES = {"pcap": (0, 16), "pcapng": (12, 28)}
# Positions in a tile are 32 bits in the kernel's tables.
_MAX_TILE = 2**31 - 1


class TileRecords:
    """A file of one tile in parts.

    head    the file's header and the prologue
    tile    the records of the body
    ends    where each record ends in the tile
    frames  where each frame begins in the tile
    times   the kernel's table of times; `kind` says how they are written
    """

    def __init__(self, segment: Segment, format: Literal["pcap", "pcapng"], resolution: Literal["us", "ns"]) -> None:
        stream = io.BytesIO()
        with CaptureWriter(stream, format, segment.link_type, resolution=resolution) as out:
            _append(out, stream, segment.link_type, segment.prologue)
            self.head = stream.getvalue()
            begins = _append(out, stream, segment.link_type, segment.body)
        self.tile = np.frombuffer(stream.getvalue()[len(self.head) :], np.uint8)
        if len(self.tile) > _MAX_TILE:
            raise UsageError(f"the body takes {len(self.tile)} bytes; at most {_MAX_TILE} can be tiled")
        time_at, frame_at = _PLACES[format]
        starts = [begin - len(self.head) for begin in begins]
        self.ends = [*starts[1:], len(self.tile)]
        self.frames = [start + frame_at for start in starts]
        self.kind = _KINDS[format, resolution]
        times = [(time_ns, start + time_at) for (time_ns, _), start in zip(segment.body, starts, strict=True)]
        self.times = np.array(times, kernel.TIME)


def _append(out: CaptureWriter, stream: io.BytesIO, link_type: int, frames: Sequence[tuple[int, bytes]]) -> list[int]:
    """Writes the frames; returns where each record begins."""
    begins = []
    for time_ns, frame in frames:
        begins.append(stream.tell())
        out.write(frame, time_ns, original_length=_original_length(link_type, frame))
    return begins


def _original_length(link_type: int, frame: bytes) -> int:
    """A frame shorter than its IP header says was cut."""
    link = PARSERS[link_type](frame)
    packet = read_packet(frame, link[0], link[1], len(frame)) if link else None
    return max(len(frame), packet.end) if packet else len(frame)

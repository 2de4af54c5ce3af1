"""The bytes of a capture file up to the end of its first tile, as `CaptureWriter` writes them, and where things are."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Literal

import numpy as np

from generators.bulk import kernel
from generators.bulk.segment import Segment
from pcap_tools.capture import CaptureWriter
from pcap_tools.capture.ip import read_packet
from pcap_tools.capture.link import PARSERS
from pcap_tools.errors import UsageError

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

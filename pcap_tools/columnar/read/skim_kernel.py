"""Over the records of a pcap file that leave nothing to remember: all but fragments and what Python must look at."""

from __future__ import annotations

from typing import Any

from numba import types

from pcap_tools.capture.frame import MAX_CAPTURED
from pcap_tools.columnar.read.frames_kernel import BYTES, u32
from pcap_tools.columnar.read.packets_kernel import FRAGMENT, SLOW, any_packet, ordinary
from pcap_tools.kernels.jit import kernel

RECORD = 16


@kernel(BYTES, types.int64, types.int64, types.int64, types.int64, types.boolean, types.int64)
def skim(buffer: Any, at: int, have: int, limit: int, number: int, big: bool, link: int) -> tuple[int, int]:
    """Where the first record begins that must be read, or is not there, or not before `limit`; the number before it.

    What must be read is decided by the pieces of `read_packets` itself. `link` is one that it knows.
    """
    while at < limit and at + RECORD <= have:
        captured = u32(buffer, at + 8, big)
        if captured == 0 or captured > MAX_CAPTURED or at + RECORD + captured > have:
            break
        frame = at + RECORD
        if ordinary(buffer, frame, captured, link) < 0:
            kind = any_packet(buffer, frame, captured, link, u32(buffer, at + 12, big))[0]
            if kind in (SLOW, FRAGMENT):
                break
        at += RECORD + captured
        number += 1
    return at, number

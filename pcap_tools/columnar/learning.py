"""Which dialects a capture is in, learned from the first datagrams of its batches as ``pcap_tools.decoding`` does it.

>>> found = find_dialects(read_file("run.pcap"), Detector(dialects))       # doctest: +SKIP

The capture may be a pipe, so it is read once: the batches that were learned from are kept and given back in front of
the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from pcap_tools.decoding import LEARN_BYTES, LEARN_DATAGRAMS
from pcap_tools.detect import Detector, Evidence, Routes

from .buffers import PADDING
from .datagrams import DatagramBatch


class Found(NamedTuple):
    """All batches, also those that were learned from; what the detector decided, and why."""

    batches: Iterator[DatagramBatch]
    routes: Routes
    evidence: list[Evidence]


class _Addressed(NamedTuple):
    src: str
    sport: int
    dst: str
    dport: int
    payload: bytes


def find_dialects(batches: Iterator[DatagramBatch], detector: Detector) -> Found:
    """Let the detector learn from as many datagrams as in ``decode_capture``, and decide."""
    held: list[DatagramBatch] = []
    count = size = 0
    for batch in batches:
        held.append(_copy(batch))
        count, size = _learn(detector, batch, count, size)
        if count >= LEARN_DATAGRAMS or size >= LEARN_BYTES:
            break
    evidence = detector.decide()
    return Found(chain(held, batches), detector.routes(), evidence)


def _learn(detector: Detector, batch: DatagramBatch, count: int, size: int) -> tuple[int, int]:
    addresses = batch.addresses
    for row in range(batch.count):
        if count >= LEARN_DATAGRAMS or size >= LEARN_BYTES:
            break
        start = batch.start[row]
        payload = batch.buffer[start : start + batch.size[row]].tobytes()
        count, size = count + 1, size + len(payload)
        if batch.copy_of[row] == 0:
            ends = addresses[batch.src[row]], int(batch.sport[row]), addresses[batch.dst[row]], int(batch.dport[row])
            detector.learn(_Addressed(*ends, payload))
    return count, size


def _copy(batch: DatagramBatch) -> DatagramBatch:
    """In memory of its own, without what stands between the payloads; the addresses stay those of the reading."""
    rows = {
        name: getattr(batch, name)[: batch.count].copy()
        for name in ("frame", "time_ns", "size", "length", "src", "dst", "sport", "dport", "copy_of", "ip_id")
    }
    ends = np.cumsum(rows["size"], dtype=np.int64)
    payloads = [batch.buffer[start : start + size] for start, size in zip(batch.start, rows["size"], strict=False)]
    buffer = np.concatenate([*payloads, np.zeros(PADDING, np.uint8)])
    return replace(batch, buffer=buffer, start=ends - rows["size"], **rows)

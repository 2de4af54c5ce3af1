"""Which dialects a capture is in, learned from the first datagrams of its batches, as in ``codec.decoding``.

>>> found = find_dialects(read_file("run.pcap"), Detector(dialects))       # doctest: +SKIP

The capture may be a pipe, so it is read once: the batches that were learned from are kept and given back in front of
the others. What ``Detector.learn`` asks the codecs is asked of the columnar decoder here, which has the answers for a
whole batch; tallies are the same to the last bit, since sums are made in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pcap_tools.codec.decoding import LEARN_BYTES, LEARN_DATAGRAMS
from pcap_tools.codec.detect import (
    MATCHED_SIZE_BITS,
    MAX_ENDPOINTS,
    WRONG_SIZE_BITS,
    Detector,
    Dialects,
    Endpoint,
    Evidence,
    Routes,
    Tally,
    layout_bits,
)
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.read.datagrams import DatagramBatch
from pcap_tools.columnar.read.sources import PADDING
from pcap_tools.dialect import Dialect

_INVALID = -1

Made = TypeVar("Made", bound=Decoder)


class Found(NamedTuple):
    """All batches, also those that were learned from; what the detector decided, and why."""

    batches: Iterator[DatagramBatch]
    routes: Routes
    evidence: list[Evidence]


def find_dialects(batches: Iterator[DatagramBatch], detector: Detector) -> Found:
    """Let the detector learn from as many datagrams as in ``decode_capture``, and decide."""
    held: list[DatagramBatch] = []
    judges = [_Judge(codec.dialect) for codec in detector.codecs.values()]
    count = size = 0
    for batch in batches:
        held.append(_copy(batch))
        rows = _wanted_rows(batch, count, size)
        _learn(detector, judges, batch, rows)
        count, size = count + rows, size + int(batch.size[:rows].sum(dtype=np.int64))
        if count >= LEARN_DATAGRAMS or size >= LEARN_BYTES:
            break
    evidence = detector.decide()
    return Found(chain(held, batches), detector.routes(), evidence)


class Opened(NamedTuple, Generic[Made]):
    """All batches, the decoder for them, and why it is for these dialects if they had to be found."""

    batches: Iterator[DatagramBatch]
    decoder: Made
    evidence: list[Evidence]


def open_decoder(
    batches: Iterator[DatagramBatch],
    dialects: Dialects,
    make: Callable[[tuple[Dialect, ...], Routes], Made],
    routes: Routes | None = None,
) -> Opened[Made]:
    """Have a decoder made for the dialects that are spoken in a reading; without ``routes`` they are found first."""
    evidence: list[Evidence] = []
    if routes is None:
        batches, routes, evidence = find_dialects(batches, dialects.detector())
    return Opened(batches, make(dialects.spoken(routes), routes), evidence)


def _wanted_rows(batch: DatagramBatch, count: int, size: int) -> int:
    """How many rows are learned from: up to and with the one that makes it enough."""
    sizes = size + np.cumsum(batch.size[: batch.count], dtype=np.int64)
    return min(batch.count, LEARN_DATAGRAMS - count, int(np.searchsorted(sizes, LEARN_BYTES)) + 1)


class _Verdicts(NamedTuple):
    """Of each datagram: the layout it is valid by, else `_INVALID`; and how many bits that says."""

    layout: NDArray[np.int64]
    bits: NDArray[np.float64]


class _Judge(Decoder):
    """What one dialect makes of datagrams, as ``decode_if_valid`` and ``bits_said`` have it."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__([dialect], columns=["error"])
        self.name = dialect.name
        layouts = self.tables.layouts
        self.ids = [id(layout) for _, layout in layouts]
        self.is_ack = [layout.meaning == "ack" for _, layout in layouts]
        self._bits = np.array([layout_bits(layout) for _, layout in layouts])
        self._pad_to = np.array([form.pad_to or 0 for form, _ in layouts])

    def verdicts(self, batch: DatagramBatch, rows: int) -> _Verdicts:
        results = self._walk(replace(batch, count=rows, length=batch.size))  # cut ones are valid by what is there
        layout = np.where((results.error == 0) & (results.outcome >= 0), results.outcome, _INVALID).astype(np.int64)
        pad_to = self._pad_to[layout]
        sized = np.where(batch.size[:rows] == pad_to, MATCHED_SIZE_BITS, WRONG_SIZE_BITS)
        bits = np.where(pad_to > 0, self._bits[layout] + sized, self._bits[layout])
        return _Verdicts(layout, np.where(layout == _INVALID, 0.0, bits))


def _learn(detector: Detector, judges: list[_Judge], batch: DatagramBatch, rows: int) -> None:
    """As if ``detector.learn`` were called for each of the first `rows` datagrams that is no copy."""
    first = batch.copy_of[:rows] == 0
    ends = np.stack([batch.src[:rows], batch.sport[:rows], batch.dst[:rows], batch.dport[:rows]], axis=1)
    ends = ends[first].reshape(-1, 2)  # a row of two numbers for each end, those of a datagram one behind the other
    keys, place, of = np.unique(ends[:, 0].astype(np.int64) << 16 | ends[:, 1], return_index=True, return_inverse=True)
    endpoints = [(batch.addresses[key >> 16], key & 0xFFFF) for key in keys.tolist()]
    tallies = detector.tallies
    for index in np.argsort(place).tolist():
        if endpoints[index] in tallies or len(tallies) < MAX_ENDPOINTS:
            tallies.setdefault(endpoints[index], {})
    for judge in judges:
        layout, bits = (np.repeat(column[first], 2) for column in judge.verdicts(batch, rows))
        _count(detector, judge, endpoints, of, layout, bits)


def _count(
    detector: Detector,
    judge: _Judge,
    endpoints: list[Endpoint],
    of: NDArray[np.int64],
    layout: NDArray[np.int64],
    bits: NDArray[np.float64],
) -> None:
    """Tally what one dialect makes of the ends `of` all datagrams: `Detector._count` for each of them."""
    says = (layout != _INVALID) & (bits > 0)
    known = [detector.tallies.get(endpoint, {}).setdefault(judge.name, Tally()) for endpoint in endpoints]
    sums = np.array([tally.bits for tally in known])
    np.add.at(sums, of[says], bits[says])  # one after the other, as the detector does it
    seen, decoded = (np.bincount(ends, minlength=len(known)).tolist() for ends in (of, of[says]))
    for tally, more_seen, more_decoded, total in zip(known, seen, decoded, sums.tolist(), strict=True):
        tally.seen += more_seen
        tally.decoded += more_decoded
        tally.bits = total
    _, place = np.unique(of[says] * len(judge.ids) + layout[says], return_index=True)
    for index in np.flatnonzero(says)[np.sort(place)].tolist():
        tally, number = known[of[index]], layout[index]
        told = (endpoints[of[index]], judge.name, judge.ids[number])
        if told not in detector.counted:
            detector.counted.add(told)
            tally.distinct_bits += float(bits[index])
        tally.says_more_than_acks |= not judge.is_ack[number]


def _copy(batch: DatagramBatch) -> DatagramBatch:
    """In memory of its own, without what stands between the payloads; the addresses stay those of the reading."""
    rows = {
        name: getattr(batch, name)[: batch.count].copy()
        for name in ("frame", "time_ns", "size", "length", "src", "dst", "sport", "dport", "copy_of", "ip_id")
    }
    starts, ends = batch.start[: batch.count], np.cumsum(rows["size"], dtype=np.int64)
    start = ends - rows["size"]
    places = np.arange(ends[-1] if batch.count else 0) + np.repeat(starts - start, rows["size"])
    buffer = np.concatenate([batch.buffer[places], np.zeros(PADDING, np.uint8)])
    return replace(batch, buffer=buffer, start=start, **rows)

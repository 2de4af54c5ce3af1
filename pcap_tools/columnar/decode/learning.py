"""Which dialects a capture is in, learned from the first datagrams of its batches, as in ``codec.decoding``.

>>> found = find_dialects(read_file("run.pcap"), Detector(dialects))       # doctest: +SKIP
>>> for decoder, batch, _ in follow(read_file("-"), dialects, Decoder):    # doctest: +SKIP
...     decoder.decode(batch)

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
from pcap_tools.columnar.decode.routing import OTHER, PORTS, Router
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


MOST_LATE = 4 * LEARN_DATAGRAMS
MOST_HELD = 1_000


class Followed(NamedTuple, Generic[Made]):
    """Some datagrams that can be decoded now. ``is_late``: they came earlier, when their dialect was not known."""

    decoder: Made
    batch: DatagramBatch
    is_late: bool


def follow(
    batches: Iterator[DatagramBatch],
    dialects: Dialects,
    make: Callable[[tuple[Dialect, ...], Routes], Made],
    on_evidence: Callable[[list[Evidence]], None] | None = None,
) -> Iterator[Followed[Made]]:
    """Decode a source that is still being written: each batch at once, by what was learned until then.

    The first datagrams are learned from as they are for a file, and those on a dialect's own ports for much longer: the
    broker may start late. Datagrams whose dialect is found only after them follow as late ones.
    """
    followed = _Followed(dialects, make)
    for batch in batches:
        if evidence := followed.learn(batch):
            if on_evidence:
                on_evidence(evidence)
            for held in followed.found_late():
                yield Followed(followed.decoder, held, True)
        followed.hold(batch)
        yield Followed(followed.decoder, batch, False)


class _Followed(Generic[Made]):
    """What `follow` knows: the detector, the decoder for what it has found, and datagrams of no known dialect."""

    def __init__(self, dialects: Dialects, make: Callable[[tuple[Dialect, ...], Routes], Made]) -> None:
        self._dialects, self._make = dialects, make
        self._detector = dialects.detector()
        self._judges = [_Judge(codec.dialect) for codec in self._detector.codecs.values()]
        self._codes = {name: code for code, name in enumerate(self._detector.codecs)}
        self._told: set[tuple[Endpoint, str]] = set()
        self._learned = self._late = self._size = 0
        self._held: list[DatagramBatch] = []
        self._own = np.zeros(PORTS, np.bool_)
        for ports in self._detector.routes().own_ports.values():
            self._own[list(ports)] = True
        self._settle()

    def _settle(self) -> None:
        routes = self._detector.routes()
        self._router = Router(routes, self._codes)
        self.decoder = self._make(self._dialects.spoken(routes), routes)

    @property
    def _is_first(self) -> bool:
        return self._learned < LEARN_DATAGRAMS and self._size < LEARN_BYTES

    def learn(self, batch: DatagramBatch) -> list[Evidence]:
        """Take what is new in a batch as evidence; returns what it has proved."""
        if self._is_first:
            rows = _wanted_rows(batch, self._learned, self._size)
            _learn(self._detector, self._judges, batch, rows)
            self._learned += rows
            self._size += int(batch.size[:rows].sum(dtype=np.int64))
        else:
            late = self._unknown_on_own_ports(batch)
            if not len(late):
                return []
            self._late += len(late)
            _learn(self._detector, self._judges, _copy(batch, late), len(late))
        return self._decide()

    def _decide(self) -> list[Evidence]:
        before = self._detector.routes()
        evidence = self._detector.decide()
        after = self._detector.routes()
        if _names(before) == _names(after):
            return []
        self._settle()
        new = [item for item in evidence if (item.endpoint, item.dialect) not in self._told]
        self._told.update((item.endpoint, item.dialect) for item in new)
        return new

    def _unknown_on_own_ports(self, batch: DatagramBatch) -> NDArray[np.intp]:
        count = batch.count
        own = self._own[batch.sport[:count]] | self._own[batch.dport[:count]]
        if self._late >= MOST_LATE or not own.any():
            return np.empty(0, np.intp)
        return np.flatnonzero(own & self._unknown(batch))

    def _unknown(self, batch: DatagramBatch) -> NDArray[np.bool_]:
        routes = np.empty(batch.count, np.int16)
        self._router.route(batch, routes)
        is_other: NDArray[np.bool_] = routes == OTHER
        return is_other

    def hold(self, batch: DatagramBatch) -> None:
        """Keep datagrams of no known dialect while there is hope for them."""
        room = MOST_HELD - sum(held.count for held in self._held)
        if not self._is_first:
            self._held = []
        elif room > 0:
            unknown = np.flatnonzero(self._unknown(batch))[:room]
            if len(unknown):
                self._held.append(_copy(batch, unknown))

    def found_late(self) -> Iterator[DatagramBatch]:
        """Those of them whose dialect is known by now; each once."""
        held, self._held = self._held, []
        for batch in held:
            unknown = self._unknown(batch)
            if unknown.any():
                self._held.append(_copy(batch, np.flatnonzero(unknown)))
            if not unknown.all():
                yield _copy(batch, np.flatnonzero(~unknown))


def _names(routes: Routes) -> tuple[dict[Endpoint, str], dict[int, str]]:
    return {endpoint: name for endpoint, (_, name) in routes.endpoints.items()}, routes.ports


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
    tells = says & ~np.append(judge.is_ack, True)[layout]
    counts = (np.bincount(ends, minlength=len(known)).tolist() for ends in (of, of[says], of[tells]))
    for tally, more_seen, more_decoded, more_telling, total in zip(known, *counts, sums.tolist(), strict=True):
        tally.seen += more_seen
        tally.decoded += more_decoded
        tally.telling += more_telling
        tally.bits = total
    _, place = np.unique(of[says] * len(judge.ids) + layout[says], return_index=True)
    for index in np.flatnonzero(says)[np.sort(place)].tolist():
        tally, number = known[of[index]], layout[index]
        told = (endpoints[of[index]], judge.name, judge.ids[number])
        if told not in detector.counted:
            detector.counted.add(told)
            tally.distinct_bits += float(bits[index])


def _copy(batch: DatagramBatch, rows: NDArray[np.intp] | None = None) -> DatagramBatch:
    """All rows or some in memory of their own, without what stands between the payloads; the addresses stay those of
    the reading."""
    taken = slice(batch.count) if rows is None else rows
    columns = {
        name: getattr(batch, name)[taken].copy()
        for name in ("frame", "time_ns", "size", "length", "src", "dst", "sport", "dport", "copy_of", "ip_id")
    }
    starts, ends = batch.start[taken], np.cumsum(columns["size"], dtype=np.int64)
    start = ends - columns["size"]
    places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - start, columns["size"])
    buffer = np.concatenate([batch.buffer[places], np.zeros(PADDING, np.uint8)])
    return replace(batch, count=len(start), buffer=buffer, start=start, **columns)

"""Datagrams of a capture, or of a split of one, in batches: `read_file` and `read_batches`.

    >>> for batch in read_file("run.pcap"):                                # doctest: +SKIP
    ...     print(batch.count, batch.frame[: batch.count])

The rows are those of `pcap_tools.capture.read_datagrams`, in the same order; memory is bounded likewise, but that each
address is remembered: some 150 bytes for one.
"""

from __future__ import annotations

import io
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pcap_tools.capture.damage import CaptureError, Corrupt, Damage, OnDamage, OnWarning, log_damage, log_warning
from pcap_tools.capture.streams import Source, open_source
from pcap_tools.columnar.read.addresses import AddressTable
from pcap_tools.columnar.read.copies import CopyTable, random_seed
from pcap_tools.columnar.read.datagrams import DatagramBatch, empty_batch
from pcap_tools.columnar.read.fragments import FrameNote, SlowPath
from pcap_tools.columnar.read.frames import (
    ASK,
    FRAME_COLUMNS,
    NEED,
    Facts,
    Usual,
    Walker,
    first_record,
    head_size,
    read_facts,
    walker,
)
from pcap_tools.columnar.read.packets import X_COLUMNS, read_packets, read_usual
from pcap_tools.columnar.read.sources import (
    Buffer,
    Feed,
    LocalFile,
    RangeFeed,
    StreamFeed,
    is_remote,
    open_bytes,
    read_at,
    whole_feed,
)


@dataclass(frozen=True)
class State:
    """A border between two records, and what a reader that comes from the file's begin remembers there.

    offset  of the next record
    frames  the number of the last frame before it
    groups  the datagrams of the last millisecond, which may have copies yet
    notes   the frames of fragments that wait for others
    """

    offset: int
    frames: int
    facts: Facts
    groups: NDArray[np.int64] | None = None
    notes: list[FrameNote] = field(default_factory=list)


@dataclass(frozen=True)
class Split:
    """A part of a capture that can be read by itself; small, and made to be pickled.

    end      offset of the first record that is not part of it
    version  of the source, which must not change in between
    seed     of the hashes in `state.groups`
    state    None if the file can only be read as a whole (gzip)
    """

    source: str
    ordinal: int
    end: int
    version: str
    seed: tuple[int, int]
    state: State | None

    @property
    def begin(self) -> int:
        """Offset of its first record."""
        return 0 if self.state is None else self.state.offset

    @property
    def first_frame(self) -> int:
        """The number of its first frame."""
        return 1 if self.state is None else self.state.frames + 1


ROWS = 65536
CHUNK = 4 << 20
_STRIDE = 8192  # frames between two looks of Python: the table of frames stays in the cache
_FEW = 256  # frames that are read in two steps, where those before them were not
_NO_LIMIT = 1 << 62


class Reading:
    """One pass over a capture; `batches` may be called again and again with a further `limit`."""

    def __init__(
        self, name: str, feed: Feed, seed: tuple[int, int], on_damage: OnDamage, on_warning: OnWarning, rows: int = ROWS
    ) -> None:
        self._name, self._feed = name, feed
        self._on_damage, self._on_warning = on_damage, on_warning
        self._buffer = Buffer(CHUNK)
        self._at = self._have = self._offset = 0  # place and end in the buffer; the buffer's begin in the file
        self._number = 0
        self._over = False
        self._frames = np.zeros((min(rows, _STRIDE), FRAME_COLUMNS), np.int64)
        self._extra = np.zeros((rows, X_COLUMNS), np.int64)
        self._kinds = np.zeros(rows, np.uint8)
        self._addresses = AddressTable()
        self._batch: DatagramBatch
        self._no_copies = np.zeros(rows, np.int64)
        self._slow = SlowPath(self._addresses, on_warning)
        self._seed = seed
        self._copies: CopyTable | None = None
        self._walker: Walker
        self._usual: Usual | None

    # --- Where to begin, and where it is ----------------------------------------------------------------------------

    def open(self) -> bool:
        """Begin with the file's first bytes; False if there is no more. Raises `CaptureError` if it is no capture."""
        self._more(4)
        self._more(head_size(self._buffer.data[: min(self._have, 4)].tobytes()))
        head = self._buffer.data[: min(self._have, 64)].tobytes()
        try:
            facts = read_facts(self._name, head, self._feed.trouble)
        except Corrupt as damage:
            self._damaged(damage)
            return False
        self._at = first_record(facts)
        self._walk_on(facts, None)
        return True

    def resume(self, state: State, bodies: list[bytes]) -> None:
        """Go on from `state`; `bodies` are the bytes of the frames it notes."""
        self._offset, self._number = state.offset, state.frames
        self._walk_on(state.facts, state.groups)
        for note, body in zip(state.notes, bodies, strict=True):
            self._slow.read_again(note, body)

    def _walk_on(self, facts: Facts, groups: NDArray[np.int64] | None) -> None:
        self._walker = walker(facts, self._frames)
        self._usual = self._walker.usual
        if self._walker.copies != "never":
            self._copies = CopyTable(self._seed, groups)

    def state(self) -> State | None:
        """Where it is now, between two calls of `batches`; None if that cannot be told in short."""
        if self._slow.nested:
            return None
        groups = None if self._copies is None else self._copies.kept()
        return State(self.position, self._number, self._walker.facts(), groups, self._slow.open_notes())

    @property
    def position(self) -> int:
        """The offset of the first record that was not read."""
        return self._offset + self._at

    @property
    def frames(self) -> int:
        """The number of the last frame."""
        return self._number

    @property
    def over(self) -> bool:
        """All was read, or the rest is damaged."""
        return self._over

    # --- Rows -------------------------------------------------------------------------------------------------------

    def batches(self, limit: int = _NO_LIMIT) -> Iterator[DatagramBatch]:
        """All datagrams that are complete with a record that begins before the offset `limit`."""
        while not self._over and self.position < limit:
            self._batch = batch = self._new_batch()
            need, damage = 0, None
            self._buffer.clear()
            try:
                while need == 0 and batch.count < len(self._kinds) and self.position < limit:
                    need = self._stride(limit)
            except Corrupt as corrupt:
                # Its traceback holds this frame, which would hold it: megabytes that wait for the garbage collector.
                damage = corrupt.with_traceback(None)
            if batch.count:
                self._addresses.spell()
                yield batch
            if damage is not None:
                self._damaged(damage)
            elif need and not self._more(need):
                self._finish()

    def _new_batch(self) -> DatagramBatch:
        copy_of = self._no_copies if self._copies is None else np.zeros_like(self._no_copies)
        return empty_batch(len(self._kinds), self._addresses.texts, copy_of)

    def _stride(self, limit: int) -> int:
        """Some more frames; how many bytes the next one needs, 0 if it is there."""
        data = self._buffer.data
        short = self._read_usual(self._usual, limit) if self._usual else 0
        if short == _STRIDE or self._batch.count == len(self._kinds):
            return 0
        most = min(_FEW if short > _FEW else len(self._frames), len(self._kinds) - self._batch.count)
        found, self._at, self._number, why, need = self._walker.walk(
            data, self._at, self._have, limit - self._offset, self._number, most
        )
        if found:
            self._add_rows(found)
        if why == ASK:
            block = data[self._at : min(self._have, self._at + need)].tobytes()
            self._at += self._walker.ask(block, self.position, self._number, "")
        return need if why == NEED else 0

    def _read_usual(self, usual: Usual, limit: int) -> int:
        """Go the short way as far as it leads; how many rows that were."""
        batch, addresses = self._batch, self._addresses
        before, batch.buffer = batch.count, self._buffer.data
        rows = min(len(self._kinds), before + _STRIDE)
        addresses.reserve(2 * (rows - before))
        batch.count, self._at, self._number = read_usual(
            batch.buffer, self._at, self._have, limit - self._offset, self._number, *usual,
            addresses.for_kernels, before, rows, batch.rows, self._kinds,
        )  # fmt: skip
        return batch.count - before

    def _add_rows(self, found: int) -> None:
        batch, addresses, interfaces = self._batch, self._addresses, self._walker.interfaces
        addresses.reserve(2 * found)
        low = batch.count
        batch.buffer = self._buffer.data
        stop, special = read_packets(
            batch.buffer, self._frames, found, interfaces, addresses.for_kernels, low, self._copies is not None,
            batch.rows, self._extra, self._kinds,
        )  # fmt: skip
        if special:
            stop = self._slow.resolve(
                batch, (low, stop), self._kinds, self._extra, self._frames, interfaces, self._walker.link_types,
                self._buffer, self._offset,
            )  # fmt: skip
            batch.buffer = self._buffer.data
        batch.count = stop
        if self._copies is not None:
            tell = self._copies.mark if self._walker.copies == "now" else self._copies.remember
            tell(batch, self._extra, addresses.known, low, stop)

    # --- Bytes ------------------------------------------------------------------------------------------------------

    def _more(self, need: int) -> bool:
        """Move what is left to the buffer's begin and have `need` bytes; False if the capture ends before."""
        buffer, rest = self._buffer, self._have - self._at
        buffer.data[:rest] = buffer.data[self._at : self._have].copy()
        self._offset += self._at
        self._at, self._have = 0, rest
        if need > buffer.room:
            buffer.widen(2 * need, rest)
        while self._have < need:
            got = self._feed.fill(buffer.view(self._have))
            if got == 0:
                return False
            self._have += got
        return True

    def _finish(self) -> None:
        """The bytes are at their end: between two records, or inside one."""
        rest = self._buffer.data[self._at : self._have].tobytes()
        try:
            self._walker.finish(rest, self.position, self._number, self._feed.trouble)
        except Corrupt as damage:
            self._damaged(damage)
        else:
            self._end()

    def _damaged(self, damage: Corrupt) -> None:
        self._on_damage(Damage(self._name, damage.offset, damage.text))
        self._end()

    def _end(self) -> None:
        self._over = True
        dropped = self._slow.fragment_groups.dropped
        if dropped:
            self._on_warning(f"{dropped} incomplete fragmented datagrams were given up to save memory")


def read_file(
    source: Source, on_damage: OnDamage | None = None, on_warning: OnWarning | None = None, rows: int = ROWS
) -> Iterator[DatagramBatch]:
    """The datagrams of a path, a URI, "-" for stdin or a binary stream, in one pass; parameters as `read_datagrams`."""
    with _open_feed(source) as (name, feed):
        reading = Reading(name, feed, random_seed(), on_damage or log_damage, on_warning or log_warning, rows)
        if reading.open():
            yield from reading.batches()


@contextmanager
def _open_feed(source: Source) -> Iterator[tuple[str, Feed]]:
    if isinstance(source, str) and is_remote(source):
        with open_bytes(source) as remote:
            yield source, whole_feed(remote)
        return
    with open_source(source) as (name, stream):
        by_path = isinstance(source, (str, os.PathLike)) and name != "-"
        if by_path and stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            yield name, whole_feed(LocalFile(name, stream.fileno()))
        else:
            yield name, StreamFeed(stream)


def read_batches(
    split: Split, rows: int = ROWS, on_damage: OnDamage | None = None, on_warning: OnWarning | None = None
) -> Iterator[DatagramBatch]:
    """The datagrams that are complete within a split. Damage was told by the plan, except for a file with gzip."""
    if split.state is None:
        yield from read_file(split.source, on_damage, on_warning, rows)
        return
    with open_bytes(split.source) as source:
        if source.version != split.version:
            raise CaptureError(f"{split.source}: has changed since it was divided into splits; plan them again")
        feed = RangeFeed(source, split.state.offset, split.end)
        reading = Reading(split.source, feed, split.seed, partial(_changed, split.source), _ignore, rows)
        reading.resume(split.state, [read_at(source, note.offset, note.captured) for note in split.state.notes])
        yield from reading.batches()


def _changed(name: str, damage: Damage) -> None:
    raise CaptureError(f"{name}: has changed while it was read ({damage.text} at byte {damage.offset})")


def _ignore(text: str) -> None:
    """The plan has told it for the whole file."""


def warm_frames() -> None:
    """Have all kernels of the reader compiled and loaded, by reading a capture of one fragmented datagram."""
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 113)
    halves = [(0x2000, struct.pack(">HHHH", 1, 2, 10, 0)), (1, b"hi")]
    for flags, body in halves:
        packet = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(body), 1, flags, 64, 17, 0, 1, 2) + body
        frame = bytes(14) + b"\x08\x00" + packet
        header += struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame
    for _ in read_file(io.BytesIO(header)):
        pass

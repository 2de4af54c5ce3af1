"""Rows that the kernels leave over: by the pure-Python reader's own functions, so that there is one truth.

Fragments come here too. Those of trains that arrive whole and in order are joined by a kernel, the others go to
the `Reassembler`.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from pcap_tools.capture.damage import OnWarning
from pcap_tools.capture.datagram import Datagram
from pcap_tools.capture.datagrams import _read_datagram
from pcap_tools.capture.frame import Frame
from pcap_tools.capture.ip import Fragment
from pcap_tools.capture.link import LinkTypes
from pcap_tools.capture.reassembly import Reassembler, Whole
from pcap_tools.columnar.read.addresses import AddressTable
from pcap_tools.columnar.read.buffers import Buffer
from pcap_tools.columnar.read.datagrams import NO_IDENT, DatagramBatch
from pcap_tools.columnar.read.fragments_kernel import join_fragments
from pcap_tools.columnar.read.frames_kernel import (
    CAPTURED,
    IF_LINK,
    NUMBER,
    ORIGINAL,
    PACKET_TYPE,
    PLACE,
    POSITION,
    SLOT,
    TIME,
)
from pcap_tools.columnar.read.packets_kernel import (
    FRAGMENT,
    GONE,
    NO_PACKET_TYPE,
    PLAIN,
    SILENT,
    SLOW,
    UNKNOWN,
    X_IDENT,
    X_INDEX,
    X_PACKET_TYPE,
    X_PLACE,
)

_OVERHEAD = 256  # that of the Reassembler
_KEY_ROWS = 8
# Rows looked at together: half of the trains that may be open, so that joining has room while the other half is open.
_AT_ONCE = 2048
_FEW_NOTES = 4096
# The kernel is told all open trains each time; for one fragment among so many, the Reassembler is quicker.
_WORTH = 16


class FrameNote(NamedTuple):
    """A frame whose fragment waits for others, and where to find it again; no packet type is -1."""

    number: int
    time_ns: int
    link_type: int
    interface: int
    packet_type: int
    offset: int
    captured: int
    original: int

    def frame(self, data: bytes) -> Frame:
        """The frame with its bytes."""
        packet_type = None if self.packet_type == NO_PACKET_TYPE else self.packet_type
        return Frame(
            self.number, self.time_ns, self.link_type, self.interface, data, self.original, (), packet_type
        )  # fmt: skip


class Trains(Reassembler):
    """A Reassembler that tells what it holds."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def add(self, fragment: Fragment, body: bytes, frame: int, time_ns: int) -> Whole | None:
        """As of the Reassembler."""
        self.calls += 1
        return super().add(fragment, body, frame, time_ns)

    def pass_by(self, time_ns: int) -> None:
        """A fragment of this time was seen but need not be kept: old trains go."""
        super().add(Fragment((), 0, True), b"", 0, time_ns)

    def open_frames(self) -> set[int]:
        """The frames of all open trains."""
        return {frame for train in self._trains.values() for frame in train.frames}

    def open_keys(self) -> list[tuple[object, ...]]:
        """The keys of all open trains."""
        return list(self._trains)

    def has_room(self, trains: int, cost: int) -> bool:
        """So much more would not make it drop a train, even if nothing were completed meanwhile."""
        return len(self) + trains <= self._max_trains and self._cost + cost <= self._max_bytes

    @property
    def timeout_ns(self) -> int:
        """How long a train may take."""
        return self._timeout_ns


class SlowPath:
    """What is remembered from frame to frame beside copies: open trains and link types that were warned of."""

    def __init__(self, addresses: AddressTable, on_warning: OnWarning) -> None:
        self.trains = Trains()
        self.nested = False  # a fragment inside a fragment was seen, so frames no longer tell how trains came about
        self._links = LinkTypes(on_warning)
        self._addresses = addresses
        self._notes: dict[int, FrameNote] = {}
        self._prune_at = _FEW_NOTES

    # --- Open trains, for going on elsewhere ------------------------------------------------------------------------

    def open_notes(self) -> list[FrameNote]:
        """The frames that open trains are made of: reading just these gives the same trains again.

        They are fed in the same order, so keys, order and begin of the trains are the same. What was not dropped for
        its age or for want of room among all fragments is not dropped among fewer.
        """
        return [self._notes[number] for number in sorted(self.trains.open_frames())]

    def read_again(self, note: FrameNote, data: bytes) -> None:
        """Take a frame of an open train."""
        self._read(note, data)

    def _prune(self) -> None:
        """Forget frames whose trains are closed; seldom, so that a frame costs little of it."""
        if len(self._notes) >= self._prune_at:
            alive = self.trains.open_frames()
            self._notes = {number: note for number, note in self._notes.items() if number in alive}
            self._prune_at = 2 * len(self._notes) + _FEW_NOTES

    def _read(self, note: FrameNote, data: bytes) -> Datagram | None:
        frame = note.frame(data)
        link = self._links.parser(frame.link_type, frame.number)(data)
        if link is None:
            return None
        calls = self.trains.calls
        datagram = _read_datagram(frame, link, self.trains)
        if self.trains.calls > calls:
            self._notes[note.number] = note
            self._prune()
            self.nested = self.nested or self.trains.calls > calls + 1
        return datagram

    # --- Rows -------------------------------------------------------------------------------------------------------

    def resolve(
        self,
        batch: DatagramBatch,
        rows: tuple[int, int],
        kinds: NDArray[np.uint8],
        extra: NDArray[np.int64],
        frames: NDArray[np.int64],
        interfaces: NDArray[np.int64],
        link_types: list[int],
        buffer: Buffer,
        offset: int,
    ) -> int:
        """Fill or take away all rows that are not PLAIN; the end of the rows that are left.

        `offset` is that of the buffer's begin in the file.
        """
        for low in range(rows[0], rows[1], _AT_ONCE):
            stop = min(low + _AT_ONCE, rows[1])
            self._resolve_some(batch, low, stop, kinds, extra, frames, interfaces, link_types, buffer, offset)
        return _pack(batch, rows[0], rows[1], kinds, extra)

    def _resolve_some(
        self,
        batch: DatagramBatch,
        low: int,
        stop: int,
        kinds: NDArray[np.uint8],
        extra: NDArray[np.int64],
        frames: NDArray[np.int64],
        interfaces: NDArray[np.int64],
        link_types: list[int],
        buffer: Buffer,
        offset: int,
    ) -> None:
        fragments = low + np.flatnonzero(kinds[low:stop] == FRAGMENT)
        if len(fragments):
            self._join(batch, low, stop, fragments, kinds, extra, buffer)
        passed = fragments[kinds[fragments] != SLOW]
        for row in (low + np.flatnonzero(kinds[low:stop] == SLOW)).tolist():
            passed = self._pass_by(batch, passed, row)
            index = int(extra[row, X_INDEX])
            note = _note(frames, index, link_types, offset)
            at = int(frames[index, POSITION])
            datagram = self._read(note, buffer.data[at : at + note.captured].tobytes())
            slot = int(frames[index, SLOT])
            if interfaces[slot, IF_LINK] == UNKNOWN:
                interfaces[slot, IF_LINK] = SILENT
            kinds[row] = GONE
            if datagram is not None:
                self._put(batch, row, extra, datagram, buffer)
                kinds[row] = PLAIN
        self._pass_by(batch, passed, stop)

    def _join(
        self,
        batch: DatagramBatch,
        low: int,
        stop: int,
        fragments: NDArray[np.int64],
        kinds: NDArray[np.uint8],
        extra: NDArray[np.int64],
        buffer: Buffer,
    ) -> None:
        """Trains that are whole within these rows, by the kernel; the rest becomes SLOW.

        Such a train does not change the Reassembler, except that its fragments' times let old trains go (`_pass_by`)
        and that it could push others out, so there must be room for everything at once.
        """
        special = batch.size[low:stop][kinds[low:stop] != PLAIN]
        total = int(special.sum(dtype=np.int64))
        few = len(fragments) * _WORTH < len(self.trains)
        if few or not self.trains.has_room(len(special), total + _OVERHEAD * len(special)):
            kinds[fragments] = SLOW
            return
        keys = self._keys()
        table = np.zeros((_KEY_ROWS, len(keys) + len(fragments)), np.int64)
        if keys:
            table[:4, : len(keys)] = np.array(keys, np.int64).T
        buffer.reserve(total)
        hashed = np.full(2 << (2 * table.shape[1]).bit_length(), -1, np.int32)
        before = np.full(stop - low, -1, np.int64)
        buffer.tail = int(
            join_fragments(
                buffer.data, buffer.tail, low, stop, self.trains.timeout_ns, table, len(keys), hashed, before,
                batch.time_ns, batch.start, batch.size, batch.length, batch.src, batch.dst, batch.sport, batch.dport,
                extra, kinds,
            )
        )  # fmt: skip

    def _keys(self) -> list[tuple[int, int, int, int]]:
        """Open trains of IPv4 by the numbers of their addresses; those of IPv6 have keys of three."""
        keys = cast(list[tuple[bytes, bytes, int, int]], [key for key in self.trains.open_keys() if len(key) == 4])
        numbers = {packed: self._addresses.packed(packed) for packed in {one for key in keys for one in key[:2]}}
        return [(numbers[src], numbers[dst], ident, protocol) for src, dst, ident, protocol in keys]

    def _pass_by(self, batch: DatagramBatch, passed: NDArray[np.int64], row: int) -> NDArray[np.int64]:
        """Fragments before `row` that the kernel has joined: the Reassembler would have seen their times."""
        if not len(passed) or passed[0] >= row:
            return passed
        count = int(np.searchsorted(passed, row))
        if len(self.trains):
            self.trains.pass_by(int(batch.time_ns[passed[:count]].max()))
        return passed[count:]

    def _put(
        self, batch: DatagramBatch, row: int, extra: NDArray[np.int64], datagram: Datagram, buffer: Buffer
    ) -> None:
        """All but `ip_id`, which the kernel has read: it is the same in all fragments."""
        batch.start[row] = buffer.append(datagram.payload)
        batch.size[row] = len(datagram.payload)
        batch.length[row] = datagram.length
        batch.src[row] = self._addresses.ident(datagram.src)
        batch.dst[row] = self._addresses.ident(datagram.dst)
        batch.sport[row] = datagram.sport
        batch.dport[row] = datagram.dport
        extra[row, X_IDENT] = NO_IDENT if datagram.ip_id is None else datagram.ip_id
        extra[row, X_PLACE] = datagram.interface
        extra[row, X_PACKET_TYPE] = NO_PACKET_TYPE if datagram.packet_type is None else datagram.packet_type


def _note(frames: NDArray[np.int64], index: int, link_types: list[int], offset: int) -> FrameNote:
    row = frames[index].tolist()
    return FrameNote(
        row[NUMBER],
        row[TIME],
        link_types[row[SLOT]],
        row[PLACE],
        row[PACKET_TYPE],
        offset + row[POSITION],
        row[CAPTURED],
        row[ORIGINAL],
    )


def _pack(batch: DatagramBatch, low: int, stop: int, kinds: NDArray[np.uint8], extra: NDArray[np.int64]) -> int:
    """Close the gaps of rows that are GONE."""
    keep = low + np.flatnonzero(kinds[low:stop] == PLAIN)
    end = low + len(keep)
    if end < stop:
        columns = (batch.frame, batch.time_ns, batch.start, batch.size, batch.length, batch.src, batch.dst)
        for column in (*columns, batch.sport, batch.dport, batch.ip_id, extra):
            column[low:end] = column[keep]
    return end

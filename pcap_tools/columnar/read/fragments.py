"""Fragments, and the other frames that the kernels leave over: by the pure-Python reader's own functions, so that there
is one truth.

IPv4 fragments of one datagram that begin and end within one stride of frames, in order and without gap or overlap,
leave nothing behind in the `Reassembler`, so a kernel puts them together without it. Any other fragment goes there: its
row is marked SLOW. Why the result is the same: see `SlowPath.resolve`, which asks for the kernel only where no limit of
the Reassembler can come into play.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from numba import types
from numpy.typing import NDArray

from pcap_tools.capture.damage import OnWarning
from pcap_tools.capture.datagram import Datagram
from pcap_tools.capture.datagrams import datagram_of
from pcap_tools.capture.frame import Frame
from pcap_tools.capture.ip import UDP
from pcap_tools.capture.link import LinkTypes
from pcap_tools.capture.reassembly import FRAGMENT_COST, Reassembler
from pcap_tools.columnar.read.addresses import AddressTable
from pcap_tools.columnar.read.datagrams import NO_IDENT, ROWS, DatagramBatch, Rows
from pcap_tools.columnar.read.frames import (
    BYTES,
    CAPTURED,
    IF_LINK,
    NO_PACKET_TYPE,
    NUMBER,
    ORIGINAL,
    PACKET_TYPE,
    PLACE,
    POSITION,
    SILENT,
    SLOT,
    TABLE,
    TIME,
    UNKNOWN,
)
from pcap_tools.columnar.read.packets import (
    FRAGMENT,
    GONE,
    KINDS,
    NARROW,
    PLAIN,
    SLOW,
    WIDE,
    X_IDENT,
    X_INDEX,
    X_PACKET_TYPE,
    X_PART,
    X_PLACE,
    read_udp,
)
from pcap_tools.columnar.read.sources import Buffer
from pcap_tools.kernels.jit import inlined, kernel
from pcap_tools.kernels.words import BLOCK, copy_block

# Rows of the table of groups: the key, the first and the last fragment's row, the reach, whether it is left to Python.
_SRC, _DST, _IDENT, _PROTOCOL, _FIRST, _LAST, _REACH, _LEFT = range(8)
_FREE = -1
# A group over so many rows is left to Python, so that looking at all their times stays cheap.
_MOST_BETWEEN = 256
_SPREAD = 0x9E3779B1


@inlined
def _find(groups: Any, table: Any, src: int, dst: int, ident: int, protocol: int) -> tuple[int, int]:
    """The group of a key (-1 if there is none) and its place in the hash table."""
    mask = table.shape[0] - 1
    at = ((((src * 31 + dst) * 65599 + ident) * 31 + protocol) * _SPREAD >> 12) & mask
    while table[at] >= 0:
        group = table[at]
        if (
            groups[_IDENT, group] == ident
            and groups[_SRC, group] == src
            and groups[_DST, group] == dst
            and groups[_PROTOCOL, group] == protocol
        ):
            return group, at
        at = (at + 1) & mask
    return -1, at


@inlined
def _new(groups: Any, group: int, table: Any, at: int, src: int, dst: int, ident: int, protocol: int) -> None:
    groups[_SRC, group], groups[_DST, group] = src, dst
    groups[_IDENT, group], groups[_PROTOCOL, group] = ident, protocol
    groups[_FIRST, group], groups[_LEFT, group] = _FREE, 0
    table[at] = group


@inlined
def _give_up(groups: Any, group: int, before: Any, low: int, kinds: Any) -> None:
    """This group, and all that follow with its key, are left to Python."""
    groups[_LEFT, group] = 1
    row = groups[_LAST, group] if groups[_FIRST, group] != _FREE else _FREE
    while row != _FREE:
        kinds[row] = SLOW
        row = before[row - low]


@inlined
def _in_time(time: Any, first: int, last: int, timeout: int) -> Any:
    """Nothing that came meanwhile is so late that the Reassembler would have dropped the group."""
    if last - first > _MOST_BETWEEN:
        return False
    for row in range(first, last + 1):  # noqa: SIM110  # numba has no all()
        if time[row] > time[first] + timeout:
            return False
    return True


@inlined
def _copy(buffer: Any, source: int, target: int, size: int) -> None:
    for at in range(0, size, BLOCK):
        copy_block(buffer, source + at, buffer, target + at)


@inlined
def _join(buffer: Any, tail: int, last: int, low: int, before: Any, start: Any, size: Any, kinds: Any) -> None:
    """The fragments behind each other at `tail`, first to last since a block reaches beyond its fragment."""
    row, following = last, _FREE
    while row != _FREE:
        earlier = before[row - low]
        before[row - low] = following
        following, row = row, earlier
    at, row = tail, following
    while row != _FREE:
        _copy(buffer, start[row], at, size[row])
        at += size[row]
        kinds[row] = GONE
        row = before[row - low]


@kernel(BYTES, types.int64, types.int64, types.int64, types.int64, TABLE, types.int64, NARROW, WIDE, ROWS, TABLE, KINDS)
def join_fragments(
    buffer: Any,
    tail: int,
    low: int,
    stop: int,
    timeout: int,
    groups: Any,
    used: int,
    table: Any,
    before: Any,
    rows: Rows,
    extra: Any,
    kinds: Any,
) -> Any:
    """Rows `low` to `stop`: complete groups become one PLAIN row each, others are SLOW. Where the tail ends then.

    The first `used` groups of the table are those that Python has open; all with their keys are left to it.
    `table` and `before` are full of -1: a hash table whose size is a power of two, and a number a row.
    """
    for group in range(used):
        ident, protocol = groups[_IDENT, group], groups[_PROTOCOL, group]
        _, at = _find(groups, table, groups[_SRC, group], groups[_DST, group], ident, protocol)
        groups[_LEFT, group], groups[_FIRST, group] = 1, _FREE
        table[at] = group
    for row in range(low, stop):
        if kinds[row] != FRAGMENT:
            continue
        part = extra[row, X_PART]
        protocol, offset, more = part >> 32, (part & 0xFFFFFFFF) >> 4 << 3, part & 1
        group, at = _find(groups, table, rows.src[row], rows.dst[row], extra[row, X_IDENT], protocol)
        if group < 0:
            group = used
            used += 1
            _new(groups, group, table, at, rows.src[row], rows.dst[row], extra[row, X_IDENT], protocol)
        if groups[_LEFT, group]:
            kinds[row] = SLOW
            continue
        opens = groups[_FIRST, group] == _FREE
        if opens:
            groups[_FIRST, group], groups[_REACH, group] = row, 0
        else:
            before[row - low] = groups[_LAST, group]
        groups[_LAST, group] = row
        fits = rows.size[row] > 0 and offset == groups[_REACH, group]
        groups[_REACH, group] += rows.size[row]
        if not fits or not (more or _in_time(rows.time_ns, groups[_FIRST, group], row, timeout)):
            _give_up(groups, group, before, low, kinds)
        elif not more:
            reach = groups[_REACH, group]
            _join(buffer, tail, row, low, before, rows.start, rows.size, kinds)
            groups[_FIRST, group] = _FREE
            if protocol == UDP:
                ports = read_udp(buffer, tail, reach, reach, 4)
                if ports[2] >= 0:
                    rows.sport[row], rows.dport[row], rows.size[row], rows.length[row] = ports
                    rows.start[row] = tail + 8
                    kinds[row] = PLAIN
                    tail += reach
    for group in range(used):
        if groups[_LEFT, group] == 0:
            _give_up(groups, group, before, low, kinds)
    return tail


_KEY_ROWS = 8
# Rows looked at together: half of the groups that may be open, so that joining has room while the other half is open.
_AT_ONCE = 2048
_FEW_NOTES = 4096
# The kernel is told all open groups each time; for one fragment among so many, the Reassembler is quicker.
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


class SlowPath:
    """What is remembered from frame to frame beside copies: open groups and link types that were warned of."""

    def __init__(self, addresses: AddressTable, on_warning: OnWarning) -> None:
        self.fragment_groups = Reassembler()
        self.nested = False  # a fragment inside a fragment was seen, so frames no longer tell how groups came about
        self._links = LinkTypes(on_warning)
        self._addresses = addresses
        self._notes: dict[int, FrameNote] = {}
        self._prune_at = _FEW_NOTES

    # --- Open groups, for going on elsewhere ------------------------------------------------------------------------

    def open_notes(self) -> list[FrameNote]:
        """The frames that open groups are made of: reading just these gives the same groups again.

        They are fed in the same order, so keys, order and begin of the groups are the same. What was not dropped for
        its age or for want of room among all fragments is not dropped among fewer.
        """
        return [self._notes[number] for number in sorted(self.fragment_groups.open_frames())]

    def read_again(self, note: FrameNote, data: bytes) -> None:
        """Take a frame of an open group."""
        self._read(note, data)

    def _prune(self) -> None:
        """Forget frames whose groups are closed; seldom, so that a frame costs little of it."""
        if len(self._notes) >= self._prune_at:
            alive = self.fragment_groups.open_frames()
            self._notes = {number: note for number, note in self._notes.items() if number in alive}
            self._prune_at = 2 * len(self._notes) + _FEW_NOTES

    def _read(self, note: FrameNote, data: bytes) -> Datagram | None:
        frame = note.frame(data)
        link = self._links.parser(frame.link_type, frame.number)(data)
        if link is None:
            return None
        added = self.fragment_groups.added
        datagram = datagram_of(frame, link, self.fragment_groups)
        if self.fragment_groups.added > added:
            self._notes[note.number] = note
            self._prune()
            self.nested = self.nested or self.fragment_groups.added > added + 1
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
        """FragmentGroups that are whole within these rows, by the kernel; the rest becomes SLOW.

        Such a group does not change the Reassembler, except that its fragments' times let old groups go (`_pass_by`)
        and that it could push others out, so there must be room for everything at once.
        """
        special = batch.size[low:stop][kinds[low:stop] != PLAIN]
        total = int(special.sum(dtype=np.int64))
        few = len(fragments) * _WORTH < len(self.fragment_groups)
        if few or not self.fragment_groups.has_room(len(special), total + FRAGMENT_COST * len(special)):
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
                buffer.data, buffer.tail, low, stop, self.fragment_groups.timeout_ns, table, len(keys), hashed, before,
                batch.rows, extra, kinds,
            )
        )  # fmt: skip

    def _keys(self) -> list[tuple[int, int, int, int]]:
        """Open groups of IPv4 by the numbers of their addresses; those of IPv6 have keys of three."""
        keys = cast(
            list[tuple[bytes, bytes, int, int]], [key for key in self.fragment_groups.open_keys() if len(key) == 4]
        )
        numbers = {packed: self._addresses.packed(packed) for packed in {one for key in keys for one in key[:2]}}
        return [(numbers[src], numbers[dst], ident, protocol) for src, dst, ident, protocol in keys]

    def _pass_by(self, batch: DatagramBatch, passed: NDArray[np.int64], row: int) -> NDArray[np.int64]:
        """Fragments before `row` that the kernel has joined: the Reassembler would have seen their times."""
        if not len(passed) or passed[0] >= row:
            return passed
        count = int(np.searchsorted(passed, row))
        if len(self.fragment_groups):
            self.fragment_groups.pass_by(int(batch.time_ns[passed[:count]].max()))
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

"""Trains of IPv4 fragments that came in order, put together without Python.

A train that begins and ends within one stride of frames, in order and without gap or overlap, leaves nothing behind
in the `Reassembler`, so it need not go there. Any other fragment does: its row is marked SLOW. Why the result is the
same: see `SlowPath.resolve`, which asks for this only where no limit of the Reassembler can come into play.
"""

from __future__ import annotations

from typing import Any

from numba import types

from pcap_tools.capture.ip import UDP
from pcap_tools.columnar.read.frames_kernel import BYTES, TABLE
from pcap_tools.columnar.read.packets_kernel import (
    FRAGMENT,
    GONE,
    KINDS,
    NARROW,
    PLAIN,
    SLOW,
    WIDE,
    X_IDENT,
    X_PART,
    read_udp,
)
from pcap_tools.kernels.jit import inlined, kernel
from pcap_tools.kernels.words import BLOCK, copy_block

# Rows of the table of trains: the key, the first and the last fragment's row, the reach, whether it is left to Python.
_SRC, _DST, _IDENT, _PROTOCOL, _FIRST, _LAST, _REACH, _LEFT = range(8)
_FREE = -1
# A train over so many rows is left to Python, so that looking at all their times stays cheap.
_MOST_BETWEEN = 256
_SPREAD = 0x9E3779B1


@inlined
def _find(trains: Any, table: Any, src: int, dst: int, ident: int, protocol: int) -> tuple[int, int]:
    """The train of a key (-1 if there is none) and its place in the hash table."""
    mask = table.shape[0] - 1
    at = ((((src * 31 + dst) * 65599 + ident) * 31 + protocol) * _SPREAD >> 12) & mask
    while table[at] >= 0:
        train = table[at]
        if (
            trains[_IDENT, train] == ident
            and trains[_SRC, train] == src
            and trains[_DST, train] == dst
            and trains[_PROTOCOL, train] == protocol
        ):
            return train, at
        at = (at + 1) & mask
    return -1, at


@inlined
def _new(trains: Any, train: int, table: Any, at: int, src: int, dst: int, ident: int, protocol: int) -> None:
    trains[_SRC, train], trains[_DST, train] = src, dst
    trains[_IDENT, train], trains[_PROTOCOL, train] = ident, protocol
    trains[_FIRST, train], trains[_LEFT, train] = _FREE, 0
    table[at] = train


@inlined
def _give_up(trains: Any, train: int, before: Any, low: int, kinds: Any) -> None:
    """This train, and all that follow with its key, are left to Python."""
    trains[_LEFT, train] = 1
    row = trains[_LAST, train] if trains[_FIRST, train] != _FREE else _FREE
    while row != _FREE:
        kinds[row] = SLOW
        row = before[row - low]


@inlined
def _in_time(time: Any, first: int, last: int, timeout: int) -> Any:
    """Nothing that came meanwhile is so late that the Reassembler would have dropped the train."""
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


@kernel(
    BYTES, types.int64, types.int64, types.int64, types.int64, TABLE, types.int64, NARROW, WIDE,
    WIDE, WIDE, NARROW, NARROW, NARROW, NARROW, NARROW, NARROW, TABLE, KINDS,
)  # fmt: skip
def join_fragments(
    buffer: Any, tail: int, low: int, stop: int, timeout: int, trains: Any, used: int, table: Any, before: Any,
    time: Any, start: Any, size: Any, length: Any, src: Any, dst: Any, sport: Any, dport: Any, extra: Any, kinds: Any,
) -> Any:  # fmt: skip
    """Rows `low` to `stop`: complete trains become one PLAIN row each, others are SLOW. Where the tail ends then.

    The first `used` trains of the table are those that Python has open; all with their keys are left to it.
    `table` and `before` are full of -1: a hash table whose size is a power of two, and a number a row.
    """
    for train in range(used):
        ident, protocol = trains[_IDENT, train], trains[_PROTOCOL, train]
        _, at = _find(trains, table, trains[_SRC, train], trains[_DST, train], ident, protocol)
        trains[_LEFT, train], trains[_FIRST, train] = 1, _FREE
        table[at] = train
    for row in range(low, stop):
        if kinds[row] != FRAGMENT:
            continue
        part = extra[row, X_PART]
        protocol, offset, more = part >> 32, (part & 0xFFFFFFFF) >> 4 << 3, part & 1
        train, at = _find(trains, table, src[row], dst[row], extra[row, X_IDENT], protocol)
        if train < 0:
            train = used
            used += 1
            _new(trains, train, table, at, src[row], dst[row], extra[row, X_IDENT], protocol)
        if trains[_LEFT, train]:
            kinds[row] = SLOW
            continue
        opens = trains[_FIRST, train] == _FREE
        if opens:
            trains[_FIRST, train], trains[_REACH, train] = row, 0
        else:
            before[row - low] = trains[_LAST, train]
        trains[_LAST, train] = row
        fits = size[row] > 0 and offset == trains[_REACH, train]
        trains[_REACH, train] += size[row]
        if not fits or not (more or _in_time(time, trains[_FIRST, train], row, timeout)):
            _give_up(trains, train, before, low, kinds)
        elif not more:
            reach = trains[_REACH, train]
            _join(buffer, tail, row, low, before, start, size, kinds)
            trains[_FIRST, train] = _FREE
            if protocol == UDP:
                ports = read_udp(buffer, tail, reach, reach, 4)
                if ports[2] >= 0:
                    sport[row], dport[row], size[row], length[row] = ports
                    start[row] = tail + 8
                    kinds[row] = PLAIN
                    tail += reach
    for train in range(used):
        if trains[_LEFT, train] == 0:
            _give_up(trains, train, before, low, kinds)
    return tail

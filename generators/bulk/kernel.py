"""The inner loop of `write_bulk`: the bytes that differ from tile to tile, written over the tiles of a buffer.

A row of the buffer is one tile: all records of the body. Every changing byte is written anew, so a row may hold any
other tile before. Checksums are never summed up again: `sum` is the Internet checksum's sum without all that changes
(RFC 1624), and the new values are added to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import from_dtype, int64, njit, types, uint8

Bytes: TypeAlias = npt.NDArray[np.uint8]
Integers: TypeAlias = npt.NDArray[np.int64]
Records: TypeAlias = npt.NDArray[np.void]

# at: of the time in the record
TIME = np.dtype([("time_ns", "i8"), ("at", "i4")], align=True)
# at: of the header; ident rises by `step` with each tile; src and dst are slots
IPV4 = np.dtype([(name, "i4") for name in ("at", "ident", "step", "src", "dst", "sum")], align=True)
IPV6 = np.dtype([(name, "i4") for name in ("at", "src", "dst")], align=True)
# the identification of an IPv6 fragment
FRAGMENT = np.dtype([("ident", "i8"), ("step", "i4"), ("at", "i4")], align=True)
# at: of the checksum, -1 if there is none to be kept right; its counters are those from `begin` to before `end`
DATAGRAM = np.dtype([(name, "i4") for name in ("at", "sum", "src", "dst", "begin", "end")], align=True)
# `count` digits of a counter, the last one at `at`, shifted by `shift` bits in the checksum's words. A counter cut by
# fragmentation has several such parts: `low` is the power of ten of this one's last digit.
COUNTER = np.dtype([("value", "i8"), ("low", "i8"), ("at", "i4"), ("count", "i4"), ("shift", "i4")], align=True)

PCAP_US, PCAP_NS, PCAPNG_US, PCAPNG_NS = 0, 1, 2, 3

# Division of unsigned numbers is quicker, and numba makes floats of unsigned and signed ones together.
_TEN, _THOUSAND = np.uint64(10), np.uint64(1000)
# The ASCII digits of 000 to 999.
_THREES = np.array([list(b"%03d" % number) for number in range(1000)], np.int64)

_ROW = uint8[::1]
_WORDS = int64[::1]
_Function = TypeVar("_Function", bound=Callable[..., object])


def _compiled(*arguments: object) -> Callable[[_Function], _Function]:
    """Compiled once, for these types of arguments, and kept on disk."""
    decorator = njit(arguments, cache=True, nogil=True, error_model="numpy")
    return cast(Callable[[_Function], _Function], decorator)


@_compiled(_ROW, int64, int64)
def _little4(row: Bytes, at: int, value: int) -> None:
    row[at] = value & 0xFF
    row[at + 1] = (value >> 8) & 0xFF
    row[at + 2] = (value >> 16) & 0xFF
    row[at + 3] = (value >> 24) & 0xFF


@_compiled(_ROW, int64, int64)
def _big2(row: Bytes, at: int, value: int) -> None:
    row[at] = (value >> 8) & 0xFF
    row[at + 1] = value & 0xFF


@_compiled(_ROW, int64, int64)
def _big4(row: Bytes, at: int, value: int) -> None:
    _big2(row, at, value >> 16)
    _big2(row, at + 2, value)


@_compiled(int64)
def _checksum(total: int) -> int:
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


@_compiled(_ROW, from_dtype(TIME)[::1], int64, int64)
def _set_times(row: Bytes, times: Records, later_ns: int, kind: int) -> None:
    for i in range(len(times)):
        at, time_ns = times[i].at, times[i].time_ns + later_ns
        if kind <= PCAP_NS:
            seconds = time_ns // 1_000_000_000
            fraction = time_ns - seconds * 1_000_000_000
            _little4(row, at, seconds)
            _little4(row, at + 4, fraction if kind == PCAP_NS else fraction // 1000)
        else:
            ticks = time_ns if kind == PCAPNG_NS else time_ns // 1000
            _little4(row, at, ticks >> 32)
            _little4(row, at + 4, ticks)


@_compiled(_ROW, from_dtype(IPV4)[::1], int64, _WORDS, _WORDS)
def _set_ipv4(row: Bytes, headers: Records, tile: int, middles: Integers, sums: Integers) -> None:
    for i in range(len(headers)):
        header = headers[i]
        ident = (header.ident + header.step * tile) & 0xFFFF
        _big2(row, header.at + 4, ident)
        _big2(row, header.at + 10, _checksum(header.sum + ident + sums[header.src] + sums[header.dst]))
        _big2(row, header.at + 13, middles[header.src])
        _big2(row, header.at + 17, middles[header.dst])


@_compiled(_ROW, from_dtype(IPV6)[::1], from_dtype(FRAGMENT)[::1], int64, _WORDS)
def _set_ipv6(row: Bytes, headers: Records, fragments: Records, tile: int, middles: Integers) -> None:
    for i in range(len(headers)):
        header = headers[i]
        _big4(row, header.at + 14, middles[header.src])
        _big4(row, header.at + 30, middles[header.dst])
    for i in range(len(fragments)):
        _big4(row, fragments[i].at, fragments[i].ident + fragments[i].step * tile)


@_compiled(_ROW, from_dtype(COUNTER), int64)
def _set_counter(row: Bytes, counter: Any, more: int) -> int:
    """Writes the digits from the last to the first, so what is too high for them is left out; returns what they add to
    the checksum's sum."""
    value = counter.value + more
    if counter.low > 1:
        value //= counter.low
    left, shift, total = np.uint64(value), counter.shift, 0
    at, begin = counter.at, counter.at - counter.count
    while at - begin >= 3:
        rest = left // _THOUSAND
        three = _THREES[left - rest * _THOUSAND]
        row[at - 2], row[at - 1], row[at] = three[0], three[1], three[2]
        total += ((three[0] + three[2]) << shift) + (three[1] << (8 - shift))
        left, shift, at = rest, 8 - shift, at - 3
    while at > begin:
        rest = left // _TEN
        digit = 48 + np.int64(left - rest * _TEN)
        row[at] = digit
        total += digit << shift
        left, shift, at = rest, 8 - shift, at - 1
    return total


@_compiled(_ROW, from_dtype(DATAGRAM)[::1], from_dtype(COUNTER)[::1], int64, _WORDS)
def _set_datagrams(row: Bytes, datagrams: Records, counters: Records, more: int, sums: Integers) -> None:
    for i in range(len(datagrams)):
        datagram = datagrams[i]
        total = datagram.sum + sums[datagram.src] + sums[datagram.dst]
        for j in range(datagram.begin, datagram.end):
            total += _set_counter(row, counters[j], more)
        if datagram.at >= 0:
            # 0 would mean that there is no checksum; all ones is the same number.
            _big2(row, datagram.at, _checksum(total) or 0xFFFF)


_tuple: Any = types.Tuple  # numba has not typed it
_TABLES = _tuple([from_dtype(table)[::1] for table in (TIME, IPV4, IPV6, FRAGMENT, DATAGRAM, COUNTER)])


@_compiled(uint8[:, ::1], int64, int64, int64, _TABLES, int64[:, ::1], int64[:, ::1], _tuple([int64] * 3))
def set_tiles(
    rows: Bytes,
    first: int,
    period_ns: int,
    kind: int,
    tables: tuple[Records, Records, Records, Records, Records, Records],
    middles: Integers,
    sums: Integers,
    counting: tuple[int, int, int],
) -> None:
    """Makes `rows` the tiles from `first` on. `middles` and `sums` have a row for each tile and a column for each slot;
    `counting` is what the first of the tiles adds to the counters, how much more each later one, and the modulus."""
    times, ipv4, ipv6, fragments, datagrams, counters = tables
    more, step, modulus = counting
    for i in range(len(rows)):
        row, tile = rows[i], first + i
        _set_times(row, times, tile * period_ns, kind)
        _set_ipv4(row, ipv4, tile, middles[i], sums[i])
        _set_ipv6(row, ipv6, fragments, tile, middles[i])
        _set_datagrams(row, datagrams, counters, more, sums[i])
        more = (more + step) % modulus

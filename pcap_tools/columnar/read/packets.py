"""From a table of frames to rows of UDP datagrams: link layer, VLAN tags, IPv4 and IPv6, UDP.

The rules are those of `pcap_tools.capture.link`, `ip` and `udp`, and are judged against them. What is rare (extension
headers, fragments of IPv6, link types nobody knows) becomes a row marked SLOW, which Python fills or takes away;
fragments of IPv4 become rows marked FRAGMENT.
"""

from __future__ import annotations

from typing import Any

from numba import types

from pcap_tools.capture.frame import MAX_CAPTURED
from pcap_tools.capture.ip import UDP
from pcap_tools.capture.link import IPV4, IPV6
from pcap_tools.columnar.read.addresses import KNOWN, Known, address_id
from pcap_tools.columnar.read.datagrams import NO_IDENT, ROWS, Rows
from pcap_tools.columnar.read.frames import (
    BYTES,
    CAPTURED,
    COOKED1,
    COOKED2,
    ETHERNET,
    IF_LINK,
    NULL,
    NUMBER,
    ORIGINAL,
    PACKET_TYPE,
    PLACE,
    POSITION,
    RAW,
    RAW_IPV6,
    SLOT,
    TABLE,
    TIME,
    UNKNOWN,
    u32,
)
from pcap_tools.columnar.read.frames import u16 as _u16
from pcap_tools.columnar.read.frames import u32 as _u32
from pcap_tools.kernels.jit import i64, inlined, kernel, u64
from pcap_tools.kernels.words import item, load64, put, swapped

# Kinds of rows; GONE is a row to take away.
PLAIN, SLOW, FRAGMENT, GONE = range(4)

# Columns of the table beside those of a batch. INDEX is the frame's row in the table of frames; PART packs
# protocol, offset and the flag "more" of a fragment.
X_IDENT, X_PLACE, X_PACKET_TYPE, X_INDEX, X_PART = range(5)
X_COLUMNS = 5

WIDE = types.Array(types.int64, 1, "C")
NARROW = types.Array(types.int32, 1, "C")
KINDS = types.Array(types.uint8, 1, "C")

_MAX_TAGS = 32
_HEADER = 8
# Of the first eight bytes of IPv4: version and size of the header, offset of the fragment and the flag "more".
_SHAPE, _USUAL = u64(0xFF00000000003FFF), u64(0x4500000000000000)


@inlined
def _behind_tags(buffer: Any, at: int, captured: int, ethertype: int, offset: int) -> tuple[int, int]:
    for _ in range(_MAX_TAGS):
        if (ethertype != 0x8100 and ethertype != 0x88A8 and ethertype != 0x9100) or offset + 4 > captured:
            break
        ethertype = _u16(buffer, at + offset + 2, True)
        offset += 4
    return ethertype, offset


@inlined
def _of_family(number: int) -> Any:
    if number == 2:
        return IPV4
    return IPV6 if number in (24, 28, 30, 10) else 0


@inlined
def _family(buffer: Any, at: int, captured: int, link: int) -> Any:
    """The ethertype that the address family of BSD's loopback stands for."""
    if captured < 4:
        return 0
    ethertype = _of_family(_u32(buffer, at, False)) if link == NULL else 0
    return ethertype if ethertype else _of_family(_u32(buffer, at, True))


@inlined
def _link_layer(buffer: Any, at: int, captured: int, link: int) -> tuple[int, int]:
    """Ethertype (0 if there is none) and offset of the packet."""
    if link == ETHERNET:
        if captured < 14:
            return 0, 0
        return _behind_tags(buffer, at, captured, _u16(buffer, at + 12, True), 14)
    if link == COOKED1:
        if captured < 16:
            return 0, 0
        return _behind_tags(buffer, at, captured, _u16(buffer, at + 14, True), 16)
    if link == COOKED2:
        if captured < 20:
            return 0, 0
        return _behind_tags(buffer, at, captured, _u16(buffer, at, True), 20)
    if captured == 0:
        return 0, 0
    if link == RAW:
        return (IPV6 if buffer[at] >> 4 == 6 else IPV4), 0
    if link == RAW_IPV6:
        return IPV6, 0
    return _family(buffer, at, captured, link), 4


@inlined
def _is_extension(protocol: int) -> Any:
    return protocol in (0, 43, 44, 51, 60)


@inlined
def _ipv4(buffer: Any, at: int, captured: int, offset: int, original: int) -> tuple[int, int, int, int, int]:
    """Kind of row, begin and end of the packet's payload, identification, PART; offsets count from the frame."""
    if offset + 20 > captured:
        return GONE, 0, 0, 0, 0
    word = swapped(load64(buffer, at + offset))
    header = i64(word >> u64(56) & u64(15)) * 4
    total = i64(word >> u64(32) & u64(0xFFFF))
    if header < 20 or 0 < total < header:
        return GONE, 0, 0, 0, 0
    ident = i64(word >> u64(16) & u64(0xFFFF))
    flags = i64(word & u64(0x3FFF))
    protocol = i64(buffer[at + offset + 9])
    start = offset + header
    end = offset + total if total else max(captured, original)
    if flags == 0:
        kind = PLAIN if protocol == UDP else (SLOW if _is_extension(protocol) else GONE)
        return kind, start, end, ident, 0
    if end > captured:
        # A cut fragment is never put together, but the first one shows its UDP header.
        first = flags & 0x1FFF == 0 and protocol == UDP
        return (PLAIN if first else GONE), start, end, ident, 0
    kind = SLOW if _is_extension(protocol) else FRAGMENT
    return kind, start, end, ident, protocol << 32 | (flags & 0x1FFF) << 4 | flags >> 13


@inlined
def _ipv6(buffer: Any, at: int, captured: int, offset: int) -> tuple[int, int, int, int, int]:
    if offset + 40 > captured:
        return GONE, 0, 0, 0, 0
    start = offset + 40
    protocol = i64(buffer[at + offset + 6])
    kind = PLAIN if protocol == UDP else (SLOW if _is_extension(protocol) else GONE)
    return kind, start, start + _u16(buffer, at + offset + 4, True), NO_IDENT, 0


@inlined
def read_udp(buffer: Any, at: int, available: int, extent: int, family: int) -> tuple[int, int, int, int]:
    """Ports, size and length of the datagram at `at`; size -1 if there is none.

    `available` bytes are there, of `extent` that the IP header promised.
    """
    if available < _HEADER:
        return 0, 0, -1, 0
    word = swapped(load64(buffer, at))
    length = i64(word >> u64(16) & u64(0xFFFF))
    if length == 0 and family == 6:
        length = extent
    if length < _HEADER:
        return 0, 0, -1, 0
    sport = i64(word >> u64(48))
    dport = i64(word >> u64(32) & u64(0xFFFF))
    return sport, dport, min(length, available) - _HEADER, length - _HEADER


@inlined
def two_addresses(buffer: Any, at: int, family: int, addresses: Known) -> tuple[int, int]:
    known, slots, count = addresses.known, addresses.slots, addresses.count
    if family == 4:
        word = swapped(load64(buffer, at + 12))
        none = u64(0)
        src = address_id(known, slots, count, none, word >> u64(32), 4)
        return src, address_id(known, slots, count, none, word & u64(0xFFFFFFFF), 4)
    high, low = swapped(load64(buffer, at + 8)), swapped(load64(buffer, at + 16))
    src = address_id(known, slots, count, high, low, 6)
    high, low = swapped(load64(buffer, at + 24)), swapped(load64(buffer, at + 32))
    return src, address_id(known, slots, count, high, low, 6)


@inlined
def ordinary(buffer: Any, at: int, captured: int, link: int) -> Any:
    """Where the packet begins if it is the usual one: IPv4 without options, whole, a whole UDP datagram; else -1."""
    offset, kind = 14, 12
    if link == COOKED1:
        offset, kind = 16, 14
    elif link == COOKED2:
        offset, kind = 20, 0
    elif link == RAW:
        offset, kind = 0, -1
    elif link != ETHERNET:
        return -1
    if captured < offset + 28 or (kind >= 0 and _u16(buffer, at + kind, True) != IPV4):
        return -1
    word = swapped(load64(buffer, at + offset))
    total = i64(word >> u64(32) & u64(0xFFFF))
    if word & _SHAPE != _USUAL or i64(item(buffer, at + offset + 9)) != UDP or offset + total > captured:
        return -1
    length = _u16(buffer, at + offset + 24, True)
    return offset if _HEADER <= length <= total - 20 else -1


@inlined
def any_packet(
    buffer: Any, at: int, captured: int, link: int, original: int
) -> tuple[int, int, int, int, int, int, int]:
    """Of any packet: kind of row, begin and end of its payload, identification, PART, family, where it begins."""
    kind, begin, end, ident, part, family, offset = GONE, 0, 0, 0, 0, 4, 0
    if link >= 0:
        ethertype, offset = _link_layer(buffer, at, captured, link)
        version = buffer[at + offset] >> 4 if offset < captured else 0
        if version == 4 and ethertype == IPV4:
            kind, begin, end, ident, part = _ipv4(buffer, at, captured, offset, original)
        elif version == 6 and ethertype in (IPV4, IPV6):
            family = 6
            kind, begin, end, ident, part = _ipv6(buffer, at, captured, offset)
    elif link == UNKNOWN:
        kind = SLOW
    return kind, begin, end, ident, part, family, offset


@inlined
def _place(buffer: Any, at: int, link: int, frames: Any, index: int, extra: Any, row: int) -> None:
    """Where a frame was seen, for telling copies."""
    extra[row, X_PLACE] = frames[index, PLACE]
    extra[row, X_PACKET_TYPE] = frames[index, PACKET_TYPE]
    if link == COOKED1:
        extra[row, X_PACKET_TYPE] = _u16(buffer, at, True)
    elif link == COOKED2:
        extra[row, X_PLACE] = _u32(buffer, at + 4, True)
        extra[row, X_PACKET_TYPE] = buffer[at + 10]


@inlined
def one_packet(
    buffer: Any, at: int, captured: int, link: int, original: int
) -> tuple[int, int, int, int, int, int, int, int, int, int, int]:
    """Of a frame: kind of row, begin and end of the packet's payload, identification, PART, family, where the packet
    begins; and of a PLAIN row both ports, size and length."""
    offset = ordinary(buffer, at, captured, link)
    if offset >= 0:
        begin = offset + 20
        word = swapped(load64(buffer, at + begin))
        size = i64(word >> u64(16) & u64(0xFFFF)) - _HEADER
        source, target = i64(word >> u64(48)), i64(word >> u64(32) & u64(0xFFFF))
        return PLAIN, begin, 0, _u16(buffer, at + offset + 4, True), 0, 4, offset, source, target, size, size
    kind, begin, end, ident, part, family, offset = any_packet(buffer, at, captured, link, original)
    source, target, size, length = 0, 0, 0, 0
    if kind == PLAIN:
        available = min(end, captured) - begin
        source, target, size, length = read_udp(buffer, at + begin, available, end - begin, family)
        if size < 0:
            kind = GONE
    return kind, begin, end, ident, part, family, offset, source, target, size, length


@kernel(BYTES, TABLE, types.int64, TABLE, KNOWN, types.int64, types.boolean, ROWS, TABLE, KINDS)
def read_packets(
    buffer: Any,
    frames: Any,
    found: int,
    interfaces: Any,
    addresses: Known,
    row: int,
    places: bool,
    rows: Rows,
    extra: Any,
    kinds: Any,
) -> tuple[int, int]:
    """Rows from `row` on for the first `found` frames: the next free row, and how many are not PLAIN.

    Where a PLAIN row was seen is only told if `places` are wanted. The identification in
    `extra` is that of all fragments, also of IPv6; `ip_id` only that of IPv4 headers.
    """
    special = 0
    for index in range(found):
        at, captured = frames[index, POSITION], frames[index, CAPTURED]
        link = interfaces[frames[index, SLOT], IF_LINK]
        kind, begin, end, ident, part, family, offset, source, target, there, told = one_packet(
            buffer, at, captured, link, frames[index, ORIGINAL]
        )
        if kind == GONE:
            continue
        if kind == PLAIN:
            put(rows.sport, row, source)
            put(rows.dport, row, target)
            put(rows.size, row, there)
            put(rows.length, row, told)
            put(rows.start, row, at + begin + _HEADER)
        else:
            special += 1
            extra[row, X_INDEX] = index
            extra[row, X_PART] = part
            put(rows.start, row, at + begin)
            put(rows.size, row, end - begin if kind == FRAGMENT else captured)
        if kind != SLOW:
            first, second = two_addresses(buffer, at + offset, family, addresses)
            put(rows.src, row, first)
            put(rows.dst, row, second)
        if places or kind == FRAGMENT:
            extra[row, X_IDENT] = ident
            _place(buffer, at, link, frames, index, extra, row)
        put(rows.frame, row, frames[index, NUMBER])
        put(rows.ip_id, row, ident)
        put(rows.time_ns, row, frames[index, TIME])
        put(kinds, row, kind)
        row += 1
    return row, special


_RECORD, _UDP_HEADER = 16, 8
_LOW = u64(0xFFFFFFFF)


@inlined
def _two_words(buffer: Any, at: int, big: bool) -> tuple[int, int]:
    word = load64(buffer, at)
    if big:
        word = swapped(word)
        return i64(word >> u64(32)), i64(word & _LOW)
    return i64(word & _LOW), i64(word >> u64(32))


@kernel(
    BYTES, types.int64, types.int64, types.int64, types.int64, types.boolean, types.int64, types.int64,
    KNOWN, types.int64, types.int64, ROWS, KINDS,
)  # fmt: skip
def read_usual(
    buffer: Any,
    at: int,
    have: int,
    limit: int,
    before: int,
    big: bool,
    scale: int,
    link: int,
    addresses: Known,
    row: int,
    stop: int,
    rows: Rows,
    kinds: Any,
) -> tuple[int, int, int]:
    """Rows from `row` to `stop`, of records that begin before `limit`, while they are of the usual kind.

    The next free row, where it stopped, and the number of the last frame.
    """
    while row < stop and at < limit and at + _RECORD <= have:
        captured, original = _two_words(buffer, at + 8, big)
        place = at + _RECORD
        if captured == 0 or captured > MAX_CAPTURED or place + captured > have:
            break
        kind, begin, _, ident, _, family, offset, source, target, there, told = one_packet(
            buffer, place, captured, link, original
        )
        if kind == PLAIN:
            seconds, fraction = _two_words(buffer, at, big)
            first, second = two_addresses(buffer, place + offset, family, addresses)
            put(rows.frame, row, before + 1)
            put(rows.time_ns, row, seconds * 1_000_000_000 + fraction * scale)
            put(rows.start, row, place + begin + _UDP_HEADER)
            put(rows.size, row, there)
            put(rows.length, row, told)
            put(rows.src, row, first)
            put(rows.dst, row, second)
            put(rows.sport, row, source)
            put(rows.dport, row, target)
            put(rows.ip_id, row, ident)
            put(kinds, row, PLAIN)
            row += 1
        elif kind != GONE:
            break
        before += 1
        at = place + captured
    return row, at, before


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

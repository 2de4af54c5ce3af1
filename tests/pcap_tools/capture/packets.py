"""Packets and capture files built by hand with struct.

Nothing of the code under test is used here, so a mistake in the reader cannot hide behind the same mistake in
the writer. Every builder can also build nonsense on purpose: lengths are arguments.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Sequence

A4, B4 = "10.1.0.1", "10.1.0.2"
A6, B6 = "2001:db8::1", "2001:db8::2"

# Ports no dissector of tshark claims, so that the payload stays plain data.
SPORT, DPORT = 50000, 50001

# A moment whose nanoseconds do not fit into microseconds: 2021-11-02, with 9 significant digits.
T0 = 1_635_868_655_123_456_789


# --- Layer 4 and 3 ------------------------------------------------------------------------------------------


def udp(payload: bytes, sport: int = SPORT, dport: int = DPORT, length: int | None = None) -> bytes:
    return struct.pack(">HHHH", sport, dport, 8 + len(payload) if length is None else length, 0) + payload


def ipv4(
    body: bytes,
    *,
    src: str = A4,
    dst: str = B4,
    ident: int = 1,
    protocol: int = 17,
    offset: int = 0,
    more: bool = False,
    options: bytes = b"",
    total: int | None = None,
) -> bytes:
    """An IPv4 packet; `offset` is in bytes and must be a multiple of 8."""
    header_length = 20 + len(options)
    return (
        struct.pack(
            ">BBHHHBBH4s4s",
            0x40 | header_length // 4,
            0,
            header_length + len(body) if total is None else total,
            ident,
            (0x2000 if more else 0) | offset // 8,
            64,
            protocol,
            0,
            ipaddress.IPv4Address(src).packed,
            ipaddress.IPv4Address(dst).packed,
        )
        + options
        + body
    )


def ipv6(
    body: bytes,
    *,
    src: str = A6,
    dst: str = B6,
    next_header: int = 17,
    length: int | None = None,
) -> bytes:
    return (
        struct.pack(">IHBB", 0x60000000, len(body) if length is None else length, next_header, 64)
        + ipaddress.IPv6Address(src).packed
        + ipaddress.IPv6Address(dst).packed
        + body
    )


def fragment_header(next_header: int, offset: int, more: bool, ident: int) -> bytes:
    return struct.pack(">BBHI", next_header, 0, offset | int(more), ident)


def options_header(next_header: int, words: int = 0) -> bytes:
    """A hop-by-hop or destination-options header of 8 * (words + 1) bytes, filled with one PadN."""
    pad = 8 * (words + 1) - 4
    return struct.pack(">BBBB", next_header, words, 1, pad) + bytes(pad)


def routing_header(next_header: int) -> bytes:
    return struct.pack(">BBBBI", next_header, 0, 253, 0, 0)


def authentication_header(next_header: int) -> bytes:
    """AH counts its length in 32-bit words minus two: 24 bytes are 4."""
    return struct.pack(">BBHII", next_header, 4, 0, 77, 1) + bytes(12)


def ipv4_fragments(body: bytes, size: int, **fields: object) -> list[bytes]:
    """`body` cut into IPv4 packets of `size` bytes (a multiple of 8) each."""
    return [
        ipv4(body[at : at + size], offset=at, more=at + size < len(body), **fields)  # type: ignore[arg-type]
        for at in range(0, len(body), size)
    ]


def ipv6_fragments(body: bytes, size: int, ident: int = 7, next_header: int = 17) -> list[bytes]:
    return [
        ipv6(
            fragment_header(next_header, at, at + size < len(body), ident) + body[at : at + size],
            next_header=44,
        )
        for at in range(0, len(body), size)
    ]


# --- Layer 2 ------------------------------------------------------------------------------------------------

MAC = bytes.fromhex("020000000001")


def ethertype_of(packet: bytes) -> int:
    return 0x86DD if packet[:1] and packet[0] >> 4 == 6 else 0x0800


def ethernet(
    packet: bytes,
    tags: Sequence[int] = (),
    ethertype: int | None = None,
    pad: bool = True,
) -> bytes:
    """Ethernet, with VLAN tags of the given tag types, padded with 0xEE to 60 bytes as a card would."""
    kinds = [*tags, ethertype_of(packet) if ethertype is None else ethertype]
    frame = MAC + MAC + struct.pack(">H", kinds[0])
    for vlan, kind in enumerate(kinds[1:], 100):
        frame += struct.pack(">HH", vlan, kind)
    frame += packet
    return frame.ljust(60, b"\xee") if pad else frame


def cooked1(packet: bytes, packet_type: int = 0, protocol: int | None = None) -> bytes:
    kind = ethertype_of(packet) if protocol is None else protocol
    return struct.pack(">HHH8sH", packet_type, 1, 6, MAC + b"\0\0", kind) + packet


def cooked2(packet: bytes, packet_type: int = 0, ifindex: int = 2, protocol: int | None = None) -> bytes:
    kind = ethertype_of(packet) if protocol is None else protocol
    return struct.pack(">HHIHBB8s", kind, 0, ifindex, 1, packet_type, 6, MAC + b"\0\0") + packet


def null(packet: bytes, family: int | None = None, order: str = "<") -> bytes:
    if family is None:
        family = 30 if ethertype_of(packet) == 0x86DD else 2
    return struct.pack(order + "I", family) + packet


# --- Files: pcap --------------------------------------------------------------------------------------------

MICRO, NANO, MODIFIED = 0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34


def pcap_header(link_type: int = 1, magic: int = MICRO, order: str = "<", snaplen: int = 262144) -> bytes:
    return struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, link_type)


def pcap_record(
    data: bytes,
    time_ns: int = T0,
    magic: int = MICRO,
    order: str = "<",
    *,
    captured: int | None = None,
    original: int | None = None,
    ifindex: int = 3,
    packet_type: int = 0,
) -> bytes:
    seconds, nanos = divmod(time_ns, 10**9)
    header = struct.pack(
        order + "IIII",
        seconds,
        nanos if magic == NANO else nanos // 1000,
        len(data) if captured is None else captured,
        len(data) if original is None else original,
    )
    if magic == MODIFIED:
        header += struct.pack(order + "IHBx", ifindex, 0x0800, packet_type)
    return header + data


def pcap(
    frames: Iterable[bytes], link_type: int = 1, magic: int = MICRO, order: str = "<", step: int = 1_000_001
) -> bytes:
    """A whole file; the frames are `step` ns apart."""
    records = (pcap_record(data, T0 + n * step, magic, order) for n, data in enumerate(frames))
    return pcap_header(link_type, magic, order) + b"".join(records)


# --- Files: pcapng ------------------------------------------------------------------------------------------


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body = padded(body)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "HH", code, len(value)) + padded(value)


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(
    link_type: int = 1,
    order: str = "<",
    *,
    tsresol: int | None = None,
    tsoffset: int | None = None,
    snaplen: int = 262144,
) -> bytes:
    options = b""
    if tsresol is not None:
        options += option(9, bytes([tsresol]), order)
    if tsoffset is not None:
        options += option(14, struct.pack(order + "q", tsoffset), order)
    if options:
        options += option(0, b"", order)
    return block(1, struct.pack(order + "HHI", link_type, 0, snaplen) + options, order)


def enhanced(
    data: bytes,
    ticks: int,
    order: str = "<",
    *,
    interface_id: int = 0,
    original: int | None = None,
    captured: int | None = None,
    comments: Sequence[str] = (),
) -> bytes:
    options = b"".join(option(1, text.encode(), order) for text in comments)
    if options:
        options += option(0, b"", order)
    head = struct.pack(
        order + "IIIII",
        interface_id,
        ticks >> 32,
        ticks & 0xFFFFFFFF,
        len(data) if captured is None else captured,
        len(data) if original is None else original,
    )
    return block(6, head + padded(data) + options, order)


def simple(data: bytes, order: str = "<", original: int | None = None) -> bytes:
    return block(3, struct.pack(order + "I", len(data) if original is None else original) + data, order)


def obsolete(data: bytes, ticks: int, order: str = "<", interface_id: int = 0) -> bytes:
    size = len(data)
    head = struct.pack(order + "HHIIII", interface_id, 0, ticks >> 32, ticks & 0xFFFFFFFF, size, size)
    return block(2, head + data, order)


def pcapng(frames: Iterable[bytes], link_type: int = 1, order: str = "<", step: int = 1_000_001) -> bytes:
    """A whole file of one section and one interface with nanoseconds."""
    packets = (enhanced(data, T0 + n * step, order) for n, data in enumerate(frames))
    return section(order) + interface(link_type, order, tsresol=9) + b"".join(packets)

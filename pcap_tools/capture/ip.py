"""IPv4 and IPv6: from the start of a packet to its transport protocol, past options and extension headers.

Lengths are judged as Wireshark does it: a total length of 0 (segmentation offload) means the rest of the
frame, a length beyond the frame means what there is, and bytes behind the packet are the link layer's
padding.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple

from pcap_tools.capture.link import IPV4, IPV6

UDP = 17
_HOP_BY_HOP, _ROUTING, _FRAGMENT, _AUTHENTICATION, _DESTINATION = 0, 43, 44, 51, 60
_EXTENSIONS = frozenset({_HOP_BY_HOP, _ROUTING, _FRAGMENT, _AUTHENTICATION, _DESTINATION})
_MAX_EXTENSIONS = 64

# version and header length, total length, identification, flags and offset, protocol, source, destination
_IPV4 = struct.Struct(">BxHHHxBxx4s4s")
# version, payload length, next header, source, destination
_IPV6 = struct.Struct(">BxxxHBx16s16s")
_FRAGMENT_HEADER = struct.Struct(">BxHI")


class Fragment(NamedTuple):
    """What makes a packet a fragment: fragments of one datagram have the same key."""

    key: tuple[object, ...]
    offset: int
    more: bool


class Packet(NamedTuple):
    """An IP packet: the payload of `protocol` is data[start:end], of which a cut frame holds less."""

    src: bytes
    dst: bytes
    ident: int | None
    protocol: int
    data: bytes
    start: int
    end: int
    fragment: Fragment | None = None

    @property
    def whole(self) -> bool:
        """All bytes that the header promises were captured."""
        return self.end <= len(self.data)


def read_packet(data: bytes, ethertype: int, offset: int, frame_length: int) -> Packet | None:
    """The packet at `offset`, or None if there is none; `frame_length` is the frame's on the wire."""
    if offset >= len(data):
        return None
    version = data[offset] >> 4
    if ethertype == IPV4 and version == 4:
        return _read_ipv4(data, offset, frame_length)
    # Wireshark follows the version even if the link layer announced IPv4.
    if version == 6 and ethertype in (IPV4, IPV6):
        return _read_ipv6(data, offset)
    return None


def _read_ipv4(data: bytes, offset: int, frame_length: int) -> Packet | None:
    if offset + 20 > len(data):
        return None
    first, total, ident, flags, protocol, src, dst = _IPV4.unpack_from(data, offset)
    header = (first & 15) * 4
    if header < 20 or 0 < total < header:
        return None
    start = offset + header
    end = offset + total if total else frame_length
    fragment = None
    if flags & 0x3FFF:
        fragment = Fragment((src, dst, ident, protocol), (flags & 0x1FFF) * 8, bool(flags & 0x2000))
    packet = Packet(src, dst, ident, protocol, data, start, end, fragment)
    return packet if fragment or protocol == UDP else skip_extensions(packet)


def _read_ipv6(data: bytes, offset: int) -> Packet | None:
    if offset + 40 > len(data):
        return None
    _, length, protocol, src, dst = _IPV6.unpack_from(data, offset)
    start = offset + 40
    packet = Packet(src, dst, None, protocol, data, start, start + length)
    return packet if protocol == UDP else skip_extensions(packet)


def skip_extensions(packet: Packet) -> Packet | None:
    """The packet from its transport header, or from a fragment's data, on; None if the headers are cut."""
    protocol, data, start, ident = packet.protocol, packet.data, packet.start, packet.ident
    limit = min(packet.end, len(data))
    for _ in range(_MAX_EXTENSIONS):
        if protocol not in _EXTENSIONS:
            return packet._replace(protocol=protocol, start=start, ident=ident)
        if start + 8 > limit:
            return None
        if protocol == _FRAGMENT:
            protocol, position, ident = _FRAGMENT_HEADER.unpack_from(data, start)
            start += 8
            if position & 0xFFF9:
                fragment = Fragment((packet.src, packet.dst, ident), position & 0xFFF8, bool(position & 1))
                return packet._replace(protocol=protocol, start=start, ident=ident, fragment=fragment)
        else:
            unit = (data[start + 1] + 2) * 4 if protocol == _AUTHENTICATION else (data[start + 1] + 1) * 8
            protocol, start = data[start], start + unit
    return None


@lru_cache(maxsize=65536)
def address_text(packed: bytes) -> str:
    """The canonical text of a packed address; captures repeat few addresses often."""
    return ip_address(packed).compressed

"""The UDP header, and which bytes behind it are the payload.

Where the lengths of UDP and IP contradict each other the payload is what Wireshark hands to a dissector:
never more than the UDP length, never more than the IP packet, never more than was captured.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from pcap_tools.capture.ip import Packet

_HEADER = struct.Struct(">HHH")
_HEADER_SIZE = 8


class Udp(NamedTuple):
    """Ports and payload; `length` is the payload's as the header says, which may be more than there is."""

    sport: int
    dport: int
    length: int
    payload: bytes


def read_udp(packet: Packet) -> Udp | None:
    """The UDP datagram of a packet; None if the header is not all there or gives a length below its own."""
    start = packet.start
    data = packet.data
    end = min(packet.end, len(data))
    if end - start < _HEADER_SIZE:
        return None
    sport, dport, length = _HEADER.unpack_from(data, start)
    if length == 0 and len(packet.src) == 16:
        # RFC 2675: the length of a jumbogram is in the IP header.
        length = packet.end - start
    if length < _HEADER_SIZE:
        return None
    payload = data[start + _HEADER_SIZE : min(start + length, end)]
    return Udp(sport, dport, length - _HEADER_SIZE, payload)

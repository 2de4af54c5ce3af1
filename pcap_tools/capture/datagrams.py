"""Whole UDP datagrams of a capture: frames, link layer, IP, fragments and copies in one go.

    >>> for datagram in read_datagrams("run.pcap"):                        # doctest: +SKIP
    ...     print(datagram.frame, datagram.src, datagram.sport, datagram.payload)

Only UDP that was sent is given: UDP quoted in an ICMP error is not a datagram, and tunnels are not opened.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from pcap_tools.capture.copies import CopyFinder
from pcap_tools.capture.damage import OnDamage, OnWarning, log_warning
from pcap_tools.capture.datagram import Datagram
from pcap_tools.capture.frame import Frame
from pcap_tools.capture.frames import read_frames
from pcap_tools.capture.ip import UDP, Packet, address_text, read_packet, skip_extensions
from pcap_tools.capture.link import Link, LinkTypes
from pcap_tools.capture.reassembly import Reassembler
from pcap_tools.capture.streams import Source

# A reassembled payload may itself be a fragment; nobody sends that, but it must end.
_MAX_NESTING = 4


def read_datagrams(
    source: Source, on_damage: OnDamage | None = None, on_warning: OnWarning | None = None
) -> Iterator[Datagram]:
    """Every UDP datagram of `source`, in the order in which they became whole.

    `source` and `on_damage` are those of `read_frames`. `on_warning` gets a sentence for each unknown link
    type, and one if fragments were given up for want of memory; without it warnings are logged.
    """
    warn = on_warning or log_warning
    links = LinkTypes(warn)
    reassembler = Reassembler()
    copies = CopyFinder()
    for frame in read_frames(source, on_damage):
        link = links.parser(frame.link_type, frame.number)(frame.data)
        if link is None:
            continue
        datagram = datagram_of(frame, link, reassembler)
        if datagram is not None:
            datagram.copy_of = copies.copy_of(datagram)
            yield datagram
    if reassembler.dropped:
        warn(f"{reassembler.dropped} incomplete fragmented datagrams were given up to save memory")


def datagram_of(frame: Frame, link: Link, reassembler: Reassembler) -> Datagram | None:
    """The datagram that a frame holds or completes; `link` is what its link layer says."""
    ethertype, offset, packet_type, interface = link
    data = frame.data
    packet = read_packet(data, ethertype, offset, max(len(data), frame.original_length))
    frames: tuple[int, ...] = (frame.number,)
    if packet is not None and packet.fragment is not None:
        packet, frames = _reassemble(packet, frame, reassembler)
    if packet is None or packet.protocol != UDP:
        return None
    udp = read_udp(packet)
    if udp is None:
        return None
    return Datagram(
        frame.number,
        frame.time_ns,
        address_text(packet.src),
        udp.sport,
        address_text(packet.dst),
        udp.dport,
        udp.payload,
        udp.length,
        frames,
        packet.ident,
        frame.packet_type if packet_type is None else packet_type,
        frame.interface if interface is None else interface,
    )


def _reassemble(
    packet: Packet | None,
    frame: Frame,
    reassembler: Reassembler,
) -> tuple[Packet | None, tuple[int, ...]]:
    """The whole packet that this fragment completes, and the frames it came in."""
    frames: tuple[int, ...] = (frame.number,)
    for _ in range(_MAX_NESTING):
        if packet is None or packet.fragment is None:
            return packet, frames
        if not packet.whole:
            # As in Wireshark, a cut first fragment still shows its UDP header and some payload; for IPv6 not.
            first = packet.fragment.offset == 0 and len(packet.src) == 4
            return (packet if first else None), frames
        body = packet.data[packet.start : packet.end]
        whole = reassembler.add(packet.fragment, body, frame.number, frame.time_ns)
        if whole is None:
            return None, frames
        frames = whole.frames
        packet = packet._replace(data=whole.data, start=0, end=len(whole.data), fragment=None)
        packet = skip_extensions(packet)
    return None, frames


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

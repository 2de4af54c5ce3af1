"""Conversations for the tests of tiling: made by scapy for any tile at once, so that tiling has something to equal.

A conversation is described by `Sent` datagrams. `segment_of` makes the segment of it, `frames_in_tile` the frames which
the rules of tiling demand in tile k: the description is changed and scapy builds it anew, checksums and fragments too.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from ipaddress import ip_address
from typing import Any

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment
from scapy.layers.l2 import CookedLinux, CookedLinuxV2, Dot1Q, Ether
from scapy.packet import Packet, Raw

from generators.bulk.segment import Segment

T0 = 1_700_000_000_123_456_789
GAP = 1_000_003
PERIOD = 987_654_321_987
PIECE = 64  # bytes of a datagram in one fragment

LINKS = {"ethernet": 1, "vlan": 1, "qinq": 1, "cooked1": 113, "cooked2": 276, "raw": 101, "null": 0}


@dataclass(frozen=True)
class Sent:
    src: str
    dst: str
    payload: bytes
    ident: int = 0
    sport: int = 50_000
    dport: int = 50_001
    fragmented: bool = False
    checksum: bool = True


@dataclass(frozen=True)
class Traffic:
    """What is sent once, and what is tiled, by which hosts; `step` counters are used by the body."""

    prologue: Sequence[Sent]
    body: Sequence[Sent]
    varying: Sequence[str]
    step: int
    link: str = "ethernet"
    digits: int = 9


# --- Frames --------------------------------------------------------------------------------------------------


def frames_of(sent: Sent, link: str) -> list[bytes]:
    return [_linked(packet, link) for packet in _packets(sent)]


def _ip(sent: Sent, **fields: Any) -> Packet:
    if ip_address(sent.src).version == 4:
        return IP(src=sent.src, dst=sent.dst, id=sent.ident, ttl=64, **fields)
    return IPv6(src=sent.src, dst=sent.dst, hlim=64, fl=0, tc=0, **fields)


def _packets(sent: Sent) -> list[Packet]:
    udp = (
        UDP(sport=sent.sport, dport=sent.dport) if sent.checksum else UDP(sport=sent.sport, dport=sent.dport, chksum=0)
    )
    whole = _ip(sent) / udp / Raw(sent.payload)
    if not sent.fragmented:
        return [whole]
    version = ip_address(sent.src).version
    body = bytes(whole)[20 if version == 4 else 40 :]
    made = []
    for at in range(0, len(body), PIECE):
        more = at + PIECE < len(body)
        if version == 4:
            header = _ip(sent, proto=17, flags="MF" if more else 0, frag=at // 8)
        else:
            header = _ip(sent, nh=44) / IPv6ExtHdrFragment(nh=17, offset=at // 8, m=int(more), id=sent.ident)
        made.append(header / Raw(body[at : at + PIECE]))
    return made


def _linked(packet: Packet, link: str) -> bytes:
    version6 = IPv6 in packet
    kind = 0x86DD if version6 else 0x0800
    ether: dict[str, Any] = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
    if link == "ethernet":
        # A card pads short frames with what it has; that is no payload, even if it looks like a counter.
        frame = bytes(Ether(type=kind, **ether) / packet)
        return frame + (b"#000000001" * 6)[: max(0, 60 - len(frame))]
    if link in ("vlan", "qinq"):
        tags = Dot1Q(vlan=7, type=kind) if link == "vlan" else Dot1Q(vlan=8, type=0x8100) / Dot1Q(vlan=7, type=kind)
        return bytes(Ether(type=0x8100 if link == "vlan" else 0x88A8, **ether) / tags / packet)
    if link == "cooked1":
        return bytes(CookedLinux(pkttype=0, lladdrtype=1, lladdrlen=6, src=b"\2\0\0\0\0\1", proto=kind) / packet)
    if link == "cooked2":
        cooked = CookedLinuxV2(proto=kind, ifindex=3, lladdrtype=1, pkttype=4, lladdrlen=6, src=b"\2\0\0\0\0\1")
        return bytes(cooked / packet)
    return (struct.pack("<I", 30 if version6 else 2) if link == "null" else b"") + bytes(packet)


# --- The rules of tiling -----------------------------------------------------------------------------------------


def address_in_tile(traffic: Traffic, address: str, tile: int) -> str:
    if address not in traffic.varying or tile == 0:
        return address
    own = sorted({_middle(host) for host in traffic.varying if _same_family(host, address)})
    place = (tile - 1) * len(own) + own.index(_middle(address))
    packed = bytearray(ip_address(address).packed)
    at, size = (1, 2) if len(packed) == 4 else (6, 4)
    packed[at : at + size] = _free_middle(traffic, len(packed), place).to_bytes(size, "big")
    return str(ip_address(bytes(packed)))


@cache
def _free_middles_v4(taken: frozenset[int], start: int) -> list[int]:
    return [value % 65536 for value in range(start, start + 65536) if value % 65536 not in taken]


def _free_middle(traffic: Traffic, length: int, place: int) -> int:
    """The free middle with number `place`, counted on from the highest of the varying hosts."""
    hosts = {host for sent in (*traffic.prologue, *traffic.body) for host in (sent.src, sent.dst)}
    taken = frozenset(_middle(host) for host in hosts if len(ip_address(host).packed) == length)
    start = 1 + max(_middle(host) for host in traffic.varying if len(ip_address(host).packed) == length)
    if length == 4:
        free = _free_middles_v4(taken, start)
        return free[place % len(free)]
    candidate = start
    while True:
        if candidate not in taken:
            if place == 0:
                return candidate
            place -= 1
        candidate += 1


def _middle(address: str) -> int:
    packed = ip_address(address).packed
    return int.from_bytes(packed[1:3] if len(packed) == 4 else packed[6:10], "big")


def _same_family(one: str, other: str) -> bool:
    return ip_address(one).version == ip_address(other).version


def sent_in_tile(traffic: Traffic, sent: Sent, tile: int) -> Sent:
    def raised(match: re.Match[bytes]) -> bytes:
        value = (int(match[1]) + tile * traffic.step) % 10**traffic.digits
        return b"#" + str(value).zfill(traffic.digits).encode()

    version6 = ip_address(sent.src).version == 6
    by_host = sum(1 for one in traffic.body if one.src == sent.src and (one.fragmented or not version6))
    rise = 0 if sent.src in traffic.varying else tile * by_host
    return replace(
        sent,
        src=address_in_tile(traffic, sent.src, tile),
        dst=address_in_tile(traffic, sent.dst, tile),
        ident=(sent.ident + rise) % (2**32 if version6 else 2**16),
        payload=re.sub(b"#([0-9]{%d})" % traffic.digits, raised, sent.payload),
    )


def frames_in_tile(traffic: Traffic, tile: int) -> list[bytes]:
    return [frame for sent in traffic.body for frame in frames_of(sent_in_tile(traffic, sent, tile), traffic.link)]


def segment_of(traffic: Traffic) -> Segment:
    prologue = [frame for sent in traffic.prologue for frame in frames_of(sent, traffic.link)]
    body = frames_in_tile(traffic, 0)
    return Segment(
        LINKS[traffic.link],
        [(T0 + n * GAP, frame) for n, frame in enumerate(prologue)],
        [(T0 + (len(prologue) + n) * GAP, frame) for n, frame in enumerate(body)],
        PERIOD,
        frozenset(traffic.varying),
        digits=traffic.digits,
        step=traffic.step,
    )


def times(traffic: Traffic, packets: int) -> list[int]:
    """The time of every frame of a capture of so many packets."""
    segment = segment_of(traffic)
    found = [time_ns for time_ns, _ in segment.prologue]
    tile = 0
    while len(found) < packets:
        found += [time_ns + tile * PERIOD for time_ns, _ in segment.body]
        tile += 1
    return found[:packets]


# --- A conversation with all that is awkward -----------------------------------------------------------------------


def conversation(version: int, link: str = "ethernet") -> Traffic:
    """Publishers of two networks, a subscriber in the broker's network and one in the way of the varying ones."""
    form = "10.0.{}.{}" if version == 4 else "2001:db8:0:0:{}::{}"
    hosts = [str(ip_address(form.format(*host))) for host in ((0, 1), (0, 2), (3, 2), (0, 5), (0, 6), (1, 5))]
    broker, near, far, *publishers = hosts
    body: list[Sent] = []

    def say(src: str, dst: str, payload: bytes, **more: bool) -> None:
        start = 65_530 if src == broker else 100 * ip_address(src).packed[-1]
        ident = (start + sum(1 for one in body if one.src == src and (version == 4 or one.fragmented))) % 65_536
        wanted = 0 if version == 6 and not more.get("fragmented") else ident
        body.append(Sent(src, dst, payload, wanted, **more))

    for number, publisher in enumerate(publishers, 1):
        for text, fragmented in ((b"20 ", False), (_long_text(number), True)):
            payload = b"\x01\x00home/room%d/temperature:%s#%09d" % (number, text, 2 * number - (not fragmented))
            say(publisher, broker, payload, fragmented=fragmented)
            say(broker, publisher, b"\x02")
            for subscriber in (near, far):
                say(broker, subscriber, payload, fragmented=fragmented)
                say(subscriber, broker, b"\x02")
    prologue = [Sent(near, broker, b"\x03\x00home/*", 1), Sent(broker, near, b"\x04", 65_529)]
    return Traffic(prologue, body, publishers, step=6, link=link)


def _long_text(number: int) -> bytes:
    """With a counter that begins in the second fragment and ends in the third, and one at an odd place."""
    head = len(b"\x01\x00home/room1/temperature:") + 8
    return b"x" * (2 * PIECE - head - 3 - number) + b"#000000001 " + b"y" * (PIECE + number) + b"#000000002,"

"""IP packets and link headers of datagrams, built by scapy with every field set.

Fields that are not set depend on the machine (addresses, routes, ids), and the same seed would give different bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from ipaddress import ip_address
from typing import Any

from scapy.layers.inet import IP, UDP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, fragment6
from scapy.layers.l2 import CookedLinux, CookedLinuxV2, Dot1Q, Ether
from scapy.packet import Raw

from generators.capture.options import MIN_MTU_IPV6, CaptureOptions, LinkType
from generators.simulation.network import Transit
from pcap_tools.dialect import Dialect
from pcap_tools.errors import UsageError
from pcap_tools.layers import DialectLayers

ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_ARP = 0x0800, 0x86DD, 0x0806
TAG, SERVICE_TAG = 0x8100, 0x88A8  # 802.1Q, and 802.1ad for the outer one of two
UDP_PROTOCOL, FRAGMENT_HEADER = 17, 44
TTL = 64
MAX_DATAGRAM = 65_507  # what fits into IPv4
BROADCAST = "255.255.255.255"

_ARPHRD_ETHER = 1
_FAMILIES = {ETHERTYPE_IPV4: 2, ETHERTYPE_IPV6: 30}  # of the null link: AF_INET, and AF_INET6 as macOS has it


@dataclass(frozen=True, slots=True)
class IpPacket:
    """``whole`` is the packet before fragmentation; ``parts`` are its fragments, or the packet itself."""

    ethertype: int
    whole: bytes
    parts: tuple[bytes, ...]


class PacketMaker:
    """Builds the IP packets of transits; loads the layers of a dialect when it is first used."""

    def __init__(self, dialects: Mapping[str, Dialect], mtu: int) -> None:
        self._dialects, self._mtu = dialects, mtu
        self._layers: dict[str, DialectLayers] = {}

    def packet(self, transit: Transit, ip_id: int) -> IpPacket:
        """The packet of a transit; ``ip_id`` is used where the packet has room for one."""
        (src, sport), (dst, dport) = transit.src, transit.dst
        self._check(transit)
        packet = ip_header(src, dst, UDP_PROTOCOL, ip_id)
        udp = UDP(sport=sport, dport=dport, len=None, chksum=None)
        packet.explicit = udp.explicit = 1
        udp.add_payload(self._content(transit))  # "/" would copy both sides
        packet.add_payload(udp)
        whole = bytes(packet)
        if len(whole) <= self._mtu:
            parts = [whole]
        elif isinstance(packet, IP):
            parts = [bytes(part) for part in fragment(packet, self._mtu - 20)]  # type: ignore[no-untyped-call]
        else:
            parts = self._fragments_of_ipv6(packet, ip_id)
        return IpPacket(ethertype_of(src), whole, tuple(parts))

    def _fragments_of_ipv6(self, packet: Any, ip_id: int) -> list[bytes]:
        if self._mtu < MIN_MTU_IPV6:
            raise UsageError(f"IPv6 needs an mtu of {MIN_MTU_IPV6} or more, not {self._mtu}")
        header, udp = packet.copy(), packet.payload
        header.remove_payload()
        header.nh = FRAGMENT_HEADER
        extension = IPv6ExtHdrFragment(nh=UDP_PROTOCOL, res1=0, offset=0, res2=0, m=0, id=ip_id)
        parts = fragment6(header / extension / udp, self._mtu)  # type: ignore[no-untyped-call]
        return [bytes(part) for part in parts]

    def _check(self, transit: Transit) -> None:
        (src, sport), (dst, dport) = transit.src, transit.dst
        if ethertype_of(src) != ethertype_of(dst):
            raise UsageError(f"no datagram goes from {src} to {dst}: one is IPv4, the other IPv6")
        for port in (sport, dport):
            if not 0 <= port <= 0xFFFF:
                raise UsageError(f"a UDP port is 0 to 65535, not {port}")
        if len(transit.datagram) > MAX_DATAGRAM:
            raise UsageError(f"a UDP datagram has at most {MAX_DATAGRAM} bytes, not {len(transit.datagram)}")

    def _content(self, transit: Transit) -> Any:
        name, datagram = transit.dialect, transit.datagram
        if not name or not datagram:
            return Raw(datagram)
        if name not in self._layers:
            if name not in self._dialects:
                raise UsageError(f"a datagram of {name!r} is to be sent, but that dialect was not given")
            self._layers[name] = DialectLayers(name, self._dialects[name])
        return self._layers[name].base(datagram)


def ip_header(src: str, dst: str, protocol: int, ip_id: int, ttl: int = TTL) -> Any:
    """The IPv4 or IPv6 header; scapy computes lengths and checksums."""
    if ethertype_of(src) == ETHERTYPE_IPV4:
        return IP(
            version=4, ihl=None, tos=0, len=None, id=ip_id, flags=0, frag=0,
            ttl=ttl, proto=protocol, chksum=None, src=src, dst=dst, options=[],
        )  # fmt: skip
    return IPv6(version=6, tc=0, fl=0, plen=None, nh=protocol, hlim=ttl, src=src, dst=dst)


def ip_ids(transits: Iterable[Transit], counted: bool = True) -> dict[int, int]:
    """The IP id of each transit, by its number, never 0: rising by one for each sender, from a start of its own; or as
    good as random, as from Linux for most destinations.

    They depend on the traffic only, so captures of one run taken at several points agree.
    """
    if not counted:
        texts = ((one.number, f"{one.src[0]} {one.number}".encode()) for one in transits)
        return {number: int.from_bytes(blake2b(text, digest_size=2).digest()) % 0xFFFF + 1 for number, text in texts}
    last: dict[str, int] = {}
    ids: dict[int, int] = {}
    for transit in transits:
        host = transit.src[0]
        before = last[host] if host in last else _digest(host, 2)
        last[host] = ids[transit.number] = before % 0xFFFF + 1
    return ids


@lru_cache(maxsize=4096)
def canonical(address: str) -> str:
    """The text of an address as capture readers write it."""
    try:
        if "%" not in address:
            return ip_address(address).compressed
    except ValueError:
        pass
    raise UsageError(f"{address!r} is not an IP address")


@lru_cache(maxsize=4096)
def ethertype_of(address: str) -> int:
    return ETHERTYPE_IPV6 if ":" in canonical(address) else ETHERTYPE_IPV4


@lru_cache(maxsize=4096)
def mac_of(address: str) -> str:
    """A locally administered MAC address for a host, the right one for a group (RFC 1112, RFC 2464)."""
    ip = ip_address(canonical(address))
    if address == BROADCAST:
        return "ff:ff:ff:ff:ff:ff"
    if ip.is_multicast and ip.version == 4:
        return (bytes((1, 0, 0x5E, ip.packed[1] & 0x7F)) + ip.packed[2:]).hex(":")
    if ip.is_multicast:
        return (b"\x33\x33" + ip.packed[-4:]).hex(":")
    if ip.version == 4:
        return (b"\x02\x42" + ip.packed).hex(":")
    return (b"\x02" + _digest(address, 5).to_bytes(5, "big")).hex(":")


def _digest(address: str, size: int) -> int:
    return int.from_bytes(blake2b(ip_address(canonical(address)).packed, digest_size=size).digest(), "big")


@lru_cache(maxsize=4096)
def link_header(options: CaptureOptions, ethertype: int, src: str, dst: str, place: tuple[int, int]) -> bytes:
    """The link header of a packet from ``src`` to ``dst`` (IP addresses).

    ``place`` is the packet type and interface index of cooked captures.
    """
    link, (packet_type, interface) = options.link_type, place
    if link == LinkType.ETHERNET:
        return _ethernet(ethertype, src, dst, options.vlan)
    if link == LinkType.RAW:
        return b""
    if link == LinkType.NULL:
        return _FAMILIES[ethertype].to_bytes(4, "little")
    sender = bytes.fromhex(mac_of(src).replace(":", "")) + bytes(2)
    seen: dict[str, Any] = {"pkttype": packet_type, "lladdrtype": _ARPHRD_ETHER, "lladdrlen": 6, "src": sender}
    if link == LinkType.COOKED1:
        return bytes(CookedLinux(proto=ethertype, **seen))
    return bytes(CookedLinuxV2(proto=ethertype, reserved=0, ifindex=interface, **seen))


def _ethernet(ethertype: int, src: str, dst: str, vlan: tuple[int, ...]) -> bytes:
    kinds = [*(SERVICE_TAG, TAG)[2 - len(vlan) :], ethertype]
    header: Any = Ether(dst=mac_of(dst), src=mac_of(src), type=kinds[0])
    for tag, kind in zip(vlan, kinds[1:], strict=True):
        header = header / Dot1Q(prio=0, dei=0, vlan=tag, type=kind)
    return bytes(header)

"""Frames of other protocols between the hosts of the traffic, which a reader must ignore.

DNS, NTP, mDNS, ARP or neighbour discovery, and ICMP errors that quote a datagram of the traffic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import ip_address
from typing import Any

from scapy.layers.dns import DNS, DNSQR, DNSRR
from scapy.layers.inet import ICMP, UDP
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptSrcLLAddr,
)
from scapy.layers.l2 import ARP
from scapy.layers.ntp import NTPHeader
from scapy.packet import Raw

from generators.capture.packets import (
    BROADCAST,
    ETHERTYPE_ARP,
    ETHERTYPE_IPV4,
    ETHERTYPE_IPV6,
    TTL,
    UDP_PROTOCOL,
    IpPacket,
    canonical,
    ethertype_of,
    ip_header,
    mac_of,
)
from generators.simulation.network import Transit
from generators.simulation.random_source import RandomSource

_ICMP, _ICMPV6 = 1, 58
_DNS_PORT, _NTP_PORT, _MDNS_PORT = 53, 123, 5353
_EPHEMERAL = (32_768, 40_000)
_MDNS_GROUP = {ETHERTYPE_IPV4: "224.0.0.251", ETHERTYPE_IPV6: "ff02::fb"}
_ADDRESS_RECORD = {ETHERTYPE_IPV4: 1, ETHERTYPE_IPV6: 28}  # A, AAAA
_POINTER_RECORD, _INTERNET = 12, 1
_NAMES = ("time.example.net", "updates.example.net", "www.example.com", "broker.example.org")
_QUOTED = {ETHERTYPE_IPV4: 576 - 28, ETHERTYPE_IPV6: 1280 - 48}  # what Linux quotes at most
_NTP_EPOCH = 2_208_988_800  # 1970 in seconds since 1900
_ANSWER_NS = (150_000, 2_000_000)
_ERROR_NS = (15_000, 90_000)
_ALONE = 255  # the TTL of what must not come from another network


@dataclass(frozen=True, slots=True)
class Sent:
    """A datagram of the traffic in the capture, and the time of its last frame."""

    transit: Transit
    packet: IpPacket
    time_ns: int


@dataclass(frozen=True, slots=True)
class NoiseFrame:
    """A packet without its link header; ``dst`` may be a multicast group or the broadcast address."""

    time_ns: int
    ethertype: int
    src: str
    dst: str
    packet: bytes


@dataclass(frozen=True, slots=True)
class _Occasion:
    """Hosts and time of a piece of noise: two hosts of the traffic, and a server that is not part of it."""

    sent: Sent
    time_ns: int
    here: str
    there: str
    server: str

    @property
    def ethertype(self) -> int:
        return ethertype_of(self.here)


class Noise:
    """``host`` is the capture point, or "" if it sees all hosts. ARP needs a link layer that supports it."""

    def __init__(self, traffic: Sequence[Sent], host: str, with_arp: bool, rng: RandomSource) -> None:
        self._traffic, self._host, self._with_arp, self._rng = traffic, host, with_arp, rng
        self._begin_ns = min(sent.time_ns for sent in traffic)
        self._end_ns = max(sent.time_ns for sent in traffic)
        ends = [end for sent in traffic for end in (sent.transit.src, sent.transit.dst)]
        self._hosts = {canonical(address) for address, _ in ends}
        self._ports = {port for _, port in ends}

    def frames(self, count: int) -> list[NoiseFrame]:
        """This many frames, spread over the time of the traffic; all kinds in turn."""
        kinds = (self._dns, self._resolution, self._unreachable, self._ntp, self._mdns)
        made: list[NoiseFrame] = []
        activation = self._rng.between(0, len(kinds))
        while len(made) < count:
            made += kinds[activation % len(kinds)](self._occasion())
            activation += 1
        return made[:count]

    def _occasion(self) -> _Occasion:
        sent = self._rng.pick(self._traffic)
        here, there = canonical(sent.transit.src[0]), canonical(sent.transit.dst[0])
        if there == self._host or (not self._host and self._rng.happens(0.5)):
            here, there = there, here
        time_ns = self._rng.between(self._begin_ns, self._end_ns + 1)
        return _Occasion(sent, time_ns, here, there, self._server(here))

    def _server(self, address: str) -> str:
        """An address of the same network that no host of the traffic has."""
        net = ip_address(address).packed[:-1]
        for last in range(254, 0, -1):
            server = ip_address(net + bytes((last,))).compressed
            if server not in self._hosts:
                return server
        return address  # a full network: it serves itself

    def _later(self, time_ns: int, after: tuple[int, int]) -> int:
        return min(time_ns + self._rng.between(*after), self._end_ns)

    # -- over UDP ------------------------------------------------------------------------------------------

    def _dns(self, now: _Occasion) -> list[NoiseFrame]:
        record, ident, port = _ADDRESS_RECORD[now.ethertype], self._rng.between(0, 1 << 16), self._ephemeral()
        name = self._rng.pick(_NAMES)
        question = DNSQR(qname=name, qtype=record, unicastresponse=0, qclass=_INTERNET)
        found = DNSRR(
            rrname=name, type=record, cacheflush=0, rclass=_INTERNET, ttl=300, rdlen=None, rdata=now.server
        )  # fmt: skip
        query, answer = _dns(ident, [question]), _dns(ident, [question], [found])
        return [
            self._udp(now.time_ns, (now.here, port), (now.server, _DNS_PORT), query),
            self._udp(self._later(now.time_ns, _ANSWER_NS), (now.server, _DNS_PORT), (now.here, port), answer),
        ]

    def _mdns(self, now: _Occasion) -> list[NoiseFrame]:
        question = DNSQR(
            qname="_services._dns-sd._udp.local", qtype=_POINTER_RECORD, unicastresponse=0, qclass=_INTERNET
        )
        group = _MDNS_GROUP[now.ethertype]
        query = _dns(0, [question], wish=0)
        return [self._udp(now.time_ns, (now.here, _MDNS_PORT), (group, _MDNS_PORT), query, _ALONE)]

    def _ntp(self, now: _Occasion) -> list[NoiseFrame]:
        back_ns = self._later(now.time_ns, _ANSWER_NS)
        asked, told = _ntp_time(now.time_ns), _ntp_time((now.time_ns + back_ns) // 2)
        request = _ntp(mode=3, stratum=0, ref_id=b"INIT", sent=asked)
        reply = _ntp(mode=4, stratum=1, ref_id=b"GPS\0", sent=told, asked=asked)
        here, server = (now.here, _NTP_PORT), (now.server, _NTP_PORT)
        return [self._udp(now.time_ns, here, server, request), self._udp(back_ns, server, here, reply)]

    def _udp(
        self, time_ns: int, src: tuple[str, int], dst: tuple[str, int], content: Any, ttl: int = TTL
    ) -> NoiseFrame:
        udp = UDP(sport=src[1], dport=dst[1], len=None, chksum=None) / content
        return self._ip(time_ns, src[0], dst[0], UDP_PROTOCOL, udp, ttl)

    def _ephemeral(self) -> int:
        """A port of no datagram of the traffic: a reader may go by ports."""
        port = self._rng.between(*_EPHEMERAL)
        while port in self._ports:
            port = port + 1 if port < 0xFFFF else _EPHEMERAL[0]
        return port

    # -- beside UDP ----------------------------------------------------------------------------------------

    def _unreachable(self, now: _Occasion) -> list[NoiseFrame]:
        """The receiver of a datagram says that nobody listens on its port; it quotes the datagram."""
        src, dst = now.sent.transit.dst[0], now.sent.transit.src[0]
        quote = Raw(now.sent.packet.whole[: _QUOTED[now.ethertype]])
        time_ns = self._later(now.sent.time_ns, _ERROR_NS)
        if now.ethertype == ETHERTYPE_IPV4:
            error = ICMP(type=3, code=3, chksum=None, reserved=0, length=0, nexthopmtu=0)
            return [self._ip(time_ns, src, dst, _ICMP, error / quote)]
        error6 = ICMPv6DestUnreach(type=1, code=4, cksum=None, length=0, unused=0)
        return [self._ip(time_ns, src, dst, _ICMPV6, error6 / quote)]

    def _resolution(self, now: _Occasion) -> list[NoiseFrame]:
        """One host asks for the MAC address of the other."""
        back_ns = self._later(now.time_ns, _ERROR_NS)
        if now.ethertype == ETHERTYPE_IPV6:
            return self._neighbours(now, back_ns)
        if not self._with_arp:
            return []
        asked = _arp(1, now.here, now.there, "00:00:00:00:00:00")
        told = _arp(2, now.there, now.here, mac_of(now.here))
        return [
            NoiseFrame(now.time_ns, ETHERTYPE_ARP, now.here, BROADCAST, asked),
            NoiseFrame(back_ns, ETHERTYPE_ARP, now.there, now.here, told),
        ]

    def _neighbours(self, now: _Occasion, back_ns: int) -> list[NoiseFrame]:
        group = ip_address(ip_address("ff02::1:ff00:0").packed[:13] + ip_address(now.there).packed[13:]).compressed
        question = ICMPv6ND_NS(type=135, code=0, cksum=None, res=0, tgt=now.there)
        asks = ICMPv6NDOptSrcLLAddr(type=1, len=1, lladdr=mac_of(now.here))
        answer = ICMPv6ND_NA(type=136, code=0, cksum=None, R=0, S=1, O=1, res=0, tgt=now.there)
        tells = ICMPv6NDOptDstLLAddr(type=2, len=1, lladdr=mac_of(now.there))
        return [
            self._ip(now.time_ns, now.here, group, _ICMPV6, question / asks, _ALONE),
            self._ip(back_ns, now.there, now.here, _ICMPV6, answer / tells, _ALONE),
        ]

    def _ip(self, time_ns: int, src: str, dst: str, protocol: int, content: Any, ttl: int = TTL) -> NoiseFrame:
        ip_id = self._rng.between(1, 1 << 16)
        packet = bytes(ip_header(src, dst, protocol, ip_id, ttl) / content)
        return NoiseFrame(time_ns, ethertype_of(src), src, dst, packet)


def _dns(ident: int, questions: list[Any], answers: Sequence[Any] = (), wish: int = 1) -> Any:
    """``wish`` is the flag "recursion desired"."""
    answered = int(bool(answers))
    return DNS(
        id=ident, qr=answered, opcode=0, aa=0, tc=0, rd=wish, ra=answered, z=0, ad=0, cd=0, rcode=0,
        qdcount=len(questions), ancount=len(answers), nscount=0, arcount=0,
        qd=questions, an=list(answers), ns=[], ar=[],
    )  # fmt: skip


def _ntp(mode: int, stratum: int, ref_id: bytes, sent: Fraction, asked: Fraction | int = 0) -> Any:
    """``asked`` is when the request was sent that this answers."""
    recv, ref = (sent, sent - 16) if asked else (0, 0)
    return NTPHeader(
        leap=0, version=4, mode=mode, stratum=stratum, poll=6, precision=-20, delay=0, dispersion=0,
        ref_id=ref_id, ref=ref, orig=asked, recv=recv, sent=sent,
    )  # fmt: skip


def _ntp_time(time_ns: int) -> Fraction:
    return (_NTP_EPOCH + Fraction(time_ns, 10**9)) % (1 << 32)


def _arp(operation: int, src: str, dst: str, dst_mac: str) -> bytes:
    return bytes(
        ARP(hwtype=1, ptype=ETHERTYPE_IPV4, hwlen=6, plen=4, op=operation,
            hwsrc=mac_of(src), psrc=src, hwdst=dst_mac, pdst=dst)
    )  # fmt: skip

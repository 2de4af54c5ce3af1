"""Packets are what a Linux host would send, bit by bit, and depend on nothing but what is asked for."""

from __future__ import annotations

import random
import struct
import time
from ipaddress import ip_address
from typing import Any, NoReturn

import pytest
from scapy.config import conf

from generators.capture.options import CaptureOptions, LinkType, Point
from generators.capture.packets import ETHERTYPE_ARP, ETHERTYPE_IPV4, PacketMaker, ip_ids, link_header, mac_of
from generators.simulation.network import Transit
from pcap_tools.errors import UsageError
from tests.generators.transits import BROKER, BROKER6, CLIENTS, CLIENTS6, COLON, LONG, both_families, captured
from tests.generators.transits import transit as make
from tests.pcap_tools.capture import packets as by_hand
from tests.vectors import dialect_of, load_vectors

IP_ID = 0x1234
A, B = CLIENTS[0], BROKER
A6, B6 = CLIENTS6[0], BROKER6


def internet_sum(data: bytes) -> int:
    """RFC 1071: 0xFFFF if `data` holds its own right checksum."""
    even = data + bytes(len(data) % 2)
    total = sum(int.from_bytes(even[at : at + 2], "big") for at in range(0, len(even), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def pseudo_header(one: Transit, length: int) -> bytes:
    src, dst = ip_address(one.src[0]).packed, ip_address(one.dst[0]).packed
    return src + dst + (struct.pack(">II", length, 17) if len(src) == 16 else struct.pack(">HH", 17, length))


def whole_packet(one: Transit) -> bytes:
    return PacketMaker(COLON, 65_535).packet(one, IP_ID).whole


@pytest.mark.parametrize("datagram", [b"", b"\x02", b"odd", LONG])
@pytest.mark.parametrize("ends", [(A, B), (A6, B6)])
def test_every_bit_of_a_packet(ends: Any, datagram: bytes) -> None:
    one = make(0, ends[0], ends[1], datagram)
    made = whole_packet(one)
    (src, sport), (dst, dport) = ends
    udp = by_hand.udp(datagram, sport, dport)
    if ":" in src:
        start, expected = 40, by_hand.ipv6(udp, src=src, dst=dst)
    else:
        start, expected = 20, by_hand.ipv4(udp, src=src, dst=dst, ident=IP_ID)
        assert internet_sum(made[:20]) == 0xFFFF
        expected = expected[:10] + made[10:12] + expected[12:]
    assert internet_sum(pseudo_header(one, len(udp)) + made[start:]) == 0xFFFF
    assert made == expected[: start + 6] + made[start + 6 : start + 8] + expected[start + 8 :]


@pytest.mark.parametrize("ends", [(A, B), (A6, B6)])
def test_a_udp_checksum_is_never_sent_as_zero(ends: Any) -> None:
    """Zero would mean that there is none (RFC 768), which IPv6 forbids."""
    one = make(0, ends[0], ends[1], b"\0\0", "")
    start = 40 if ":" in ends[0][0] else 20
    udp = whole_packet(one)[start:]
    rest = internet_sum(pseudo_header(one, len(udp)) + udp[:6] + bytes(4))
    one.datagram = (0xFFFF - rest).to_bytes(2, "big")
    assert whole_packet(one)[start + 6 : start + 8] == b"\xff\xff"


@pytest.mark.parametrize("dialect", dict.fromkeys(vector.dialect for vector in load_vectors()))
def test_any_datagram_of_a_dialect_arrives_as_it_was_given(dialect: str) -> None:
    maker = PacketMaker({dialect: dialect_of(dialect)}, 65_535)
    for vector in load_vectors():
        if vector.dialect == dialect:
            one = make(0, A, B, vector.datagram, dialect)
            assert maker.packet(one, IP_ID).whole[28:] == vector.datagram, vector.what


def test_the_mtu_is_the_longest_packet_that_stays_whole() -> None:
    maker = PacketMaker(COLON, 1500)
    for ends, most in (((A, B), 1472), ((A6, B6), 1452)):
        assert [len(maker.packet(make(0, *ends, bytes(size), ""), 1).parts) for size in (most, most + 1)] == [1, 2]


@pytest.mark.parametrize(("mtu", "size"), [(1500, 1480), (1499, 1472), (576, 552)])
def test_fragments_of_ipv4(mtu: int, size: int) -> None:
    made = PacketMaker(COLON, mtu).packet(make(0, A, B, LONG), IP_ID)
    expected = by_hand.ipv4_fragments(made.whole[20:], size, src=A[0], dst=B[0], ident=IP_ID)
    assert all(internet_sum(part[:20]) == 0xFFFF for part in made.parts)
    assert [part[:10] + part[12:] for part in made.parts] == [part[:10] + part[12:] for part in expected]


@pytest.mark.parametrize(("mtu", "size"), [(1500, 1448), (1280, 1232)])
def test_fragments_of_ipv6(mtu: int, size: int) -> None:
    made = PacketMaker(COLON, mtu).packet(make(0, (by_hand.A6, 50000), (by_hand.B6, 50000), LONG), IP_ID)
    assert list(made.parts) == by_hand.ipv6_fragments(made.whole[40:], size, IP_ID)


def test_the_longest_datagram_there_is() -> None:
    for ends in ((A, B), (A6, B6)):
        made = PacketMaker(COLON, 1500).packet(make(0, *ends, bytes(65_507), ""), 1)
        assert sum(len(part) for part in made.parts) > 65_507
        assert max(map(len, made.parts)) <= 1500


def test_ids_rise_for_each_sender_from_a_start_of_its_own() -> None:
    transits = both_families()
    ids = ip_ids(transits)
    assert ip_ids(transits, counted=False) == ip_ids(transits, counted=False) != ids
    starts = []
    for host in dict.fromkeys(one.src[0] for one in transits):
        own = [ids[one.number] for one in transits if one.src[0] == host]
        assert own == list(range(own[0], own[0] + len(own)))
        starts.append(own[0])
    assert len(set(starts)) == len(starts)


def test_ids_go_round_without_zero() -> None:
    """Readers take the id 0 for none."""
    ids = ip_ids(make(number, A, B, b"") for number in range(70_000))
    assert set(ids.values()) == set(range(1, 65_536))
    assert ids[65_535] == ids[0]


def test_hosts_have_mac_addresses_of_their_own() -> None:
    hosts = ["10.0.0.1", "10.0.0.2", "10.0.1.1", "2001:db8::1", "2001:db8::2", "2001:db8:1::1"]
    macs = [bytes.fromhex(mac_of(host).replace(":", "")) for host in hosts]
    assert len(set(macs)) == len(hosts)
    assert all(mac[0] & 0b11 == 0b10 for mac in macs)  # locally administered, one host
    assert mac_of("2001:db8::1") == mac_of("2001:0db8:0::1")


def test_groups_have_the_mac_addresses_of_the_standards() -> None:
    assert mac_of("224.0.0.251") == "01:00:5e:00:00:fb"
    assert mac_of("239.255.1.2") == "01:00:5e:7f:01:02"
    assert mac_of("ff02::1:ff12:3456") == "33:33:ff:12:34:56"
    assert mac_of("255.255.255.255") == "ff:ff:ff:ff:ff:ff"


@pytest.mark.parametrize(
    ("options", "header"),
    [
        (CaptureOptions(), "0242 0a000001 0242 0a00000a 0800"),
        (CaptureOptions(vlan=(7,)), "0242 0a000001 0242 0a00000a 8100 0007 0800"),
        (CaptureOptions(vlan=(4094, 7)), "0242 0a000001 0242 0a00000a 88a8 0ffe 8100 0007 0800"),
        (CaptureOptions(link=LinkType.COOKED1), "0004 0001 0006 0242 0a00000a 0000 0800"),
        (CaptureOptions(link=LinkType.COOKED2), "0800 0000 00000003 0001 04 06 0242 0a00000a 0000"),
        (CaptureOptions(link=LinkType.RAW), ""),
        (CaptureOptions(link=LinkType.NULL), "02000000"),
    ],
)
def test_link_headers(options: CaptureOptions, header: str) -> None:
    assert link_header(options, ETHERTYPE_IPV4, A[0], B[0], (4, 3)) == bytes.fromhex(header)


def test_link_headers_of_other_protocols() -> None:
    assert link_header(CaptureOptions(link=LinkType.NULL), 0x86DD, A6[0], B6[0], (4, 3)) == bytes.fromhex("1e000000")
    arp = link_header(CaptureOptions(), ETHERTYPE_ARP, A[0], "255.255.255.255", (1, 2))
    assert arp == bytes.fromhex("ffffffffffff 0242 0a00000a 0806")


class _Machine:
    """Stands for everything that scapy might ask the machine."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"the machine was asked for {name}")


@pytest.mark.parametrize("options", [CaptureOptions(host=B[0], noise=2.0), CaptureOptions(Point.ANY, noise=2.0)])
def test_neither_the_machine_nor_the_clock_nor_pythons_dice_matter(
    options: CaptureOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    transits = both_families()
    usual = captured(transits, options)
    with monkeypatch.context() as patched:
        for name in ("route", "route6", "ifaces", "netcache"):
            patched.setattr(conf, name, _Machine())
        patched.setattr(time, "time", lambda: 0.0)
        for name in ("random", "randint", "choice", "getrandbits"):
            patched.setattr(random, name, lambda *_: 0)
        elsewhere = captured(transits, options)
    assert elsewhere.frames == usual.frames


@pytest.mark.parametrize(
    ("one", "mtu", "sentence"),
    [
        (make(0, A, B6, b""), 1500, "one is IPv4, the other IPv6"),
        (make(0, (A[0], 65_536), B, b""), 1500, "a UDP port is 0 to 65535, not 65536"),
        (make(0, A, (B[0], -1), b""), 1500, "a UDP port is 0 to 65535, not -1"),
        (make(0, A, B, bytes(65_508)), 1500, "at most 65507 bytes, not 65508"),
        (make(0, A6, B6, bytes(2000)), 1279, "IPv6 needs an mtu of 1280 or more, not 1279"),
        (make(0, A, B, b"x", "morse"), 1500, "'morse' is to be sent, but that dialect was not given"),
        (make(0, ("nowhere", 1), B, b""), 1500, "'nowhere' is not an IP address"),
        (make(0, ("fe80::1%eth0", 1), B6, b""), 1500, "'fe80::1%eth0' is not an IP address"),
    ],
)
def test_what_cannot_be_sent(one: Transit, mtu: int, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        PacketMaker(COLON, mtu).packet(one, 1)

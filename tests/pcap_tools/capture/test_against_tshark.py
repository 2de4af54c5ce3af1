"""The same frames, times, addresses, ports and payloads as tshark, on every format and link layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pcap_tools.capture import read_datagrams, read_frames
from tests.pcap_tools.capture import packets as p
from tests.pcap_tools.capture.tshark import needs_tshark, seen, tshark_datagrams, tshark_fields

pytestmark = [needs_tshark, pytest.mark.tshark]

Wrap = Callable[[bytes], bytes]

V4, V6 = p.ipv4(p.udp(b"four")), p.ipv6(p.udp(b"six"))
LONG = p.udp(bytes(range(256)) * 12)
PACKETS = [
    V4,
    V6,
    *p.ipv4_fragments(LONG, 1480, ident=9),
    *p.ipv6_fragments(LONG, 1232),
    p.ipv4(p.udp(b""), ident=2),
    p.ipv4(b"\x03\x03\0\0\0\0\0\0" + V4, protocol=1),
]

LINKS: dict[str, tuple[int, Wrap]] = {
    "ethernet": (1, p.ethernet),
    "vlan": (1, lambda packet: p.ethernet(packet, tags=(0x8100,))),
    "qinq": (1, lambda packet: p.ethernet(packet, tags=(0x88A8, 0x8100))),
    "old qinq": (1, lambda packet: p.ethernet(packet, tags=(0x9100, 0x8100, 0x8100))),
    "cooked": (113, p.cooked1),
    "cooked 2": (276, p.cooked2),
    "raw": (101, bytes),
    "raw 12": (12, bytes),
    "raw 14": (14, bytes),
    "raw IPv4": (228, bytes),
    "raw IPv6": (229, bytes),
    "null little": (0, p.null),
    "null big": (0, lambda packet: p.null(packet, order=">")),
    "null FreeBSD": (0, lambda packet: p.null(packet, 28 if packet[0] >> 4 == 6 else 2)),
    "null NetBSD": (0, lambda packet: p.null(packet, 24 if packet[0] >> 4 == 6 else 2)),
    "loop": (108, lambda packet: p.null(packet, order=">")),
}


def _matrix() -> Iterator[tuple[str, bytes]]:
    """Every link layer in every kind of pcap; for pcapng all link layers are interfaces of one file."""
    kinds = {"us": p.MICRO, "ns": p.NANO, "modified": p.MODIFIED}
    for link_type in sorted({number for number, _ in LINKS.values()}):
        wraps = [wrap for number, wrap in LINKS.values() if number == link_type]
        frames = [wrap(packet) for wrap in wraps for packet in PACKETS]
        for kind, magic in kinds.items():
            for order in "<>":
                yield f"pcap {kind} {order} {link_type}", p.pcap(frames, link_type, magic, order)
    for order in "<>":
        for resolution, divisor in ((None, 1000), (6, 1000), (9, 1)):
            blocks = [p.section(order)]
            blocks += [p.interface(link_type, order, tsresol=resolution) for link_type, _ in LINKS.values()]
            for ident, (_, wrap) in enumerate(LINKS.values()):
                time = p.T0 + ident * 1_000_000_007
                blocks += [
                    p.enhanced(wrap(packet), (time + n * 1_000_001) // divisor, order, interface_id=ident)
                    for n, packet in enumerate(PACKETS)
                ]
            yield f"pcapng {resolution} {order}", b"".join(blocks)


@pytest.mark.slow
def test_every_link_layer_in_every_format(tmp_path: Path) -> None:
    files = {}
    for number, (name, content) in enumerate(_matrix()):
        files[name] = tmp_path / f"{number}.cap"
        files[name].write_bytes(content)
    with ThreadPoolExecutor(4) as pool:
        expected = dict(zip(files, pool.map(tshark_datagrams, files.values()), strict=True))
    ours = {name: seen(list(read_datagrams(path))) for name, path in files.items()}
    assert {name for name in files if ours[name] != expected[name]} == set()
    # Guard against both being empty: of each link layer all but the ICMP error; trains of fragments are one.
    assert len(ours["pcap ns > 113"]) == 5
    assert len(ours["pcapng 9 >"]) == 5 * (len(LINKS) - 1) + 2


def _lengths() -> list[bytes]:
    """Lengths that contradict each other, each in a frame with trailer bytes of the link layer behind."""
    text = b"ABCDEFGHIJ"
    v4 = [p.ipv4(p.udp(text, length=length)) for length in (0, 7, 8, 12, 18, 30, 300, 65535)]
    v4 += [p.ipv4(p.udp(text), total=total) for total in (0, 19, 20, 25, 28, 30, 1000, 65535)]
    v6 = [p.ipv6(p.udp(text, length=length)) for length in (0, 7, 8, 12, 30)]
    v6 += [p.ipv6(p.udp(text), length=length) for length in (0, 5, 8, 12, 1000)]
    chain = p.options_header(43) + p.routing_header(51)
    chain += p.authentication_header(60) + p.options_header(17, 2)
    others = [
        p.ipv4(p.udp(text), options=bytes(8)),
        p.ipv4(p.udp(text), options=b"\x01" * 40),
        p.ipv4(p.authentication_header(17) + p.udp(text), protocol=51),
        p.ipv6(chain + p.udp(text), next_header=0),
        p.ipv6(b"".join([p.options_header(60)] * 20) + p.options_header(17) + p.udp(text), next_header=60),
        p.ipv6(p.fragment_header(17, 0, False, 9) + p.udp(text), next_header=44),
        p.ipv6(p.options_header(17, 30) + p.udp(text), next_header=60),
    ]
    return [p.ethernet(packet, pad=False) + b"\xee" * 12 for packet in v4 + v6 + others]


def test_lengths_that_lie(tmp_path: Path) -> None:
    path = tmp_path / "lengths.pcap"
    path.write_bytes(p.pcap(_lengths()))
    ours = seen(list(read_datagrams(path)))
    assert ours == tshark_datagrams(path)
    assert len(ours) > 20


def test_the_version_decides_and_not_the_ethertype(tmp_path: Path) -> None:
    path = tmp_path / "versions.pcap"
    path.write_bytes(p.pcap([p.ethernet(V6, ethertype=0x0800), p.ethernet(V4, ethertype=0x86DD)]))
    ours = seen(list(read_datagrams(path)))
    assert [row.frame for row in ours] == [1]
    assert ours == tshark_datagrams(path)


def test_frames_cut_by_the_snaplen(tmp_path: Path) -> None:
    whole = p.ethernet(p.ipv4(p.udp(b"ABCDEFGHIJ" * 10)), pad=False)
    records = [p.pcap_record(whole[:size], original=len(whole)) for size in range(len(whole) + 1)]
    # A first fragment of IPv4 that is cut shows its part; the rest cannot be put together.
    for fragments in (p.ipv4_fragments(p.udp(bytes(200)), 48), p.ipv6_fragments(p.udp(bytes(200)), 48)):
        first, *rest = [p.ethernet(one, pad=False) for one in fragments]
        records += [p.pcap_record(first[:-5], original=len(first)), *map(p.pcap_record, rest)]
    records += [p.pcap_record(whole, original=original) for original in (0, 30, 60)]
    path = tmp_path / "cut.pcap"
    path.write_bytes(p.pcap_header() + b"".join(records))
    ours = seen(list(read_datagrams(path)))
    # tshark shows the UDP length as soon as it is there (40 bytes); we want the whole header (42).
    assert ours == [row for row in tshark_datagrams(path) if row.frame not in (40 + 1, 41 + 1)]
    assert any(row.length > len(row.payload) for row in ours)


def test_pcapng_oddities(tmp_path: Path) -> None:
    """Sections, clocks, packet kinds, comments and blocks that are numbered but are no packets."""
    frame = p.ethernet(V4)
    blocks = [
        p.section("<"),
        p.interface(tsresol=9),
        p.interface(tsresol=0x80 | 20),
        p.interface(tsresol=9, tsoffset=1000),
        p.interface(tsresol=3, tsoffset=-3),
        p.enhanced(frame, p.T0, comments=("one", "two \u00e9")),
        p.enhanced(frame, (5 << 20) + 1, interface_id=1),
        p.enhanced(frame, p.T0, interface_id=2),
        p.enhanced(frame, 5123, interface_id=3),
        p.simple(frame),
        p.obsolete(frame, p.T0),
        p.block(4, bytes(4)),
        p.block(5, bytes(12)),
        p.block(0x12345, b"unknown!"),
        p.block(0x203, b"unknown!"),
        p.block(0x0BAD, b"\x39\x30\0\0abcd"),
        p.enhanced(frame, p.T0),
        p.block(0x40000BAD, b"\x39\x30\0\0abcd"),
        p.block(9, b"MESSAGE=x\n__REALTIME_TIMESTAMP=1\n"),
        p.section(">"),
        p.interface(113, ">"),
        p.enhanced(p.cooked1(V6), p.T0 // 1000, ">", comments=("three",)),
    ]
    path = tmp_path / "odd.pcapng"
    path.write_bytes(b"".join(blocks))
    assert seen(list(read_datagrams(path))) == tshark_datagrams(path)
    rows = tshark_fields(path, "frame.number", "frame.comment", only="udp")
    frames = list(read_frames(path))
    assert [[str(f.number), ",".join(f.comments)] for f in frames] == rows
    assert [f.interface for f in frames] == [0, 1, 2, 3, 0, 0, 0, 4]
    assert [f.number for f in frames] == [1, 2, 3, 4, 5, 6, 8, 11]


@pytest.mark.parametrize("name", ["colon-clean.pcap", "topicbyte.pcap", "portdigits.pcap"])
def test_real_captures(shared_captures: Path, name: str) -> None:
    path = shared_captures / name
    if not path.exists():
        pytest.skip(f"no {name} among the real captures")
    ours = list(read_datagrams(path))
    assert ours
    assert seen(ours) == tshark_datagrams(path)

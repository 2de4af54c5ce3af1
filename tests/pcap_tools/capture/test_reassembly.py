"""Fragments: Wireshark's result on every overlap, and bounds that Wireshark does not have."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from pcap_tools.capture import Datagram, Reassembler, read_datagrams
from pcap_tools.capture.ip import Fragment
from tests.pcap_tools.capture import packets as p
from tests.pcap_tools.capture.tshark import needs_tshark, seen, tshark_datagrams

SECOND = 10**9
TEXT = b"".join(bytes([letter]) * 8 for letter in b"ABCDEF")
BODY = p.udp(TEXT)


def piece(start: int, stop: int, fill: str = "") -> bytes:
    """BODY[start:stop] as a fragment; the one that reaches the end says that it is the last."""
    body = fill.encode() * (stop - start) if fill else BODY[start:stop]
    return p.ipv4(body, offset=start, more=stop < len(BODY))


def datagrams(packets: list[bytes], step: int = 1000) -> list[Datagram]:
    frames = [p.ethernet(packet) for packet in packets]
    return list(read_datagrams(io.BytesIO(p.pcap(frames, magic=p.NANO, step=step))))


def summary(packets: list[bytes], step: int = 1000) -> list[tuple[tuple[int, ...], bytes]]:
    return [(found.frames, found.payload) for found in datagrams(packets, step)]


def test_in_order() -> None:
    (found,) = datagrams([piece(0, 24), piece(24, 48), piece(48, 56)])
    assert (found.frame, found.frames, found.payload) == (3, (1, 2, 3), TEXT)
    assert found.time_ns == p.T0 + 2000
    assert found.ip_id == 1


def test_backwards() -> None:
    assert summary([piece(48, 56), piece(24, 48), piece(0, 24)]) == [((1, 2, 3), TEXT)]


def test_copies_interleaved() -> None:
    """f1 f1' f2 f2': the copy of the first is a duplicate, that of the last begins a group in vain."""
    assert summary([piece(0, 24)] * 2 + [piece(24, 56)] * 2) == [((1, 2, 3), TEXT)]


def test_copies_one_after_the_other() -> None:
    """f1 f2 f1' f2': a complete group is forgotten, so the copy is put together too."""
    assert summary([piece(0, 24), piece(24, 56)] * 2) == [((1, 2), TEXT), ((3, 4), TEXT)]


def test_copies_of_fragments_are_copies() -> None:
    records = p.pcap_header(113)
    for n, (packet, kind) in enumerate([(0, 4), (1, 4), (0, 0), (1, 0)]):
        fragment = (piece(0, 24), piece(24, 56))[packet]
        records += p.pcap_record(p.cooked1(fragment, packet_type=kind), p.T0 + n * 10_000)
    found = list(read_datagrams(io.BytesIO(records)))
    assert [(d.frame, d.packet_type, d.copy_of) for d in found] == [(2, 4, None), (4, 0, 2)]


def test_keys_differ() -> None:
    """Another id, protocol or address is another group."""
    last = BODY[24:]
    others = [
        p.ipv4(last, offset=24, ident=2),
        p.ipv4(last, offset=24, protocol=6),
        p.ipv4(last, offset=24, src="10.9.9.9"),
        p.ipv4(last, offset=24, dst="10.9.9.9"),
    ]
    assert summary([piece(0, 24), *others]) == []
    assert summary([piece(0, 24), *others, piece(24, 56)]) == [((1, 6), TEXT)]


@pytest.mark.parametrize("size", [65_000, 65_507])
def test_large_datagrams(size: int) -> None:
    payload = bytes(n * n % 251 for n in range(size))
    found = datagrams([*p.ipv4_fragments(p.udp(payload), 1480), *p.ipv6_fragments(p.udp(payload), 1232)])
    assert [(d.payload, d.length) for d in found] == [(payload, size)] * 2


def test_ipv6_with_headers_on_both_sides() -> None:
    inner = p.options_header(17) + BODY
    packets = [
        p.ipv6(p.options_header(44) + p.fragment_header(60, at, at == 0, 7) + inner[at:stop], next_header=0)
        for at, stop in ((0, 24), (24, 64))
    ]
    (found,) = datagrams(packets)
    assert (found.payload, found.ip_id, found.frames) == (TEXT, 7, (1, 2))


def test_time_out() -> None:
    pair = [piece(0, 24), piece(24, 56)]
    assert summary(pair, step=30 * SECOND) == [((1, 2), TEXT)]
    assert summary(pair, step=30 * SECOND + 1) == []


# --- Overlaps: hand-made cases, each judged by tshark -------------------------------------------------------

OVERLAPS = {
    "conflict": [piece(0, 24), piece(16, 32, "x"), piece(32, 56)],
    "lower offset arrives later": [piece(16, 32, "x"), piece(0, 24), piece(32, 56)],
    "same offset, short first": [piece(0, 24), piece(24, 32, "x"), piece(24, 40), piece(40, 56)],
    "same offset, long first": [piece(0, 24), piece(24, 40), piece(24, 32, "x"), piece(40, 56)],
    "contained": [piece(0, 40), piece(16, 24, "x"), piece(40, 56)],
    "containing": [piece(16, 24, "x"), piece(0, 40), piece(40, 56)],
    "past the end": [piece(0, 24), p.ipv4(b"x" * 24, offset=48, more=True), piece(48, 56), piece(24, 48)],
    "behind the end": [piece(0, 24), p.ipv4(b"x" * 24, offset=56, more=True), piece(48, 56), piece(24, 48)],
    "two ends, short first": [piece(0, 24), p.ipv4(BODY[40:48], offset=40), piece(48, 56), piece(24, 48)],
    "two ends, long first": [piece(0, 24), piece(48, 56), p.ipv4(BODY[40:48], offset=40), piece(24, 48)],
    "end inside what is there": [piece(0, 40), p.ipv4(b"x" * 8, offset=16)],
    "odd length": [piece(0, 24), p.ipv4(BODY[24:37], offset=24, more=True), piece(32, 56)],
    "empty fragment": [piece(0, 24), p.ipv4(b"", offset=24, more=True), piece(24, 56)],
    "empty end": [piece(0, 24), p.ipv4(BODY[24:], offset=24, more=True), p.ipv4(b"", offset=56)],
    "duplicates": [piece(0, 24)] * 3 + [piece(24, 48)] * 2 + [piece(48, 56)] * 2,
    "far away": [piece(0, 24), p.ipv4(b"x" * 100, offset=65528), piece(24, 56)],
    "key used again": [piece(0, 24), piece(24, 56), piece(24, 56), piece(0, 24), piece(0, 24)],
    "too short for UDP": [p.ipv4(b"abcd", more=True), p.ipv4(b"ab", offset=0)],
    "UDP length too small": [p.ipv4(p.udp(TEXT, length=40)[:24], more=True), piece(24, 56)],
    "UDP length too large": [p.ipv4(p.udp(TEXT, length=400)[:24], more=True), piece(24, 56)],
    "total length lies": [piece(0, 24), p.ipv4(BODY[24:], offset=24, total=999), piece(24, 56)],
    "ICMP in fragments": [
        p.ipv4(b"\x03\x03\0\0\0\0\0\0" + p.ipv4(BODY)[:32], protocol=1, more=True),
        p.ipv4(p.ipv4(BODY)[32:], protocol=1, offset=40),
    ],
    "IPv6 conflict": [
        p.ipv6(p.fragment_header(17, at, more, 7) + body, next_header=44)
        for at, more, body in ((0, True, BODY[:24]), (16, True, b"x" * 16), (32, False, BODY[32:]))
    ],
    "IPv6 next header of the completing one": [
        p.ipv6(p.fragment_header(header, at, at == 0, 7) + BODY[at:stop], next_header=44)
        for header, at, stop in ((17, 0, 24), (59, 24, 56))
    ],
    "IPv6 fragment in a fragment": p.ipv6_fragments(p.fragment_header(17, 0, False, 3) + BODY, 24, 8, 44),
}


@needs_tshark
@pytest.mark.tshark
def test_overlaps_as_tshark(tmp_path: Path) -> None:
    """One file for all cases, told apart by their addresses, since tshark starts slowly."""
    frames, owner = [], []
    for n, (name, packets) in enumerate(OVERLAPS.items(), 1):
        for packet in packets:
            at = 14 + (8 if packet[0] >> 4 == 6 else 12)
            frame = bytearray(p.ethernet(packet))
            frame[at + 2] = n
            frames.append(bytes(frame))
            owner.append(name)
    path = tmp_path / "overlaps.pcap"
    path.write_bytes(p.pcap(frames, step=1000))
    ours, theirs = seen(list(read_datagrams(path))), tshark_datagrams(path)
    wrong = {owner[row.frame - 1] for row in set(ours) ^ set(theirs)}
    assert wrong == set()
    assert ours == theirs
    silent = set(OVERLAPS) - {owner[row.frame - 1] for row in ours}
    assert silent == {
        "empty end",
        "far away",
        "too short for UDP",
        "ICMP in fragments",
        "IPv6 next header of the completing one",
    }


# --- Bounds -------------------------------------------------------------------------------------------------


def first_fragment(n: int) -> Fragment:
    return Fragment((n,), 0, True)


def test_the_oldest_train_goes_when_there_are_too_many() -> None:
    groups = Reassembler(max_groups=3)
    for n in range(5):
        assert groups.add(first_fragment(n), b"12345678", n, 0) is None
    assert (len(groups), groups.dropped) == (3, 2)
    assert groups.add(Fragment((4,), 8, False), b"end", 5, 0) == (b"12345678end", (4, 5))
    assert groups.add(Fragment((0,), 8, False), b"end", 6, 0) is None


def test_the_oldest_train_goes_when_there_are_too_many_bytes() -> None:
    groups = Reassembler(max_bytes=10_000)
    for n in range(100):
        groups.add(first_fragment(n), bytes(1480), n, 0)
    assert len(groups) <= 6
    assert groups.dropped == 100 - len(groups)


def test_one_train_cannot_take_all_memory() -> None:
    groups = Reassembler(max_bytes=100_000)
    for n in range(10_000):
        groups.add(Fragment((1,), 8, True), b"x", n, 0)
    assert groups.dropped > 0


def test_trains_that_time_out_are_counted() -> None:
    groups = Reassembler(timeout_ns=10)
    groups.add(first_fragment(1), b"12345678", 1, 0)
    groups.add(first_fragment(2), b"12345678", 2, 11)
    assert (len(groups), groups.timed_out, groups.dropped) == (1, 1, 0)


def test_given_up_trains_are_warned_of() -> None:
    frames = [p.ethernet(p.ipv4(bytes(8), more=True, ident=n)) for n in range(5000)]
    warnings: list[str] = []
    assert list(read_datagrams(io.BytesIO(p.pcap(frames, step=10)), on_warning=warnings.append)) == []
    assert warnings == ["904 incomplete fragmented datagrams were given up to save memory"]

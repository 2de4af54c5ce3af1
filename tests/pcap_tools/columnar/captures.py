"""Captures to read in two ways, and the rows of either way in one shape."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Callable, Iterable
from typing import NamedTuple

from pcap_tools.capture import CaptureError, Damage, read_datagrams
from pcap_tools.capture.streams import Source
from pcap_tools.columnar.read.datagrams import NO_IDENT, DatagramBatch
from pcap_tools.columnar.read.reading import read_file
from tests.pcap_tools.capture import packets as p
from tests.pcap_tools.capture.test_reassembly import OVERLAPS


class Row(NamedTuple):
    """A datagram, however it was read."""

    frame: int
    time_ns: int
    src: str
    sport: int
    dst: str
    dport: int
    payload: bytes
    length: int
    copy_of: int | None
    ip_id: int | None


class Result(NamedTuple):
    """All that a reading says."""

    rows: list[Row]
    damage: list[Damage]
    warnings: list[str]
    error: str


def rows_of(batches: Iterable[DatagramBatch]) -> list[Row]:
    """Batch by batch, since arrays are used again."""
    rows = []
    for batch in batches:
        assert 0 < batch.count <= len(batch.frame)
        for n in range(batch.count):
            start, size = int(batch.start[n]), int(batch.size[n])
            assert start + size + 64 <= len(batch.buffer)
            rows.append(
                Row(
                    int(batch.frame[n]),
                    int(batch.time_ns[n]),
                    batch.addresses[batch.src[n]],
                    int(batch.sport[n]),
                    batch.addresses[batch.dst[n]],
                    int(batch.dport[n]),
                    batch.buffer[start : start + size].tobytes(),
                    int(batch.length[n]),
                    int(batch.copy_of[n]) or None,
                    None if batch.ip_id[n] == NO_IDENT else int(batch.ip_id[n]),
                )
            )
    return rows


def by_python(source: Source | bytes) -> Result:
    """The truth."""
    damage: list[Damage] = []
    warnings: list[str] = []
    rows: list[Row] = []
    try:
        for d in read_datagrams(_open(source), damage.append, warnings.append):
            ip_id = None if ":" in d.src else d.ip_id
            rows.append(Row(d.frame, d.time_ns, d.src, d.sport, d.dst, d.dport, d.payload, d.length, d.copy_of, ip_id))
    except CaptureError as error:
        return Result(rows, damage, warnings, str(error))
    return Result(rows, damage, warnings, "")


def by_kernels(source: Source | bytes, rows: int = 65536) -> Result:
    """The judged."""
    damage: list[Damage] = []
    warnings: list[str] = []
    found: list[Row] = []
    try:
        found.extend(rows_of(read_file(_open(source), damage.append, warnings.append, rows)))
    except CaptureError as error:
        return Result(found, damage, warnings, str(error))
    return Result(found, damage, warnings, "")


def _open(source: Source | bytes) -> Source:
    return io.BytesIO(source) if isinstance(source, bytes) else source


# --- Files by name --------------------------------------------------------------------------------------------------

WRAPS: dict[int, Callable[[bytes], bytes]] = {
    0: p.null,
    1: p.ethernet,
    12: bytes,
    14: bytes,
    101: bytes,
    108: lambda packet: p.null(packet, order=">"),
    113: p.cooked1,
    147: bytes,
    228: bytes,
    229: bytes,
    276: p.cooked2,
}


def odd_packets() -> list[bytes]:
    """What is allowed but rare, and what is not allowed."""
    udp = p.udp(b"payload")
    v6 = [
        p.ipv6(udp),
        p.ipv6(p.options_header(17) + udp, next_header=0),
        p.ipv6(p.options_header(43) + p.routing_header(60) + p.options_header(17, 2) + udp, next_header=0),
        p.ipv6(p.authentication_header(17) + udp, next_header=51),
        p.ipv6(p.fragment_header(17, 0, False, 5) + udp, next_header=44),
        p.ipv6(p.options_header(17)[:4], next_header=0),
        p.ipv6(p.udp(b"jumbo", length=0)),
        p.ipv6(udp, length=0),
        p.ipv6(udp, length=9999),
        p.ipv6(udp, next_header=6),
        p.ipv6(udp)[:39],
    ]
    v4 = [
        p.ipv4(udp),
        p.ipv4(b""),
        p.ipv4(udp, options=bytes(8)),
        p.ipv4(udp, total=0),
        p.ipv4(udp, total=12),
        p.ipv4(udp, total=25),
        p.ipv4(udp, total=9999),
        p.ipv4(udp, protocol=6),
        p.ipv4(p.options_header(17) + udp, protocol=60),
        p.ipv4(p.fragment_header(17, 0, True, 9) + udp, protocol=44),
        p.ipv4(p.udp(b"")),
        p.ipv4(p.udp(b"abc", length=7)),
        p.ipv4(p.udp(b"abc", length=0)),
        p.ipv4(p.udp(b"abc", length=9)),
        p.ipv4(p.udp(b"abc", length=60000)),
        p.ipv4(udp)[:19],
        p.ipv4(udp)[:27],
        p.ipv4(udp)[:30],
        b"\x41" + p.ipv4(udp)[1:],
        b"\x55" + p.ipv4(udp)[1:],
        b"",
    ]
    return v4 + v6


def fragment_soup(seed: int, count: int = 400) -> list[bytes]:
    """Trains of all lengths, mixed, some fragments lost, twice or out of order; and plain packets between."""
    chance = random.Random(seed)
    waiting: list[list[bytes]] = []
    out: list[bytes] = []
    for n in range(count):
        body = p.udp(bytes(chance.randrange(256) for _ in range(chance.choice((0, 9, 40, 300)))))
        if chance.random() < 0.3:
            out.append(p.ipv4(body, ident=n))
            continue
        ident, size = chance.randrange(20), chance.choice((8, 16, 64, 296))
        if chance.random() < 0.8:
            train = p.ipv4_fragments(body, size, ident=ident, protocol=chance.choice((17, 17, 17, 6)))
        else:
            train = p.ipv6_fragments(body, size, ident)
        if chance.random() < 0.2:
            chance.shuffle(train)
        if chance.random() < 0.2:
            train.pop(chance.randrange(len(train)))
        if train and chance.random() < 0.2:
            train.insert(chance.randrange(len(train)), chance.choice(train))
        waiting.append(train)
        while waiting and (len(waiting) > 2 or chance.random() < 0.6):
            one = chance.choice(waiting)
            for _ in range(chance.choice((1, 2, 100))):
                if one:
                    out.append(one.pop(0))
            waiting = [other for other in waiting if other]
    return out


def copies(seed: int, link_type: int, count: int = 600) -> bytes:
    """A capture of `any`: the same datagrams again at other places, soon or late, times going back now and then."""
    chance = random.Random(seed)
    now, records = p.T0, p.pcap_header(link_type, p.NANO)
    for _ in range(count):
        now += chance.choice((0, 1000, 100_000, 300_000, 2_000_000, -50_000, -1_500_000))
        payload = bytes([chance.randrange(3)]) * chance.choice((1, 3, 8, 64, 65, 200))
        packet = p.ipv4(p.udp(payload), ident=chance.randrange(3))
        if chance.random() < 0.2:
            packet = p.ipv6(p.udp(payload))
        kind = chance.choice((0, 4))
        frame = p.cooked1(packet, kind) if link_type == 113 else p.cooked2(packet, kind, chance.choice((2, 3)))
        for one in p.ipv4_fragments(p.udp(payload), 8, ident=7) if chance.random() < 0.1 else ():
            records += p.pcap_record((p.cooked1 if link_type == 113 else p.cooked2)(one, kind), now, p.NANO)
        records += p.pcap_record(frame, now, p.NANO)
    return records


def two_interfaces_later(seed: int) -> bytes:
    """A pcapng with one interface, then another one, then a section: copies only from the second one on."""
    chance = random.Random(seed)
    content, now, known = p.section() + p.interface(tsresol=9), p.T0, 1
    for n in range(900):
        now += chance.choice((0, 0, 1000, 50_000, 200_000, 1_200_000))
        packet = p.ethernet(p.ipv4(p.udp(bytes([chance.randrange(4)])), ident=chance.randrange(2)))
        content += p.enhanced(packet, now, interface_id=chance.randrange(known))
        if n == 500:
            content += p.interface(tsresol=9)
            known = 2
        if n == 700:
            content += p.section() + p.interface(tsresol=9)
            known = 1
        if n % 50 == 0:
            content += p.block(0xBAD, bytes(8)) + p.block(5, bytes(8))
    return content


def periodic() -> bytes:
    """The same datagram every 0.6 ms at alternating places: whether one is a copy depends on all before it."""
    frames = [p.cooked1(p.ipv4(p.udp(b"again"), ident=1), n % 2 * 4) for n in range(501)]
    return p.pcap(frames, 113, p.NANO, step=600_000)


def files() -> dict[str, bytes]:
    """Every kind of file that is made here."""
    packets = odd_packets() + [packet for case in OVERLAPS.values() for packet in case] + fragment_soup(1, 60)
    found: dict[str, bytes] = {}
    for link_type, wrap in WRAPS.items():
        for order in "<>":
            frames = [wrap(packet) for packet in packets]
            for magic in (p.MICRO, p.NANO, p.MODIFIED):
                found[f"pcap {link_type} {order} {magic:x}"] = p.pcap(frames, link_type, magic, order, step=1001)
            found[f"pcapng {link_type} {order}"] = p.pcapng(frames, link_type, order, step=1001)
    for tags in ((0x8100,), (0x88A8, 0x8100), (0x9100,) * 3, (0x8100,) * 40):
        found[f"tags {tags}"] = p.pcap([p.ethernet(packet, tags) for packet in packets])
    found["wrong ethertype"] = p.pcap([p.ethernet(packet, ethertype=0x0800) for packet in packets])
    found["short frames"] = p.pcap([p.ethernet(packets[0])[:size] for size in range(60)])
    for snaplen in (20, 34, 42, 60, 100):
        records = [p.pcap_record(p.ethernet(one)[:snaplen], p.T0, original=len(one) + 14) for one in packets]
        found[f"snaplen {snaplen}"] = p.pcap_header() + b"".join(records)
    for seed in range(3):
        soup = [p.ethernet(packet) for packet in fragment_soup(seed, 600)]
        found[f"soup {seed}"] = p.pcap(soup, magic=p.NANO, step=1000)
        found[f"slow soup {seed}"] = p.pcap(soup, magic=p.NANO, step=3_000_000_000)
        found[f"copies 113 {seed}"] = copies(seed, 113)
        found[f"copies 276 {seed}"] = copies(seed, 276)
        found[f"later {seed}"] = two_interfaces_later(seed)
    found["periodic"] = periodic()
    found["clocks"] = clocks()
    found["many trains"] = p.pcap(many_trains(), step=10)
    return found


def clocks() -> bytes:
    """Resolutions of all kinds, with times up to the edge of 64 bits and beyond."""
    content = p.section()
    resolutions = [None, 0, 3, 6, 9, 10, 12, 19, 127, 0x80, 0x80 | 10, 0x80 | 32, 0x80 | 50, 0x80 | 63, 0xFF]
    for tsresol in resolutions:
        for tsoffset in (None, 1000, -3, 1 << 40):
            content += p.interface(tsresol=tsresol, tsoffset=tsoffset)
    for n in range(4 * len(resolutions)):
        # No two alike: times at the edge are all one, and must not make copies of each other.
        frame = p.ethernet(p.ipv4(p.udp(b"tick"), ident=n))
        for ticks in (0, 1, 1_500_001, p.T0, 1 << 62, (1 << 63) + 12345, (1 << 64) - 1):
            content += p.enhanced(frame, ticks, interface_id=n)
    return content


def many_trains() -> list[bytes]:
    """More open trains than there is room for, and then their ends."""
    ends = [p.ipv4(b"end", offset=8, ident=n) for n in range(5000)]
    begins = [p.ipv4(p.udp(b"", length=11), more=True, ident=n) for n in range(5000)]
    whole = [one for n in range(5000, 9000) for one in p.ipv4_fragments(p.udp(b"whole"), 8, ident=n)]
    return [p.ethernet(packet) for packet in begins + whole + ends]


def cut_and_corrupt(content: bytes, seed: int) -> bytes:
    """The same with a few bytes changed, added or taken away."""
    chance = random.Random(seed)
    data = bytearray(content)
    for _ in range(chance.randrange(1, 5)):
        at, size = chance.randrange(len(data)), chance.choice((0, 1, 1, 2, 4))
        data[at : at + size] = struct.pack("<I", chance.randrange(1 << 32))[: chance.choice((0, size, size, 4))]
    return bytes(data[: chance.choice((len(data), len(data), chance.randrange(len(data))))])

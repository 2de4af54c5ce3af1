"""Tiled captures: every frame is what scapy builds from the rules of tiling, and tshark finds nothing wrong."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from generators.bulk.segment import Segment, Tiling
from generators.bulk.write import write_bulk
from pcap_tools.capture import CaptureError, Frame, read_datagrams, read_frames
from pcap_tools.errors import UsageError
from tests.generators import tiled_traffic as t
from tests.pcap_tools.capture.tshark import needs_tshark, run_tshark

FORMATS = list(product(["pcap", "pcapng"], ["us", "ns"]))
CHECKED = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-d", "udp.port==0-65535,data"]
BAD = "ip.checksum.status == 0 || udp.checksum.status == 0 || _ws.malformed"


def tiled(segment: Segment, packets: int, **options: Any) -> tuple[list[Frame], Tiling]:
    stream = io.BytesIO()
    tiling = write_bulk(segment, packets, stream, **options)
    assert tiling.size == len(stream.getvalue())
    stream.seek(0)
    return list(read_frames(stream, lambda damage: pytest.fail(str(damage)))), tiling


def payloads(frames: list[Frame]) -> list[bytes]:
    return [frame.data for frame in frames]


# --- Every byte ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("link", "version"), list(product(t.LINKS, [4, 6])))
def test_each_tile_is_what_scapy_builds_for_it(link: str, version: int) -> None:
    traffic = t.conversation(version, link)
    segment = t.segment_of(traffic)
    tiles = 6
    frames, tiling = tiled(segment, len(segment.prologue) + tiles * len(segment.body))
    assert payloads(frames)[: len(segment.prologue)] == [frame for _, frame in segment.prologue]
    for tile in range(tiles):
        first = tiling.number(0, tile) - 1
        assert payloads(frames)[first : first + tiling.body] == t.frames_in_tile(traffic, tile), f"tile {tile}"
    assert {(frame.link_type, frame.original_length - len(frame.data)) for frame in frames} == {(t.LINKS[link], 0)}


def test_a_counter_is_cut_by_a_fragment_in_this_traffic() -> None:
    """Else the test above would not show what it should."""
    for version in (4, 6):
        segment = t.segment_of(t.conversation(version, "raw"))
        assert any(b"#00" in frame[-6:] for _, frame in segment.body)


@pytest.mark.parametrize(("format", "resolution"), FORMATS)
@pytest.mark.parametrize("packets", [2, 3, 50, 1234])
def test_times_and_numbers(format: str, resolution: str, packets: int) -> None:
    traffic = t.conversation(4)
    frames, tiling = tiled(t.segment_of(traffic), packets, format=format, resolution=resolution)
    tick = 1000 if resolution == "us" else 1
    expected = t.times(traffic, packets)
    assert [frame.time_ns for frame in frames] == [time_ns // tick * tick for time_ns in expected]
    assert (tiling.first_ns, tiling.last_ns) == (expected[0], expected[-1])
    assert (tiling.packets, len(frames)) == (packets, packets)
    assert tiling.tiles == (packets - 2 + tiling.body - 1) // tiling.body


@pytest.mark.parametrize("version", [4, 6])
def test_datagrams_of_a_long_capture(version: int, tmp_path: Path) -> None:
    traffic = t.conversation(version, "cooked1")
    segment = t.segment_of(traffic)
    tiles = 100
    path = tmp_path / "long.pcapng"
    tiling = write_bulk(segment, 2 + tiles * len(segment.body), path, format="pcapng")
    found = [(d.src, d.dst, d.payload, d.ip_id, d.frames[0]) for d in read_datagrams(path)][2:]
    expected = []
    for tile in range(tiles):
        number = tiling.number(0, tile)
        for sent in traffic.body:
            in_tile = t.sent_in_tile(traffic, sent, tile)
            ident = in_tile.ident if version == 4 or sent.fragmented else None
            expected.append((in_tile.src, in_tile.dst, in_tile.payload, ident, number))
            number += len(t.frames_of(sent, "raw"))
    assert found == expected
    assert tiling.addresses.of(traffic.varying[2], 77) == t.address_in_tile(traffic, traffic.varying[2], 77)
    assert tiling.addresses.of(traffic.body[0].dst, 77) == traffic.body[0].dst


@needs_tshark
@pytest.mark.tshark
@pytest.mark.parametrize(("link", "version"), list(product(t.LINKS, [4, 6])))
def test_tshark_finds_all_checksums_right(link: str, version: int, tmp_path: Path) -> None:
    traffic = t.conversation(version, link)
    segment = t.segment_of(traffic)
    tiles = 60
    path = tmp_path / "tiled"
    write_bulk(segment, 2 + tiles * len(segment.body), path, format="pcap" if version == 4 else "pcapng")
    assert run_tshark(path, *CHECKED, "-Y", BAD) == ""
    good = run_tshark(path, *CHECKED, "-Y", "udp.checksum.status == 1", "-T", "fields", "-e", "frame.number")
    assert len(good.splitlines()) == 2 + tiles * len(traffic.body)


# --- Far tiles -----------------------------------------------------------------------------------------------


def small(*, link: str = "raw", digits: int = 9, checksum: bool = True) -> t.Traffic:
    publish = t.Sent("10.0.0.5", "10.0.0.1", b"\x01\x00a:#" + b"7".zfill(digits), 9, checksum=checksum)
    forward = replace(publish, src="10.0.0.1", dst="10.0.0.2", ident=65_535)
    return t.Traffic([], [publish, forward], ["10.0.0.5"], 1, link, digits)


def rows_of(traffic: t.Traffic, tiles: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The frames of a capture of two frames of the same length a tile: tile, frame, byte."""
    stream = io.BytesIO()
    write_bulk(t.segment_of(traffic), 2 * tiles, stream)
    length = len(t.frames_in_tile(traffic, 0)[0])
    return np.frombuffer(stream.getvalue()[24:], np.uint8).reshape(tiles, 2, 16 + length)[:, :, 16:]


def test_every_tile_has_other_publishers_as_long_as_there_are_addresses() -> None:
    tiles = 70_000
    rows = rows_of(small(), tiles)
    sources = rows[:, 0, 12:16]
    assert {(int(a), int(z)) for a, z in np.unique(sources[:, [0, 3]], axis=0)} == {(10, 5)}
    middles = sources[:, 1].astype(int) * 256 + sources[:, 2]
    assert len(set(middles[:65_536].tolist())) == 65_536
    assert middles[65_536] == middles[1]
    assert (rows[:, 1, 12:20] == rows[0, 1, 12:20]).all()


@pytest.mark.parametrize("digits", [1, 2, 4, 9, 18])
@pytest.mark.parametrize("tile", [1, 9_999, 65_535, 65_536, 69_999])
def test_far_tiles_wrap_what_is_full(digits: int, tile: int) -> None:
    traffic = small(digits=digits)
    assert [frame.tobytes() for frame in rows_of(traffic, 70_000)[tile]] == t.frames_in_tile(traffic, tile)


def test_a_checksum_of_zero_is_written_as_all_ones() -> None:
    traffic = small()
    rows = rows_of(traffic, 65_536)
    checksums = rows[:, 0, 26].astype(int) * 256 + rows[:, 0, 27]
    assert 0 not in checksums
    ones = np.flatnonzero(checksums == 0xFFFF)
    assert len(ones) > 0
    for tile in ones[:3]:
        assert rows[tile, 0].tobytes() == t.frames_in_tile(traffic, int(tile))[0]


def test_no_udp_checksum_stays_none() -> None:
    rows = rows_of(small(checksum=False), 1000)
    assert not rows[:, :, 26:28].any()
    assert rows[999, 1].tobytes() == t.frames_in_tile(small(checksum=False), 999)[1]


# --- What else a capture holds ------------------------------------------------------------------------------------


def test_arp_and_icmp_keep_their_bytes() -> None:
    segment = t.segment_of(small(link="ethernet"))
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    quoted = IP(src="10.0.0.5", dst="10.0.0.1", id=9) / UDP(sport=1, dport=2) / Raw(b"#000000001")
    noise = [
        bytes(ether / ARP(hwsrc="02:00:00:00:00:01", hwdst="02:00:00:00:00:02", psrc="10.0.0.5", pdst="10.0.0.1")),
        bytes(ether / IP(src="10.0.0.1", dst="10.0.0.5", id=77) / ICMP(type=3, code=3) / quoted),
        b"\x01\x02",
    ]
    last_ns = segment.body[-1][0]
    body = [*segment.body, *((last_ns + n, frame) for n, frame in enumerate(noise))]
    frames, tiling = tiled(replace(segment, body=body), 40 * len(body))
    for tile in range(40):
        first = tiling.number(2, tile) - 1
        assert payloads(frames)[first : first + 3] == noise
    # The ICMP packet took one of the broker's identifications.
    forward = Ether(frames[tiling.number(1, 30) - 1].data)
    assert forward[IP].id == (65_535 + 30 * 2) % 65_536


def test_copies_of_fragments_are_all_changed() -> None:
    """A capture on `any` holds each fragment again, with the same identification."""
    traffic = t.conversation(4, "cooked2")
    segment = t.segment_of(traffic)
    doubled, expected, at = [], [], 0
    for sent, changed in ((s, t.sent_in_tile(traffic, s, 5)) for s in traffic.body):
        count = len(t.frames_of(sent, "raw"))
        doubled += [*segment.body[at : at + count]] * 2
        expected += t.frames_of(changed, "cooked2") * 2
        at += count
    frames, tiling = tiled(replace(segment, body=doubled), 2 + 6 * len(doubled))
    assert payloads(frames)[tiling.number(0, 5) - 1 :] == expected


@pytest.mark.parametrize("version", [4, 6])
def test_a_train_without_its_first_fragment_is_changed_as_far_as_it_is_there(version: int) -> None:
    traffic = t.conversation(version, "raw")
    segment = t.segment_of(traffic)
    first = next(n for n, sent in enumerate(traffic.body) if sent.fragmented)
    frames, tiling = tiled(replace(segment, body=[*segment.body[:first], *segment.body[first + 1 :]]), 1000)
    expected = t.frames_in_tile(traffic, 3)
    got = payloads(frames)[tiling.number(0, 3) - 1 : tiling.number(0, 4) - 1]
    # Fragment 2 ends with the marker and the first digits of a counter, and fragment 3 begins with the others.
    assert got == [*expected[:first], *expected[first + 1 :]]


def test_what_is_behind_the_udp_datagram_is_no_payload() -> None:
    """The IP packet may be longer than the datagram in it."""
    traffic = small()
    udp = UDP(sport=1, dport=2, len=8 + 10, chksum=0) / Raw(b"#000000001" + b"#000000001")
    packet = bytes(IP(src="10.0.0.1", dst="10.0.0.2", id=0) / udp)
    segment = replace(t.segment_of(traffic), body=[(0, packet)])
    frames, _ = tiled(segment, 10)
    assert [frame.data[-20:] for frame in frames] == [b"#%09d#000000001" % (1 + tile) for tile in range(10)]


@pytest.mark.parametrize("length", [14, 33, 34, 40, 42, 60])
def test_cut_frames_are_changed_as_far_as_they_are_there(length: int) -> None:
    traffic = small(link="ethernet")
    body = [replace(sent, payload=b"\x01\x00a:" + b"no counter here" * 2) for sent in traffic.body]
    traffic = replace(traffic, body=body)
    segment = t.segment_of(traffic)
    cut = replace(segment, body=[(time_ns, frame[:length]) for time_ns, frame in segment.body])
    frames, tiling = tiled(cut, 200)
    # Without an IP header nothing is known to change.
    expected = t.frames_in_tile(traffic, 99 if length >= 34 else 0)
    assert payloads(frames)[tiling.number(0, 99) - 1 :] == [frame[:length] for frame in expected]
    assert {frame.original_length for frame in frames} == {len(expected[0]) if length >= 34 else length}


# --- The file ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("format", "resolution"), FORMATS)
def test_the_same_bytes_each_time_wherever_they_go(format: Any, resolution: Any, tmp_path: Path) -> None:
    segment = t.segment_of(t.conversation(6))
    stream, told = io.BytesIO(), list[int]()
    options: dict[str, Any] = {"format": format, "resolution": resolution}
    write_bulk(segment, 100_001, stream, progress=told.append, **options)
    path = tmp_path / "again"
    write_bulk(segment, 100_001, path, **options)
    assert stream.getvalue() == path.read_bytes()
    assert told == sorted(told)
    assert len(told) > 2
    assert told[-1] == 100_001


class _Slow(io.RawIOBase):
    """Takes a part of what it is given, as a pipe may."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: Any) -> int:
        taken = bytes(data[:100_000])
        self.data += taken
        return len(taken)


def test_a_stream_that_takes_parts() -> None:
    segment, slow, whole = t.segment_of(t.conversation(4)), _Slow(), io.BytesIO()
    write_bulk(segment, 60_000, cast(io.BytesIO, slow))
    write_bulk(segment, 60_000, whole)
    assert bytes(slow.data) == whole.getvalue()


class _Full(io.RawIOBase):
    def write(self, data: object) -> int:
        raise OSError(28, "No space left on device")


def test_a_full_disk_and_a_folder_that_is_not_there(tmp_path: Path) -> None:
    segment = t.segment_of(t.conversation(4))
    with pytest.raises(CaptureError, match="No space left"):
        write_bulk(segment, 100, cast(io.BytesIO, _Full()))
    with pytest.raises(CaptureError, match="cannot be written"):
        write_bulk(segment, 100, tmp_path / "no" / "such" / "folder.pcap")


# --- What is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packets", [-1, 0, 1])
def test_less_than_the_prologue(packets: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="prologue"):
        write_bulk(t.segment_of(t.conversation(4)), packets, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_times_beyond_the_format(tmp_path: Path) -> None:
    segment = replace(t.segment_of(small()), period_ns=10**18)
    limits: list[tuple[Literal["pcap", "pcapng"], int]] = [("pcap", 3), ("pcapng", 8)]
    for format, tiles in limits:
        write_bulk(segment, 2 * tiles, tmp_path / "good", format=format)
        with pytest.raises(UsageError, match="period"):
            write_bulk(segment, 2 * tiles + 1, tmp_path / "bad", format=format)
    assert not (tmp_path / "bad").exists()


@pytest.mark.parametrize("once", [True, False])
def test_more_tiles_than_addresses(once: bool, tmp_path: Path) -> None:
    segment = replace(t.segment_of(small()), once=once)
    tiles = 65_536
    write_bulk(segment, 2 * tiles, tmp_path / "good")
    if once:
        with pytest.raises(UsageError, match=f"there are addresses for {tiles}"):
            write_bulk(segment, 2 * tiles + 1, tmp_path / "bad")
        assert not (tmp_path / "bad").exists()
    else:
        write_bulk(segment, 2 * tiles + 1, tmp_path / "more")


@pytest.mark.parametrize("options", [{"format": "erf"}, {"resolution": "ms"}])
def test_formats_that_are_not_there(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        write_bulk(t.segment_of(small()), 10, io.BytesIO(), **options)


@pytest.mark.parametrize(
    "wrong",
    [
        {"link_type": 4711},
        {"body": []},
        {"body": [(0, bytes(262_145))]},
        {"period_ns": t.GAP - 1},
        {"period_ns": -1},
        {"varying": frozenset({"nobody"})},
        {"varying": frozenset({"192.168.0.1"})},
        {"marker": b""},
        {"digits": 0},
        {"digits": 19},
        {"step": -1},
    ],
)
def test_segments_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        replace(t.segment_of(small()), **wrong)

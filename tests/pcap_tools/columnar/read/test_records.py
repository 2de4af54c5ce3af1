"""Frames by their numbers and times, through the index: those that `read_frames` gives, from wherever it begins."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pcap_tools.capture import Frame, read_datagrams, read_frames
from pcap_tools.columnar.read.frame_ranges import FrameRanges
from pcap_tools.columnar.read.records import open_records
from tests.pcap_tools.capture import packets as p
from tests.pcap_tools.columnar.captures import files

FILES = files()
NAMES = [name for name in FILES if name.split()[0] in ("soup", "copies", "later", "clocks", "pcapng", "tags")]
SECOND = 1_000_000_000


def by_reading(path: Path) -> list[Frame]:
    """Without what only the pure-Python reader has."""
    return [frame._replace(comments=(), packet_type=None) for frame in read_frames(path, lambda damage: None)]


def found(path: Path, ranges: list[tuple[int, int]], step: int) -> list[Frame]:
    with open_records(str(path), step) as records:
        return list(records.frames(FrameRanges(ranges)))


@pytest.mark.parametrize("name", NAMES)
def test_any_frames_of_any_kind_of_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / "capture"
    path.write_bytes(FILES[name])
    expected = by_reading(path)
    last = expected[-1].number
    some = [(1, 2), (last // 3, last // 3 + 40), (last // 2, last // 2), (last, last + 5)]
    for step in (1 << 30, max(1, len(FILES[name]) // 9)):
        assert found(path, [(1, 1 << 62)], step) == expected
        wanted = [frame for frame in expected if any(low <= frame.number <= high for low, high in some)]
        assert found(path, some, step) == wanted


def test_gzip_and_what_is_damaged(tmp_path: Path) -> None:
    content = p.pcap([p.ethernet(p.ipv4(p.udp(b"%d" % number, 1, 2))) for number in range(200)])
    zipped, cut = tmp_path / "zipped", tmp_path / "cut"
    zipped.write_bytes(gzip.compress(content))
    cut.write_bytes(content[:-7])
    assert [frame.number for frame in found(zipped, [(190, 500)], 1000)] == list(range(190, 201))
    with open_records(str(cut), 1000) as records:
        assert [frame.number for frame in records.frames(FrameRanges([(198, 1 << 62)]))] == [198, 199]
        assert len(records.damage) == 1


def test_fragments_of_a_datagram_come_together(tmp_path: Path) -> None:
    packets: list[bytes] = []
    for number in range(60):
        pieces = p.ipv4_fragments(p.udp(b"%d " % number * 300, 1, 2), 400, ident=number + 1)
        packets += [p.ethernet(piece) for piece in (reversed(pieces) if number % 2 else pieces)]
        packets.insert(-1, p.ethernet(p.ipv4(p.udp(b"between", 3, 4))))
    path = tmp_path / "a.pcap"
    path.write_bytes(p.pcap(packets))
    for datagram in read_datagrams(path):
        for step in (1 << 30, 2_000):
            with open_records(str(path), step) as records:
                ranges = records.with_fragments(FrameRanges([(datagram.frame, datagram.frame)]))
                assert {frame.number for frame in records.frames(ranges)} == set(datagram.frames)


def test_times_lead_to_the_parts_that_hold_them(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    record = p.ethernet(p.ipv4(p.udp(b"x", 1, 2)))
    path.write_bytes(p.pcap([]) + b"".join(p.pcap_record(record, number * SECOND) for number in range(1000)))
    with open_records(str(path), 1_000) as records:
        for since, until in ((0, 1), (10, 12), (500, 600), (990, 2000), (5000, 6000)):
            first, last = records.numbers_between(since * SECOND, until * SECOND)
            wanted = set(range(since + 1, min(until, 1000) + 1))
            assert wanted <= set(range(first, min(last, 1000) + 1))
            assert min(last, 1000) - first < len(wanted) + 100

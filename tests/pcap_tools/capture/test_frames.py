"""Reading frames: sources, formats, times and what is said of files that are no captures."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from pcap_tools.capture import CaptureError, Frame, read_frames
from pcap_tools.errors import TopicsharkError, UsageError
from tests.pcap_tools.capture import packets as p

DATA = [b"first", b"", b"x" * 1500]


def frames_of(content: bytes) -> list[Frame]:
    return list(read_frames(io.BytesIO(content), on_damage=lambda damage: pytest.fail(str(damage))))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("magic", "tick", "interface", "packet_type"),
    [(p.MICRO, 1000, 0, None), (p.NANO, 1, 0, None), (p.MODIFIED, 1000, 3, 4)],
)
def test_pcap(order: str, magic: int, tick: int, interface: int, packet_type: int | None) -> None:
    records = [p.pcap_record(data, p.T0, magic, order, original=2000, packet_type=4) for data in DATA]
    frames = frames_of(p.pcap_header(113, magic, order) + b"".join(records))
    time_ns = p.T0 // tick * tick
    rest = 2000, (), packet_type
    assert frames == [Frame(n, time_ns, 113, interface, data, *rest) for n, data in enumerate(DATA, 1)]


def test_upper_bits_of_the_link_type_are_no_link_type() -> None:
    content = p.pcap_header(0x44000001) + p.pcap_record(b"data")
    assert [frame.link_type for frame in frames_of(content)] == [1]


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_packets_of_three_kinds(order: str) -> None:
    content = p.section(order) + p.interface(1, order, tsresol=9, snaplen=3)
    content += p.enhanced(b"abc", p.T0, order, original=9, comments=("hello", "w\u00f6rld"))
    content += p.simple(b"abc", order, original=7) + p.obsolete(b"abcde", p.T0, order)
    assert frames_of(content) == [
        Frame(1, p.T0, 1, 0, b"abc", 9, ("hello", "w\u00f6rld")),
        Frame(2, 0, 1, 0, b"abc", 7),
        Frame(3, p.T0, 1, 0, b"abcde", 5),
    ]


@pytest.mark.parametrize(
    ("tsresol", "tsoffset", "ticks", "time_ns"),
    [
        (None, None, 1_500_001, 1_500_001_000),
        (0, None, 5, 5_000_000_000),
        (3, None, 5_123, 5_123_000_000),
        (9, None, p.T0, p.T0),
        (12, None, 5_123_456_789_999, 5_123_456_789),
        (0x80 | 10, None, 5 * 1024 + 1, 5_000_976_562),
        (0x80 | 63, None, 1 << 63, 1_000_000_000),
        (9, 1_000, p.T0, p.T0 + 1_000 * 10**9),
        (6, -3, 1_500_001, -1_499_999_000),
    ],
)
def test_clocks_of_pcapng(tsresol: int | None, tsoffset: int | None, ticks: int, time_ns: int) -> None:
    """Exact to the nanosecond; finer clocks are rounded down (tshark 4.0 overflows on picoseconds)."""
    content = p.section() + p.interface(tsresol=tsresol, tsoffset=tsoffset) + p.enhanced(b"x", ticks)
    assert [frame.time_ns for frame in frames_of(content)] == [time_ns]


def test_interfaces_are_unique_over_sections() -> None:
    parts = [p.section("<"), p.interface(1), p.interface(113), p.enhanced(b"a", 1, interface_id=1)]
    parts += [p.section(">"), p.interface(101, ">"), p.enhanced(b"b", 1, ">")]
    found = [(frame.interface, frame.link_type) for frame in frames_of(b"".join(parts))]
    assert found == [(1, 113), (2, 101)]


def test_block_length_without_its_padding() -> None:
    """Some writers leave the padding out of the block length; Wireshark reads on, and so do we."""
    good = p.enhanced(b"12345", p.T0)
    short = (len(good) - 3).to_bytes(4, "little")
    content = p.section() + p.interface() + good[:4] + short + good[8:-4] + short + good
    assert [frame.data for frame in frames_of(content)] == [b"12345", b"12345"]


def test_gzip_with_several_members_and_padding() -> None:
    plain = p.pcap([bytes([n]) * 90 for n in range(200)])
    content = b"".join(gzip.compress(plain[at : at + 5000]) for at in range(0, len(plain), 5000))
    assert frames_of(content + bytes(512)) == frames_of(plain)


def test_records_over_chunk_borders() -> None:
    """2.6 MB in one-megabyte chunks, so that records of every length lie over a border."""
    data = [bytes([n % 251]) * (n * 37 % 3001) for n in range(1700)]
    for content in (p.pcap(data), p.pcapng(data)):
        assert [frame.data for frame in frames_of(content)] == data


class _Drip(io.RawIOBase):
    """A stream that cannot seek and gives seven bytes at a time, like a slow pipe."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._content.read(min(size, 7))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_stream_that_drips(pack: type[bytes]) -> None:
    content = p.pcapng(DATA)
    frames = list(read_frames(cast(BinaryIO, _Drip(pack(content)))))
    assert frames == frames_of(content)


def test_stdin(tmp_path: Path) -> None:
    code = "from pcap_tools.capture import read_frames; print(sum(1 for _ in read_frames('-')))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=p.pcap(DATA), capture_output=True, check=True, timeout=60)
    assert done.stdout.split() == [b"3"]


def test_a_given_stream_stays_open() -> None:
    stream = io.BytesIO(p.pcap(DATA))
    assert len(list(read_frames(stream))) == 3
    assert not stream.closed


@pytest.mark.parametrize("content", [p.pcap([]), p.section(), p.section() + p.interface()])
def test_a_capture_without_frames_is_a_capture(content: bytes) -> None:
    assert frames_of(content) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\xd4\xc3", "not a capture"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git lfs pull"),
        (b"Frame 1: 60 bytes on wire\n", "is text"),
        (b"\x00\x01\x02\x03\x04", "00 01 02 03"),
        (b"\x28\xb5\x2f\xfd1234", "zstd"),
        (gzip.compress(b"", mtime=0), "empty"),
        (gzip.compress(b"hello, world", mtime=0), "is text"),
        (gzip.compress(gzip.compress(b"x", mtime=0), mtime=0), "twice"),
        (gzip.compress(p.pcap(DATA), mtime=0)[:12], "ends early"),
    ],
)
def test_what_is_no_capture(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "no.pcap"
    path.write_bytes(content)
    with pytest.raises(CaptureError, match=words) as caught:
        list(read_frames(path))
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, TopicsharkError)


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.pcap", "nul\0byte"):
        with pytest.raises(CaptureError, match="cannot be opened"):
            list(read_frames(path))


def test_a_source_of_the_wrong_kind() -> None:
    for source in (42, io.StringIO("text")):
        with pytest.raises(UsageError):
            list(read_frames(cast(BinaryIO, source)))

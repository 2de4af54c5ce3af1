"""Cut and corrupt captures: every whole frame before the damage, the right offset, and never an exception."""

from __future__ import annotations

import gzip
import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcap_tools.capture import CaptureError, Damage, Frame, read_datagrams, read_frames
from tests.pcap_tools.capture import packets as p

FRAME = p.ethernet(p.ipv4(p.udp(b"payload")))
RECORD = p.pcap_record(FRAME)
PCAP = p.pcap_header() + RECORD + RECORD
BLOCK = p.enhanced(FRAME, p.T0)
PCAPNG = p.section() + p.interface(tsresol=9) + BLOCK + BLOCK


def read(content: bytes) -> tuple[list[Frame], list[Damage]]:
    damages: list[Damage] = []
    return list(read_frames(io.BytesIO(content), damages.append)), damages


def block_of_length(length: int) -> bytes:
    return BLOCK[:4] + struct.pack("<I", length) + BLOCK[8:]


@pytest.mark.parametrize("start", [PCAP, PCAPNG])
def test_cut_at_every_byte(start: bytes) -> None:
    """Wherever the third record is cut, two frames are left and the damage is where it begins."""
    third = RECORD if start is PCAP else BLOCK
    for size in range(1, len(third)):
        frames, damages = read(start + third[:size])
        assert len(frames) == 2
        assert [(damage.path, damage.offset) for damage in damages] == [("<stream>", len(start))]
        assert f"after {size} bytes" in damages[0].text


@pytest.mark.parametrize(
    ("start", "bad", "words"),
    [
        (PCAP, p.pcap_record(FRAME, captured=262145), "262145 bytes, more than the maximum"),
        (PCAP, p.pcap_record(FRAME, captured=0xFFFFFFFF), "more than the maximum"),
        (PCAP, p.pcap_record(FRAME, captured=1000), "ends inside the record of frame 3"),
        (PCAPNG, block_of_length(0), "block length of 0"),
        (PCAPNG, block_of_length(11), "block length of 11"),
        (PCAPNG, block_of_length(0xFFFFFFF0), "block length of"),
        (PCAPNG, block_of_length(10_000), "ends inside a block of 10000 bytes"),
        (PCAPNG, block_of_length(12), "at its begin and"),
        (PCAPNG, BLOCK[:-4] + struct.pack("<I", 99) + BLOCK, "92 bytes at its begin and 99 at its end"),
        (PCAPNG, p.enhanced(FRAME, 1, captured=10_000), "10000 bytes in a block with room for"),
        (PCAPNG, p.enhanced(bytes(262145), 1), "more than the maximum"),
        (PCAPNG, p.enhanced(FRAME, 1, interface_id=1), "interface 1, but the section has 1"),
        (PCAPNG, p.block(6, bytes(16)), "too short"),
        (PCAPNG, p.block(3, b""), "too short"),
        (PCAPNG, p.block(2, bytes(8)), "too short"),
        (PCAPNG, p.block(1, bytes(4)), "too short"),
        (PCAPNG, p.section() + BLOCK, "the section has 0"),
        (PCAPNG, p.block(0x0A0D0D0A, b"\x4d\x3c\x2b\x1a"), "too short"),
        (PCAPNG, p.block(0x0A0D0D0A, bytes(16)), "byte-order magic"),
        (PCAPNG, p.block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 2, 0, -1)), "version 2.0"),
        (PCAPNG, p.block(1, bytes(8) + struct.pack("<HH", 9, 99)), "option of 99 bytes"),
        (PCAPNG, p.block(6, bytes(20) + struct.pack("<HH", 1, 99)), "option of 99 bytes"),
        (PCAPNG, bytes(64), "block length of 0"),
    ],
)
def test_corrupt(start: bytes, bad: bytes, words: str) -> None:
    frames, damages = read(start + bad)
    assert len(frames) == 2
    assert len(damages) == 1
    assert words in damages[0].text
    # All but one are found in the first bad block; a section is good as such, the packet behind it is not.
    offset = len(start) + (len(p.section()) if "has 0" in words else 0)
    assert damages[0].offset == offset


@pytest.mark.parametrize(("content", "least"), [(p.pcap_header()[:20], 4), (p.section()[:20], 4)])
def test_cut_in_the_file_header(content: bytes, least: int) -> None:
    for size in range(least, len(content) + 1):
        frames, damages = read(content[:size])
        assert not frames
        assert [damage.offset for damage in damages] == [0]


def test_damage_reads_well() -> None:
    _, (damage,) = read(PCAP[:-3])
    start = f"<stream>: damaged at byte {24 + len(RECORD)}: the file ends"
    assert str(damage).startswith(start)


def test_without_a_callback_damage_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert len(list(read_frames(io.BytesIO(PCAP[:-3])))) == 1
    assert "damaged at byte" in caplog.text


# --- gzip ---------------------------------------------------------------------------------------------------

LARGE = p.pcap([bytes([n % 251]) * (n * 7 % 400) for n in range(1000)])


def test_gzip_cut_anywhere() -> None:
    packed = gzip.compress(LARGE)
    whole, _ = read(LARGE)
    for size in range(400, len(packed), 701):
        frames, (damage,) = read(packed[:size])
        assert frames == whole[: len(frames)]
        assert damage.text == "the gzip data ends early"
        # The offset is that of the first record that is not whole, in the uncompressed bytes.
        assert damage.offset == 24 + sum(16 + len(frame.data) for frame in frames)


@pytest.mark.parametrize("tail", [b"\0" * 8, b""])
def test_gzip_with_a_bad_or_missing_checksum_keeps_every_frame(tail: bytes) -> None:
    frames, (damage,) = read(gzip.compress(LARGE)[:-8] + tail)
    assert len(frames) == 1000
    assert "gzip" in damage.text
    assert damage.offset == len(LARGE)


def test_gzip_with_garbage_behind() -> None:
    frames, (damage,) = read(gzip.compress(LARGE) + b"garbage")
    assert len(frames) == 1000
    assert "gzip data is damaged" in damage.text


def test_gzip_with_a_bad_byte_keeps_what_is_before_it() -> None:
    """An inflate error loses the output of its call; the part before the bad byte must be found again."""
    plain = p.pcap([bytes((n * k) % 251 for k in range(300)) for n in range(3000)])
    first, second = gzip.compress(plain[:600_000]), gzip.compress(plain[600_000:])
    broken = bytearray(second)
    # A deflate block of the reserved type 3, right behind the ten bytes of the gzip header.
    broken[10] |= 0b110
    frames, (damage,) = read(first + broken)
    size = 316
    assert len(frames) == (600_000 - 24) // size
    assert damage.offset == 24 + size * len(frames)


class _Failing(io.RawIOBase):
    """A disk that fails after the first bytes."""

    def __init__(self, content: bytes) -> None:
        self._parts = [content]

    def read(self, size: int = -1) -> bytes:
        if self._parts:
            return self._parts.pop()
        raise OSError(5, "Input/output error")


def test_a_disk_that_fails() -> None:
    damages: list[Damage] = []
    frames = list(read_frames(_Failing(PCAP), damages.append))  # type: ignore[arg-type]
    assert len(frames) == 2
    assert damages == [Damage("<stream>", len(PCAP), "reading failed: Input/output error")]


# --- Anything at all ----------------------------------------------------------------------------------------

COOKED = p.cooked2(FRAME[14:])
SEEDS = [
    PCAP,
    p.pcap([p.cooked1(one) for one in p.ipv4_fragments(p.udp(bytes(300)), 64)], 113, p.MODIFIED, ">"),
    p.pcapng([p.ethernet(one, tags=(0x8100,)) for one in p.ipv6_fragments(p.udp(bytes(300)), 64)]),
    PCAPNG + p.section(">") + p.interface(276, ">") + p.enhanced(COOKED, 1, ">", comments=("c",)),
    gzip.compress(PCAPNG),
]


def survives(content: bytes) -> None:
    """Nothing but CaptureError, one damage at most, within the stream, and it ends."""
    damages: list[Damage] = []
    try:
        for datagram in read_datagrams(io.BytesIO(content), damages.append, lambda text: None):
            assert len(datagram.payload) <= datagram.length
            assert datagram.frames[-1] == datagram.frame
    except CaptureError:
        assert not damages
    assert len(damages) <= 1


@given(st.binary(max_size=400))
def test_random_bytes(content: bytes) -> None:
    survives(content)


@given(st.sampled_from([seed[:24] for seed in SEEDS]), st.binary(max_size=400))
def test_random_bytes_behind_a_good_header(head: bytes, content: bytes) -> None:
    survives(head + content)


@given(st.sampled_from(SEEDS), st.data())
def test_mutated_captures(seed: bytes, data: st.DataObject) -> None:
    content = bytearray(seed)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content)))
        size = data.draw(st.integers(0, 8))
        content[at : at + size] = data.draw(st.binary(max_size=8))
    survives(bytes(content))

"""What the writer writes is what tshark and the reader read."""

from __future__ import annotations

import io
import subprocess
from itertools import product
from pathlib import Path
from typing import Any, Literal, cast

import pytest

from pcap_tools.capture import CaptureError, CaptureWriter, Frame, Interface, read_frames
from pcap_tools.errors import UsageError
from tests.pcap_tools.capture import packets as p
from tests.pcap_tools.capture.tshark import needs_tshark, run_tshark, tshark_fields

FRAME = p.ethernet(p.ipv4(p.udp(b"payload")))


@pytest.mark.parametrize(
    ("format", "order", "resolution"),
    list(product(["pcap", "pcapng"], ["little", "big"], ["ns", "us"])),
)
def test_what_is_written_is_read(format: str, order: str, resolution: str) -> None:
    stream = io.BytesIO()
    options: dict[str, Any] = {"format": format, "byte_order": order, "resolution": resolution}
    with CaptureWriter(stream, link_type=113, **options) as out:
        out.write(FRAME, p.T0)
        out.write(b"cut", p.T0 + 1, original_length=99)
    stream.seek(0)
    tick = 1 if resolution == "ns" else 1000
    assert list(read_frames(stream)) == [
        Frame(1, p.T0 // tick * tick, 113, 0, FRAME, len(FRAME)),
        Frame(2, (p.T0 + 1) // tick * tick, 113, 0, b"cut", 99),
    ]


def test_the_bytes_of_pcap_are_those_of_the_format() -> None:
    stream = io.BytesIO()
    with CaptureWriter(stream, snaplen=65535) as out:
        out.write(FRAME, p.T0)
    expected = p.pcap_header(1, p.NANO, snaplen=65535) + p.pcap_record(FRAME, p.T0, p.NANO)
    assert stream.getvalue() == expected


@needs_tshark
@pytest.mark.tshark
@pytest.mark.parametrize("order", ["little", "big"])
def test_tshark_reads_pcapng(tmp_path: Path, order: Literal["little", "big"]) -> None:
    path = tmp_path / "out.pcapng"
    names = {p.A4: "broker.test", p.B4: "sensor.test", p.A6: "six.test"}
    interfaces = [Interface(1, "veth0"), Interface(113, "any")]
    with CaptureWriter(path, "pcapng", interfaces=interfaces, names=names, byte_order=order) as out:
        out.write(FRAME, p.T0, comments=("first", "zweit\u00e4"))
        out.write(p.cooked1(FRAME[14:]), p.T0 + 1, interface=1)
    fields = ["frame.number", "frame.time_epoch", "frame.interface_name", "frame.comment", "data.data"]
    assert tshark_fields(path, *fields) == [
        ["1", "1635868655.123456789", "veth0", "first,zweit\u00e4", b"payload".hex()],
        ["2", "1635868655.123456790", "any", "", b"payload".hex()],
    ]
    assert "broker.test" in run_tshark(path, "-q", "-z", "hosts")
    # tshark would stop at the first bad block, so capinfos has to count to the end.
    command = ["capinfos", "-M", "-c", "-E", str(path)]
    info = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "Number of packets:   2" in info


def test_long_frames_are_cut_to_the_snaplen() -> None:
    stream = io.BytesIO()
    with CaptureWriter(stream, snaplen=10) as out:
        out.write(bytes(50), 0)
    stream.seek(0)
    assert [(len(frame.data), frame.original_length) for frame in read_frames(stream)] == [(10, 50)]


@pytest.mark.parametrize(
    "options",
    [
        {"format": "pcap", "interfaces": [Interface(), Interface()]},
        {"format": "pcap", "names": {p.A4: "a"}},
        {"format": "erf"},
        {"resolution": "ms"},
        {"byte_order": "middle"},
        {"snaplen": 0},
        {"snaplen": 262145},
        {"link_type": -1},
        {"format": "pcapng", "link_type": 70_000},
        {"format": "pcapng", "names": {"not an address": "a"}},
    ],
)
def test_what_cannot_be_asked_for(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        CaptureWriter(tmp_path / "out", **options)


@pytest.mark.parametrize(
    ("format", "wrong"),
    [
        ("pcap", {"comments": ("no",)}),
        ("pcap", {"interface": 1}),
        ("pcap", {"time_ns": -1}),
        ("pcap", {"time_ns": 2**32 * 10**9}),
        ("pcapng", {"interface": 1}),
        ("pcapng", {"time_ns": -1}),
        ("pcapng", {"time_ns": 2**64}),
        ("pcapng", {"comments": ("x" * 70_000,)}),
        ("pcapng", {"original_length": -1}),
    ],
)
def test_a_refused_frame_leaves_nothing(format: Literal["pcap", "pcapng"], wrong: dict[str, Any]) -> None:
    stream = io.BytesIO()
    with CaptureWriter(stream, format) as out:
        out.write(FRAME, p.T0)
        size = stream.tell()
        with pytest.raises(UsageError):
            out.write(FRAME, **{"time_ns": p.T0, **wrong})
        assert stream.tell() == size
        out.write(FRAME, p.T0)
    stream.seek(0)
    assert len(list(read_frames(stream, lambda damage: pytest.fail(str(damage))))) == 2


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="cannot be written"):
        CaptureWriter(tmp_path / "no" / "such" / "folder.pcap")


class _Full(io.RawIOBase):
    def write(self, data: object) -> int:
        raise OSError(28, "No space left on device")


def test_a_full_disk() -> None:
    with pytest.raises(CaptureError, match="No space left"):
        CaptureWriter(cast(io.BytesIO, _Full()))

"""Captures that ask for much: memory and time stay bounded, however large what they promise."""

from __future__ import annotations

import gc
import gzip
import ipaddress
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pcap_tools.columnar.read.fragments import FrameNote
from pcap_tools.columnar.read.reading import Reading
from pcap_tools.columnar.read.sources import open_bytes
from pcap_tools.columnar.read.splits import Index, _save, build_index, find_index
from tests.conftest import REPO
from tests.fuzzing.broken_files import BROKEN, FRAMES, PCAP, REST, TALK
from tests.pcap_tools.capture import packets as p
from tests.pcap_tools.columnar.captures import by_kernels, by_python
from topicshark.exit_codes import ExitCode


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "b.pcap"


_MEASURED = """
import sys
from topicshark.main import exit_code_of
code = exit_code_of(["decode", sys.argv[1]])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print("peak", code, int(peak.split()[1]) // 1024, file=sys.stderr)
"""


def _measure(path: Path) -> tuple[int, int]:
    """Exit code and peak of memory in MB of `decode`, which must be done in a minute."""
    command = [sys.executable, "-c", _MEASURED, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPO, timeout=60, check=True)
    _, code, megabytes = done.stderr.splitlines()[-1].split()
    return int(code), int(megabytes)


def _large(name: str) -> tuple[bytes, ExitCode]:
    """Small files, or what is soon made, that ask for much."""
    if name == "100 MB of zeros in gzip":
        return gzip.compress(PCAP + REST) + gzip.compress(bytes(100 << 20)), ExitCode.CLEAN
    if name == "a million interfaces":
        one = p.block(1, bytes.fromhex("0100000000000400"))
        return gzip.compress(p.pcapng(FRAMES) + one * 1_000_000, 1), ExitCode.PARTIAL
    if name == "80,000 fragments that wait for others":
        whole = p.pcap_record(p.ethernet(p.ipv4(bytes(600), offset=800, more=True)), 1)
        before, behind = whole[: 16 + 14 + 4], whole[16 + 14 + 6 :]  # the identification is between
        trains = b"".join(before + ident.to_bytes(2, "big") + behind for ident in range(4000))
        return p.pcap(FRAMES) + trains * 20, ExitCode.CLEAN
    blocks = b"".join(p.block(6, bytes(20) + p.option(1, b"ab") * 500_000) for _ in range(3))
    return p.pcapng(FRAMES) + blocks, ExitCode.CLEAN


@pytest.mark.parametrize(
    "name",
    [
        "100 MB of zeros in gzip",
        "a million interfaces",
        "80,000 fragments that wait for others",
        "a million comments in three frames",
    ],
)
def test_memory_and_time_are_bounded(name: str, place: Path) -> None:
    content, expected = _large(name)
    place.write_bytes(content)
    code, megabytes = _measure(place)
    assert code == expected
    assert megabytes < 300


def test_an_interface_between_any_two_fragments_does_not_make_it_slow(place: Path) -> None:
    """The kernel was told all open trains for each fragment: 4 ms for a frame, hours for a file of 100 MB."""
    begun = [p.enhanced(p.ethernet(p.ipv4(bytes(8), ident=n, more=True)), p.T0) for n in range(4090)]
    more = p.interface(tsresol=9) + p.enhanced(p.ethernet(p.ipv4(bytes(8), ident=1, offset=16, more=True)), p.T0)
    place.write_bytes(p.pcapng(FRAMES) + b"".join(begun) + more * 4000)
    begin = os.times()
    assert len(by_kernels(place).rows) == len(TALK)
    assert sum(os.times()[:2]) - sum(begin[:2]) < 5


def test_damaged_captures_leave_no_garbage_behind(place: Path) -> None:
    """An exception that is kept holds the frames it came through, and with them the buffers: 10 MB for each capture."""
    gc.collect()
    gc.disable()
    try:
        for name in ("block length 0", "block trailer differs", "truncated gzip", "last record cut"):
            place.write_bytes(BROKEN[name].content)
            assert by_kernels(place).damage
        assert not [one for one in gc.get_objects() if isinstance(one, Reading)]
    finally:
        gc.enable()


def test_few_of_many_unknown_link_types_are_told(place: Path) -> None:
    interfaces = b"".join(p.interface(link, tsresol=9) for link in range(1000, 1100))
    packets = b"".join(p.enhanced(FRAMES[0], p.T0, interface_id=n) for n in range(100))
    place.write_bytes(p.section() + interfaces + packets)
    result = by_python(place)
    assert len(result.warnings) == 9
    assert result.warnings[8].startswith("frame 9: more link types are not known")
    assert by_kernels(place) == result


def test_more_addresses_than_there_was_room_for(place: Path) -> None:
    """The table of addresses grows, and each keeps its number."""
    texts = [str(ipaddress.IPv4Address(0x0B000000 + n % 40_000)) for n in range(45_000)]
    place.write_bytes(p.pcap([p.ipv4(p.udp(b""), src=text) for text in texts], 101))
    rows = by_kernels(place).rows
    assert [row.src for row in rows] == texts


def test_fragments_at_times_beyond_64_bits(place: Path) -> None:
    """Both readers hold such times at the same edge, so that they agree on which fragments came too late."""
    first, second = p.ipv4_fragments(p.udp(b"12345678"), 8)
    head = p.section() + p.interface(tsresol=0)
    place.write_bytes(head + p.enhanced(p.ethernet(first), 1 << 40) + p.enhanced(p.ethernet(second), 1 << 41))
    assert by_kernels(place) == by_python(place)
    assert [row.time_ns for row in by_python(place).rows] == [(1 << 62) - (1 << 40)]


_NOTE = FrameNote(1, 0, 1, 0, -1, 40, 1 << 40, 60)
_LIES: dict[str, Callable[[Index], Index]] = {
    "a frame of a terabyte": lambda index: replace(index, states=[replace(index.states[0], notes=[_NOTE])]),
    "a frame of less than nothing": lambda index: replace(
        index, states=[replace(index.states[0], notes=[_NOTE._replace(captured=-1)])]
    ),
    "a border behind the end": lambda index: replace(index, states=[replace(index.states[0], offset=1 << 50)]),
    "an end behind the end": lambda index: replace(index, end=1 << 50),
    "no border": lambda index: replace(index, states=[]),
}


@pytest.mark.parametrize("lie", _LIES)
def test_an_index_that_lies_is_made_anew(lie: str, place: Path) -> None:
    """It lies beside the capture, and may have come with it."""
    place.write_bytes(p.pcap([p.ethernet(p.ipv4(p.udp(bytes(1400))))] * 3000))
    with open_bytes(str(place)) as source:
        true = build_index(source)
        beside = Path(f"{place}.topicshark-index")
        assert _save(beside, _LIES[lie](true))
        found = find_index(source)
    assert (found.end, [state.offset for state in found.states]) == (true.end, [state.offset for state in true.states])
    assert not any(state.notes for state in found.states)

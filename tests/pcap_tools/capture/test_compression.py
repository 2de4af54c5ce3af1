"""Captures compressed with gzip, zstd and lz4, by the programs of these names; tshark reads them as well."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import pytest

from pcap_tools.capture import Damage, Frame, read_frames
from pcap_tools.columnar.read.reading import read_file
from pcap_tools.columnar.read.splits import plan_splits
from tests.pcap_tools.capture import packets as p

# Payloads that no compressor makes much smaller, so that a file has several blocks.
FRAMES = [p.ethernet(p.ipv4(p.udp(b"%d " % (number * 7919) * 40 + bytes(range(256)), 1, 2))) for number in range(3_000)]
TOOLS = ["gzip", "zstd", "lz4"]


def compressed(tool: str, content: bytes) -> bytes:
    if shutil.which(tool) is None:
        pytest.skip(f"no {tool}")
    return subprocess.run([tool, "-c"], input=content, capture_output=True, check=True).stdout


def frames_of(content: bytes, damage: list[Damage]) -> list[Frame]:
    return list(read_frames(io.BytesIO(content), damage.append))


@pytest.mark.parametrize("tool", TOOLS)
def test_each_is_read_as_the_plain_file(tool: str, tmp_path: Path) -> None:
    plain, path = p.pcap(FRAMES), tmp_path / "a.pcap"
    path.write_bytes(compressed(tool, plain))
    damage: list[Damage] = []
    assert list(read_frames(path, damage.append)) == frames_of(plain, damage)
    assert sum(batch.count for batch in read_file(str(path), damage.append)) == len(FRAMES)
    assert damage == []
    assert "from its begin" in plan_splits(str(path)).why_single


@pytest.mark.parametrize("tool", TOOLS)
def test_several_members_one_behind_the_other(tool: str) -> None:
    plain = p.pcap(FRAMES)
    content = compressed(tool, plain[:50_000]) + compressed(tool, plain[50_000:])
    damage: list[Damage] = []
    assert len(frames_of(content, damage)) == len(FRAMES)
    assert damage == []


@pytest.mark.parametrize("tool", TOOLS)
def test_frames_before_damage_are_given(tool: str) -> None:
    content = compressed(tool, p.pcap(FRAMES))
    damage: list[Damage] = []
    found = frames_of(compressed(tool, p.pcap(FRAMES)) + content[: len(content) // 2], damage)
    lost = 0 if tool == "gzip" else (1 << 16) // len(FRAMES[0]) + 1  # of zstd and lz4 the last read may be lost
    assert len(found) >= len(FRAMES) - lost
    assert [frame.data for frame in found[: len(FRAMES)]] == FRAMES[: len(found)]
    assert len(damage) == 1


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark judges")
@pytest.mark.parametrize("tool", TOOLS)
def test_tshark_reads_the_same(tool: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(compressed(tool, p.pcap(FRAMES[:50])))
    fields = ["-T", "fields", "-e", "frame.number", "-e", "frame.len"]
    told = subprocess.run(["tshark", "-r", str(path), *fields], capture_output=True, text=True, check=True).stdout
    assert told.split() == [str(one) for frame in read_frames(path) for one in (frame.number, len(frame.data))]

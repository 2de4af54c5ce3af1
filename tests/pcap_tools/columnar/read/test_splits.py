"""Splits: all together give the rows of the whole file, wherever the borders are, and each row once."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pcap_tools.capture import CaptureError
from pcap_tools.capture.streams import MAGIC_BYTES
from pcap_tools.columnar.read.reading import read_batches
from pcap_tools.columnar.read.sources import ByteSource, open_bytes
from pcap_tools.columnar.read.splits import Plan, plan_splits
from pcap_tools.errors import UsageError
from tests.pcap_tools.capture import packets as p
from tests.pcap_tools.columnar.captures import Row, by_python, cut_and_corrupt, files, rows_of

FILES = files()
NAMES = [name for name in FILES if name.split()[0] in ("soup", "slow", "copies", "later", "periodic", "many", "tags")]


def rows_of_plan(plan: Plan) -> list[Row]:
    return [row for split in plan.splits for row in rows_of(read_batches(pickle.loads(pickle.dumps(split))))]  # noqa: S301


def plan_of(path: Path, count: int) -> Plan:
    return plan_splits(str(path), max(1, path.stat().st_size // count), keep=False)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_rows_however_it_is_divided(tmp_path: Path, name: str) -> None:
    path = tmp_path / "capture"
    path.write_bytes(FILES[name])
    expected = by_python(path)
    # With thousands of open trains each split has thousands of frames to read again: right, but not quick.
    for count in (1, 7) if name == "many trains" else (1, 2, 7, 64):
        plan = plan_of(path, count)
        assert count == 1 or len(plan.splits) > count // 2
        assert rows_of_plan(plan) == expected.rows
        assert (plan.damage, plan.warnings) == (expected.damage, expected.warnings)


@pytest.mark.parametrize("name", ["soup 1", "copies 276 0", "later 2", "pcapng 113 >"])
def test_a_border_at_every_record(tmp_path: Path, name: str) -> None:
    path = tmp_path / "capture"
    path.write_bytes(FILES[name][:30_000])
    plan = plan_splits(str(path), 1, keep=False)
    assert len(plan.splits) > 50
    assert rows_of_plan(plan) == by_python(path).rows


def test_splits_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(FILES["later 0"])
    plan = plan_of(path, 20)
    assert [split.ordinal for split in plan.splits] == list(range(len(plan.splits)))
    assert [split.end for split in plan.splits[:-1]] == [split.begin for split in plan.splits[1:]]
    assert plan.splits[-1].end == path.stat().st_size == plan.bytes
    # Two interfaces and two sections later: 900 packets and 18 custom blocks, which are numbered too.
    assert plan.frames == 918
    assert plan.why_single == ""


def test_damage_is_told_once_and_by_the_plan(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    for seed in range(20):
        path.write_bytes(cut_and_corrupt(FILES["soup 2"], seed))
        expected = by_python(path)
        if expected.error:
            with pytest.raises(CaptureError):
                plan_of(path, 5)
            continue
        plan = plan_of(path, 5)
        assert rows_of_plan(plan) == expected.rows
        assert plan.damage == expected.damage


def test_gzip_is_one_split_and_says_why(tmp_path: Path) -> None:
    path = tmp_path / "capture.gz"
    path.write_bytes(gzip.compress(FILES["soup 2"]))
    plan = plan_splits(str(path), 1000)
    assert len(plan.splits) == 1
    assert "compressed" in plan.why_single
    assert rows_of_plan(plan) == by_python(path).rows


def test_fragments_in_fragments_end_the_splitting(tmp_path: Path) -> None:
    """The frames no longer tell how an inner train came about, so there is no border behind."""
    inner = p.ipv6_fragments(p.udp(bytes(64)), 24, 9)
    outer = [p.ipv6_fragments(packet[40:], 16, 20 + n, 44) for n, packet in enumerate(inner)]
    frames = [p.ethernet(packet) for train in outer for packet in train]
    path = tmp_path / "capture"
    path.write_bytes(p.pcap(frames, step=1000))
    expected = by_python(path).rows
    assert len(expected) == 1
    assert rows_of_plan(plan_splits(str(path), 1, keep=False)) == expected


@pytest.mark.parametrize("content", [p.pcap([]), p.section(), p.pcap_header()[:20], p.section()[:20]])
def test_a_capture_without_frames(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "capture"
    path.write_bytes(content)
    plan = plan_splits(str(path))
    assert rows_of_plan(plan) == []
    assert plan.damage == by_python(path).damage
    assert plan.frames == 0


def test_a_capture_that_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(FILES["soup 0"])
    plan = plan_of(path, 3)
    path.write_bytes(FILES["soup 1"])
    with pytest.raises(CaptureError, match="has changed"):
        rows_of_plan(plan)


def test_what_is_no_capture(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"not a capture, but a text")
    with pytest.raises(CaptureError, match="is text"):
        plan_splits(str(path))
    with pytest.raises(CaptureError, match="cannot be opened"):
        plan_splits(str(tmp_path / "missing"))
    with pytest.raises(UsageError):
        plan_splits(str(path), 0)


class _Counting:
    """A source that counts the bytes that were asked for."""

    def __init__(self, inner: ByteSource, ranges: list[tuple[int, int]]) -> None:
        self.name, self.size, self.version = inner.name, inner.size, inner.version
        self._inner, self._ranges = inner, ranges

    def read_into(self, offset: int, view: memoryview) -> int:
        got = self._inner.read_into(offset, view)
        self._ranges.append((offset, offset + got))
        return got


def test_a_split_reads_its_own_bytes_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "capture"
    path.write_bytes(p.pcap([p.ethernet(p.ipv4(p.udp(bytes(90)))) for _ in range(2000)]))
    ranges: list[tuple[int, int]] = []

    @contextmanager
    def counted(name: str) -> Iterator[ByteSource]:
        with open_bytes(name) as inner:
            yield _Counting(inner, ranges)

    plan = plan_splits(str(path), 20_000, keep=False, opener=counted)
    assert sum(end - begin for begin, end in ranges) == path.stat().st_size + MAGIC_BYTES * 2
    monkeypatch.setattr("pcap_tools.columnar.read.reading.open_bytes", counted)
    for split in plan.splits:
        ranges.clear()
        rows_of(read_batches(split))
        assert [one for one in ranges if one[0] != one[1]] == [(split.begin, split.end)]


def test_a_store_that_cannot_be_reached_is_an_error_of_ours() -> None:
    """One line, and for HDFS also what to install."""
    with pytest.raises(CaptureError, match=r"^hdfs://nowhere/x.pcap: cannot be opened: .*CLASSPATH"):
        plan_splits("hdfs://nowhere/x.pcap")
    with pytest.raises(CaptureError, match="cannot be opened"):
        plan_splits("unheard-of://x.pcap")

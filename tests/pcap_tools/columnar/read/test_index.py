"""The index: kept where it can be, used only if it fits, and never a reason to fail."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pcap_tools.columnar.read import splits as module
from pcap_tools.columnar.read.sources import open_bytes
from pcap_tools.columnar.read.splits import Index, find_index
from tests.pcap_tools.capture import packets as p
from tests.pcap_tools.columnar.captures import files

SOUP, COPIES = files()["soup 0"], files()["copies 276 0"]


@pytest.fixture(autouse=True)
def keep_small_ones_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "_SMALL", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / "run.pcap"
    path.write_bytes(SOUP)
    return path


def index_of(path: Path, step: int = 10_000, **options: object) -> Index:
    with open_bytes(str(path)) as source:
        return find_index(source, step, **options)  # type: ignore[arg-type]


def kept(path: Path) -> Path:
    return Path(f"{path}.topicshark-index")


def same(one: Index, other: Index) -> bool:
    """Not the same object: one made of the same pass has the same random seed."""
    if (one.seed, one.end, one.frames, one.damage, one.warnings) != (
        other.seed,
        other.end,
        other.frames,
        other.damage,
        other.warnings,
    ):
        return False
    pairs = zip(one.states, other.states, strict=True)
    return all(
        (a.offset, a.frames, a.facts, a.notes) == (b.offset, b.frames, b.facts, b.notes)
        and np.array_equal(_groups(a.groups), _groups(b.groups))
        for a, b in pairs
    )


def _groups(groups: NDArray[np.int64] | None) -> NDArray[np.int64]:
    return np.zeros((0, 7), np.int64) if groups is None else groups


@pytest.mark.parametrize("content", [SOUP, COPIES, SOUP[:-3], p.pcapng([b"x"] * 2000)])
def test_kept_beside_the_capture_and_found_again(capture: Path, content: bytes) -> None:
    capture.write_bytes(content)
    first = index_of(capture)
    assert kept(capture).exists()
    assert len(first.states) > 3
    assert same(index_of(capture), first)
    assert sorted(path.name for path in capture.parent.iterdir()) == ["run.pcap", "run.pcap.topicshark-index"]


def test_kept_in_the_cache_if_the_folder_cannot_be_written(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(capture).mkdir()  # nothing can be put in its place, not even by root
    first = index_of(capture)
    (found,) = (capture.parent.parent / "cache" / "topicshark").iterdir()
    assert found.suffix == ".topicshark-index"
    assert same(index_of(capture), first)


def test_a_folder_for_indexes(capture: Path, tmp_path: Path) -> None:
    first = index_of(capture, cache=tmp_path / "mine")
    assert len(list((tmp_path / "mine").iterdir())) == 1
    assert not kept(capture).exists()
    assert same(index_of(capture, cache=tmp_path / "mine"), first)


def test_not_kept_if_not_wanted_or_too_small(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index_of(capture, keep=False)
    assert not kept(capture).exists()
    monkeypatch.setattr(module, "_SMALL", 1 << 30)
    index_of(capture)
    assert not kept(capture).exists()


def test_a_changed_capture_gets_a_new_index(capture: Path) -> None:
    first = index_of(capture)
    status = capture.stat()
    os.utime(capture, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert index_of(capture).seed != first.seed
    capture.write_bytes(SOUP[:30_000])
    assert index_of(capture).end <= 30_000


def test_a_coarse_index_is_made_anew_for_finer_splits(capture: Path) -> None:
    coarse = index_of(capture, 50_000)
    fine = index_of(capture, 5_000)
    assert len(fine.states) > len(coarse.states)
    assert same(index_of(capture, 50_000), fine)


@pytest.mark.parametrize("at", range(0, 4000, 397))
def test_a_corrupt_index_is_made_anew(capture: Path, at: int) -> None:
    first = index_of(capture)
    content = bytearray(kept(capture).read_bytes())
    content[at] ^= 0x55
    kept(capture).write_bytes(content)
    again = index_of(capture)
    assert [state.offset for state in again.states] == [state.offset for state in first.states]
    assert again.frames == first.frames


@pytest.mark.parametrize("content", [b"", b"PK", b"not an index", b"\x80\x04N."])
def test_what_is_no_index(capture: Path, content: bytes) -> None:
    kept(capture).write_bytes(content)
    assert index_of(capture).frames > 0
    assert kept(capture).read_bytes() != content

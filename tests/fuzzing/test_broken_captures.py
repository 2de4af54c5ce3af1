"""Every class of broken file: all whole frames before the damage, a message with file and offset, the right exit code,
and the other captures of a set unharmed. Judges are what was written by hand in `broken_files`, both readers, and
capinfos where it can read the file. Of ingest: see tests/spark_analysis/test_ingest_broken.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pcap_tools.capture import CaptureError, Damage, read_frames
from pcap_tools.columnar.read.reading import read_batches
from pcap_tools.columnar.read.splits import plan_splits
from tests.conftest import REPO, Run
from tests.fuzzing.broken_files import BROKEN, FRAMES, PCAP, REST, TALK
from tests.pcap_tools.capture import packets as p
from tests.pcap_tools.columnar.captures import Result, by_kernels, by_python, rows_of
from topicshark.exit_codes import ExitCode

EVERY_CLASS = pytest.mark.parametrize("name", BROKEN)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "b.pcap"


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two good captures, one before and one behind the broken one."""
    folder = tmp_path_factory.mktemp("good")
    first, last = folder / "a.pcap", folder / "c.pcap"
    for path in (first, last):
        path.write_bytes(p.pcap(FRAMES))
    return first, last


def frames_of(path: Path) -> tuple[list[Any], list[Damage], str]:
    damage: list[Damage] = []
    found: list[Any] = []
    try:
        found.extend(read_frames(path, damage.append))
    except CaptureError as error:
        return found, damage, str(error)
    return found, damage, ""


# --- The readers ----------------------------------------------------------------------------------------------------


@EVERY_CLASS
def test_every_whole_frame_before_the_damage_is_read(name: str, place: Path) -> None:
    broken = BROKEN[name]
    place.write_bytes(broken.content)
    frames, damage, error = frames_of(place)
    assert len(frames) == broken.frames
    assert [frame.data for frame in frames[:2]] == FRAMES[: min(2, broken.frames)]
    assert [one.offset for one in damage] == ([] if broken.offset is None else [broken.offset])
    if broken.times:
        assert [frame.time_ns for frame in frames] == broken.times
    if damage:
        assert str(damage[0]).startswith(f"{place}: damaged at byte {broken.offset}: ")
        assert broken.words in damage[0].text
    assert bool(error) == broken.refused
    if error:
        assert error.startswith(f"{place}: ")
        assert broken.words in error


@EVERY_CLASS
def test_both_readers_say_the_same_and_what_was_written(name: str, place: Path) -> None:
    broken = BROKEN[name]
    place.write_bytes(broken.content)
    expected = by_python(place)
    assert [row.payload for row in expected.rows] == broken.said
    assert by_kernels(place) == expected
    assert by_kernels(place, rows=3) == expected
    assert _by_splits(place, max(1, len(broken.content) // 4)) == expected


def _by_splits(path: Path, split_bytes: int) -> Result:
    try:
        plan = plan_splits(str(path), split_bytes, keep=False)
    except CaptureError as error:
        return Result([], [], [], str(error))
    damage, warnings = list(plan.damage), list(plan.warnings)
    parts = (read_batches(split, on_damage=damage.append, on_warning=warnings.append) for split in plan.splits)
    return Result([row for part in parts for row in rows_of(part)], damage, warnings, "")


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("capinfos") is None, reason="capinfos is not installed")
def test_capinfos_counts_the_same_frames(tmp_path: Path) -> None:
    for number, broken in enumerate(BROKEN.values()):
        (tmp_path / f"{number:03}").write_bytes(broken.content)
    paths = sorted(str(path) for path in tmp_path.iterdir())
    command = ["capinfos", "-c", "-M", "-T", "-r", "-m", *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    counted = {int(name): int(count) for name, count in re.findall(r"/(\d{3}),(\d+)$", done.stdout, re.MULTILINE)}
    damaged = re.findall(r"after reading (\d+) packets from \".*/(\d{3})\"", done.stderr)
    counted |= {int(name): int(count) for count, name in damaged}
    expected = {n: one.frames if one.counted is None else one.counted for n, one in enumerate(BROKEN.values())}
    assert counted == {number: count for number, count in expected.items() if count >= 0}


# --- The command ----------------------------------------------------------------------------------------------------


@EVERY_CLASS
def test_decode_ends_with_the_right_exit_code(name: str, place: Path, run: Run) -> None:
    broken = BROKEN[name]
    place.write_bytes(broken.content)
    code, out, err = run("decode", place, "--dialect", "colon", "--format", "jsonl")
    assert code == broken.code
    assert len(out.splitlines()) == len(broken.said)
    assert broken.words in err
    if broken.offset is not None:
        assert f"{place}: damaged at byte {broken.offset}: " in err


@EVERY_CLASS
def test_decode_of_a_set_goes_on_behind_the_broken_one(
    name: str, place: Path, beside: tuple[Path, Path], run: Run
) -> None:
    broken = BROKEN[name]
    place.write_bytes(broken.content)
    code, out, err = run("decode", beside[0], place, beside[1], "--dialect", "colon", "--format", "jsonl")
    assert code == (ExitCode.CLEAN if broken.code is ExitCode.CLEAN else ExitCode.PARTIAL)
    lines = [json.loads(line) for line in out.splitlines()]
    for path in beside:
        assert [line["frame"] for line in lines if line["capture"] == str(path)] == [1, 2, 3, 4, 5, 6]
    assert sum(line["capture"] == str(place) for line in lines) == len(broken.said)
    assert broken.words in err


@EVERY_CLASS
def test_check_of_a_set_judges_the_others(name: str, place: Path, beside: tuple[Path, Path], run: Run) -> None:
    broken = BROKEN[name]
    place.write_bytes(broken.content)
    options = ("--dialect", "colon", "--engine", "local", "--format", "json")
    code, out, err = run("check", beside[0], place, beside[1], *options)
    sessions = json.loads(out)["sessions"]
    others = [one for one in sessions if one["captures"] != [str(place)]]
    assert [one["captures"] for one in others] == [[str(path)] for path in beside]
    assert [(one["datagrams"], one["verdict"], one["findings"]) for one in others] == [(6, "pass", [])] * 2
    ours = [one for one in sessions if one["captures"] == [str(place)]]
    assert sum(one["datagrams"] for one in ours) == len(broken.said)
    if all(one["verdict"] != "fail" for one in ours):
        assert code == (ExitCode.CLEAN if broken.code is ExitCode.CLEAN else ExitCode.PARTIAL)
    if broken.offset is not None:
        assert f"{place}: damaged at byte {broken.offset}: " in err


# --- What is no file ------------------------------------------------------------------------------------------------


def test_a_directory_named_as_a_capture(place: Path, beside: tuple[Path, Path], run: Run) -> None:
    place.mkdir()
    code, out, err = run("decode", beside[0], place, beside[1], "--format", "jsonl")
    assert (code, len(out.splitlines())) == (ExitCode.PARTIAL, 2 * len(TALK))
    assert f"{place}: cannot be opened: Is a directory" in err
    with pytest.raises(CaptureError, match=r"b\.pcap: cannot be opened: it is a directory"):
        plan_splits(str(place))


def test_a_pipe_that_nobody_writes_to_is_refused_where_captures_are_read_in_parts(
    place: Path, beside: tuple[Path, Path], run: Run
) -> None:
    """It would wait for ever; `decode` does wait, for a capture that is still to come."""
    os.mkfifo(place)
    code, out, err = run("check", beside[0], place, beside[1], "--engine", "local", "--format", "json")
    assert code == ExitCode.PARTIAL
    assert [one["captures"] for one in json.loads(out)["sessions"]] == [[str(path)] for path in beside]
    assert f"{place}: cannot be opened: it is a pipe" in err
    (place.parent / "a.pcap").write_bytes(PCAP)
    assert run("check", place.parent, "--engine", "local")[0] == ExitCode.CLEAN  # in a folder it is passed over


def test_decode_reads_a_pipe(place: Path, run: Run) -> None:
    os.mkfifo(place)
    writer = threading.Thread(target=place.write_bytes, args=(PCAP + REST,))
    writer.start()
    code, out, _ = run("decode", place, "--format", "jsonl")
    writer.join()
    assert (code, len(out.splitlines())) == (ExitCode.CLEAN, len(TALK))


@pytest.mark.parametrize("command", ["decode", "check"])
def test_a_file_without_read_permission(command: str, place: Path, beside: tuple[Path, Path]) -> None:
    place.write_bytes(PCAP)
    place.chmod(0)
    start = [sys.executable, "-m", "topicshark.main", command, str(beside[0]), str(place), str(beside[1])]
    if os.geteuid() == 0:  # who may read everything, unless that right is given away
        rights = "-dac_override,-dac_read_search"
        start = ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}", *start]
    done = subprocess.run(start, capture_output=True, text=True, cwd=REPO, timeout=120, check=False)
    assert done.returncode == ExitCode.PARTIAL
    assert f"{place}: cannot be opened: Permission denied" in done.stderr
    shown = done.stdout.count("PUBLISH hall") if command == "decode" else done.stdout.count("verdict: pass")
    assert shown == (4 if command == "decode" else 2)


def test_a_link_to_nothing(place: Path, beside: tuple[Path, Path], run: Run) -> None:
    place.symlink_to("nowhere")
    code, _, err = run("check", beside[0], place, beside[1])
    assert code == ExitCode.PARTIAL
    assert f"{place}: cannot be opened: No such file" in err


def test_a_file_that_the_disk_does_not_give(beside: tuple[Path, Path], run: Run) -> None:
    """Reading the first byte of a process's memory is an I/O error, as from a bad disk."""
    for command in ("decode", "check"):
        code, _, err = run(command, beside[0], "/proc/self/mem", beside[1])
        assert code == ExitCode.PARTIAL
        assert "/proc/self/mem: no capture can be read: reading failed: Input/output error" in err

"""SOURCE to captures, and captures to names of sessions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pcap_tools.errors import TopicsharkError, UsageError
from spark_analysis.sources.captures import find_captures
from spark_analysis.sources.session_names import session_names


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = ["b.pcap", "a.pcapng", "c.cap", "d.PCAP.gz", "e.pcap0", "e.pcap12.gz"]
    others = [".hidden.pcap", "b.pcap.topicshark-index", "notes.txt", "pcap", ".pcap"]
    for name in names + others:
        (tmp_path / name).touch()
    (tmp_path / "deeper.pcap").mkdir()
    (tmp_path / "deeper.pcap" / "f.pcap").touch()
    return tmp_path


def names(found: list[str], folder: Path) -> list[str]:
    return [os.path.relpath(name, folder) for name in found]


def test_a_folder_gives_the_captures_in_it_sorted(folder: Path) -> None:
    found = find_captures([str(folder)])
    assert names(found, folder) == ["a.pcapng", "b.pcap", "c.cap", "d.PCAP.gz", "e.pcap0", "e.pcap12.gz"]


def test_a_glob_takes_what_it_matches_but_no_index_and_no_folder(folder: Path) -> None:
    assert names(find_captures([f"{folder}/b*"]), folder) == ["b.pcap"]
    assert names(find_captures([f"{folder}/**/f.pcap"]), folder) == ["deeper.pcap/f.pcap"]


def test_a_file_that_is_named_is_taken_whatever_its_name(folder: Path) -> None:
    assert names(find_captures([f"{folder}/notes.txt"]), folder) == ["notes.txt"]


def test_a_file_whose_name_looks_like_a_glob_is_that_file(folder: Path) -> None:
    (folder / "run[1].pcap").touch()
    assert names(find_captures([f"{folder}/run[1].pcap"]), folder) == ["run[1].pcap"]


def test_each_capture_comes_once_and_absolute(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    found = find_captures(["b.pcap", "./b.pcap", "*.pcap", f"file://{folder}/b.pcap"])
    assert found == [str(folder / "b.pcap")]


@pytest.mark.parametrize("source", ["nothing-here.pcap", "nothing-*.pcap", "empty"])
def test_a_source_without_captures_is_an_error_that_names_it(folder: Path, source: str) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(TopicsharkError, match=source.replace("*", r"\*")):
        find_captures([str(folder / "b.pcap"), str(folder / source)])


def test_stdin_cannot_be_read_in_parts() -> None:
    with pytest.raises(UsageError):
        find_captures(["-"])


def test_a_session_is_called_as_the_file_without_its_endings() -> None:
    captures = ["/x/run.pcap", "/x/second.run.pcapng.gz", "/x/rotated.pcap3", "s3://bucket/key.cap?region=eu"]
    assert session_names(captures) == ["run", "second.run", "rotated3", "key"]


def test_sessions_are_told_apart_also_where_a_file_system_ignores_case() -> None:
    assert session_names(["/a/run.pcap", "/b/RUN.pcap", "/c/run.pcap"], taken=["Run"]) == ["run-2", "RUN-3", "run-4"]


@pytest.mark.parametrize(
    "name", ["..", "../../etc/passwd", "a=b/c=d", "x/../y", "-", "", "\n", "%2e%2e", "\udcff\udcfe", "x" * 300, "ü"]
)
def test_no_name_of_a_file_leads_out_of_the_folder(name: str) -> None:
    (session,) = session_names([f"/captures/{name}.pcap"])
    assert session.strip("._-") == session != ""
    assert not set(session) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    assert len(session) < 120


@pytest.mark.parametrize("name", ["007", "1e5", "2024-01-01", "NaN", "Infinity", "12", "0x1f", "1d"])
def test_no_session_reads_like_a_number_or_a_date(name: str) -> None:
    """Spark makes numbers of a partition's values if all of them are: 007 would become 7."""
    assert session_names([f"/x/{name}.pcap"]) == [f"capture-{name}"]

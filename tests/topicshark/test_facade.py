"""`import topicshark`: light to import, and each function does its job without Spark."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import topicshark
from tests.conftest import REPO

HEAVY = ("numpy", "pyarrow", "pandas", "pyspark", "py4j", "scapy", "pydantic", "numba", "matplotlib")
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark on this machine")


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("facade") / "building.pcap"
    topicshark.generate("building", path, sensors=2, dashboards=2, actuators=0, rounds=2, faults={"ack-missing": 0.5})
    return path


def imported_by(code: str, folder: Path = REPO) -> set[str]:
    """The heavy packages that a process has imported after this code."""
    script = f"import sys\n{code}\nprint(sorted({set(HEAVY)} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1].replace("'", '"')))


def test_import_is_light() -> None:
    assert imported_by("import topicshark; dir(topicshark)") == set()


def test_reading_and_checking_import_nothing_of_spark(capture: Path) -> None:
    code = f"import topicshark; topicshark.read_pcap({str(capture)!r}); topicshark.check({str(capture)!r})"
    assert imported_by(code) & {"pyspark", "py4j"} == set()


def test_every_name_is_there_and_documented() -> None:
    for name in topicshark.__all__:
        assert getattr(topicshark, name).__doc__
        assert f"\n    {name} " in (topicshark.__doc__ or "")
    assert set(topicshark.__all__) <= set(dir(topicshark))
    with pytest.raises(AttributeError, match="no attribute 'analyze'"):
        topicshark.analyze  # noqa: B018


def test_the_docstring_runs(tmp_path: Path) -> None:
    example = (topicshark.__doc__ or "").partition("``import topicshark``")[0]
    code = "\n".join(line[4:] for line in example.splitlines() if line.startswith("    "))
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(REPO)!r})\n{code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "fail\n"


def test_read_pcap_has_the_rows_of_decode(capture: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "topicshark.main", "decode", str(capture), "--format", "jsonl"],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = [json.loads(line) for line in done.stdout.splitlines()]
    rows = topicshark.read_pcap(capture).to_pylist()
    names = ("frame", "time_ns", "src", "sport", "message", "topic", "length")
    assert [[row[name] for name in names] for row in rows] == [[row[name] for name in names] for row in expected]


def test_read_pcap_with_columns_and_a_dialect(capture: Path) -> None:
    table = topicshark.read_pcap(capture, dialect="colon", columns=["topic", "frame"])
    assert table.schema.names == ["topic", "frame"]
    assert table.slice(0, 1).to_pylist() == [{"topic": None, "frame": 1}]
    assert topicshark.read_pcap(capture, dialect="mqttsn").num_rows == 0
    with pytest.raises(topicshark.UsageError, match="unknown column 'colour'"):
        topicshark.read_pcap(capture, columns=["colour"])


def test_damage_is_a_warning_and_no_capture_an_error(capture: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(capture.read_bytes()[:-3])
    with pytest.warns(UserWarning, match="cut"):
        rows = topicshark.read_pcap(cut).num_rows
    assert rows == topicshark.read_pcap(capture).num_rows - 1
    with pytest.raises(topicshark.TopicsharkError):
        topicshark.read_pcap(REPO / "README.md")


def test_check_finds_what_generate_recorded(tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    run = topicshark.generate("building", path, seed=3, rounds=3, capture={"point": "any"}, faults={"ack-missing": 0.3})
    assert path.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    (session,) = topicshark.check(path, engine="local").sessions
    found = sum(rule.failed for rule in session.rules if rule.id == "A-MISSING")
    assert found == len(run.truth()["faults"]) > 0
    assert topicshark.check([path], rules=["A-LATE"]).sessions[0].verdict == "pass"
    with pytest.raises(topicshark.UsageError, match="delay is fixed"):
        topicshark.generate("building", network={"delay": "slow"})


@pytest.fixture
def quiet() -> Iterator[None]:
    """No warning of asyncio or pyshark gets lost."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.tshark
@needs_tshark
@pytest.mark.usefixtures("quiet")
def test_pyshark_inside_a_running_event_loop(capture: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Jupyter runs its cells inside one."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WIRESHARK_CONFIG_DIR", str(tmp_path))

    async def cell() -> list[tuple[int, str, str, str | None]]:
        with topicshark.open_pyshark(capture) as packets:
            return [(int(p.number), p.pubsub.dialect, p.pubsub.message, p.pubsub.get("topic")) for p in packets]

    ours = topicshark.read_pcap(capture, columns=["frame", "dialect", "message", "topic"]).to_pylist()
    assert asyncio.run(cell()) == [tuple(row.values()) for row in ours]


@pytest.mark.tshark
@needs_tshark
@pytest.mark.usefixtures("quiet")
def test_pyshark_filters_stops_early_and_reports_errors(capture: Path) -> None:
    with topicshark.open_pyshark(capture, display_filter='pubsub.message == "PUBLISH"') as packets:
        first = next(iter(packets))
    assert (first.pubsub.message, first.pubsub.get("colon_type")) == ("PUBLISH", "1")
    assert first.pubsub.get("payload_text")
    with pytest.raises(topicshark.TopicsharkError, match=r"README\.md: tshark failed: .*capture file"):
        list(topicshark.open_pyshark(REPO / "README.md"))
    with pytest.raises(topicshark.TopicsharkError, match="no such file"):
        topicshark.open_pyshark("absent.pcap")

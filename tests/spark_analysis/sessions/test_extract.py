"""`topicshark extract`: the packets that were asked for, all of them and no others."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pcap_tools.capture import Frame, read_datagrams, read_frames
from tests.conftest import Run
from topicshark.exit_codes import ExitCode
from topicshark.main import exit_code_of

SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("captures") / "a.pcap"
    order = ["fragmented", "--seed", "3", "--fault", "ack-missing=0.1", "-o", str(path)]
    assert exit_code_of(["generate", *order]) == ExitCode.CLEAN
    return path


def written(path: Path) -> list[Frame]:
    return list(read_frames(path))


def numbers(path: Path) -> set[int]:
    """Of the frames in the capture that these were taken from."""
    return {int(frame.comments[0].split()[1]) for frame in written(path)}


def test_around_a_finding(run: Run, capture: Path, tmp_path: Path) -> None:
    (tmp_path / "check.json").write_text(run("check", capture, "--format", "json")[1])
    (session,) = json.loads((tmp_path / "check.json").read_text())["sessions"]
    finding: dict[str, Any] = session["findings"][1]
    out, again = tmp_path / "out.pcapng", tmp_path / "again.pcapng"
    asked = [capture, "--finding", finding["id"][:8], "--around", "300ms"]
    code, _, err = run("extract", *asked, "--results", tmp_path / "check.json", "-o", out)
    assert code == ExitCode.CLEAN
    own = {finding["frame"], *(place["frame"] for place in finding["related"])}
    frames = {frame.number: frame for frame in read_frames(capture)}
    near = {number for number, frame in frames.items() if abs(frame.time_ns - finding["time_ns"]) <= 300_000_000}
    whole = {one for d in read_datagrams(capture) if own & set(d.frames) for one in d.frames}
    assert numbers(out) == near | whole
    assert f"{len(near | whole)} packets" in err
    for frame in written(out):
        origin = frames[int(frame.comments[0].split()[1])]
        assert (frame.data, frame.time_ns) == (origin.data, origin.time_ns)
        said = " ".join(frame.comments[1:])
        assert (f"topicshark {finding['rule']} (error)" in said) == (origin.number in own)
    assert [frame.time_ns for frame in written(out)] == sorted(frame.time_ns for frame in written(out))
    assert run("extract", *asked, "-o", again)[0] == ExitCode.CLEAN
    assert written(again) == written(out)


@pytest.mark.parametrize("as_gzip", [False, True])
def test_a_client_in_a_period_and_its_fragments(run: Run, capture: Path, tmp_path: Path, as_gzip: bool) -> None:
    source, out = tmp_path / ("a.pcap.gz" if as_gzip else "a.pcap"), tmp_path / "out.pcapng"
    source.write_bytes(gzip.compress(capture.read_bytes()) if as_gzip else capture.read_bytes())
    datagrams = list(read_datagrams(capture))
    begin = datagrams[0].time_ns
    client = next(d.src for d in datagrams if d.dport == 50_000 and len(d.frames) > 1)
    code, *_ = run("extract", source, "--client", client, "--since", "+1s", "--until", "+20s", "-o", out)
    assert code == ExitCode.CLEAN
    expected = {
        frame
        for d in datagrams
        if client in (d.src, d.dst) and begin + SECOND <= d.time_ns < begin + 20 * SECOND
        for frame in d.frames
    }
    assert numbers(out) == expected
    assert run("extract", capture, "--client", f"{client}:1", "-o", out)[0] == ExitCode.UNREADABLE


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark reads the comments")
def test_wireshark_shows_where_packets_come_from(run: Run, capture: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "out.pcapng", tmp_path / "other.pcap"
    shutil.copy(capture, other)
    assert run("extract", capture, other, "--until", "+1s", "-o", out)[0] == ExitCode.CLEAN
    fields = ["-T", "fields", "-e", "frame.comment", "-e", "frame.interface_name"]
    done = subprocess.run(["tshark", "-r", str(out), *fields], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[:2] == ["frame 1 of a.pcap\ta.pcap", "frame 1 of other.pcap\tother.pcap"]


def test_a_topic_by_pattern(run: Run, capture: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    assert run("extract", capture, "--topic", "home/room?/t*", "-o", out)[0] == ExitCode.CLEAN
    rows = [json.loads(line) for line in run("decode", capture, "--format", "jsonl")[1].splitlines()]
    about = {row["frame"]: row["topic"] or row["filter"] or "" for row in rows}
    expected = {frame for frame, topic in about.items() if topic[:9] == "home/room" and topic[10:12] == "/t"}
    assert expected
    assert {frame for d in read_datagrams(capture) if d.frame in expected for frame in d.frames} == numbers(out)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_an_ingested_folder_leads_to_its_captures(run: Run, spark: SparkSession, capture: Path, tmp_path: Path) -> None:
    from spark_analysis.ingest import ingest

    source, out, direct = tmp_path / "a.pcap", tmp_path / "out.pcapng", tmp_path / "direct.pcapng"
    shutil.copy(capture, source)
    ingest(spark, [str(source)], tmp_path / "in")
    asked = ["--client", "10.0.0.18:50000", "--topic", "home/*"]
    assert run("extract", tmp_path / "in", *asked, "-o", out)[0] == ExitCode.CLEAN
    assert run("extract", source, *asked, "-o", direct)[0] == ExitCode.CLEAN
    assert written(out) == written(direct)
    source.unlink()
    code, _, err = run("extract", tmp_path / "in", *asked, "-o", out)
    assert (code, "must still be there" in err) == (ExitCode.UNREADABLE, True)


def test_what_cannot_be_meant(run: Run, capture: Path, tmp_path: Path) -> None:
    out, results = tmp_path / "out.pcapng", tmp_path / "check.json"
    results.write_text('{"sessions": [{"findings": [{"id": "abc"}]}]}')
    assert run("extract", capture, "-o", out)[0] == ExitCode.USAGE
    assert run("extract", capture, "--client", "nobody", "-o", out)[0] == ExitCode.USAGE
    assert run("extract", capture, "--topic", "x", "--around", "1s", "-o", out)[0] == ExitCode.USAGE
    assert run("extract", capture, "--topic", "no such", "-o", out)[0] == ExitCode.UNREADABLE
    for id_ in ("zzz", "abc"):
        assert run("extract", capture, "--finding", id_, "--results", results, "-o", out)[0] == ExitCode.UNREADABLE
    assert run("extract", capture, "--topic", "*", "-o", capture)[0] == ExitCode.USAGE
    assert not out.exists()

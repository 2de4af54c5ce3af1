"""The frames around a finding: which they are, and that only what is needed of a capture is read for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from generators.capture.capture_point import write
from generators.generate import GeneratorOptions, generate
from pcap_tools.codec.detect import wanted_dialects
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.read.datagrams import DatagramBatch
from spark_analysis.check import check
from spark_analysis.ingest import ingest
from spark_analysis.results import frame_context
from spark_analysis.results.frame_context import Row, frames_near
from spark_analysis.results.verdicts import Finding, Place
from spark_analysis.sessions.ingested import find_sources
from tests.spark_analysis.reports.made_results import finding
from tests.spark_analysis.reports.report_pages import findings_capture

BROKER = "10.0.0.1:50000"
COLON = wanted_dialects(["colon"])


def near(source: Path, *findings: Finding) -> list[list[Row]]:
    return frames_near(find_sources([str(source)]), COLON, findings, [BROKER])


def frames(rows: list[Row]) -> list[int]:
    return [row["frame"] for row in rows]


def test_the_frames_of_a_finding_and_those_of_the_same_client_and_topic_nearby(tmp_path: Path) -> None:
    path = findings_capture(tmp_path)
    found = check([str(path)], dialects=COLON, engine="local").sessions[0].findings
    missing, unanswered = near(path, *sorted(found, key=lambda one: one.frame))
    # All of Bert, Carla and Anna that is near 5; not Dora's 8 and 10.
    assert frames(missing) == [1, 2, 5, 6, 7, 9]
    assert frames(unanswered) == [5, 7, 9, 11, 12, 13, 14]
    assert [(row["source"], row["target"], row["message"], row["topic"]) for row in unanswered[2:3]] == [
        ("10.0.0.2:50000", BROKER, "PUBLISH", "attic")
    ]


def test_they_are_few(tmp_path: Path) -> None:
    path = tmp_path / "run.pcap"
    write(generate(GeneratorOptions("building", 1, ("colon",))).capture, path)
    many = finding(capture=str(path), frame=200, related=tuple(range(1, 180)), client=None, time_ns=0)
    (rows,) = near(path, many)
    assert frames(rows) == [*range(1, 9), 200]


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "long.pcap"
    faults = {"ack-missing": 0.02, "forward-missing": 0.02}
    write(generate(GeneratorOptions("building", 1, ("colon",), rounds=100, faults=faults)).capture, path)
    return path


def spread(path: Path) -> list[Finding]:
    found = check([str(path)], dialects=COLON, engine="local").sessions[0].findings
    return [found[0], found[len(found) // 2], found[-1]]


def test_of_a_long_capture_only_the_splits_and_batches_that_hold_them_are_decoded(
    long: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings, total = spread(long), check([str(long)], dialects=COLON, engine="local").sessions[0].datagrams
    decoded = 0
    decode = Decoder.decode

    def counted(self: Decoder, batch: DatagramBatch) -> object:
        nonlocal decoded
        decoded += batch.count
        return decode(self, batch)

    monkeypatch.setattr(Decoder, "decode", counted)
    monkeypatch.setattr(frame_context, "_UNIT_BYTES", 20_000)
    monkeypatch.setattr(frame_context, "_BATCH_ROWS", 50)
    monkeypatch.setattr(frame_context, "NEAR_FRAMES", 100)
    in_splits = near(long, *findings)
    assert [set(frames(rows)) & set(one.frames) for rows, one in zip(in_splits, findings, strict=True)] == [
        set(one.frames) for one in findings
    ]
    assert 0 < decoded < total / 2


def test_however_a_capture_is_cut_the_rows_are_the_same(long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    findings = spread(long)
    whole = near(long, *findings)
    assert [len(rows) > 4 for rows in whole] == [True] * 3
    monkeypatch.setattr(frame_context, "_UNIT_BYTES", 20_000)
    monkeypatch.setattr(frame_context, "_BATCH_ROWS", 50)
    assert near(long, *findings) == whole


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_an_ingested_folder_gives_the_same_rows_as_its_capture(long: Path, tmp_path: Path, spark: SparkSession) -> None:
    ingest(spark, [str(long)], str(tmp_path / "run"), COLON, split_bytes=200_000)
    findings = spread(long)
    assert near(tmp_path / "run", *findings) == near(long, *findings)


def test_frames_in_another_capture_of_the_session_are_read_there(tmp_path: Path) -> None:
    one, two = tmp_path / "one.pcap", tmp_path / "two.pcap"
    path = findings_capture(tmp_path)
    one.write_bytes(path.read_bytes())
    two.write_bytes(path.read_bytes())
    found = finding(capture=str(one), frame=5, related=(6, Place(str(two), 9)), client=None, topic=None, time_ns=0)
    (rows,) = frames_near(find_sources([str(one), str(two)]), COLON, [found], [BROKER])
    places = [(Path(row["capture"]).name, row["frame"]) for row in rows]
    assert [place for place in places if place[0] == "two.pcap"] == [("two.pcap", 9)]
    assert {("one.pcap", 5), ("one.pcap", 6)} <= set(places)


def test_a_capture_that_is_gone_gives_nothing(tmp_path: Path) -> None:
    path = findings_capture(tmp_path)
    sources = find_sources([str(path)])
    path.unlink()
    assert frames_near(sources, COLON, [finding(capture=str(path))]) == [[]]

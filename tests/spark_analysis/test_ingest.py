"""Ingest: the rows are those of the scalar decoder, published all or nothing, and only what is new is read."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from generators.bulk.tiling import segment_of
from generators.bulk.write import write_bulk
from generators.capture.capture_point import write
from generators.capture.options import Point
from generators.generate import GeneratorOptions, generate
from pcap_tools.codec.answer_key import answer_key, subscriber_port, topic_number
from pcap_tools.codec.decoding import Notes, Row, decode_capture
from pcap_tools.codec.detect import wanted_dialects
from pcap_tools.columnar.decode.schema import ALL_COLUMNS, ALL_MESSAGES
from pcap_tools.dialect import Dialect, load_dialect
from pcap_tools.errors import TopicsharkError
from spark_analysis.ingest import Call, ingest
from spark_analysis.parquet import messages_file
from spark_analysis.parquet.messages_file import MessagesFile
from spark_analysis.storage.folder import LocalFile, open_folder
from spark_analysis.storage.manifest import load_manifest
from spark_analysis.storage.store import Store
from tests.conftest import REPO, Command
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SMALL_SPLITS = 5000
OWN_DIALECT = str(REPO / "tests" / "dialects" / "keywords.toml")


def make(path: Path, dialect: str = "colon", *, seed: int = 1, rounds: int = 3, **capture: Any) -> Path:
    order = GeneratorOptions(
        "building", seed, (dialect,), sensors=3, dashboards=2, actuators=1, rounds=rounds, capture=capture
    )
    write(generate(order).capture, path)
    return path


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of each kind."""
    folder = tmp_path_factory.mktemp("captures")
    colon = make(folder / "colon.pcap", rounds=12)
    (folder / "packed.pcap.gz").write_bytes(gzip.compress(colon.read_bytes()))
    make(folder / "rolebyte.pcapng", "rolebyte", format="pcapng")
    make(folder / "mqttsn.pcap", "mqttsn", resolution="us", noise=0.3)
    make(folder / "copies.pcap", "rolebyte", point=Point.ANY)
    make(folder / "fragments.pcap", "topicbyte", mtu=68)
    whole = make(folder / "damaged.pcap", "portdigits")
    whole.write_bytes(whole.read_bytes()[:-5])
    return folder


def expected(capture: str, dialects: list[Dialect] | None = None) -> list[dict[str, Any]]:
    """The rows of the scalar decoder, in the columns of the table."""
    rows = []
    for row in decode_capture(capture, dialects, Notes()):
        if row.message is not None:
            told = {"capture": capture, **row.as_dict()}
            told |= {name: told[name] or None for name in ("message", "meaning", "error")}
            told |= ties(row, {one.name: one for one in dialects or wanted_dialects().wanted})
            rows.append({name: told[name] for name in ALL_COLUMNS})
    return rows


def ties(row: Row, dialects: dict[str, Dialect]) -> dict[str, Any]:
    """The columns that `decode` does not have."""
    message, datagram = row.message, row.datagram
    assert message is not None
    dialect = dialects[message.dialect]
    return {
        "key": answer_key(dialect, message, datagram.payload),
        "number": topic_number(dialect, message),
        "port": subscriber_port(dialect, message),
        "ip_id": datagram.ip_id,
        **{name: getattr(message, name) for name in ("code", "accepted", "qos", "dup")},
    }


def stored(folder: Path, capture: str) -> list[dict[str, Any]]:
    """What the files of a capture hold, in the order of its frames, as the manifest tells which these are."""
    names = [file.name for file in load_manifest(folder).sources[capture].files]
    rows: list[dict[str, Any]] = []
    for name in sorted(names):
        table = pq.ParquetFile(folder / name).read()
        assert table.schema.equals(ALL_MESSAGES)
        rows += table.to_pylist()
    return rows


def assert_same(folder: Path, dialects: list[Dialect] | None = None) -> None:
    """Each capture of the manifest has its rows, and a reader that knows no manifest sees the same ones."""
    manifest = load_manifest(folder)
    for capture in manifest.sources:
        assert stored(folder, capture) == expected(capture, dialects), capture
    seen = ds.dataset(folder / "messages", partitioning="hive")
    assert seen.count_rows() == sum(entry.decoded for entry in manifest.sources.values())
    assert {os.path.relpath(name, folder) for name in seen.files} == manifest.files


def test_rows_are_those_of_the_scalar_decoder_whatever_the_capture(
    spark: SparkSession, captures: Path, tmp_path: Path
) -> None:
    done = ingest(spark, [str(captures)], tmp_path, split_bytes=SMALL_SPLITS)
    assert done.failed == {}
    assert_same(tmp_path)
    entries = {Path(entry.uri).name: entry for entry in done.ingested}
    assert len(entries) == 7
    assert all(len(entries[name].files) > 1 for name in ("colon.pcap", "copies.pcap", "mqttsn.pcap"))
    assert entries["damaged.pcap"].damage[0]["text"]
    assert entries["mqttsn.pcap"].other > 0
    assert any(row["copy_of"] for row in stored(tmp_path, str(captures / "copies.pcap")))
    assert entries["rolebyte.pcapng"].dialects == ["rolebyte"]
    for entry in entries.values():
        notes = Notes()
        rows = [row for row in decode_capture(entry.uri, notes=notes) if row.message]
        assert entry.evidence == [str(one) for one in notes.evidence[:20]]
        assert (entry.decoded, entry.other) == (notes.decoded, notes.other)
        assert entry.times == [min(r.datagram.time_ns for r in rows), max(r.datagram.time_ns for r in rows)]
        assert [(one["offset"], one["text"]) for one in entry.damage] == [(d.offset, d.text) for d in notes.damage]


def test_spark_reads_the_folder_as_it_is(spark: SparkSession, captures: Path, tmp_path: Path) -> None:
    numbered = tmp_path / "007.pcap"
    shutil.copy(captures / "colon.pcap", numbered)
    ingest(spark, [str(numbered)], tmp_path / "out", split_bytes=SMALL_SPLITS)
    frame = spark.read.parquet(str(tmp_path / "out" / "messages"))
    assert frame.columns == [*ALL_COLUMNS, "session"]
    rows = frame.where("session = 'capture-007'").drop("session").orderBy("frame").collect()
    assert [row.asDict() for row in rows] == expected(str(numbered))


def test_spark_finds_topics_of_which_the_footer_has_bounds(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark skips row groups by the footer too; of texts above 256 bytes it is told bounds."""
    monkeypatch.setattr(messages_file, "GROUP_ROWS", 10)
    topics = [letter + rest * 300 for letter in "abc" for rest in ("x", "ü", "\U0010ffff")]
    with MessagesFile(LocalFile(str(tmp_path / "long.parquet"))) as file:
        for topic in topics:
            file.add(pa.record_batch([list(range(10)), [topic] * 10], ["frame", "topic"]))
    assert pq.ParquetFile(tmp_path / "long.parquet").metadata.num_row_groups == len(topics)
    frame = spark.read.parquet(str(tmp_path / "long.parquet"))
    assert [frame.where(frame.topic == topic).count() for topic in topics] == [10] * len(topics)
    assert frame.where(frame.topic > topics[-2]).count() == 10
    assert frame.where(frame.topic < topics[1]).count() == 10


def test_dialects_that_are_named_are_believed_on_their_ports(spark: SparkSession, tmp_path: Path) -> None:
    capture = make(tmp_path / "own.pcap", OWN_DIALECT)
    ingest(spark, [str(capture)], tmp_path / "out", wanted_dialects([OWN_DIALECT]), split_bytes=SMALL_SPLITS)
    assert_same(tmp_path / "out", [load_dialect(OWN_DIALECT)])
    again = ingest(spark, [str(capture)], tmp_path / "out", wanted_dialects([OWN_DIALECT]))
    assert [entry.uri for entry in again.skipped] == [str(capture)]
    other = ingest(spark, [str(capture)], tmp_path / "out", wanted_dialects(["mqttsn"], ports=[1234]))
    assert [entry.uri for entry in other.ingested] == [str(capture)], "another dialect is asked for"


def test_a_port_makes_a_dialect_believed_there(spark: SparkSession, tmp_path: Path, captures: Path) -> None:
    capture = captures / "mqttsn.pcap"
    ingest(spark, [str(capture)], tmp_path, wanted_dialects(["colon"], ports=[1883, 53]))
    rows = [
        row
        for row in decode_capture(capture, [load_dialect("colon")], ports={1883: "colon", 53: "colon"})
        if row.message
    ]
    told = stored(tmp_path, str(capture))
    assert rows
    assert [row["frame"] for row in told] == [row.datagram.frame for row in rows]


def test_run_again_it_adds_only_what_is_new(spark: SparkSession, captures: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "captures", tmp_path / "out"
    folder.mkdir()
    shutil.copy(captures / "colon.pcap", folder)
    assert ingest(spark, [str(folder)], out).rows > 0
    before = (out / "manifest.json").read_bytes()
    again = ingest(spark, [str(folder)], out)
    assert (again.rows, len(again.skipped)) == (0, 1)
    assert (out / "manifest.json").read_bytes() == before
    shutil.copy(captures / "mqttsn.pcap", folder)
    third = ingest(spark, [str(folder)], out)
    assert [Path(entry.uri).name for entry in third.ingested] == ["mqttsn.pcap"]
    assert_same(out)


def test_a_source_that_changed_is_read_anew_and_its_old_files_go(spark: SparkSession, tmp_path: Path) -> None:
    capture = make(tmp_path / "run.pcap")
    ingest(spark, [str(capture)], tmp_path / "out")
    old = load_manifest(tmp_path / "out").files
    make(capture, seed=2, rounds=5)
    done = ingest(spark, [str(capture)], tmp_path / "out")
    assert [entry.session for entry in done.ingested] == ["run"]
    assert not old & load_manifest(tmp_path / "out").files
    assert_same(tmp_path / "out")


def test_merged_captures_are_one_session_also_when_more_come(
    spark: SparkSession, captures: Path, tmp_path: Path
) -> None:
    first, second, third = (str(captures / name) for name in ("colon.pcap", "packed.pcap.gz", "copies.pcap"))
    ingest(spark, [first, second], tmp_path, merge=True)
    done = ingest(spark, [first, second, third], tmp_path, merge=True)
    assert (len(done.skipped), len(done.ingested)) == (2, 1)
    assert {entry.session for entry in load_manifest(tmp_path).sources.values()} == {"colon"}
    assert_same(tmp_path)


def test_a_capture_that_cannot_be_read_does_not_stop_the_others(
    spark: SparkSession, captures: Path, tmp_path: Path
) -> None:
    shutil.copy(captures / "colon.pcap", tmp_path / "good.pcap")
    (tmp_path / "bad.pcap").write_text("this is no capture")
    (tmp_path / "gone.pcap").symlink_to(tmp_path / "nowhere")
    done = ingest(spark, [f"{tmp_path}/good.pcap", f"{tmp_path}/bad.pcap", f"{tmp_path}/gone.pcap"], tmp_path / "out")
    assert sorted(Path(name).name for name in done.failed) == ["bad.pcap", "gone.pcap"]
    assert [Path(entry.uri).name for entry in done.ingested] == ["good.pcap"]
    assert_same(tmp_path / "out")


@pytest.fixture
def half_run(spark: SparkSession, captures: Path, tmp_path: Path) -> tuple[Call, Path]:
    """A run whose process will die: its store is not closed."""
    (tmp_path / "messages").mkdir()
    return Call(
        spark, Store(open_folder(tmp_path)), wanted_dialects(), SMALL_SPLITS, lambda label: nullcontext()
    ), tmp_path


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_run_that_dies_leaves_nothing_that_the_next_does_not_put_right(
    spark: SparkSession, captures: Path, half_run: tuple[Call, Path], share: float
) -> None:
    call, folder = half_run
    names = [str(captures / "colon.pcap"), str(captures / "copies.pcap")]
    todo, _ = call.choose(names, merge=False)
    _, staged = call.decode(call.plan(list(todo)), todo)
    assert list((folder / "messages").rglob("*")) == [], "nothing is seen before it is published"
    for file, place in list(staged.items())[: round(share * len(staged))]:
        open_folder(folder).move(file, place)
    assert load_manifest(folder).sources == {}
    ingest(spark, names, folder, split_bytes=SMALL_SPLITS)
    assert_same(folder)
    left = {os.path.relpath(place, folder) for place in folder.rglob("*.parquet")}
    assert left == load_manifest(folder).files


def test_a_failure_in_between_takes_away_what_was_written(
    spark: SparkSession, captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise TopicsharkError("cannot be written: no space left")

    monkeypatch.setattr("spark_analysis.storage.store.save_manifest", full)
    with pytest.raises(TopicsharkError, match="cannot be written: no space"):
        ingest(spark, [str(captures / "colon.pcap")], tmp_path)
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_task_that_fails_for_good_is_told_in_one_sentence(
    spark: SparkSession, captures: Path, tmp_path: Path
) -> None:
    (tmp_path / "_staging").write_text("a file where a folder must be")
    with pytest.raises(TopicsharkError, match=r"could not decode: .*File exists") as told:
        ingest(spark, [str(captures / "colon.pcap")], tmp_path)
    assert "\n" not in str(told.value)


@pytest.mark.slow
def test_the_command_tells_what_it_did_and_how_it_went(topicshark: Command, captures: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.pcap").write_text("this is no capture")
    answer = topicshark("ingest", str(captures), str(tmp_path / "bad.pcap"), "-o", str(tmp_path / "out"))
    rows = sum(entry["decoded"] for entry in json.loads((tmp_path / "out" / "manifest.json").read_text())["sources"])
    assert answer.returncode == 4, "one is damaged, one is no capture"
    assert answer.stdout.startswith(f"{rows:,} messages of 7 captures in {tmp_path / 'out'}, ")
    told = answer.stderr.splitlines()
    assert any("bad.pcap" in line for line in told)
    assert any("damaged.pcap: damaged at byte" in line for line in told)
    assert all(line.startswith(str(captures)) or "bad.pcap" in line for line in told), "no chatter of Spark"
    assert_same(tmp_path / "out")


@pytest.mark.long
def test_ctrl_c_ends_the_job_and_leaves_nothing(tmp_path: Path) -> None:
    capture, out = tmp_path / "large.pcap", tmp_path / "out"
    write_bulk(segment_of(generate(GeneratorOptions("building", sensors=4, rounds=5))), 400_000, capture)
    command = [sys.executable, "-m", "topicshark.main", "ingest", str(capture), "-o", str(out), "--split-size", "1"]
    with subprocess.Popen(
        command, cwd=REPO, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        wait_until(
            lambda: list(out.glob("_staging/part-*")) or run.poll() is not None, "a split is written", patience_s=200
        )
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does: to all of the group
        told, complaints = run.communicate()
    assert (run.returncode, told, complaints) == (130, "", "")
    assert not (out / "manifest.json").exists()
    assert ds.dataset(out / "messages").files == []


def test_the_command_refuses_at_once_what_cannot_be(topicshark: Command, tmp_path: Path) -> None:
    nothing = topicshark("ingest", str(tmp_path / "none.pcap"), "-o", str(tmp_path / "out"))
    assert (nothing.returncode, nothing.stdout) == (3, "")
    assert "none.pcap: there is no such file" in nothing.stderr
    assert topicshark("ingest", str(tmp_path), "-o", "x", "--port", "1").returncode == 2
    assert not (tmp_path / "out").exists()

"""An ingested folder is judged as the captures themselves are, also when they are gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from generators.capture.capture_point import write
from generators.generate import GeneratorOptions, generate
from pcap_tools.codec.detect import wanted_dialects
from pcap_tools.columnar.decode.schema import SCHEMA_VERSION
from pcap_tools.errors import TopicsharkError, UsageError
from spark_analysis.check import check
from spark_analysis.ingest import ingest
from spark_analysis.results.verdicts import SessionResult
from spark_analysis.sessions.ingested import find_sources
from spark_analysis.sessions.plans import plan_sources
from spark_analysis.sessions.unit_reading import read_unit
from spark_analysis.storage.manifest import load_manifest
from spark_analysis.storage.store import open_store
from tests.conftest import REPO
from topicshark.main import app

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SMALL_SPLITS = 2_000
FAULTS = {"forward-missing": 0.1, "forward-altered": 0.1}
RESENDS = {**FAULTS, "ack-missing": 0.1}
OWN_DIALECT = str(REPO / "tests" / "dialects" / "keywords.toml")
NEW_COLUMNS = ["key", "number", "port", "ip_id", "code", "accepted", "qos", "dup"]


def make(path: Path, dialect: str = "colon", seed: int = 1, faults: dict[str, float] = FAULTS) -> Path:
    order = GeneratorOptions(
        "building", seed, (dialect,), sensors=3, dashboards=2, actuators=1, rounds=8, faults=faults
    )
    write(generate(order).capture, path)
    return path


def local(*sources: Path, **options: Any) -> Any:
    return check([str(source) for source in sources], engine="local", **options)


def told(session: SessionResult) -> dict[str, Any]:
    """All that does not hang on where the session was cut, in an order that does not either."""
    return {
        "name": session.name,
        "captures": session.captures,
        "dialect": session.dialect,
        "brokers": session.brokers,
        "datagrams": session.datagrams,
        "facts": session.facts,
        "rules": session.rules,
        "verdict": session.verdict,
        "findings": sorted(map(repr, session.findings)),
    }


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    make(folder / "colon.pcap")
    make(folder / "mqttsn.pcap", "mqttsn", 2)
    cut = make(folder / "rolebyte.pcap", "rolebyte", 3)
    cut.write_bytes(cut.read_bytes()[:-5])
    return folder


@pytest.fixture(scope="module")
def week(spark: SparkSession, captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ingested") / "week"
    ingest(spark, [str(captures)], folder, split_bytes=SMALL_SPLITS)
    return folder


def test_verdicts_findings_and_damage_are_those_of_the_captures(captures: Path, week: Path) -> None:
    files = [len(entry.files) for entry in load_manifest(week).sources.values()]
    assert len(files) == 3
    assert min(files) >= 3, "one file a capture would show little"
    whole, stored = local(captures), local(week)
    assert [told(session) for session in stored.sessions] == [told(session) for session in whole.sessions]
    assert [session.verdict for session in whole.sessions] == ["fail"] * 3
    assert all(session.findings for session in whole.sessions)
    assert sorted(stored.partial) == sorted(whole.partial)
    (damage,) = stored.partial
    assert damage.startswith(f"{captures}/rolebyte.pcap: damaged at byte ")


def test_wherever_it_is_cut_long_resends_look_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = make(tmp_path / "run.pcap", faults=RESENDS)
    (whole,) = local(capture).sessions
    assert "A-MISSING" in {one.rule for one in whole.findings}
    ingest(spark, [str(capture)], tmp_path / "in", split_bytes=SMALL_SPLITS)
    monkeypatch.setattr("spark_analysis.check.UNIT_BYTES", SMALL_SPLITS)
    monkeypatch.setattr("spark_analysis.pipeline.BUCKET_ROWS", 20)
    (stored,), (cut,) = local(tmp_path / "in").sessions, local(capture).sessions
    assert told(stored) == told(cut) == told(whole)


def test_a_file_gives_the_rows_of_its_capture(spark: SparkSession, captures: Path, tmp_path: Path) -> None:
    ingest(spark, [str(captures / "colon.pcap")], tmp_path / "in")
    dialects = wanted_dialects()
    (of_capture,), _ = plan_sources(find_sources([str(captures / "colon.pcap")]), dialects, False, 1 << 30)
    (of_file,), _ = plan_sources(find_sources([str(tmp_path / "in")]), dialects, False, 1 << 30)
    rows = rows_of(read_unit(of_capture.units[0], dialects).batches)
    assert rows
    assert rows_of(read_unit(of_file.units[0], dialects).batches) == rows


def rows_of(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def test_merged_captures_stay_one_session(spark: SparkSession, captures: Path, tmp_path: Path) -> None:
    pair = [make(tmp_path / "a.pcap", seed=4), make(tmp_path / "b.pcap", seed=5)]
    ingest(spark, list(map(str, pair)), tmp_path / "one", merge=True, split_bytes=SMALL_SPLITS)
    (stored,), (whole,) = local(tmp_path / "one").sessions, local(*pair, merge=True).sessions
    assert stored.captures == list(map(str, pair))
    assert told(stored) == told(whole)


def test_the_captures_need_not_be_there_and_the_command_takes_the_folder(spark: SparkSession, tmp_path: Path) -> None:
    capture = make(tmp_path / "run.pcap")
    ingest(spark, [str(capture)], tmp_path / "in")
    capture.unlink()
    for command in ("check", "timing", "fanout"):
        done = CliRunner().invoke(app, [command, str(tmp_path / "in"), "--format", "json"])
        assert done.exit_code == (1 if command == "check" else 0), done.output
        assert json.loads(done.stdout)["sessions"][0]["captures"] == [str(capture)]


def test_captures_and_folders_go_together_unless_names_clash_or_are_to_be_merged(week: Path, tmp_path: Path) -> None:
    other = make(tmp_path / "other.pcap", "topicnumber")
    assert [one.name for one in local(other, week).sessions] == ["other", "colon", "mqttsn", "rolebyte"]
    with pytest.raises(UsageError, match="2 sessions 'colon'"):
        local(make(tmp_path / "colon.pcap"), week)
    with pytest.raises(UsageError, match="topicshark ingest --merge"):
        local(other, week, merge=True)


def test_a_dialect_of_the_users_own_is_not_passed_over_in_silence(spark: SparkSession, tmp_path: Path) -> None:
    capture, own = make(tmp_path / "own.pcap", OWN_DIALECT, faults={}), wanted_dialects([OWN_DIALECT])
    ingest(spark, [str(capture)], tmp_path / "in", own)
    unnamed = local(tmp_path / "in")
    assert unnamed.sessions == []
    assert unnamed.partial == [
        f"{capture}: its messages in 'keywords' are not judged; name that dialect's file with --dialect"
    ]
    named = local(tmp_path / "in", dialects=own)
    assert named.partial == []
    assert [told(one) for one in named.sessions] == [told(one) for one in local(capture, dialects=own).sessions]


def older(folder: Path, absent: list[str], schema: int) -> None:
    """Make folders what an older topicshark left: without these columns."""
    for file in folder.rglob("*.parquet"):
        pq.write_table(pq.read_table(file, partitioning=None).drop_columns(absent), file)
    for manifest in folder.rglob("manifest.json"):
        manifest.write_text(manifest.read_text().replace(f'"schema": {SCHEMA_VERSION}', f'"schema": {schema}'))


def test_a_folder_of_before_the_columns_is_to_be_ingested_anew(spark: SparkSession, tmp_path: Path) -> None:
    ingest(spark, [str(make(tmp_path / "run.pcap"))], tmp_path / "old")
    older(tmp_path / "old", NEW_COLUMNS, 0)
    with pytest.raises(TopicsharkError) as told:
        local(tmp_path / "old")
    needs = "ip_id (rules about doubled datagrams (A-DUPLICATE, D-DUPLICATE))"
    assert f"without columns that rules need: {needs}; ingest again" in str(told.value)
    assert f"topicshark ingest {tmp_path / 'run.pcap'} -o {tmp_path / 'old'}" in str(told.value)


def test_a_folder_without_columns_that_no_rule_of_its_dialect_needs_is_judged(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As of schema 1. A rule that reads the codes makes them needed, in dialects that have codes."""
    captures = [make(tmp_path / f"{dialect}.pcap", dialect) for dialect in ("colon", "mqttsn")]
    for capture in captures:
        ingest(spark, [str(capture)], tmp_path / "old" / capture.stem)
    older(tmp_path / "old", ["code", "qos", "dup"], 1)
    for capture in captures:
        (stored,), (whole,) = local(tmp_path / "old" / capture.stem).sessions, local(capture).sessions
        assert told(stored) == told(whole)
    older(tmp_path / "old", ["accepted"], 1)
    assert len(local(tmp_path / "old" / "colon").sessions) == 1
    with pytest.raises(TopicsharkError, match=r"mqttsn.pcap was .* need: accepted \(D-MISSING\); ingest again"):
        local(tmp_path / "old" / "mqttsn")


def test_a_file_that_is_gone_is_told(spark: SparkSession, tmp_path: Path) -> None:
    """The other captures of the folder are judged."""
    captures = [make(tmp_path / "run.pcap"), make(tmp_path / "other.pcap", seed=2)]
    ingest(spark, [str(capture) for capture in captures], tmp_path / "in")
    (file,) = (tmp_path / "in" / "messages" / "session=run").rglob("*.parquet")
    file.unlink()
    said = local(tmp_path / "in")
    assert [one.name for one in said.sessions] == ["other"]
    assert list(said.failed) == [str(captures[0])]
    assert f"{file.name}: cannot be read" in said.failed[str(captures[0])]


def test_a_manifest_of_another_program_makes_no_ingested_folder(captures: Path, tmp_path: Path) -> None:
    make(tmp_path / "run.pcap")
    (tmp_path / "manifest.json").write_text("{}")
    assert [one.name for one in local(tmp_path).sessions] == ["run"]


def test_an_empty_folder_is_no_pass(spark: SparkSession, tmp_path: Path) -> None:
    with open_store(tmp_path / "in") as store:
        store.commit([])
    with pytest.raises(TopicsharkError, match="nothing was ingested"):
        local(tmp_path / "in")

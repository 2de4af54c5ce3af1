"""The manifest and the folder it describes, without Spark: all or nothing, and nothing of others is touched."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pcap_tools.columnar.decode.schema import SCHEMA_VERSION
from pcap_tools.errors import TopicsharkError
from spark_analysis.storage.folder import open_folder
from spark_analysis.storage.manifest import (
    DataFile,
    Manifest,
    SourceEntry,
    check_columns,
    file_places,
    is_ingested,
    load_manifest,
    save_manifest,
)
from spark_analysis.storage.store import Store, open_store

PART = "part-0123456789abcdef-00000.parquet"
ENTRY = SourceEntry(
    uri="/captures/r\udcffn.pcap",  # a name that is no UTF-8
    size=10,
    version="10-1",
    fingerprint="f",
    wish="w",
    session="run",
    dialects=["colon"],
    evidence=["colon at 10.0.0.1 port 50000"],
    frames=None,
    decoded=1,
    other=0,
    times=[1, 2],
    damage=[{"path": "r", "offset": 3, "text": "cut"}],
    warnings=[],
    files=[DataFile(f"messages/session=run/{PART}", 1, 3)],
)


def file_in(store: Store, name: str, part: str = "messages/session=run") -> Path:
    place = Path(store.folder.place(f"{part}/{name}"))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("x")
    return place


def test_a_manifest_comes_back_as_it_was(tmp_path: Path) -> None:
    manifest = Manifest({ENTRY.uri: ENTRY})
    save_manifest(open_folder(tmp_path), manifest)
    assert load_manifest(tmp_path) == manifest
    assert [place.name for place in tmp_path.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1, "sources": [{}]}', '{"version": 99, "sources": []}'])
def test_what_is_no_manifest_is_an_error_and_nothing_is_removed(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    kept = tmp_path / "messages" / "session=run" / PART
    kept.parent.mkdir(parents=True)
    kept.touch()
    with pytest.raises(TopicsharkError, match=r"manifest\.json"), open_store(tmp_path):
        pass
    assert kept.exists()


@pytest.mark.parametrize(
    ("session", "name"),
    [
        ("run", "../../elsewhere.parquet"),
        ("run", "/etc/passwd"),
        ("run", "messages/session=run/../../../x.parquet"),
        ("run", "messages/session=other/x.parquet"),
        ("run", "messages/session=run/.."),
        ("../../run", "messages/session=../../run/x.parquet"),
    ],
)
def test_a_manifest_that_leads_out_of_its_folder_is_refused(tmp_path: Path, session: str, name: str) -> None:
    entry = replace(ENTRY, session=session, files=[DataFile(name, 1, 3)])
    save_manifest(open_folder(tmp_path), Manifest({ENTRY.uri: entry}))
    with pytest.raises(TopicsharkError, match="not a manifest of topicshark"):
        load_manifest(tmp_path)


def test_what_the_manifest_does_not_list_is_removed_by_the_next_run(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        kept = file_in(store, PART)
        store.commit([ENTRY])
        staged = file_in(store, f"part-0123456789abcdef-00001-{'a' * 32}.parquet", "_staging")
        moved = file_in(store, "part-0123456789abcdef-00001.parquet", "messages/session=other")
        of_before = file_in(store, f".part-0123456789abcdef-00001-{'a' * 32}.parquet")
        half_a_manifest = file_in(store, ".writing-manifest.json-abc_12", ".")
    with open_store(tmp_path):
        assert kept.exists()
        assert not any(place.exists() for place in (staged, moved, of_before, half_a_manifest))
        assert not staged.parent.exists()
        assert not moved.parent.exists()


def test_files_of_others_stay(tmp_path: Path) -> None:
    strangers = [
        tmp_path / name
        for name in (
            "notes.txt",
            "messages/part-1.parquet",
            "messages/session=x/mine.parquet",
            f"messages/other/{PART}",
            f"_staging/{PART}",
            "_staging/mine.parquet",
        )
    ]
    for stranger in strangers:
        stranger.parent.mkdir(parents=True, exist_ok=True)
        stranger.touch()
    with open_store(tmp_path):
        pass
    assert all(stranger.exists() for stranger in strangers)


def test_a_source_that_is_replaced_takes_its_files_along(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        old = file_in(store, PART)
        store.commit([ENTRY])
        new = file_in(store, "part-fedcba9876543210-00000.parquet")
        store.commit([replace(ENTRY, files=[DataFile(f"messages/session=run/{new.name}", 1, 3)])])
    assert new.exists()
    assert not old.exists()


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    with open_store(tmp_path), pytest.raises(TopicsharkError, match="another ingest"), open_store(tmp_path):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(TopicsharkError, match="cannot be written"), open_store(tmp_path / "new"):
        pass


def test_the_manifest_is_plain_json(tmp_path: Path) -> None:
    save_manifest(open_folder(tmp_path), Manifest({ENTRY.uri: ENTRY}))
    told = json.loads((tmp_path / "manifest.json").read_text())
    assert told["version"] == 2
    assert told["sources"][0]["files"][0] == {"name": f"messages/session=run/{PART}", "rows": 1, "bytes": 3}


def test_a_manifest_of_before_the_versions_is_read(tmp_path: Path) -> None:
    save_manifest(open_folder(tmp_path), Manifest({ENTRY.uri: ENTRY}))
    place = tmp_path / "manifest.json"
    told = json.loads(place.read_text())
    del told["sources"][0]["schema"]
    place.write_text(json.dumps({**told, "version": 1}))
    assert load_manifest(tmp_path).sources[ENTRY.uri].schema == 0


def ingested(folder: Path, schema: int, columns: list[str]) -> Manifest:
    """A folder with one file of these columns."""
    manifest = Manifest({ENTRY.uri: replace(ENTRY, uri="/captures/my run.pcap", schema=schema)})
    save_manifest(open_folder(folder), manifest)
    (place,) = file_places(folder, next(iter(manifest.sources.values())))
    Path(place).parent.mkdir(parents=True)
    pq.write_table(pa.table({name: [1] for name in columns}), place)
    return manifest


def test_an_older_folder_is_read_if_its_columns_suffice(tmp_path: Path) -> None:
    manifest = ingested(tmp_path, SCHEMA_VERSION - 1, ["frame", "topic", "key"])
    check_columns(tmp_path, manifest, lambda dialects: {"frame": "all rules", "key": "some"})
    needs = {"frame": "all rules", "key": "some", "ip_id": "doubles", "qos": "D-QOS"}
    with pytest.raises(TopicsharkError) as told:
        check_columns(tmp_path, manifest, lambda dialects: needs if dialects == ENTRY.dialects else {})
    assert "without columns that rules need: ip_id (doubles); qos (D-QOS); ingest again" in str(told.value)
    assert str(told.value).endswith(f"topicshark ingest '/captures/my run.pcap' -o {tmp_path}")


def test_a_folder_of_a_newer_topicshark_is_refused(tmp_path: Path) -> None:
    manifest = ingested(tmp_path, SCHEMA_VERSION + 1, ["frame"])
    with pytest.raises(TopicsharkError, match="by a newer topicshark"):
        check_columns(tmp_path, manifest, lambda dialects: {})


def test_an_ingested_folder_is_known_by_its_manifest(tmp_path: Path) -> None:
    assert not is_ingested(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    assert not is_ingested(tmp_path)
    assert not is_ingested(tmp_path / "manifest.json")
    assert not is_ingested("-")
    save_manifest(open_folder(tmp_path), Manifest())
    assert is_ingested(str(tmp_path))
    assert is_ingested(f"file://{tmp_path}")

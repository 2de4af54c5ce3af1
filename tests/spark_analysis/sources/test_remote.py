"""Captures in an object store: the rows are those from disk, and a task fetches its own part and no other. Messages
ingested into one: those of an undisturbed run on a disk, whatever is killed, and nothing that was not published.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pcap_tools.codec.detect import Dialects
from pcap_tools.errors import TopicsharkError
from spark_analysis.check import check
from spark_analysis.dataframes import analyse
from spark_analysis.ingest import UnitFile, Written, ingest, write_unit
from spark_analysis.parquet.messages_file import MessagesFile
from spark_analysis.results.verdicts import SessionResult
from spark_analysis.sources.data_source import TopicsharkSource
from spark_analysis.sources.reading import UnitPartition
from spark_analysis.storage.folder import RemoteFolder, open_folder, open_input
from spark_analysis.storage.manifest import file_places, is_ingested, load_manifest
from spark_analysis.storage.store import open_store
from tests.spark_analysis.traffic import codec_rows, write_capture

BUCKET = "captures"
HEADERS = 1024  # what may be fetched beside the records: the first bytes of a file, to see what it is


class CountingStore:
    """A WSGI application around the store's: counts the bytes of objects that it hands out."""

    def __init__(self, store: Callable[..., Iterable[bytes]]) -> None:
        self._store = store
        self._lock = threading.Lock()
        self.fetched = 0
        self.without_range = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        of_object = environ["REQUEST_METHOD"] == "GET" and re.fullmatch(rf"/{BUCKET}/.+", environ["PATH_INFO"])
        for chunk in self._store(environ, start_response):
            if of_object:
                with self._lock:
                    self.fetched += len(chunk)
                    self.without_range += "HTTP_RANGE" not in environ
            yield chunk


class Store:
    """The store, where it listens, and how to name what is in it."""

    def __init__(self, counting: CountingStore, port: int) -> None:
        self.counting = counting
        self.port = port

    def uri(self, key: str) -> str:
        return f"s3://test:test@{BUCKET}/{key}?endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"

    def keys(self, below: str) -> list[str]:
        """The objects; signs of folders are none."""
        return open_folder(self.uri(below)).list("")

    def put(self, key: str, path: Path) -> None:
        from pyarrow import fs

        store, place = fs.FileSystem.from_uri(self.uri(key))
        with store.open_output_stream(place) as stream:
            stream.write(path.read_bytes())

    @contextmanager
    def counted(self) -> Iterator[Callable[[], int]]:
        """How many bytes of objects were fetched since."""
        before = self.counting.fetched
        yield lambda: self.counting.fetched - before


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from pyarrow import fs
    from werkzeug.serving import make_server

    counting = CountingStore(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, counting, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    store = Store(counting, server.server_port)
    fs.S3FileSystem(
        access_key="test",
        secret_key="test",  # noqa: S106 - the store takes any
        endpoint_override=f"127.0.0.1:{store.port}",
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
    ).create_dir(BUCKET)
    yield store
    server.shutdown()
    thread.join()


@pytest.fixture(scope="module")
def captures(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    for name in ("colon", "rolebyte"):
        store.put(f"day/{name}.pcap", write_capture(folder / f"{name}.pcap", name, rounds=20))
    return folder


def without_capture(rows: Iterable[Iterable[object]]) -> list[tuple[object, ...]]:
    """`session` says which it is."""
    kept = [(first, *rest) for first, _, *rest in (tuple(row) for row in rows)]
    return sorted(kept, key=lambda row: row[:2])


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("key", ["day", "day/*.pcap"])
def test_a_folder_or_glob_of_a_store_gives_the_rows_from_disk(
    spark: SparkSession, store: Store, captures: Path, key: str
) -> None:
    frame = spark.read.format("topicshark").option("splitsize", "0.02").load(store.uri(key))
    assert frame.rdd.getNumPartitions() > 4
    wanted = [row for path in captures.iterdir() for row in codec_rows(path, path.stem)]
    assert without_capture(frame.collect()) == without_capture(wanted)


def test_a_task_fetches_its_own_part_by_range(store: Store, captures: Path) -> None:
    source = TopicsharkSource({"path": store.uri("day/colon.pcap"), "splitsize": "0.02"})
    reader = source.reader(source.schema())
    parts = reader.partitions()
    assert len(parts) > 2
    for part in parts:
        assert isinstance(part, UnitPartition)
        with store.counted() as fetched:
            assert list(reader.read(part))
        assert part.unit.bytes <= fetched() <= part.unit.bytes + HEADERS
    assert store.counting.without_range == 0


def test_a_small_capture_is_fetched_once(store: Store, captures: Path) -> None:
    source = TopicsharkSource({"path": store.uri("day/colon.pcap")})
    reader = source.reader(source.schema())
    with store.counted() as fetched:
        assert [list(reader.read(part)) for part in reader.partitions()]
    size = (captures / "colon.pcap").stat().st_size
    assert size <= fetched() <= size + HEADERS


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_an_object_that_is_not_there_is_told(spark: SparkSession, store: Store) -> None:
    with pytest.raises(PySparkException, match=r"day/none\.pcap"):
        spark.read.format("topicshark").load(store.uri("day/none.pcap")).count()


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_hdfs_without_its_client_says_what_is_missing(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match=r"hdfs://localhost:1/run\.pcap: cannot be .*(libhdfs|libjvm|Hadoop)"):
        spark.read.format("topicshark").load("hdfs://localhost:1/run.pcap").count()


# --- Ingest into a store --------------------------------------------------------------------------------------------


def messages_at(where: str, capture: str) -> pa.Table:
    """Of one capture, as the manifest says where they are."""
    files = file_places(where, load_manifest(where).sources[capture])
    return pa.concat_tables(pq.ParquetFile(open_input(file)).read() for file in files)


def as_text(sessions: list[SessionResult]) -> list[str]:
    """Verdicts and findings."""
    return sorted(repr((one.name, one.captures, one.rules, sorted(map(repr, one.findings)))) for one in sessions)


def killed_at_two_places(marks: Path) -> Callable[[Dialects, UnitFile], Written]:
    """`write_unit`, but the first attempt at unit 1 dies before its file is complete, and at unit 2 after that."""

    def die_once(number: int) -> None:
        try:
            (marks / str(number)).touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    complete = MessagesFile._complete

    def die_or_complete(file: MessagesFile) -> None:
        die_once(1)
        complete(file)

    def decode(dialects: Dialects, target: UnitFile) -> Written:
        dies = target.name.endswith("-00001")
        with mock.patch.object(MessagesFile, "_complete", die_or_complete if dies else complete):
            done = write_unit(dialects, target)
        if target.name.endswith("-00002"):
            die_once(2)
        return done

    return decode


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_ingest_into_a_store_with_tasks_killed_gives_the_rows_of_an_undisturbed_run(
    spark: SparkSession, store: Store, captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, where = [str(captures)], store.uri("killed")
    ingest(spark, sources, tmp_path / "calm", split_bytes=20_000)
    (tmp_path / "marks").mkdir()
    monkeypatch.setattr("spark_analysis.ingest.write_unit", killed_at_two_places(tmp_path / "marks"))
    staged: list[str] = []

    @contextmanager
    def stage(label: str) -> Iterator[None]:
        yield
        if label == "decode":
            staged.extend(store.keys("killed/_staging"))
            assert store.keys("killed/messages") == [], "nothing is seen before it is published"
            assert not is_ingested(where)

    done = ingest(spark, sources, where, split_bytes=20_000, stage=stage)
    assert {place.name for place in (tmp_path / "marks").iterdir()} == {"1", "2"}, "two workers were killed"
    files = sorted(load_manifest(where).files)
    assert done.failed == {}
    assert len(staged) > len(files) > 4, "an attempt that died has left its file"
    assert sorted(f"messages/{key}" for key in store.keys("killed/messages")) == files
    assert store.keys("killed/_staging") == store.keys("killed/_lock") == []
    assert is_ingested(where)
    for capture in load_manifest(tmp_path / "calm").sources:
        assert messages_at(where, capture).equals(messages_at(str(tmp_path / "calm"), capture))

    again = ingest(spark, sources, where, split_bytes=20_000)
    assert (len(again.skipped), again.ingested) == (len(done.ingested), [])

    from_store, from_captures = (check([place], engine="local", limit=100_000) for place in (where, *sources))
    assert as_text(from_store.sessions) == as_text(from_captures.sessions)
    analysis = analyse(spark, where)
    assert {row.session: row.checked for row in analysis.verdicts.where("rule = 'A-MISSING'").collect()} == {
        session.name: rule.checked
        for session in from_captures.sessions
        for rule in session.rules
        if rule.id == "A-MISSING"
    }
    assert analysis.messages.count() == sum(session.datagrams for session in from_captures.sessions)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_store_that_is_not_there_is_told_in_one_sentence(spark: SparkSession, store: Store, captures: Path) -> None:
    where = store.uri("x").replace(BUCKET, "no-such-bucket")
    with pytest.raises(TopicsharkError, match=r"^s3://no-such-bucket/x/.*cannot be written: .*bucket") as told:
        ingest(spark, [str(captures)], where)
    assert "\n" not in str(told.value)
    assert "test:test" not in str(told.value), "credentials are not shown"


def test_one_writer_at_a_time_in_a_store(store: Store) -> None:
    where = store.uri("locked")
    with open_store(where):
        (lock,) = store.keys("locked/_lock")
        with pytest.raises(TopicsharkError) as told, open_store(where):
            pass
        assert f"process {os.getpid()} on " in str(told.value)
        assert str(told.value).endswith(f"aws s3 rm s3://{BUCKET}/locked/_lock/{lock}")
        assert store.keys("locked/_lock") == [lock], "the one that was refused leaves nothing"
    assert store.keys("locked/_lock") == []
    with open_store(where):
        pass


def test_two_writers_that_come_at_the_same_moment_are_not_both_let_in(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have written their lock before either looks: neither goes on."""
    where, both_wrote = store.uri("race"), threading.Barrier(2)
    waits = [both_wrote.wait] * 2
    listed = RemoteFolder.list

    def list_together(folder: RemoteFolder, below: str) -> list[str]:
        if below == "_lock" and waits:
            waits.pop()()
        return listed(folder, below)

    let_in: list[bool] = []

    def write() -> None:
        try:
            with open_store(where):
                let_in.append(True)
        except TopicsharkError:
            let_in.append(False)

    monkeypatch.setattr("spark_analysis.storage.folder.RemoteFolder.list", list_together)
    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(let_in) in ([False, False], [False, True])


def test_a_run_whose_lock_was_removed_publishes_nothing(store: Store) -> None:
    where = store.uri("robbed")
    with open_store(where) as opened:
        for lock in store.keys("robbed/_lock"):
            open_folder(where).delete(f"_lock/{lock}")
        with pytest.raises(TopicsharkError, match="lock of this run was removed"):
            opened.publish({}, [])
    assert not is_ingested(where)


def test_what_a_dead_run_left_in_a_store_is_removed_by_the_next(store: Store) -> None:
    folder = open_folder(store.uri("dead"))
    part = "part-0123456789abcdef-00001"
    folder.write(f"_staging/{part}-{'a' * 32}.parquet", b"x")
    folder.write(f"messages/session=run/{part}.parquet", b"x")
    folder.write("messages/session=run/mine.parquet", b"x")
    with open_store(store.uri("dead")):
        assert store.keys("dead/messages") == ["session=run/mine.parquet"]
        assert store.keys("dead/_staging") == []

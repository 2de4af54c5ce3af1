"""Captures in an object store: the rows are those from disk, and a task fetches its own part and no other."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_analysis.data_source import TopicsharkSource
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
        split = part.value.split
        with store.counted() as fetched:
            assert list(reader.read(part))
        assert split.end - split.begin <= fetched() <= split.end - split.begin + HEADERS
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

"""Ingest and analysis on a real cluster: a master and two workers on loopback, with processes killed in the middle."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.cluster import PATIENCE_S, command_of, offspring, standalone_cluster
from generators.bulk.tiling import segment_of
from generators.bulk.write import write_bulk
from generators.generate import GeneratorOptions, generate
from pcap_tools.codec.detect import wanted_dialects
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.decode.schema import ALL_COLUMNS
from pcap_tools.columnar.read.reading import read_file
from spark_analysis.dataframes import EMPTY
from spark_analysis.sources.planning import plan_capture
from spark_analysis.storage.manifest import load_manifest
from tests.conftest import REPO
from tests.spark_analysis.local_tables import TABLES, arrow_tables
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.net, pytest.mark.xdist_group("spark")]

wait_long_until = partial(wait_until, patience_s=PATIENCE_S)
PACKETS = 600_000
SPLIT_MB = 2


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[int]]]:
    """The URL of the master, and the process ids of the workers."""
    with standalone_cluster(tmp_path) as found:
        yield found


def is_busy(process: int) -> bool:
    """It computes right now, and does not wait."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "R"
    except OSError:
        return False


def kill_one(worker: int, kind: str, busy: bool = False) -> bool:
    """SIGKILL for a process of this kind below a Spark worker, the youngest: the others wait or hand out work."""
    found = [process for process in offspring(worker) if kind in command_of(process)]
    found = [process for process in found if is_busy(process)] if busy else found
    if not found:
        return False
    os.kill(max(found), signal.SIGKILL)
    return True


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "large.pcap"
    write_bulk(segment_of(generate(GeneratorOptions("building", sensors=4, rounds=5))), PACKETS, str(path))
    return path


def decoded_here(capture: Path) -> pa.Table:
    """All rows by one reading in this process."""
    dialects = wanted_dialects()
    plan = plan_capture(str(capture), dialects, 1 << 40)
    decoder = Decoder(dialects.wanted, plan.routes, ALL_COLUMNS, plain=True, capture=str(capture))
    return pa.Table.from_batches([decoder.decode(batch) for batch in read_file(str(capture))])


def test_rows_are_exact_though_processes_of_the_cluster_are_killed(
    cluster: tuple[str, list[int]], capture: Path, tmp_path: Path
) -> None:
    url, (first, second) = cluster
    out = tmp_path / "out"
    command = [sys.executable, "-m", "topicshark.main", "ingest", str(capture), "-o", str(out), "--master", url]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    run = subprocess.Popen(
        [*command, "--split-size", str(SPLIT_MB)],
        cwd=REPO,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def written() -> int:
        return len(list(out.glob("_staging/part-*")))

    wait_long_until(lambda: written() >= 1 or run.poll() is not None, "a split is written")
    wait_long_until(lambda: kill_one(first, "pyspark.daemon") or run.poll() is not None, "a Python worker is killed")
    before = written()
    wait_long_until(lambda: written() > before or run.poll() is not None, "another split is written")
    wait_long_until(
        lambda: kill_one(second, "CoarseGrainedExecutorBackend") or run.poll() is not None, "an executor dies"
    )
    splits = capture.stat().st_size // (SPLIT_MB << 20)
    assert run.poll() is None, run.communicate()
    assert written() < splits, "the executor died too late to matter"
    told, complaints = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 0, complaints
    assert told.startswith(f"{PACKETS:,} messages of 1 capture ")
    files = sorted(file.name for file in load_manifest(out).sources[str(capture)].files)
    assert pa.concat_tables(pq.ParquetFile(out / name).read() for name in files).equals(decoded_here(capture))
    assert len(list(out.rglob("*part-*"))) == len(files), "nothing is left of the attempts that died"


# -- analysis ---------------------------------------------------------------------------------------------------------

ANALYSING = """
import sys
from spark_analysis import check, pipeline
from spark_analysis.dataframes import analyse
from spark_analysis.engine.spark_session import open_session

check.UNIT_BYTES, pipeline.BUCKET_ROWS = 4 << 20, 60_000
with open_session(sys.argv[1]) as spark:
    analysis = analyse(spark, sys.argv[2])
    assert len(analysis._sessions[0].units) >= 10
    analysis.write(sys.argv[3])
"""


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    path = tmp_path / "faulty.pcap"
    order = GeneratorOptions("building", faults={"forward-missing": 0.05, "ack-missing": 0.02}, sensors=4, rounds=5)
    write_bulk(segment_of(generate(order)), PACKETS, str(path))
    return path


def in_order(table: pa.Table) -> pa.Table:
    """By all columns that can be sorted by; rows come in no order."""
    flat = table.flatten()
    while flat.schema != table.schema:
        table, flat = flat, flat.flatten()
    names = [field.name for field in flat.schema if not pa.types.is_nested(field.type)]
    return flat.sort_by([(name, "ascending") for name in sorted(names)]).combine_chunks()


def test_tables_are_exact_though_processes_of_the_cluster_are_killed(
    cluster: tuple[str, list[int]], faulty: Path, tmp_path: Path
) -> None:
    """A Python worker dies, later an executor with all rows that were kept on its disk, then the other one, when the
    first files of tables are there."""
    url, (first, second) = cluster
    (tmp_path / "job.py").write_text(ANALYSING)
    run = subprocess.Popen(
        [sys.executable, "job.py", url, str(faulty), str(tmp_path / "out")],
        cwd=tmp_path,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(REPO)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def said(words: str) -> int:
        """How often the executors have said this."""
        logs = tmp_path.glob("work*/app-*/*/stderr")
        return sum(len(re.findall(words, log.read_text(errors="replace"))) for log in logs)

    def written() -> list[Path]:
        return [path for path in tmp_path.glob("out/*/part-*.parquet") if path.name != EMPTY]

    def over() -> bool:
        return run.poll() is not None

    finished, lost = "Finished task", "Python worker exited unexpectedly"
    wait_long_until(lambda: said(finished) >= 5 or over(), "units are read")
    # One that dies between two tasks takes none with it: then another has to.
    wait_long_until(
        lambda: said(lost) or over() or (kill_one(first, "pyspark.daemon", busy=True) and said(lost)),
        "a task is lost with its Python worker",
    )
    before = said(finished)
    wait_long_until(lambda: said(finished) >= before + 30 or over(), "rows are kept, and steps go on")
    wait_long_until(lambda: kill_one(second, "CoarseGrainedExecutorBackend") or over(), "an executor dies")
    assert not over(), run.communicate()
    assert not written(), "the executor died too late to matter"
    wait_long_until(lambda: written() or over(), "tables are being written")
    wait_long_until(lambda: kill_one(first, "CoarseGrainedExecutorBackend") or over(), "the other executor dies")
    assert not over(), run.communicate()
    _, complaints = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 0, complaints
    expected = arrow_tables(faulty)
    assert expected["exchanges"].num_rows > PACKETS // 10
    for name in TABLES:
        assert expected[name].num_rows or name == "evidence"
        found = pq.read_table(tmp_path / "out" / name)
        assert found.num_rows == expected[name].num_rows, name
        assert in_order(found).equals(in_order(expected[name])), name
    assert said(lost)

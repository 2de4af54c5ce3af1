"""Ingest on a real cluster: a master and two workers on loopback, of whose processes some are killed in the middle."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from generators.bulk import write_bulk
from generators.generate import Order, generate
from generators.tiling import segment_of
from pcap_tools.columnar.decoder import Decoder
from pcap_tools.columnar.reading import read_file
from pcap_tools.columnar.schema import ALL_COLUMNS
from spark_analysis.manifest import load_manifest
from spark_analysis.planning import plan_capture, wanted_dialects
from tests.conftest import REPO
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.net, pytest.mark.xdist_group("spark")]

SPARK_CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
PATIENCE_S = 200
wait_long_until = partial(wait_until, patience_s=PATIENCE_S)
PACKETS = 600_000
SPLIT_MB = 2


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[int]]]:
    """The URL of the master, and the process ids of the workers."""
    url = f"spark://127.0.0.1:{free_port()}"
    log = (tmp_path / "cluster.log").open("wb")
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> int:
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
        command = [SPARK_CLASS, *arguments, "--host", "127.0.0.1", "--webui-port", "0"]
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        started.append(process)
        return process.pid

    try:
        start("org.apache.spark.deploy.master.Master", "--port", url.rpartition(":")[2])
        worker = "org.apache.spark.deploy.worker.Worker"
        rest = ("--cores", "1", "--memory", "1g")
        workers = [start(worker, url, *rest, "--work-dir", str(tmp_path / f"work{n}")) for n in range(2)]
        registered = re.compile(r"Successfully registered with master")
        said = tmp_path / "cluster.log"
        wait_long_until(
            lambda: len(registered.findall(said.read_text(errors="replace"))) == 2, "both workers are registered"
        )
        yield url, workers
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(timeout=PATIENCE_S)
        log.close()


def offspring(process: int) -> Iterator[int]:
    """All processes that this one started, through others or by itself; of all of its threads."""
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found = [int(child) for child in thread.read_text().split()]
        except OSError:
            continue
        for child in found:
            yield child
            yield from offspring(child)


def command_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def kill_one(worker: int, kind: str) -> bool:
    """SIGKILL for a process of this kind below a Spark worker, the youngest: the others wait or hand out work."""
    found = [process for process in offspring(worker) if kind in command_of(process)]
    if not found:
        return False
    os.kill(max(found), signal.SIGKILL)
    return True


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "large.pcap"
    write_bulk(segment_of(generate(Order("building", sensors=4, rounds=5))), PACKETS, str(path))
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
    command = [sys.executable, "-m", "cli.main", "ingest", str(capture), "-o", str(out), "--master", url]
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

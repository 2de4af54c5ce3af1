"""A standalone Spark cluster on loopback: a master and workers of one core each, which end with the block.

>>> with standalone_cluster(Path("work"), workers=2) as (url, processes):        # doctest: +SKIP
...     open_session(url)
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

PATIENCE_S = 200
_SPARK_CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
_REGISTERED = re.compile(r"Successfully registered with master")
_CLASSES = "org.apache.spark.deploy"


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2, memory: str = "1g") -> Iterator[tuple[str, list[int]]]:
    """The URL of the master, and the process ids of the workers. What they print is in ``folder``."""
    url = f"spark://127.0.0.1:{_free_port()}"
    said = folder / "cluster.log"
    log = said.open("wb")
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> int:
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
        command = [_SPARK_CLASS, *arguments, "--host", "127.0.0.1", "--webui-port", "0"]
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        started.append(process)
        return process.pid

    try:
        start(f"{_CLASSES}.master.Master", "--port", url.rpartition(":")[2])
        rest = ("--cores", "1", "--memory", memory)
        ids = [
            start(f"{_CLASSES}.worker.Worker", url, *rest, "--work-dir", str(folder / f"work{number}"))
            for number in range(workers)
        ]
        _wait(lambda: len(_REGISTERED.findall(said.read_text(errors="replace"))) == workers)
        yield url, ids
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(timeout=PATIENCE_S)
        log.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError("the workers do not register with the master")
        time.sleep(0.1)


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
    """Its command line; none if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""

"""A Spark session of our own: small, quiet, on this machine unless another master is named.

>>> with open_session() as spark:               # doctest: +SKIP
...     spark.range(3).count()

Who has a session already (a notebook, spark-submit) uses that one; nothing in this package needs ours.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from pcap_tools.errors import TopicsharkError

# All cores; unlike in `local[*]` a task whose worker dies is tried again, as in a cluster.
LOCAL = "local[*,4]"
# Rows of the data source come from our own worker, so Java need not look at the bounds of each value it takes: that,
# and not decoding, is most of the time.
_JAVA = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
# For passes whose work is in Python: Java's second compiler would take a third of two cores for the first minutes.
PYTHON_WORK = {
    "spark.driver.defaultJavaOptions": f"{_JAVA} -XX:TieredStopAtLevel=1",
    "spark.executor.defaultJavaOptions": f"{_JAVA} -XX:TieredStopAtLevel=1",
}
_HAS_UNIX_SOCKETS = str(hasattr(socket, "AF_UNIX")).lower()  # rows are handed over quicker than by TCP
_SETTINGS = {
    "spark.app.name": "topicshark",
    "spark.driver.defaultJavaOptions": _JAVA,  # `extraJavaOptions` are the user's
    "spark.executor.defaultJavaOptions": _JAVA,
    "spark.driver.memory": "1g",
    "spark.python.unix.domain.socket.enabled": _HAS_UNIX_SOCKETS,
    "spark.python.worker.reuse": "true",
    "spark.shuffle.compress": "false",  # what is shuffled is packed, and compressed already
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def open_session(master: str = LOCAL, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session that ends with the block. What Java and Spark print is kept off stderr, unless they do not start."""
    if master.startswith("local"):
        # Else Spark asks the network for this machine's name, which may have no answer.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf().setMaster(master).setAll(list({**_SETTINGS, **(settings or {})}.items()))
    with tempfile.TemporaryDirectory(prefix="topicshark-spark-") as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")  # which we do not use
        conf.setIfMissing("spark.sql.warehouse.dir", str(Path(folder, "warehouse")))
        session = _start(conf, Path(folder, "log"))
        try:
            yield session
        finally:
            session.stop()
            _end_java()


def is_local(session: SparkSession) -> bool:
    """Tasks run on this machine, beside who asks. Where the server of Spark Connect runs is not known."""
    return not is_connect(session) and (session.sparkContext.master or "").startswith("local")


def is_connect(session: SparkSession) -> bool:
    """A client of Spark Connect: there is no Java on this side."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def _start(conf: SparkConf, log: Path) -> SparkSession:
    """With Java's output in a file."""
    if SparkContext._active_spark_context is not None:
        raise TopicsharkError("a Spark session is open in this process already; pass that one on")
    try:
        with log.open("wb") as output:
            gateway = launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
        context = SparkContext(conf=conf, gateway=gateway)
        context.setLogLevel("OFF")
        return SparkSession(context)  # fails if the master could not be reached
    except (PySparkException, Py4JError, OSError) as error:
        _end_java()
        raise TopicsharkError(_why(error, log)) from error


def _why(error: Exception, log: Path) -> str:
    """The first lines of the log, which name the trouble; the error itself is a trace of calls."""
    said = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    told = [line for line in said if "ERROR" in line or "Exception" in line or "JAVA" in line] or said[:3]
    return "\n".join(["Spark does not start (`topicshark doctor` checks Java):", *(told[:3] or [str(error)])])


def _end_java() -> None:
    """So that the next session can have another master and other memory."""
    gateway = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    if gateway is None:
        return
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()  # Java ends when its stdin does
        process.wait()

"""The source in sessions that are not ours: a script given to spark-submit, and a client of Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.spark_analysis.traffic import codec_rows, write_capture

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.xdist_group("spark")]

SUBMITTED = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
messages = spark.read.format("topicshark").load(sys.argv[1])
for row in messages.groupBy("session", "message").count().orderBy("message").collect():
    print("counted", row["session"], row["message"], row["count"])
spark.stop()
"""
CONNECTED = SUBMITTED.replace(
    "SparkSession.builder.getOrCreate()", 'SparkSession.builder.remote("local[2]").getOrCreate()'
)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_capture(tmp_path_factory.mktemp("capture") / "run.pcap", "colon")


def counted(command: list[str], folder: Path) -> list[str]:
    """What the script printed. Nothing but an installed topicshark leads Spark to the source."""
    ours = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    foreign = ("PYTHONPATH", "SPARK_HOME", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "SPARK_CONF_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in foreign} | ours
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    return [line for line in done.stdout.splitlines() if line.startswith("counted")]


def expected(capture: Path) -> list[str]:
    messages = [str(row[10]) for row in codec_rows(capture, "run")]
    return [f"counted run {name} {messages.count(name)}" for name in sorted(set(messages))]


def test_a_script_given_to_spark_submit(tmp_path: Path, capture: Path) -> None:
    (tmp_path / "job.py").write_text(SUBMITTED)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    settings = ["--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    assert counted([str(submit), *settings, "job.py", str(capture)], tmp_path) == expected(capture)


def test_a_client_of_spark_connect(tmp_path: Path, capture: Path) -> None:
    (tmp_path / "job.py").write_text(CONNECTED)
    assert counted([sys.executable, "job.py", str(capture)], tmp_path) == expected(capture)

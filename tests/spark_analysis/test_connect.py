"""The source, `ingest` and the analysis in sessions that are not ours: scripts given to spark-submit, clients of Spark
Connect.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from generators.capture.capture_point import write
from generators.generate import GeneratorOptions, generate
from spark_analysis.sources.options import SOURCE_COLUMNS
from spark_analysis.storage.manifest import file_places, load_manifest
from tests.spark_analysis.local_tables import TABLES, digest, local_tables, texts
from tests.spark_analysis.traffic import codec_rows, write_capture

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.xdist_group("spark")]

FAULTS = {"forward-missing": 0.1, "ack-missing": 0.1, "network-loss": 0.05}

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

INGESTING = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from pcap_tools.errors import TopicsharkError
from spark_analysis.ingest import ingest
from spark_analysis.engine.progress import task_progress

spark = SparkSession.builder.getOrCreate()
stage = lambda label: task_progress(spark, label, open("progress", "w"))
done = ingest(spark, [sys.argv[1]], "out", split_bytes=2000, stage=stage)
print("counted", done.rows, len(done.ingested[0].files) > 3, done.failed)
Path("broken").mkdir()
Path("broken", "_staging").write_text("a file where a folder must be")
try:
    ingest(spark, [sys.argv[1]], "broken")
except TopicsharkError as error:
    print("counted", error)
spark.stop()
"""

# The rows are digested as `local_tables` does it, by a script that has nothing of the tests.
ANALYSING = """
import hashlib, json, sys
from pyspark.sql import SparkSession
from spark_analysis import check, pipeline
from spark_analysis.dataframes import SCHEMAS, analyse
from spark_analysis.engine.spark_session import is_connect

check.UNIT_BYTES, pipeline.BUCKET_ROWS = int(sys.argv[2]), 100
spark = SparkSession.builder.getOrCreate()
print("counted", "connect" if is_connect(spark) else "classic")


def tell(analysis):
    print("counted units", [len(session.units) > 1 for session in analysis._sessions])
    for name in list(SCHEMAS)[1:]:
        rows = [row.asDict(recursive=True) for row in getattr(analysis, name).collect()]
        lines = sorted(json.dumps(row, sort_keys=True) for row in rows)
        print("counted", name, len(lines), hashlib.sha256("\\n".join(lines).encode()).hexdigest())
    print("counted messages", analysis.messages.count())
    analysis.release()


analysis = analyse(spark, sys.argv[1])
tell(analysis)
if int(sys.argv[2]) > 1 << 30:
    tell(analyse(spark, analysis.messages))
    analyse(spark, sys.argv[1]).write("out")
spark.stop()
"""


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


@pytest.mark.parametrize("kind", ["submitted", "connected"])
def test_ingest_in_a_session_that_is_not_ours(tmp_path: Path, capture: Path, kind: str) -> None:
    """The rows are those of the codec; an error in a task is a sentence with its reason."""
    script = tmp_path / "job.py"
    if kind == "submitted":
        script.write_text(INGESTING)
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        command = [str(submit), "--master", "local[2]", "--conf", "spark.ui.enabled=false", "job.py", str(capture)]
    else:
        script.write_text(INGESTING.replace("builder.", 'builder.remote("local[2]").'))
        command = [sys.executable, "job.py", str(capture)]
    rows = codec_rows(capture, "run")
    told = counted(command, tmp_path)
    assert told[0] == f"counted {len(rows)} True {{}}"
    assert re.fullmatch(r"counted Spark could not decode: \w+Error: .*File exists.*", told[1])
    (entry,) = load_manifest(tmp_path / "out").sources.values()
    files = [pq.ParquetFile(place).read() for place in file_places(tmp_path / "out", entry)]
    frames = pa.concat_tables(files).select(["frame", "topic", "payload"]).to_pylist()
    place = {name: SOURCE_COLUMNS.index(name) for name in ("frame", "topic", "payload")}
    assert frames == [{name: row[at] for name, at in place.items()} for row in rows]


@pytest.mark.parametrize("kind", ["submitted", "connected"])
@pytest.mark.parametrize("unit_bytes", [3_000, 1 << 40], ids=["in units", "whole"])
def test_the_analysis_in_a_session_that_is_not_ours(tmp_path: Path, kind: str, unit_bytes: int) -> None:
    """All tables have the rows that they have in this process; from the capture, and from the table of its messages."""
    order = GeneratorOptions("building", 1, sensors=3, dashboards=2, rounds=6, faults=FAULTS)
    write(generate(order).capture, tmp_path / "run.pcap")
    script = tmp_path / "job.py"
    if kind == "submitted":
        script.write_text(ANALYSING)
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        command = [str(submit), "--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    else:
        script.write_text(ANALYSING.replace("builder.", 'builder.remote("local[2]").'))
        command = [sys.executable]
    told = counted([*command, "job.py", str(tmp_path / "run.pcap"), str(unit_bytes)], tmp_path)
    tables = local_tables(tmp_path / "run.pcap")
    assert all(tables.values())
    rows = [f"counted {name} {len(tables[name])} {digest(tables[name])}" for name in TABLES]
    rows.append(f"counted messages {len(codec_rows(tmp_path / 'run.pcap', 'run'))}")
    session = "connect" if kind == "connected" else "classic"
    if unit_bytes < 1 << 30:
        assert told == [f"counted {session}", "counted units [True]", *rows]
    else:
        assert told == [f"counted {session}", *(["counted units [False]", *rows] * 2)]
        assert {name: texts(pq.read_table(tmp_path / "out" / name).to_pylist()) for name in TABLES} == tables

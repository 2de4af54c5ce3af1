"""One Spark task for each item of a list: `run_tasks`.

>>> run_tasks(spark, len, ["a", "bc"], "count letters")  # doctest: +SKIP
[1, 2]

Items and results are pickled, one a row, so that a task gets its own item and not those of all. Results come back in
the order of the items, one for each, however often a task was tried.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pcap_tools.errors import TopicsharkError

Item = TypeVar("Item")
Result = TypeVar("Result")

_SCHEMA = pa.schema([("place", pa.int32()), ("data", pa.binary())])
_CAUSE = re.compile(r"^(?:: )?((?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt)(?:: .*)?)$", re.MULTILINE)


def run_tasks(
    spark: SparkSession, function: Callable[[Item], Result], items: Sequence[Item], label: str
) -> list[Result]:
    """Apply `function`, which is pickled too. `label` is the job group by which progress finds the tasks."""
    if not items:
        return []
    # In a thread of its own: Ctrl-C comes to the main one, where pyspark cancels the jobs, and breaks no call to Java.
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(_collect, spark, function, [pickle.dumps(item) for item in items], label).result()
    return [done[place] for place in range(len(items))]


def _collect(
    spark: SparkSession, function: Callable[[Item], Result], items: Sequence[bytes], label: str
) -> dict[int, Result]:
    spark.sparkContext.setJobGroup(label, f"topicshark: {label}", interruptOnCancel=True)
    rows = pa.table({"place": list(range(len(items))), "data": items}, _SCHEMA)
    try:
        jobs = spark.createDataFrame(rows).repartitionById(len(items), "place")
        done = jobs.mapInArrow(_task(function), "place int, data binary").collect()
    except (PySparkException, Py4JError) as error:
        raise TopicsharkError(f"Spark could not {label}: {_cause(error)}") from error
    return {row.place: pickle.loads(row.data) for row in done}  # noqa: S301 - made by our own tasks


def _task(function: Callable[[Any], Any]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place, item in zip(batch.column("place"), batch.column("data"), strict=True):
                result = function(pickle.loads(item.as_py()))  # noqa: S301 - made by `run_tasks`
                yield pa.record_batch([[place.as_py()], [pickle.dumps(result)]], _SCHEMA)

    return run


def _cause(error: Exception) -> str:
    """The last error that a trace of Spark names, which is the first that happened."""
    causes = _CAUSE.findall(str(error))
    return causes[-1] if causes else str(error).partition("\n")[0]

"""One Spark task for each item of a list: `run_tasks`.

>>> run_tasks(spark, len, ["a", "bc"], "count letters")  # doctest: +SKIP
[1, 2]

Results come back in the order of the items, one for each, however often a task was tried. An RDD of one item a
partition, and not a DataFrame: it is one stage, without a shuffle, and starts in about half of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pcap_tools.errors import TopicsharkError

from .task_rows import cause

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_tasks(
    spark: SparkSession, function: Callable[[Item], Result], items: Sequence[Item], label: str
) -> list[Result]:
    """Apply `function`, which is pickled as the items are. By `label`, the job group, progress finds the tasks."""
    if not items:
        return []
    # In a thread of its own: Ctrl-C comes to the main one, where pyspark cancels the jobs, and breaks no call to Java.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_collect, spark, function, items, label).result()


def _collect(
    spark: SparkSession, function: Callable[[Item], Result], items: Sequence[Item], label: str
) -> list[Result]:
    context = spark.sparkContext
    context.setJobGroup(label, f"topicshark: {label}", interruptOnCancel=True)
    try:
        return context.parallelize(items, len(items)).map(function).collect()
    except (PySparkException, Py4JError) as error:
        raise TopicsharkError(f"Spark could not {label}: {cause(error)}") from error

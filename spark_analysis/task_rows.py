"""A function applied to the items of a list by Spark tasks, with the DataFrame API alone: `run_rows`.

>>> run_rows(spark, Written, partial(write_unit, dialects), packed(targets, sizes, 16 << 20), "write")  # doctest: +SKIP
[Written(file='part-5f0c…', rows=1200, ...), ...]

Items are rows of a DataFrame, as JSON, and a partition is what one task does; results come back as JSON. So it runs in
a classic session, through Spark Connect, in spark-submit and on a cluster. There is one result for each item, however
often a task was tried. A task costs some 20 ms whatever it does: give it several items if they are small.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession

from pcap_tools.errors import TopicsharkError

from .dataclass_json import from_json, to_json
from .worker_gc import spared

Item = TypeVar("Item")
Result = TypeVar("Result")
Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Told = list[tuple[int, str]]  # the place of an item, and its result

_ITEMS = pa.schema([("task", pa.int32()), ("place", pa.int32()), ("item", pa.string())])
_RESULTS = pa.schema([("place", pa.int32()), ("result", pa.string())])
_AGAIN_S = 0.5
_DDL = "place int, result string"
_CAUSE = re.compile(r"^(?:: |Caused by: )?((?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt)(?:: .*)?)$", re.MULTILINE)


def run_rows(
    spark: SparkSession,
    gives: type[Result],
    function: Callable[[Item], Result],
    tasks: Sequence[Sequence[Item]],
    label: str,
) -> list[Result]:
    """Apply `function`, whose results are of the type `gives`, to all items; the results are in the order of these.

    `tasks` are the items of each task, all of one type. Raises `TopicsharkError`, a sentence that begins with "Spark
    could not" and `label`.
    """
    items = [item for task in tasks for item in task]
    if not items:
        return []
    rows = pa.table(
        {
            "task": [number for number, task in enumerate(tasks) for _ in task],
            "place": list(range(len(items))),
            "item": [to_json(item) for item in items],
        },
        _ITEMS,
    )
    task = _task(type(items[0]), function)
    told = run_job(spark, lambda: _collect(spark, task, rows, len(tasks)), label)
    by_place = {place: from_json(gives, text) for place, text in told}
    return [by_place[place] for place in range(len(items))]


def run_job(spark: SparkSession, job: Callable[[], Result], label: str) -> Result:
    """Run what makes Spark work, so that Ctrl-C ends it, and an error of Spark's becomes a sentence."""
    tag = f"topicshark-{uuid4().hex}"

    def tagged() -> Result:
        spark.addTag(tag)  # for the jobs of this thread
        return job()

    # In a thread of its own: Ctrl-C comes to the main one, and breaks no call to Spark.
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(tagged)
        try:
            return _result(running, label)
        except BaseException:
            while not running.done():  # a job that Spark does not know yet cannot be ended yet
                spark.interruptTag(tag)
                wait([running], timeout=_AGAIN_S)
            raise


def packed(items: Sequence[Item], sizes: Sequence[int], limit: int) -> list[list[Item]]:
    """Items for tasks, in their order: as many in one as have together at most the size `limit`, at least one."""
    tasks: list[list[Item]] = []
    room = -1
    for item, size in zip(items, sizes, strict=True):
        room -= size
        if room < 0:
            tasks.append([])
            room = limit - size
        tasks[-1].append(item)
    return tasks


def _result(running: Future[Result], label: str) -> Result:
    try:
        return running.result()
    except Exception as error:  # Spark's own, or that of the bridge to Java, which only classic sessions have
        raise TopicsharkError(f"Spark could not {label}: {cause(error)}") from error


def _collect(spark: SparkSession, task: Task, rows: pa.Table, tasks: int) -> Told:
    told = spark.createDataFrame(rows).repartitionById(tasks, "task").mapInArrow(task, _DDL).toArrow()
    return list(zip(told["place"].to_pylist(), told["result"].to_pylist(), strict=True))


def _task(takes: type[Item], function: Callable[[Item], object]) -> Task:
    def apply(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for place, item in zip(batch["place"], batch["item"], strict=True):
            told = to_json(function(from_json(takes, item.as_py())))
            yield pa.record_batch([[place.as_py()], [told]], _RESULTS)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return spared(result for batch in batches for result in apply(batch))

    return run


def cause(error: Exception) -> str:
    """The last error that a trace of Spark names, which is the first that happened; one that says more than a name."""
    causes = _CAUSE.findall(str(error))
    telling = [one for one in causes if ": " in one] or causes
    return telling[-1] if telling else str(error).partition("\n")[0]

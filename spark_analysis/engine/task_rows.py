"""A function applied to the items of a list by Spark tasks, with the DataFrame API alone: `run_rows`.

>>> run_rows(spark, Written, partial(write_unit, dialects), packed(targets, sizes, 16 << 20), "write")  # doctest: +SKIP
[Written(file='part-5f0c…', rows=1200, ...), ...]

Items are rows of a DataFrame, as JSON, and a partition is what one task does; results come back as JSON. So it runs in
a classic session, through Spark Connect, in spark-submit and on a cluster. There is one result for each item, however
often a task was tried. A task costs some 20 ms whatever it does: give it several items if they are small.
"""

from __future__ import annotations

import json
import re
import types
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from pcap_tools.errors import TopicsharkError

from .worker_gc import spared

Kind = TypeVar("Kind")

_PLAIN = (str, int, float, bool, type(None))


def to_json(value: object) -> str:
    """One line of ASCII."""
    return json.dumps(_plain(value))


def from_json(kind: type[Kind], text: str) -> Kind:
    """The value of type `kind` that `to_json` wrote."""
    value: Kind = _typed(kind, json.loads(text))
    return value


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return [[_plain(key), _plain(one)] for key, one in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    if isinstance(value, np.ndarray) and value.dtype == np.int64:
        return [list(value.shape), b64encode(np.ascontiguousarray(value, "<i8").tobytes()).decode()]
    if type(value) in _PLAIN:
        return value
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _typed(kind: Any, value: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if value is None else _typed(_not_none(kind), value)
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**{name: _typed(hint, value[name]) for name, hint in _hints(kind).items()})
    if hasattr(kind, "_fields"):
        return kind(*(_typed(hint, one) for hint, one in zip(_hints(kind).values(), value, strict=True)))
    if origin is dict:
        return {_typed(inner[0], key): _typed(inner[1], one) for key, one in value}
    if origin is tuple and inner[-1] is not Ellipsis:
        return tuple(_typed(hint, one) for hint, one in zip(inner, value, strict=True))
    if origin in (list, tuple, set, frozenset):
        return origin(_typed(inner[0], one) for one in value)
    if origin is np.ndarray:
        shape, data = value
        return np.frombuffer(b64decode(data), "<i8").reshape(shape).astype(np.int64)
    if kind in _PLAIN:
        return value
    raise TypeError(f"{kind} has no form in JSON")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _not_none(kind: Any) -> Any:
    chosen = [one for one in get_args(kind) if one is not type(None)]
    if len(chosen) != 1:
        raise TypeError(f"{kind} could be read in more than one way")
    return chosen[0]


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

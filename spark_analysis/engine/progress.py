"""Progress of Spark jobs, as Spark itself counts it: tasks done of all, on a line of a terminal.

>>> with task_progress(spark, "decode", sys.stderr):      # doctest: +SKIP
...     run_rows(spark, Written, partial(write_unit, dialects), tasks, "decode")

A classic session is asked for its running jobs; a client of Spark Connect is told about its own. In a session that does
other work at the same time, the first shows the stage that was started last, whoever started it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, NamedTuple, TextIO

from pyspark.sql import SparkSession

from .spark_session import is_connect

_EVERY_S = 0.5


class Tasks(NamedTuple):
    """Of the stage that was started last."""

    done: int = 0
    all: int = 0
    running: int = 0


@contextmanager
def task_progress(spark: SparkSession, label: str, terminal: TextIO) -> Iterator[None]:
    """While the block runs, show its progress; then take the line away."""
    over = Event()
    with _counter(spark) as count:
        thread = Thread(target=_show, args=(count, label, terminal, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            terminal.write("\r\033[K")
            terminal.flush()


def _show(count: Callable[[], Tasks], label: str, terminal: TextIO, over: Event) -> None:
    start = time.monotonic()
    while not over.wait(_EVERY_S):
        tasks = count()
        if tasks.all:
            seconds = time.monotonic() - start
            terminal.write(
                f"\r{label}: {tasks.done} of {tasks.all} tasks done, {tasks.running} running, {seconds:.0f} s\033[K"
            )
            terminal.flush()


@contextmanager
def _counter(spark: SparkSession) -> Iterator[Callable[[], Tasks]]:
    """What tells the state of the tasks at any time."""
    if not is_connect(spark):
        yield lambda: _running(spark)
        return
    last = Tasks()

    def note(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        nonlocal last
        latest = max(stages or (), key=lambda stage: stage.stage_id, default=None)
        if latest is not None:
            last = Tasks(latest.num_completed_tasks, latest.num_tasks, inflight_tasks)

    spark.registerProgressHandler(note)  # type: ignore[arg-type]  # a function will do
    try:
        yield lambda: last
    finally:
        spark.removeProgressHandler(note)  # type: ignore[arg-type]


def _running(spark: SparkSession) -> Tasks:
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    last = max((stage for stage in stages if stage), key=lambda stage: stage.stageId, default=None)
    return Tasks(last.numCompletedTasks, last.numTasks, last.numActiveTasks) if last else Tasks()

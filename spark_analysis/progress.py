"""How far a Spark job is, as Spark itself counts it: tasks done of all, on a line of a terminal.

>>> with task_progress(spark, "decode", sys.stderr):      # doctest: +SKIP
...     run_tasks(spark, work, items, "decode")
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TextIO

from pyspark.sql import SparkSession

_EVERY_S = 0.5


@contextmanager
def task_progress(spark: SparkSession, group: str, terminal: TextIO) -> Iterator[None]:
    """While the block runs, tell about the jobs of this group; then take the line away."""
    over = Event()
    thread = Thread(target=_tell, args=(spark, group, terminal, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        terminal.write("\r\033[K")
        terminal.flush()


def _tell(spark: SparkSession, group: str, terminal: TextIO, over: Event) -> None:
    start = time.monotonic()
    while not over.wait(_EVERY_S):
        done, all_tasks, active = _tasks(spark, group)
        if all_tasks:
            seconds = time.monotonic() - start
            terminal.write(f"\r{group}: {done} of {all_tasks} tasks done, {active} running, {seconds:.0f} s\033[K")
            terminal.flush()


def _tasks(spark: SparkSession, group: str) -> tuple[int, int, int]:
    """Tasks done, all, and running, of the stage that does the work: the group's last."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    last = max((stage for stage in stages if stage), key=lambda stage: stage.stageId, default=None)
    return (last.numCompletedTasks, last.numTasks, last.numActiveTasks) if last else (0, 0, 0)

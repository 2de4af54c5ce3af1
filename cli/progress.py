"""Progress on long work: a count on stderr, only on a terminal and only where results go elsewhere."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

Item = TypeVar("Item")

EVERY_S = 0.5
LOOK_EVERY = 1024


def with_progress(items: Iterable[Item], what: str) -> Iterator[Item]:
    """The items, while a line on the terminal tells how many have gone by: ``1,048,576 datagrams, 91,000/s``."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield from items
        return
    start = told = time.monotonic()
    count = 0
    for count, item in enumerate(items, start=1):
        yield item
        if count % LOOK_EVERY == 0 and (now := time.monotonic()) - told >= EVERY_S:
            told = now
            sys.stderr.write(f"\r{count:,} {what}, {count / (now - start):,.0f}/s ")
            sys.stderr.flush()
    if told != start:
        sys.stderr.write(f"\r{count:,} {what}\033[K\n")


def spark_stages(spark: Any) -> Callable[[str], AbstractContextManager[None]]:
    """What to enter with the name of each of Spark's jobs: on a terminal it tells how far the job is."""
    from spark_analysis.progress import task_progress

    if not sys.stderr.isatty():
        return lambda label: nullcontext()
    return lambda label: task_progress(spark, label, sys.stderr)

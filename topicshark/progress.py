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


def counter(what: str, total: int = 0) -> Callable[[int], None]:
    """On a terminal a line that tells how far it is, a few times a second."""
    if not sys.stderr.isatty():
        return lambda count: None
    told = [time.monotonic()]

    def tell(count: int) -> None:
        if time.monotonic() - told[0] >= EVERY_S:
            told[0] = time.monotonic()
            share = f" of {total:,} ({100 * count // total} %)" if total else ""
            sys.stderr.write(f"\r{count:,}{share} {what}\033[K")
            sys.stderr.flush()

    return tell


def end_counter() -> None:
    """Take the line away."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")


def spark_stages(spark: Any) -> Callable[[str], AbstractContextManager[None]]:
    """What to enter with the name of each of Spark's jobs: on a terminal it tells how far the job is."""
    from spark_analysis.engine.progress import task_progress

    if not sys.stderr.isatty():
        return lambda label: nullcontext()
    return lambda label: task_progress(spark, label, sys.stderr)

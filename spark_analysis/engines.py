"""Who applies functions to items: this process, or Spark's tasks.

>>> with on_spark("local[2]") as run:                   # doctest: +SKIP
...     run(len, ["a", "bc"], "count letters")
[1, 2]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = TypeVar("Item")
Result = TypeVar("Result")
Stage = Callable[[str], AbstractContextManager[None]]


class Runner(Protocol):
    """Applies a function to items, in the order of which the results come back."""

    def __call__(self, function: Callable[[Item], Result], items: Sequence[Item], label: str) -> list[Result]: ...


def in_process(function: Callable[[Item], Result], items: Sequence[Item], label: str) -> list[Result]:
    """One after the other, here."""
    return [function(item) for item in items]


@contextmanager
def on_spark(master: str | None = None, stage: Callable[[Any], Stage] | None = None) -> Iterator[Runner]:
    """A Spark session as long as the block lasts. ``stage``: given it, what to enter with each job's name."""
    from .spark_session import LOCAL, open_session

    with open_session(master or LOCAL) as spark:
        yield tasks_of(spark, stage(spark) if stage else None)


def tasks_of(spark: SparkSession, stage: Stage | None = None) -> Runner:
    """On a session that is there."""
    from .spark_tasks import run_tasks

    def run(function: Callable[[Item], Result], items: Sequence[Item], label: str) -> list[Result]:
        with stage(label) if stage else nullcontext():
            return run_tasks(spark, function, items, label)

    return run

"""Functions over items in Spark tasks: one result an item, in order, and one sentence if it fails."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import SparkSession

from pcap_tools.errors import TopicsharkError
from spark_analysis.engine.progress import task_progress
from spark_analysis.engine.task_rows import packed, run_rows

spark_test = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize(
    ("sizes", "tasks"),
    [
        ([], []),
        ([9, 9], [[9], [9]]),
        ([5, 3, 2, 1], [[5], [3, 2], [1]]),
        ([0, 0, 5, 0], [[0, 0, 5, 0]]),
        ([1, 7, 1], [[1], [7], [1]]),
    ],
)
def test_small_items_share_a_task(sizes: list[int], tasks: list[list[int]]) -> None:
    assert packed(sizes, sizes, 5) == tasks


@dataclass(frozen=True)
class Done:
    doubled: str
    task: tuple[int, int]


class TestOnSpark:
    pytestmark = spark_test

    def test_results_are_in_the_order_of_the_items(self, spark: SparkSession) -> None:
        def double(item: str) -> Done:
            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None
            return Done(item * 2, (context.stageId(), context.partitionId()))

        tasks = [["r\udcff", "b"], ["c"], ["d", "e", "f"]]
        done = run_rows(spark, Done, double, tasks, "double")
        assert [one.doubled for one in done] == [item * 2 for task in tasks for item in task]
        assert [len(list(group)) for _, group in groupby(done, lambda one: one.task)] == [2, 1, 3]

    def test_no_items_no_job(self, spark: SparkSession) -> None:
        assert run_rows(spark, int, abs, [], "nothing") == []

    def test_an_error_is_a_sentence_with_its_reason(self, spark: SparkSession) -> None:
        def fail(item: int) -> int:
            raise OSError(28, os.strerror(28))

        with pytest.raises(TopicsharkError) as told:
            run_rows(spark, int, fail, [[1]], "count")
        assert str(told.value) == "Spark could not count: OSError: [Errno 28] No space left on device"

    def test_progress_is_shown_and_taken_away(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Tasks end once their progress was shown, so that they never are too quick for it."""
        monkeypatch.setattr("spark_analysis.engine.progress._EVERY_S", 0.001)
        shown = tmp_path / "shown"

        class Terminal(io.StringIO):
            def write(self, text: str) -> int:
                if "of 3 tasks done" in text:
                    shown.touch()
                return super().write(text)

        def wait(number: int) -> int:
            tries = 6_000
            while tries and not shown.exists():
                Event().wait(0.01)
                tries -= 1
            return number

        terminal = Terminal()
        with task_progress(spark, "count", terminal):
            run_rows(spark, int, wait, [[1], [2], [3]], "count")
        assert "count: " in terminal.getvalue()
        assert "of 3 tasks done" in terminal.getvalue()
        assert terminal.getvalue().endswith("\r\033[K")

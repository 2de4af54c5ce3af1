"""What a task has loaded is hidden from the garbage collector, once."""

import gc
import sys
from collections.abc import Iterator

import pytest

from spark_analysis.engine import worker_gc
from spark_analysis.engine.worker_gc import spared


@pytest.fixture
def fresh_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(worker_gc, "_modules_hidden", 0)
    gc.unfreeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("fresh_worker")
def test_modules_are_hidden_behind_the_last_item() -> None:
    items = spared([1, 2])
    assert next(items) == 1
    assert gc.get_freeze_count() == 0
    assert list(items) == [2]
    assert gc.get_freeze_count() > len(sys.modules)


@pytest.mark.usefixtures("fresh_worker")
def test_a_second_task_that_loads_nothing_hides_nothing_more() -> None:
    assert list(spared([1])) == [1]
    gc.unfreeze()
    assert list(spared([1])) == [1]
    assert gc.get_freeze_count() == 0

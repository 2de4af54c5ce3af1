"""Filters answered by the source keep the rows that SQL keeps: null is not true, and not false either."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import datasource as ask

from spark_analysis.sources.options import SOURCE_COLUMNS, arrow_schema
from spark_analysis.sources.pushed_filters import can_answer, rows_that_pass

ROWS = pa.record_batch(
    {
        "frame": pa.array([1, 2, 3, 4], pa.int64()),
        "dport": pa.array([50000, 1, 50000, 7], pa.int32()),
        "topic": pa.array(["home/fan", None, "", "home/light"]),
        "retain": pa.array([True, None, False, True]),
    }
)
TOPIC, RETAIN, DPORT, FRAME = ("topic",), ("retain",), ("dport",), ("frame",)


@pytest.mark.parametrize(
    ("asked", "frames"),
    [
        (ask.EqualTo(TOPIC, "home/fan"), [1]),
        (ask.Not(ask.EqualTo(TOPIC, "home/fan")), [3, 4]),
        (ask.EqualTo(RETAIN, True), [1, 4]),
        (ask.Not(ask.EqualTo(RETAIN, True)), [3]),
        (ask.In(TOPIC, ("", "home/fan")), [1, 3]),
        (ask.Not(ask.In(TOPIC, ("", "home/fan"))), [4]),
        (ask.IsNull(TOPIC), [2]),
        (ask.IsNotNull(TOPIC), [1, 3, 4]),
        (ask.Not(ask.IsNull(TOPIC)), [1, 3, 4]),
        (ask.StringStartsWith(TOPIC, "home/"), [1, 4]),
        (ask.StringEndsWith(TOPIC, "light"), [4]),
        (ask.StringContains(TOPIC, "e/f"), [1]),
        (ask.GreaterThan(TOPIC, "home/fan"), [4]),
        (ask.GreaterThan(DPORT, 7), [1, 3]),
        (ask.GreaterThanOrEqual(DPORT, 7), [1, 3, 4]),
        (ask.LessThan(DPORT, 7), [2]),
        (ask.LessThanOrEqual(FRAME, 3), [1, 2, 3]),
    ],
    ids=str,
)
def test_a_filter_keeps_the_rows_for_which_it_is_true(asked: ask.Filter, frames: list[int]) -> None:
    assert can_answer(asked, ROWS.schema)
    assert rows_that_pass(ROWS, [asked]).column("frame").to_pylist() == frames


def test_all_filters_must_be_true() -> None:
    both: list[ask.Filter] = [ask.EqualTo(DPORT, 50000), ask.EqualTo(RETAIN, True)]
    assert rows_that_pass(ROWS, both).column("frame").to_pylist() == [1]


@pytest.mark.parametrize(
    "asked",
    [
        ask.EqualTo(DPORT, None),
        ask.EqualTo(DPORT, 1 << 31),
        ask.EqualTo(DPORT, True),
        ask.EqualTo(DPORT, 1.5),
        ask.EqualTo(TOPIC, 7),
        ask.In(DPORT, (7, None)),
        ask.Not(ask.In(DPORT, (7, None))),
        ask.EqualNullSafe(DPORT, 7),
        ask.EqualTo(("colour",), 7),
        ask.EqualTo(("topic", "inner"), 7),
    ],
    ids=str,
)
def test_what_could_be_answered_otherwise_than_by_spark_is_left_to_spark(asked: Any) -> None:
    assert not can_answer(asked, arrow_schema(SOURCE_COLUMNS))

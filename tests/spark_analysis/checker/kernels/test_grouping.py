"""Rows by key: beside numpy, on keys that share all bits that are looked at, and on none."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from spark_analysis.checker.kernels.grouping import distinct, first_of_key, order_by_key
from spark_analysis.checker.kernels.hashing import mix

LOOKED_AT = (1 << 22) - 1


def keys(rows: int, different: int, bits: int = -1) -> NDArray[np.int64]:
    numbers = np.random.default_rng(rows + different).integers(0, different, rows)
    return mix(numbers, np.zeros(rows, np.int64)) & bits


CASES = {
    "none": keys(0, 1),
    "one": keys(1, 1),
    "few keys": keys(1000, 3),
    "many keys": keys(5000, 100_000),
    "keys that differ in high bits only": keys(1000, 50, ~LOOKED_AT),
    "some that do": keys(3000, 2000, ~LOOKED_AT | 0x3F),
    "a hot one among them": np.where(np.arange(4000) % 10 > 0, 1 << 40, keys(4000, 900, ~LOOKED_AT)),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_of_a_key_stand_together_in_their_order(name: str) -> None:
    given = CASES[name]
    order = order_by_key(given)
    assert sorted(order.tolist()) == list(range(len(given)))
    ordered = given[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))[: len(given)]
    assert len(begins) == len(np.unique(given))
    assert all(np.all(np.diff(rows) > 0) for rows in np.split(order, begins))


@pytest.mark.parametrize("name", CASES)
def test_first_rows_are_those_of_numpy(name: str) -> None:
    given = CASES[name]
    _, first, inverse = np.unique(given, return_index=True, return_inverse=True)
    rows, where = distinct(given)
    assert rows.tolist() == sorted(first.tolist())
    assert rows[where].tolist() == first[inverse].tolist() == first_of_key(given).tolist()

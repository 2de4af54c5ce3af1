"""A source of random numbers that are the same on every machine and in every version of Python.

Of Python's generator only ``random()`` is used, which no version may change.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class RandomSource:
    """
    >>> RandomSource(1).between(0, 100), RandomSource(1).between(0, 100)
    (13, 13)
    """

    def __init__(self, seed: int | str) -> None:
        self._generator = random.Random(seed)

    def random(self) -> float:
        """A number from 0 to below 1."""
        return self._generator.random()

    def happens(self, probability: float) -> bool:
        """Whether an event of this probability happens. Draws nothing if the probability is 0 or 1."""
        return probability > 0 and (probability >= 1 or self.random() < probability)

    def between(self, low: int, high: int) -> int:
        """An integer from ``low`` to below ``high``."""
        return low + int(self.random() * (high - low))

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.between(0, len(items))]

    def jitter(self, mean: int, spread: float) -> int:
        """An integer at most ``spread``, a share of ``mean``, away from ``mean``."""
        return int(mean * (1 + spread * (2 * self.random() - 1)))

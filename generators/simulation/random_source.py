"""Chance that is the same everywhere: of Python's generator only ``random()`` is used, which no version may change."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Chance:
    """
    >>> Chance(1).between(0, 100), Chance(1).between(0, 100)
    (13, 13)
    """

    def __init__(self, seed: int | str) -> None:
        self.rng = random.Random(seed)

    def happens(self, share: float) -> bool:
        """True in this share of the cases. Nothing is drawn where there is nothing to decide."""
        return share > 0 and (share >= 1 or self.rng.random() < share)

    def between(self, low: int, high: int) -> int:
        """A whole number from low to below high."""
        return low + int(self.rng.random() * (high - low))

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.between(0, len(items))]

    def stretch(self, mean: int, spread: float) -> int:
        """A length of time around ``mean``, at most ``spread`` (a share of it) away."""
        return int(mean * (1 + spread * (2 * self.rng.random() - 1)))

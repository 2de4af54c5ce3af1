"""Spark's Python workers collect garbage in full after each task. With numba and pyarrow loaded that takes 70 ms, ten
times what starting a small task takes: `spared` hides the modules from the collector.

>>> def run(batches):                        # doctest: +SKIP
...     yield from spared(judge(batches))
>>> table.mapInArrow(run, schema)            # doctest: +SKIP
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
_modules_hidden = 0


def spared(items: Iterable[Item]) -> Iterator[Item]:
    """The same items. Behind the last of them, what this worker has loaded is hidden from the collector. For tasks."""
    global _modules_hidden
    yield from items
    if len(sys.modules) > _modules_hidden:
        _modules_hidden = len(sys.modules)
        gc.collect()
        gc.freeze()

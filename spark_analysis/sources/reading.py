"""What the batch reader and the stream reader have in common: captures to partitions, a partition to rows.

A `SourceReading` is pickled once for each query and goes to every task; partitions are many, and small. The decoder is
imported by who decodes, since Spark loads this module for much less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import Filter, InputPartition

from pcap_tools.capture.damage import Damage, log_damage
from pcap_tools.errors import TopicsharkError, UsageError

from .options import SourceOptions

if TYPE_CHECKING:
    from pcap_tools.codec.detect import Dialects

    from .units import Unit

_DAMAGE_KEPT = 1024


@dataclass(frozen=True)
class UnitPartition(InputPartition):
    """A unit, and the session that it belongs to."""

    unit: Unit
    session: str


class SourceReading:
    """Reads units of captures as the options say; `filters` are those that Spark left to us."""

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self.options = options
        self.columns = tuple(columns)
        self.filters: list[Filter] = []

    def plan(self, captures: Sequence[str], sessions: Sequence[str]) -> list[UnitPartition]:
        """Partitions of all captures, in their order; `sessions` says in which session each is."""
        from .planning import plan_capture

        dialects = self._dialects()
        partitions: list[UnitPartition] = []
        for capture, session in zip(captures, sessions, strict=True):
            plan = plan_capture(capture, dialects, self.options.split_bytes, keep=True)
            for damage in plan.damage:
                _log_once(damage)
            partitions += [UnitPartition(unit, session) for unit in plan.units]
        return partitions

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition."""
        from .pushed_filters import rows_that_pass
        from .units import open_batches

        if not isinstance(partition, UnitPartition):
            return  # Spark's stand-in for no partitions at all
        with plain_errors():
            for rows in open_batches(
                partition.unit,
                self._dialects(),
                self.columns,
                plain=True,
                session=partition.session,
                keep_other=self.options.keep_other,
            ):
                passed = rows_that_pass(rows, self.filters)
                if passed.num_rows:
                    yield passed

    def _dialects(self) -> Dialects:
        from pcap_tools.codec.detect import Dialects

        return Dialects(self.options.dialects, self.options.named)


@lru_cache(_DAMAGE_KEPT)
def _log_once(damage: Damage) -> None:
    """Spark plans the same query several times."""
    log_damage(damage)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Spark shows the user the trace of an error: let ours begin here and have no causes, for the text says it all."""
    try:
        yield
    except (TopicsharkError, UsageError) as error:
        raise error.with_traceback(None) from None

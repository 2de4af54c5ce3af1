"""What the batch reader and the stream reader have in common: captures to partitions, a partition to rows.

A `PartReading` is pickled once for each query and goes to every task; partitions are many, and small. The decoder is
imported by who decodes, since Spark loads this module for much less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import Filter, InputPartition

from pcap_tools.errors import TopicsharkError, UsageError

from .source_options import SourceOptions

if TYPE_CHECKING:
    from .capture_parts import Dialects


class PartReading:
    """Reads parts of captures as the options say; `filters` are those that Spark left to us."""

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self.options = options
        self.columns = tuple(columns)
        self.filters: list[Filter] = []

    def plan(self, captures: Sequence[str], sessions: Sequence[str]) -> list[InputPartition]:
        """Partitions of all captures, in their order; `sessions` says in which session each is."""
        from .capture_parts import plan_capture

        dialects = self._dialects()
        return [
            InputPartition(part)
            for capture, session in zip(captures, sessions, strict=True)
            for part in plan_capture(capture, session, dialects, self.options.split_bytes)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition."""
        from .capture_parts import part_batches
        from .pushed_filters import rows_that_pass

        if partition.value is None:
            return  # Spark's stand-in for no partitions at all
        with plain_errors():
            for rows in part_batches(partition.value, self._dialects(), self.columns, self.options.keep_other):
                passed = rows_that_pass(rows, self.filters)
                if passed.num_rows:
                    yield passed

    def _dialects(self) -> Dialects:
        from .capture_parts import Dialects

        return Dialects(self.options.dialects, self.options.named)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Spark shows the user the trace of an error: let ours begin here and have no causes, for the text says it all."""
    try:
        yield
    except (TopicsharkError, UsageError) as error:
        raise error.with_traceback(None) from None

"""Captures as a Spark data source: `spark.read.format("topicshark")` and `spark.readStream.format("topicshark")`.

Every Spark application on the machine imports this module when it looks for data sources, so what decodes is imported
where it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pcap_tools.errors import UsageError

from ..engine.worker_gc import spared
from .captures import find_captures
from .options import arrow_schema, check_columns, parse_options
from .reading import SourceReading, UnitPartition, plain_errors
from .session_names import session_names
from .stream_reader import FolderStreamReader

# Spark plans a read in a worker of this module if it pushes filters down, in another one if not. A reader that has
# `pushFilters` is refused by the other one, even if it has nothing to push.
_PUSHING_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


class TopicsharkSource(DataSource):
    """Messages of captures, one row a datagram.

    Name: ``topicshark``. Spark finds it by itself where topicshark is installed.

    ``load`` takes what the command takes as SOURCE: a file, a folder, a glob, or a URI (``s3://``, ``gs://``,
    ``hdfs://``). Columns: ``session``, and those of the table ``messages``. Spark does not tell a Python source which
    columns a query needs: name them, by the option ``columns`` or by a schema, and only those are decoded.

    Options:

    ==================  ================================================================================
    dialect             names or TOML files, with commas; without, the built-in ones are detected
    columns             names with commas, in the order wanted; a schema does the same
    merge               true: all captures are one session (default false: each is its own)
    keepother           true: datagrams of no known dialect are rows too (default false)
    splitsize           MB of a capture for one task (default 128)
    settle              streams: seconds without change after which a file is finished (default 10)
    maxfilespertrigger  streams: most files in one batch (default all)
    ==================  ================================================================================

    Partitions: one for each ``splitsize`` MB of a capture, at least one a capture; a gzipped capture is one. With
    ``spark.sql.python.filterPushdown.enabled`` filters are answered before rows leave Python.

    >>> messages = spark.read.format("topicshark").load("captures/*.pcap")  # doctest: +SKIP
    >>> messages.groupBy("session", "message").count().show()              # doctest: +SKIP
    """

    @classmethod
    def name(cls) -> str:
        """What stands in ``format``."""
        return "topicshark"

    def schema(self) -> StructType:
        """All columns, or those of the option ``columns``. Looks at no capture."""
        with plain_errors():
            return from_arrow_schema(arrow_schema(parse_options(self.options).columns))

    def reader(self, schema: StructType) -> DataSourceReader:
        """For a batch query."""
        with plain_errors():
            reading = _reading(self.options, schema)
        return PushingReader(reading) if _pushes_filters() else CaptureReader(reading)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For a streaming query over a folder into which captures are rotated."""
        with plain_errors():
            return FolderStreamReader(_reading(self.options, schema))


class CaptureReader(DataSourceReader):
    """Reads captures as they are now."""

    def __init__(self, reading: SourceReading) -> None:
        self._reading = reading

    def partitions(self) -> Sequence[UnitPartition]:
        """One for each unit of a capture."""
        with plain_errors():
            options = self._reading.options
            captures = find_captures(options.sources)
            return self._reading.plan(captures, session_names(captures, options.merge))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a task."""
        return spared(self._reading.read(partition))


class PushingReader(CaptureReader):
    """Answers filters itself where it can."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take those that can be answered, give the others back."""
        from .pushed_filters import can_answer

        schema = arrow_schema(self._reading.columns)
        self._reading.filters = [one for one in filters if can_answer(one, schema)]
        return [one for one in filters if not can_answer(one, schema)]


def _pushes_filters() -> bool:
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHING_WORKER in sys.modules or getattr(main, "name", "") == _PUSHING_WORKER


def _reading(options: Mapping[str, str], schema: StructType) -> SourceReading:
    """Raises `UsageError` if the schema is not of our columns and their types."""
    columns = check_columns(schema.names)
    if not columns:
        raise UsageError("the schema has no column")
    ours = from_arrow_schema(arrow_schema(columns))
    for wanted, known in zip(schema.fields, ours.fields, strict=True):
        if wanted.dataType != known.dataType:
            types = f"{known.dataType.simpleString()}, not {wanted.dataType.simpleString()}"
            raise UsageError(f"the column {wanted.name!r} of topicshark is a {types}")
    return SourceReading(parse_options(options), columns)

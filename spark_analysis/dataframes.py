"""Captures as Spark DataFrames: the tables of the analysis, from messages to verdicts.

>>> analysis = analyse(spark, "captures/")                                   # doctest: +SKIP
>>> analysis.exchanges.groupBy("client").avg("rtt_ns").show()                # doctest: +SKIP
>>> analysis.deliveries.where("outcome = 'missing'").select("topic").show()  # doctest: +SKIP

DataFrame API only: it runs in classic sessions, through Spark Connect, in spark-submit and in clusters. A source is
what `topicshark check` takes, or any DataFrame with the columns of `messages`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial, reduce
from hashlib import sha256
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from pcap_tools.codec.detect import Dialects, wanted_dialects
from pcap_tools.columnar.read.sources import is_remote
from pcap_tools.errors import TopicsharkError

from . import check
from .engine.engines import SparkEngine
from .engine.task_rows import run_job
from .message_tables import pack_messages
from .pipeline import ROW_TABLES, Options, Results, analyse_sessions
from .sessions.ingested import IngestedFolder, Sources, find_sources
from .sessions.plans import SessionPlan, plan_sources
from .sources.options import ALL_SOURCE_COLUMNS, arrow_schema
from .sources.reading import plain_errors
from .sources.units import Unit, open_batches
from .storage.folder import open_folder
from .storage.store import MESSAGES
from .tables.packing import unpack
from .tables.schemas import DELIVERIES, ENDPOINTS, EVIDENCE, EXCHANGES, FINDINGS, SUBSCRIPTIONS, VERDICTS

# The columns of each table, in the order of the pipeline.
SCHEMAS: dict[str, pa.Schema] = {
    "messages": arrow_schema(ALL_SOURCE_COLUMNS),
    "endpoints": ENDPOINTS,
    "subscriptions": SUBSCRIPTIONS,
    "deliveries": DELIVERIES,
    "exchanges": EXCHANGES,
    "evidence": EVIDENCE,
    "findings": FINDINGS,
    "verdicts": VERDICTS,
}
_OF_PASSES = tuple(name for name in SCHEMAS if name != "messages")
_BATCH_ROWS = 1 << 16
_FILE_ROWS = 1 << 20
EMPTY = "part-empty.parquet"  # tells the columns of a table without rows

Given = str | Path | Sequence[str | Path]


class AnalysisOptions(TypedDict, total=False):
    """What may be said besides the source: see `analyse`."""

    dialects: Sequence[str] | None
    brokers: Sequence[str]
    merge: bool


def analyse(
    spark: SparkSession,
    source: Given | DataFrame,
    *,
    dialects: Sequence[str] | None = None,
    brokers: Sequence[str] = (),
    merge: bool = False,
) -> Analysis:
    """Analyse captures, folders, globs, URIs, a folder filled by `topicshark ingest`, or a DataFrame of messages.

    ``dialects`` are names or TOML files, without them the built-in ones are detected; ``brokers`` are HOST or
    HOST:PORT; with ``merge`` all captures are one session. Sessions of a DataFrame are those of its column ``session``.
    """
    wanted = wanted_dialects(dialects)
    options = Options(wanted, tuple(brokers), summaries=False, tables=frozenset(ROW_TABLES), raises=True)
    if isinstance(source, DataFrame):
        if source.isStreaming:
            raise TopicsharkError("a stream needs a folder for its state: spark_analysis.stream_analysis.follow")
        return _of_messages(spark, source, options)
    sources = find_sources(_listed(source))
    sessions, failed = plan_sources(sources, wanted, merge, check.UNIT_BYTES)
    if not sessions:
        raise TopicsharkError(next(iter(failed.values())))
    good = Sources(tuple(one for one in sources.captures if one not in failed), sources.folders)
    damage = [sentence for session in sessions for sentence in session.damage]

    def read_messages() -> DataFrame:
        return _messages(spark, good, wanted, tuple(dialects or ()), merge)

    return Analysis(spark, sessions, options, read_messages, failed, list(dict.fromkeys(damage)))


def _of_messages(spark: SparkSession, table: DataFrame, options: Options) -> Analysis:
    engine = SparkEngine(spark)
    sessions, packed = pack_messages(engine, table, options.dialects.wanted)
    return Analysis(spark, sessions, options, lambda: table, {}, [], packed)


class Analysis:
    """The tables of some sessions; their columns: `SCHEMAS`. They are made together, when the first of them is used,
    and kept on disk until `release`. To ask for a table runs jobs if a session is large: who its brokers are must be
    known before its rows can be cut.

    ``failed`` says of each capture that cannot be read why; ``damage`` has what is known by now of others' damage (of
    small captures it shows only as they are read).
    """

    def __init__(
        self,
        spark: SparkSession,
        sessions: Sequence[SessionPlan],
        options: Options,
        read_messages: Callable[[], DataFrame],
        failed: dict[str, str],
        damage: list[str],
        packed: Any = None,
    ) -> None:
        self.failed, self.damage = failed, damage
        self._spark, self._engine, self._sessions, self._options = spark, SparkEngine(spark), sessions, options
        self._read_messages, self._packed = read_messages, packed

    @cached_property
    def messages(self) -> DataFrame:
        """One row per datagram, as `topicshark decode` shows it."""
        return self._read_messages()

    @cached_property
    def endpoints(self) -> DataFrame:
        """One row per dialect of a session: its brokers, and where the capture was taken."""
        return self._table("endpoints")

    @cached_property
    def subscriptions(self) -> DataFrame:
        """One row per subscription interval."""
        return self._table("subscriptions")

    @cached_property
    def deliveries(self) -> DataFrame:
        """One row per copy that was due, and per forward that nothing explains."""
        return self._table("deliveries")

    @cached_property
    def exchanges(self) -> DataFrame:
        """One row per request with its ACK, if one came."""
        return self._table("exchanges")

    @cached_property
    def evidence(self) -> DataFrame:
        """One row per thing that limits the verdicts of a session."""
        return self._table("evidence")

    @cached_property
    def findings(self) -> DataFrame:
        """One row per place where a rule is broken, or where the capture cannot tell."""
        return self._table("findings")

    @cached_property
    def verdicts(self) -> DataFrame:
        """One row per rule and session."""
        return self._table("verdicts")

    def write(
        self,
        folder: str | Path,
        tables: Sequence[str] = tuple(SCHEMAS),
        only: Mapping[str, pc.Expression] | None = None,
    ) -> None:
        """Write tables as Parquet below a folder or a URI that all workers see: ``FOLDER/<table>/*.parquet``.

        All but `messages` are written in one pass, by pyarrow; files of an earlier call go. A table that must go
        elsewhere is a DataFrame like any other: ``analysis.findings.write.jdbc(...)``. ``only``: of these tables rows
        for which an expression holds, such as ``pyarrow.compute.field("outcome") == "missing"``.
        """
        target = open_folder(folder)
        made = [name for name in tables if name != "messages"]
        for name in made:
            for file in target.list(name):
                target.delete(file)
            target.write(f"{name}/{EMPTY}", _as_parquet(SCHEMAS[name].empty_table()))
        if made:
            where = str(folder) if is_remote(str(folder)) else target.name
            rows = self._rows(made).mapInArrow(partial(_write_rows, where, only or {}), "file STRING")
            written = {f"{name}/{EMPTY}" for name in made}.union(
                run_job(self._spark, rows.toArrow, "write")["file"].to_pylist()
            )
            # A task that was repeated may have had its rows in another order the first time.
            for file in (file for name in made for file in target.list(name) if file not in written):
                target.delete(file)
        if "messages" in tables:
            self.messages.write.mode("overwrite").parquet(target.place("messages"))

    def release(self) -> None:
        """Forget what was kept on disk. Tables that are asked for later are made, and kept, again."""
        self._engine.release()
        if self._packed is not None:
            self._packed = self._engine.keep(self._packed)
        for name in ("_results", *_OF_PASSES):
            self.__dict__.pop(name, None)

    @cached_property
    def _results(self) -> Results:
        return analyse_sessions(self._engine, self._sessions, self._options, self._packed)

    def _rows(self, names: Sequence[str]) -> DataFrame:
        """Packed rows of tables, and of what makes them fail."""
        kind = f.substring_index("kind", ":", 1)
        rows: DataFrame = reduce(
            DataFrame.unionAll, [one.frame.where(kind.isin([*names, "failed"])) for one in self._results.rows]
        )
        return rows

    def _table(self, name: str) -> DataFrame:
        table: DataFrame = self._rows([name]).mapInArrow(_unpack_rows, from_arrow_schema(SCHEMAS[name]))
        return table


def _unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
    """In a task: packed rows as tables, with their names."""
    with plain_errors():
        for batch in batches:
            for kind, data in zip(batch.column("kind").to_pylist(), batch.column("data").to_pylist(), strict=True):
                if kind == "failed":
                    raise TopicsharkError(data.decode())
                yield kind.partition(":")[0], unpack(data)


def _unpack_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _, table in _unpacked(batches):
        yield from table.to_batches(max_chunksize=_BATCH_ROWS)


def _write_rows(
    folder: str, only: Mapping[str, pc.Expression], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """In a task: a file for each table, named after its content, so that a task that is repeated writes it again."""
    target = open_folder(folder)
    waiting: dict[str, list[pa.Table]] = {}
    files: list[str] = []

    def write(name: str) -> None:
        data = _as_parquet(pa.concat_tables(waiting.pop(name)))
        files.append(f"{name}/part-{sha256(data).hexdigest()[:20]}.parquet")
        target.write(files[-1], data)

    for name, table in _unpacked(batches):
        table = table.filter(only[name]) if name in only else table
        if len(table):
            waiting.setdefault(name, []).append(table)
            if sum(map(len, waiting[name])) >= _FILE_ROWS:
                write(name)
    for name in list(waiting):
        write(name)
    yield pa.RecordBatch.from_pydict({"file": files}, pa.schema([("file", pa.string())]))


def _as_parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    data: bytes = sink.getvalue().to_pybytes()
    return data


def messages(
    spark: SparkSession, source: Given, *, dialects: Sequence[str] | None = None, merge: bool = False
) -> DataFrame:
    """As `Analysis.messages`; nothing is looked at before an action, so a capture that cannot be read fails it."""
    return _messages(spark, find_sources(_listed(source)), wanted_dialects(dialects), tuple(dialects or ()), merge)


def exchanges(spark: SparkSession, source: Given | DataFrame, **options: Unpack[AnalysisOptions]) -> DataFrame:
    """As `Analysis.exchanges`; the options are those of `analyse`."""
    return analyse(spark, source, **options).exchanges


def deliveries(spark: SparkSession, source: Given | DataFrame, **options: Unpack[AnalysisOptions]) -> DataFrame:
    """As `Analysis.deliveries`; the options are those of `analyse`."""
    return analyse(spark, source, **options).deliveries


def findings(spark: SparkSession, source: Given | DataFrame, **options: Unpack[AnalysisOptions]) -> DataFrame:
    """As `Analysis.findings`; the options are those of `analyse`."""
    return analyse(spark, source, **options).findings


def subscriptions(spark: SparkSession, source: Given | DataFrame, **options: Unpack[AnalysisOptions]) -> DataFrame:
    """As `Analysis.subscriptions`; the options are those of `analyse`."""
    return analyse(spark, source, **options).subscriptions


def _listed(source: Given) -> list[str]:
    return [str(source)] if isinstance(source, str | Path) else [str(one) for one in source]


# -- messages -----------------------------------------------------------------------------------------------------


def _messages(
    spark: SparkSession, sources: Sources, dialects: Dialects, names: tuple[str, ...], merge: bool
) -> DataFrame:
    tables = [_ingested(spark, folder, dialects) for folder in sources.folders]
    if sources.captures:
        reader = spark.read.format("topicshark").option("merge", str(merge).lower())
        reader = reader.option("columns", ",".join(ALL_SOURCE_COLUMNS))
        reader = reader.option("dialect", ",".join(names)) if names else reader
        tables.insert(0, reader.load(list(sources.captures)))
    return reduce(DataFrame.unionByName, tables)


def _ingested(spark: SparkSession, folder: IngestedFolder, dialects: Dialects) -> DataFrame:
    """Only what the manifest lists; the session of a file is in its path."""
    files = [
        (session, file)
        for session, entries in folder.sessions.items()
        for entry in entries
        for file in folder.files(entry)
    ]
    schema = from_arrow_schema(SCHEMAS["messages"])
    if not files:
        return spark.createDataFrame([], schema)
    if is_remote(folder.where):  # what Spark calls the store, and whether it can read there, is not known
        rows = spark.range(0, len(files), 1, len(files)).mapInArrow(partial(_read_files, files, dialects), schema)
    else:
        below = f"{folder.where}/{MESSAGES}"
        rows = spark.read.schema(schema).option("basePath", below).parquet(*(file for _, file in files))
        rows = rows.select(*ALL_SOURCE_COLUMNS)
    return rows.where(rows.dialect.isin([one.name for one in dialects.wanted])) if dialects.named else rows


def _read_files(
    files: Sequence[tuple[str, str]], dialects: Dialects, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """In a task: the messages of Parquet files, with their session."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            session, place = files[number]
            with plain_errors():
                unit = Unit("", file=place)
                yield from open_batches(unit, dialects, ALL_SOURCE_COLUMNS, plain=True, session=session)

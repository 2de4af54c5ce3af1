"""Captures as Spark DataFrames, for notebooks: messages, requests with their ACKs, deliveries, findings, subscriptions.

>>> analysis = analyse(spark, "captures/")                                   # doctest: +SKIP
>>> analysis.exchanges.groupBy("client").avg("rtt_ns").show()                # doctest: +SKIP
>>> analysis.deliveries.where("outcome = 'missing'").select("topic").show()  # doctest: +SKIP

`analyse` lists the captures, and looks once at the sessions that are more than one piece (Spark tasks do both): parts
can be judged side by side only once the whole is known. All else waits for an action, and is then done by tasks that
hand their rows to Spark; no packet comes to the driver.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import TypedDict, Unpack

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pcap_tools.dialect import Dialect
from pcap_tools.errors import TopicsharkError

from . import check
from .capture_parts import Dialects
from .checker.context import Context
from .checker.control import subscription_rows
from .checker.events import Events
from .checker.findings import FINDINGS
from .checker.ingested import Folder, Sources, find_sources
from .checker.part_check import check_part
from .checker.rules import level_of
from .checker.session_jobs import EVER, PartJob, look_alone, look_in_parts
from .checker.session_plans import SessionPlan, plan_sources
from .engines import tasks_of
from .part_reading import plain_errors
from .planning import wanted_dialects
from .schemas import DELIVERIES, EXCHANGES, SUBSCRIPTIONS
from .source_options import SOURCE_COLUMNS, arrow_schema

# What the DataFrames have, by name. Findings tell their level too: "error", "warning" or "note".
SCHEMAS: dict[str, pa.Schema] = {
    "messages": arrow_schema(SOURCE_COLUMNS),
    "exchanges": EXCHANGES,
    "deliveries": DELIVERIES,
    "findings": FINDINGS.insert(FINDINGS.get_field_index("rule") + 1, pa.field("level", pa.string())),
    "subscriptions": SUBSCRIPTIONS,
}
_BATCH_ROWS = 1 << 16

Given = str | Path | Sequence[str | Path]
Job = SessionPlan | PartJob
_JOBS = pa.schema([("place", pa.int32()), ("job", pa.binary())])


class Options(TypedDict, total=False):
    """What may be said besides the source: see `analyse`."""

    dialects: Sequence[str] | None
    brokers: Sequence[str]
    merge: bool


@dataclass(frozen=True)
class _Wish:
    """What the user said; goes to every task."""

    dialects: Dialects
    names: tuple[str, ...]
    brokers: tuple[str, ...]
    merge: bool


def analyse(
    spark: SparkSession,
    src: Given,
    *,
    dialects: Sequence[str] | None = None,
    brokers: Sequence[str] = (),
    merge: bool = False,
) -> Analysis:
    """What the command `check` takes: captures, folders, globs, URIs, or a folder filled by `topicshark ingest`.

    ``dialects`` are names or TOML files, without them the built-in ones are detected; ``brokers`` are HOST or
    HOST:PORT; with ``merge`` all captures are one session.
    """
    wish = _Wish(wanted_dialects(dialects), tuple(dialects or ()), tuple(brokers), merge)

    run = tasks_of(spark)
    sources = find_sources(_listed(src))
    sessions, failed = plan_sources(sources, wish.dialects, merge, check.PART_BYTES, run)
    if not sessions:
        raise TopicsharkError(next(iter(failed.values())))
    jobs: list[Job] = [session for session in sessions if len(session.pieces) == 1]
    damage = [sentence for session in sessions for sentence in session.damage]
    for session in (session for session in sessions if len(session.pieces) > 1):
        for one in look_in_parts(session, wish.dialects, wish.brokers, run):
            jobs += one.jobs
            damage += one.damage
    good = Sources(tuple(one for one in sources.captures if one not in failed), sources.folders)
    return Analysis(spark, good, wish, [pickle.dumps(job) for job in jobs], failed, list(dict.fromkeys(damage)))


class Analysis:
    """DataFrames of the same sessions; their columns: `SCHEMAS`. Each action does the work for its table again:
    `cache()` what is asked often.

    ``failed`` says of each capture that cannot be read why; ``damage`` has what is known by now of others' damage (of
    small captures it shows only as they are read).
    """

    def __init__(
        self,
        spark: SparkSession,
        sources: Sources,
        wish: _Wish,
        jobs: Sequence[bytes],
        failed: dict[str, str],
        damage: list[str],
    ) -> None:
        self.failed, self.damage = failed, damage
        self._spark, self._sources, self._wish, self._jobs = spark, sources, wish, jobs

    @cached_property
    def messages(self) -> DataFrame:
        """One row a datagram, as `topicshark decode` shows it."""
        return _messages(self._spark, self._sources, self._wish)

    @cached_property
    def exchanges(self) -> DataFrame:
        """One row a request with its ACK, if one came."""
        return self._table("exchanges")

    @cached_property
    def deliveries(self) -> DataFrame:
        """One row for each copy that was due, and for each forward that nothing explains."""
        return self._table("deliveries")

    @cached_property
    def findings(self) -> DataFrame:
        """One row for each place where a rule is broken, or where the capture cannot tell."""
        return self._table("findings")

    @cached_property
    def subscriptions(self) -> DataFrame:
        """One row for each time that a subscription stood."""
        return self._table("subscriptions")

    def _table(self, name: str) -> DataFrame:
        count = len(self._jobs)
        rows = pa.table({"place": list(range(count)), "job": list(self._jobs)}, _JOBS)
        jobs = self._spark.createDataFrame(rows).repartitionById(max(count, 1), "place")
        return jobs.mapInArrow(_task(name, self._wish), from_arrow_schema(SCHEMAS[name]))


def messages(
    spark: SparkSession, src: Given, *, dialects: Sequence[str] | None = None, merge: bool = False
) -> DataFrame:
    """As `Analysis.messages`; nothing is looked at before an action, so a capture that cannot be read fails it."""
    wish = _Wish(wanted_dialects(dialects), tuple(dialects or ()), (), merge)
    return _messages(spark, find_sources(_listed(src)), wish)


def exchanges(spark: SparkSession, src: Given, **options: Unpack[Options]) -> DataFrame:
    """As `Analysis.exchanges`; the options are those of `analyse`."""
    return analyse(spark, src, **options).exchanges


def deliveries(spark: SparkSession, src: Given, **options: Unpack[Options]) -> DataFrame:
    """As `Analysis.deliveries`; the options are those of `analyse`."""
    return analyse(spark, src, **options).deliveries


def findings(spark: SparkSession, src: Given, **options: Unpack[Options]) -> DataFrame:
    """As `Analysis.findings`; the options are those of `analyse`."""
    return analyse(spark, src, **options).findings


def subscriptions(spark: SparkSession, src: Given, **options: Unpack[Options]) -> DataFrame:
    """As `Analysis.subscriptions`; the options are those of `analyse`."""
    return analyse(spark, src, **options).subscriptions


def _listed(src: Given) -> list[str]:
    return [str(src)] if isinstance(src, str | Path) else [str(one) for one in src]


# -- messages -----------------------------------------------------------------------------------------------------


def _messages(spark: SparkSession, sources: Sources, wish: _Wish) -> DataFrame:
    frames = [_ingested(spark, folder, wish) for folder in sources.folders]
    if sources.captures:
        reader = spark.read.format("topicshark").option("merge", str(wish.merge).lower())
        reader = reader.option("dialect", ",".join(wish.names)) if wish.names else reader
        frames.insert(0, reader.load(list(sources.captures)))
    return reduce(DataFrame.unionByName, frames)


def _ingested(spark: SparkSession, folder: Folder, wish: _Wish) -> DataFrame:
    """Only what the manifest lists; the session of a file is in its path."""
    files = [file for found in folder.sessions.values() for entry in found for file in folder.files(entry)]
    schema = from_arrow_schema(SCHEMAS["messages"])
    if not files:
        return spark.createDataFrame([], schema)
    rows = spark.read.schema(schema).option("basePath", str(folder.messages)).parquet(*files)
    rows = rows.select(*SOURCE_COLUMNS)
    return rows.where(rows.dialect.isin([one.name for one in wish.dialects.wanted])) if wish.names else rows


# -- in a task ----------------------------------------------------------------------------------------------------


def _task(name: str, wish: _Wish) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with plain_errors():
            for batch in batches:
                for job in batch.column("job"):
                    for table in _tables(name, wish, pickle.loads(job.as_py())):  # noqa: S301 - made by `analyse`
                        yield from table.combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)

    return run


def _tables(name: str, wish: _Wish, job: Job) -> Iterator[pa.Table]:
    """The rows of one job, for each dialect that is in it."""
    if name == "subscriptions":
        yield from _subscriptions(wish, job)
        return
    for events, context, session, starts_late in _stretches(wish, job):
        part = check_part(events, context, session, starts_late, with_rows=name != "findings")
        yield _with_levels(part.findings, context.policy.dialect) if name == "findings" else getattr(part, name)


def _subscriptions(wish: _Wish, job: Job) -> Iterator[pa.Table]:
    """Each part knows those of the whole session: the first tells them, without reading anything."""
    if isinstance(job, SessionPlan):
        for one in look_alone(job, wish.dialects, wish.brokers):
            yield subscription_rows(one.known.context.subscriptions, job.name)
    elif job.part.own[0] == EVER[0]:
        yield subscription_rows(job.context.subscriptions, job.part.session.name)


def _stretches(wish: _Wish, job: Job) -> Iterator[tuple[Events, Context, str, bool]]:
    """What `check_part` takes."""
    if isinstance(job, SessionPlan):
        for one in look_alone(job, wish.dialects, wish.brokers):
            yield one.events, one.known.part(EVER), job.name, one.known.starts_late
    else:
        yield job.read(wish.dialects), job.context, job.part.session.name, job.starts_late


def _with_levels(found: pa.Table, dialect: Dialect) -> pa.Table:
    """As `check` does, without what the dialect has switched off."""
    levels = pa.array([level_of(rule, dialect) for rule in found.column("rule").to_pylist()], pa.string())
    schema = SCHEMAS["findings"]
    told = found.add_column(schema.get_field_index("level"), schema.field("level"), levels)
    return told.filter(pc.not_equal(levels, "off"))

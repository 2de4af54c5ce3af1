"""Verdicts on a stream: exchanges and deliveries as soon as they are final, verdicts when a session has ended.

>>> stream = spark.readStream.format("topicshark").option("columns", ",".join(ALL_SOURCE_COLUMNS)).load("captures/")
...                                                                              # doctest: +SKIP
>>> followed = follow(stream, "verdicts/", idle_s=60)                            # doctest: +SKIP
>>> followed.start().awaitTermination()                                          # doctest: +SKIP
>>> followed.findings.writeStream.format("console").start()                      # doctest: +SKIP

Requests with their ACKs, the copies of messages that came, and findings of the wire format are given out when nothing
to come can change them, some 40 s of capture time later: a fold goes on from batch to batch (`checker.session_fold`).
All other findings, and deliveries that did not come, depend on the whole session: they are judged when it has ended, by
the same steps as those of a batch, from its messages, which wait in the folder. A session has ended when the stream is
``idle_s`` seconds of capture time past its last message, or when `settle` is called at the end of the input. Before
that `provisional` has the findings so far; any of them may change.

    FOLDER/open/batch=<n>/key=<session>/*.parquet    messages of sessions that are open
    FOLDER/folds/<n>/<session>                       what the fold of an open session remembers
    FOLDER/settled/<n>/<table>/*.parquet             rows that a batch made, until they are moved to `tables`
    FOLDER/state.json                                the commit: open sessions, and the last batch that is done
    FOLDER/tables/<table>/*.parquet                  rows that are final, each once

What folds remember is as large as what is open, messages that wait as large as the open sessions, however long the
stream has run. Spark repeats a batch that did not end: what is not committed is made again, what is committed is not,
and files keep their names when they are moved again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from pcap_tools.codec.detect import wanted_dialects
from pcap_tools.errors import TopicsharkError

from .checker.session_fold import CERTAIN
from .dataframes import EMPTY, SCHEMAS, Analysis, analyse
from .engine.task_rows import packed, run_rows
from .message_tables import check_columns
from .open_sessions import Standing, Step, advance
from .sources.options import ALL_SOURCE_COLUMNS
from .storage.folder import Folder, open_folder

OPEN, FOLDS, SETTLED, TABLES, STATE = "open", "folds", "settled", "tables", "state.json"
MADE = tuple(name for name in SCHEMAS if name != "messages")
JUDGED = tuple(name for name in MADE if name != "exchanges")  # when a session has ended; exchanges came before
_REST = {  # what folds have not given out
    "deliveries": pc.field("publish").is_null() | pc.field("forward").is_null(),
    "findings": ~pc.starts_with(pc.field("rule"), CERTAIN),
}
TASK_ROWS = 100_000  # of sessions that one task goes on with
SECOND = 1_000_000_000


@dataclass
class OpenSession:
    """Its messages lie in these batches; ``last_ns`` is the time of the latest. Of its fold: the file of what it
    remembers, how many bytes these are, how many messages ``kept`` because something about them is open; exchanges and
    deliveries that began before ``final_ns`` have been given out."""

    batches: list[int] = field(default_factory=list)
    rows: int = 0
    last_ns: int = 0
    remembered: str | None = None
    bytes: int = 0
    kept: int = 0
    final_ns: int = 0


@dataclass
class State:
    """``batch`` is the last one that is done; ``newest_ns`` the latest time of all messages; ``settled`` the number of
    sessions that have ended, ``revised`` how many of them turned out to have other brokers than those by which their
    exchanges and deliveries were made; ``commits`` counts what was committed."""

    batch: int = -1
    newest_ns: int = 0
    settled: int = 0
    revised: int = 0
    commits: int = 0
    sessions: dict[str, OpenSession] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Messages that wait for the end of their sessions."""
        return sum(one.rows for one in self.sessions.values())

    @property
    def kept(self) -> int:
        """Messages that folds keep because something about them is open."""
        return sum(one.kept for one in self.sessions.values())

    @property
    def bytes(self) -> int:
        """What folds remember."""
        return sum(one.bytes for one in self.sessions.values())

    @property
    def behind_s(self) -> float:
        """Seconds of capture time from the first exchange or delivery that may not be given out yet to the newest
        message; of a session that is too young for any, from its begin it is not known, and does not count."""
        waiting = [one.final_ns for one in self.sessions.values() if one.final_ns]
        return (self.newest_ns - min(waiting)) / SECOND if waiting else 0.0

    @property
    def lag_s(self) -> float:
        """Seconds between the newest message and now."""
        return time.time() - self.newest_ns / SECOND

    def ended(self, idle_ns: int) -> list[str]:
        return [name for name, one in self.sessions.items() if self.newest_ns - one.last_ns >= idle_ns]


def follow(
    stream: DataFrame,
    folder: str | Path,
    *,
    idle_s: float = 60,
    dialects: Sequence[str] | None = None,
    brokers: Sequence[str] = (),
    provisional: bool = False,
    on_batch: Callable[[State], None] | None = None,
) -> StreamAnalysis:
    """Judge a streaming DataFrame of messages; ``folder`` is a path or a URI that Spark and pyarrow both write to.

    ``provisional``: after each batch judge the open sessions too, which reads all of their messages again. ``on_batch``
    is told the state after each batch.
    """
    if not stream.isStreaming:
        raise TopicsharkError("follow takes a streaming DataFrame (spark.readStream); for a table there is analyse")
    check_columns(stream, wanted_dialects(dialects).wanted)
    steps = _Steps(str(folder), int(idle_s * SECOND), tuple(dialects or ()), tuple(brokers), provisional, on_batch)
    return StreamAnalysis(stream, steps)


class StreamAnalysis:
    """What `follow` returns. The tables are streaming DataFrames: rows of ended sessions, and of open ones those
    exchanges and deliveries that are final."""

    def __init__(self, stream: DataFrame, steps: _Steps) -> None:
        self._stream, self._steps = stream, steps
        self._spark = stream.sparkSession

    def start(self, **trigger: Any) -> StreamingQuery:
        """Start the query; ``trigger`` as for ``DataStreamWriter.trigger``, such as ``availableNow=True``."""
        writer = self._stream.writeStream.foreachBatch(self._steps.take)
        if trigger:
            writer = writer.trigger(**trigger)
        return writer.option("checkpointLocation", self._steps.folder.place("checkpoint")).start()

    def settle(self) -> State:
        """The input has ended: judge all sessions that are open. Call it when the query has stopped."""
        return self._steps.settle_all(self._spark)

    @property
    def state(self) -> State:
        """As of the last batch that is done."""
        return read_state(self._steps.folder)

    @property
    def exchanges(self) -> DataFrame:
        return self.table("exchanges")

    @property
    def deliveries(self) -> DataFrame:
        return self.table("deliveries")

    @property
    def findings(self) -> DataFrame:
        return self.table("findings")

    @property
    def verdicts(self) -> DataFrame:
        return self.table("verdicts")

    def table(self, name: str) -> DataFrame:
        """A stream of the rows of any table but `messages`."""
        self._steps.make_folders()
        return self._spark.readStream.schema(from_arrow_schema(SCHEMAS[name])).parquet(self._steps.place(name))

    def so_far(self, name: str) -> DataFrame:
        """The same as a table, with the rows there are now."""
        self._steps.make_folders()
        return self._spark.read.schema(from_arrow_schema(SCHEMAS[name])).parquet(self._steps.place(name))

    @property
    def provisional(self) -> DataFrame:
        """Findings in sessions that are open, as of the last batch; any of them may change."""
        place = self._steps.folder.place("provisional/findings")
        return self._spark.read.schema(from_arrow_schema(SCHEMAS["findings"])).parquet(place)


class _Steps:
    """What is done with a batch. Spark pickles it to where the query runs."""

    def __init__(
        self,
        folder: str,
        idle_ns: int,
        dialects: tuple[str, ...],
        brokers: tuple[str, ...],
        provisional: bool,
        on_batch: Callable[[State], None] | None,
    ) -> None:
        self._name, self._idle_ns, self._dialects, self._brokers = folder, idle_ns, dialects, brokers
        self._provisional, self._on_batch = provisional, on_batch

    @property
    def folder(self) -> Folder:
        return open_folder(self._name)

    def place(self, table: str) -> str:
        return self.folder.place(f"{TABLES}/{table}")

    def make_folders(self) -> None:
        """Spark reads no folder that is not there."""
        for name in MADE:
            if not self.folder.list(f"{TABLES}/{name}"):
                self.folder.write(f"{TABLES}/{name}/_topicshark", b"")

    def take(self, rows: DataFrame, batch: int) -> None:
        """One batch of messages."""
        state = read_state(self.folder)
        self._recover(state)
        if batch <= state.batch:
            return
        place = self.folder.place(f"{OPEN}/batch={batch}")
        kept = rows.select(*(name for name in ALL_SOURCE_COLUMNS if name in rows.columns)).withColumn(
            "key", _key(f.col("session"))
        )
        kept.write.mode("overwrite").partitionBy("key").parquet(place)
        state.batch = batch
        spark = rows.sparkSession
        come: list[str] = []
        for session, last_ns, count in _summary(spark, place):
            one = state.sessions.setdefault(session, OpenSession())
            one.batches.append(batch)
            one.rows += count
            one.last_ns = max(one.last_ns, last_ns)
            state.newest_ns = max(state.newest_ns, last_ns)
            come.append(session)
        self._settle(spark, state, state.ended(self._idle_ns), come)
        if self._provisional:
            self._judge_open(spark, state)
        if self._on_batch is not None:
            self._on_batch(state)

    def settle_all(self, spark: SparkSession) -> State:
        state = read_state(self.folder)
        self._recover(state)
        self._settle(spark, state, list(state.sessions), ())
        return state

    def _recover(self, state: State) -> None:
        """Finish what a batch that died may have committed and not done."""
        self._publish()
        known = {_open_folder(batch, session) for session, one in state.sessions.items() for batch in one.batches}
        for file in self.folder.list(OPEN):
            batch = int(file.split("/")[1].partition("=")[2])
            if batch <= state.batch and file.rpartition("/")[0] not in known:
                self.folder.delete(file)
        self.folder.prune(OPEN)
        self._forget_folds(state)

    def _settle(self, spark: SparkSession, state: State, ended: Sequence[str], come: Sequence[str]) -> None:
        """Go on with the sessions of which messages have come, judge those that have ended, commit, and only then
        forget what is not needed any more."""
        gone = [(session, state.sessions[session]) for session in ended]
        pending = f"{SETTLED}/{state.commits}"
        _delete(self.folder, pending)
        if gone:
            analysis = self._analysis(spark, gone)
            analysis.write(self.folder.place(pending), JUDGED, _REST)
            analysis.release()
        self._go_on(spark, state, ended, come, pending)  # afterwards: `write` replaces what is there
        for session in ended:
            del state.sessions[session]
        state.settled += len(ended)
        state.commits += 1
        self.folder.write(STATE, json.dumps(asdict(state) | {"pending": pending}).encode())
        self._publish()
        for session, one in gone:
            for batch in one.batches:
                _delete(self.folder, _open_folder(batch, session))
        self._forget_folds(state)

    def _go_on(
        self, spark: SparkSession, state: State, ended: Sequence[str], come: Sequence[str], pending: str
    ) -> None:
        """Take the folds of sessions a step further: with the messages that have come, and to the end."""
        sessions = list(dict.fromkeys([*come, *ended]))
        steps = [
            Step(
                session,
                _key_of(session),
                self._new_messages(state.batch, session) if session in come else (),
                state.sessions[session].remembered,
                f"{FOLDS}/{state.commits}/{_key_of(session)}",
                pending,
                session in ended,
            )
            for session in sessions
        ]
        task = partial(advance, wanted_dialects(self._dialects or None), self._brokers, self._name)
        sizes = [state.sessions[session].rows for session in sessions]
        standings = run_rows(spark, Standing, task, packed(steps, sizes, TASK_ROWS), "follow")
        for step, standing in zip(steps, standings, strict=True):
            one = state.sessions[step.session]
            one.remembered = step.remember
            one.kept, one.bytes, one.final_ns = standing.kept, standing.bytes, standing.final_ns
            state.revised += step.has_ended and standing.is_revised

    def _new_messages(self, batch: int, session: str) -> tuple[str, ...]:
        """Files; Spark's own, such as sums of their bytes, are beside them."""
        files = self.folder.list(_open_folder(batch, session))
        return tuple(file for file in files if file.endswith(".parquet"))

    def _forget_folds(self, state: State) -> None:
        """All but what open sessions go on from."""
        known = {one.remembered for one in state.sessions.values()}
        for file in self.folder.list(FOLDS):
            if file not in known:
                self.folder.delete(file)
        self.folder.prune(FOLDS)

    def _publish(self) -> None:
        """Move the rows of the batch that was committed last to their tables; what is moved already stays."""
        pending = _raw_state(self.folder).get("pending")
        if pending is None:
            return
        number = pending.partition("/")[2]
        for file in self.folder.list(pending):
            table, _, name = file[len(pending) + 1 :].partition("/")
            if name != EMPTY:
                self.folder.move(file, f"{TABLES}/{table}/{number}-{name}")
        _delete(self.folder, pending)

    def _judge_open(self, spark: SparkSession, state: State) -> None:
        if state.sessions:
            analysis = self._analysis(spark, list(state.sessions.items()))
            analysis.write(self.folder.place("provisional"), ["findings"])
            analysis.release()

    def _analysis(self, spark: SparkSession, sessions: Sequence[tuple[str, OpenSession]]) -> Analysis:
        places = [self.folder.place(_open_folder(batch, session)) for session, one in sessions for batch in one.batches]
        messages = spark.read.schema(from_arrow_schema(SCHEMAS["messages"])).parquet(*places)
        return analyse(spark, messages, dialects=self._dialects or None, brokers=self._brokers)


def read_state(folder: Folder) -> State:
    """That of a stream that never ran is empty."""
    said = _raw_state(folder)
    said.pop("pending", None)
    sessions = {name: OpenSession(**one) for name, one in said.pop("sessions", {}).items()}
    return State(**said, sessions=sessions)


def _raw_state(folder: Folder) -> dict[str, Any]:
    data = folder.read(STATE)
    said: dict[str, Any] = json.loads(data) if data else {}
    return said


def _summary(spark: SparkSession, place: str) -> list[tuple[str, int, int]]:
    """Of each session in a batch the latest time and the number of messages: small."""
    rows = spark.read.schema("session STRING, time_ns BIGINT").parquet(place)
    grouped = rows.groupBy("session").agg(f.max("time_ns").alias("last_ns"), f.count("*").alias("count"))
    return [(row["session"], row["last_ns"], row["count"]) for row in grouped.collect()]


def _key(session: Any) -> Any:
    """The folder of a session, in Spark; `_key_of` is the same."""
    return f.concat(f.lit("s"), f.substring(f.sha2(session, 256), 1, 16))


def _open_folder(batch: int, session: str) -> str:
    return f"{OPEN}/batch={batch}/key={_key_of(session)}"


def _key_of(session: str) -> str:
    return "s" + sha256(session.encode(errors="surrogatepass")).hexdigest()[:16]


def _delete(folder: Folder, below: str) -> None:
    for file in folder.list(below):
        folder.delete(file)
    folder.prune(below)

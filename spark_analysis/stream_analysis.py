"""Verdicts on a stream: messages wait in a folder until their session has ended; then it is judged as a whole.

>>> stream = spark.readStream.format("topicshark").option("columns", ",".join(ALL_SOURCE_COLUMNS)).load("captures/")
...                                                                              # doctest: +SKIP
>>> followed = follow(stream, "verdicts/", idle_s=60)                            # doctest: +SKIP
>>> followed.start().awaitTermination()                                          # doctest: +SKIP
>>> followed.findings.writeStream.format("console").start()                      # doctest: +SKIP

A session has ended when the stream is ``idle_s`` seconds of capture time past its last message, or when `settle` is
called at the end of the input. Its rows then come from the same steps as those of a batch, and are final. Before that
`provisional` has the findings so far; any of them may change.

    FOLDER/open/batch=<n>/key=<session>/*.parquet    messages of sessions that are open
    FOLDER/settled/<n>/<table>/*.parquet             rows that a batch made, until they are moved to `tables`
    FOLDER/state.json                                the commit: open sessions, and the last batch that is done
    FOLDER/tables/<table>/*.parquet                  rows of ended sessions, each once

The state is the messages of open sessions, however long the stream has run. Spark repeats a batch that did not end:
what is not committed is made again, what is committed is not, and files keep their names when they are moved again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from pcap_tools.codec.detect import wanted_dialects
from pcap_tools.errors import TopicsharkError

from .dataframes import EMPTY, SCHEMAS, Analysis, analyse
from .message_tables import check_columns
from .source_options import ALL_SOURCE_COLUMNS
from .storage import Folder, open_folder

OPEN, SETTLED, TABLES, STATE = "open", "settled", "tables", "state.json"
MADE = tuple(name for name in SCHEMAS if name != "messages")
SECOND = 1_000_000_000


@dataclass
class OpenSession:
    """Its messages lie in these batches; ``last_ns`` is the time of the latest."""

    batches: list[int] = field(default_factory=list)
    rows: int = 0
    last_ns: int = 0


@dataclass
class State:
    """``batch`` is the last one that is done; ``newest_ns`` the latest time of all messages; ``settled`` the number of
    sessions that have ended."""

    batch: int = -1
    newest_ns: int = 0
    settled: int = 0
    sessions: dict[str, OpenSession] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Messages that wait."""
        return sum(one.rows for one in self.sessions.values())

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
    """What `follow` returns. The tables are streaming DataFrames with the rows of ended sessions."""

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
        for session, last_ns, count in _summary(spark, place):
            one = state.sessions.setdefault(session, OpenSession())
            one.batches.append(batch)
            one.rows += count
            one.last_ns = max(one.last_ns, last_ns)
            state.newest_ns = max(state.newest_ns, last_ns)
        self._settle(spark, state, state.ended(self._idle_ns))
        if self._provisional:
            self._judge_open(spark, state)
        if self._on_batch is not None:
            self._on_batch(state)

    def settle_all(self, spark: SparkSession) -> State:
        state = read_state(self.folder)
        self._recover(state)
        self._settle(spark, state, list(state.sessions))
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

    def _settle(self, spark: SparkSession, state: State, ended: Sequence[str]) -> None:
        """Judge sessions, commit, and only then forget their messages."""
        gone = [(session, state.sessions[session]) for session in ended]
        pending = f"{SETTLED}/{state.batch}-{state.settled}"
        for file in self.folder.list(pending):
            self.folder.delete(file)
        if gone:
            analysis = self._analysis(spark, gone)
            analysis.write(self.folder.place(pending), MADE)
            analysis.release()
        for session in ended:
            del state.sessions[session]
        state.settled += len(ended)
        self.folder.write(STATE, json.dumps(asdict(state) | {"pending": pending}).encode())
        self._publish()
        for session, one in gone:
            for batch in one.batches:
                _delete(self.folder, _open_folder(batch, session))

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
    """The folder of a session, in Spark; `_open_folder` has the same."""
    return f.concat(f.lit("s"), f.substring(f.sha2(session, 256), 1, 16))


def _open_folder(batch: int, session: str) -> str:
    key = sha256(session.encode(errors="surrogatepass")).hexdigest()[:16]
    return f"{OPEN}/batch={batch}/key=s{key}"


def _delete(folder: Folder, below: str) -> None:
    for file in folder.list(below):
        folder.delete(file)
    folder.prune(below)

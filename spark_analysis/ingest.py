"""Captures to Parquet on Spark: plan, decode, publish.

>>> with open_session() as spark:                                     # doctest: +SKIP
...     done = ingest(spark, ["captures/"], "run")
>>> done.rows, [entry.session for entry in done.ingested]            # doctest: +SKIP

Planning walks over each capture (a task each) and cuts it into splits; each split is decoded by a task that writes
its own file. What comes back to the driver are a few numbers a split, never packets. A capture that is in the folder
already, and has not changed, is left alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import blake2b, sha256
from pathlib import Path

from pyspark.sql import SparkSession

from pcap_tools.columnar.schema import ALL_COLUMNS
from pcap_tools.columnar.sources import is_remote, open_bytes
from pcap_tools.errors import TopicsharkError, UsageError

from .capture_parts import Dialects
from .captures import find_captures
from .engines import Item, Result, Runner, Stage, in_process, tasks_of
from .manifest import DataFile, Manifest, SourceEntry
from .planning import CapturePlan, plan_capture, wanted_dialects
from .sessions import session_names
from .spark_session import is_local
from .split_decoding import SplitDone, SplitJob, decode_split
from .store import Store, open_store

SPLIT_BYTES = 128 << 20
_EVIDENCE_KEPT = 20


@dataclass(frozen=True)
class Ingested:
    """What a call of `ingest` did. `failed` says of each capture that could not be read why."""

    ingested: list[SourceEntry] = field(default_factory=list)
    skipped: list[SourceEntry] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Messages written by this call."""
        return sum(entry.decoded for entry in self.ingested)


def ingest(
    spark: SparkSession,
    sources: Sequence[str],
    output: str | Path,
    dialects: Dialects | None = None,
    *,
    merge: bool = False,
    split_bytes: int = SPLIT_BYTES,
    stage: Stage | None = None,
) -> Ingested:
    """Put the messages of all captures that `sources` name into the folder `output`.

    `stage` is entered with the name of each job while it runs, to show progress.
    """
    if is_remote(str(output)):
        raise UsageError(f"{output}: a folder that all workers can write to is needed, not a URI")
    dialects = dialects or wanted_dialects()
    captures = find_captures(sources)
    with open_store(Path(output).absolute()) as store:
        call = Call(spark, store, dialects, split_bytes, stage or _no_stage)
        todo, skipped = call.choose(captures, merge)
        plans = call.plan(list(todo))
        entries, hidden = call.decode(plans, todo)
        call.publish(entries, hidden)
    return Ingested(entries, skipped, call.failed, call.seconds)


def _no_stage(label: str) -> AbstractContextManager[None]:
    return nullcontext()


class Call:
    """The steps of one call, in their order: `choose`, `plan`, `decode`, `publish`."""

    def __init__(self, spark: SparkSession, store: Store, dialects: Dialects, split_bytes: int, stage: Stage) -> None:
        self.failed: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self._spark, self._store, self._dialects = spark, store, dialects
        self._split_bytes, self._stage = split_bytes, stage
        self._wish = sha256(repr((dialects.key, ALL_COLUMNS)).encode()).hexdigest()

    def choose(self, captures: Sequence[str], merge: bool) -> tuple[dict[str, str], list[SourceEntry]]:
        """The captures to be read with the session of each; and those that are there already."""
        known = self._store.manifest.sources
        sessions = _sessions(captures, self._store.manifest, merge)
        skipped = [
            known[capture]
            for capture in captures
            if capture in known and self._is_current(known[capture]) and known[capture].session == sessions[capture]
        ]
        there = {entry.uri for entry in skipped}
        return {capture: sessions[capture] for capture in captures if capture not in there}, skipped

    def _is_current(self, entry: SourceEntry) -> bool:
        try:
            with open_bytes(entry.uri) as data:
                return data.version == entry.version and data.size == entry.size and self._wish == entry.wish
        except TopicsharkError:
            return False  # the plan will say what is wrong with it

    def plan(self, captures: Sequence[str]) -> list[CapturePlan]:
        """Of those captures that can be read."""
        task = partial(_plan, self._dialects, self._split_bytes)
        # One capture is walked through before a task to do it has begun.
        alone = len(captures) == 1 and is_local(self._spark)
        plans = self._run("plan", task, captures, in_process if alone else None)
        self.failed |= {name: plan for name, plan in zip(captures, plans, strict=True) if isinstance(plan, str)}
        return [plan for plan in plans if isinstance(plan, CapturePlan)]

    def decode(
        self, plans: Sequence[CapturePlan], sessions: dict[str, str]
    ) -> tuple[list[SourceEntry], dict[Path, Path]]:
        """Write all files, hidden; the entries that shall be, and which file is to get which name."""
        jobs = [job for plan in plans for job in self._jobs(plan, sessions[plan.source])]
        longest_first = sorted(jobs, key=lambda job: job.split.begin - job.split.end)
        done = self._run("decode", decode_split, longest_first)
        by_name = dict(zip((job.name for job in longest_first), done, strict=True))
        entries: list[SourceEntry] = []
        hidden: dict[Path, Path] = {}
        for plan in plans:
            session = sessions[plan.source]
            named = {job.name: by_name[job.name] for job in self._jobs(plan, session)}
            errors = [one.error for one in named.values() if one.error]
            if errors:
                self.failed[plan.source] = errors[0]
                continue
            folder = self._store.folder_of(session)
            hidden |= {folder / one.file: folder / f"{name}.parquet" for name, one in named.items() if one.file}
            entries.append(self._entry(plan, session, named))
        return entries, hidden

    def publish(self, entries: Sequence[SourceEntry], hidden: dict[Path, Path]) -> None:
        """Files get their visible names, then the manifest lists them."""
        start = time.monotonic()
        try:
            self._store.reveal(hidden)
            self._store.commit(entries)
        except OSError as error:
            raise TopicsharkError(f"{self._store.folder}: cannot be written: {error.strerror or error}") from error
        self.seconds["publish"] = time.monotonic() - start

    def _run(
        self, label: str, task: Callable[[Item], Result], items: Sequence[Item], runner: Runner | None = None
    ) -> list[Result]:
        start = time.monotonic()
        with self._stage(label):
            results = (runner or tasks_of(self._spark))(task, items, label)
        self.seconds[label] = time.monotonic() - start
        return results

    def _jobs(self, plan: CapturePlan, session: str) -> list[SplitJob]:
        """Names tell captures apart, and a capture from what it was before."""
        of = "\0".join((plan.source, plan.version, self._wish))
        key = blake2b(of.encode(errors="surrogateescape"), digest_size=8).hexdigest()
        folder = str(self._store.folder_of(session))
        spoken = self._dialects.spoken(plan.routes)
        return [SplitJob(split, spoken, plan.routes, folder, f"part-{key}-{split.ordinal:05}") for split in plan.splits]

    def _entry(self, plan: CapturePlan, session: str, done: dict[str, SplitDone]) -> SourceEntry:
        folder = self._store.folder_of(session).relative_to(self._store.folder)
        splits = list(done.values())
        times = [time_ns for one in splits for time_ns in one.times or ()]
        return SourceEntry(
            uri=plan.source,
            size=plan.size,
            version=plan.version,
            fingerprint=plan.fingerprint,
            wish=self._wish,
            session=session,
            dialects=sorted({one.dialect for one in plan.evidence}),
            evidence=[str(one) for one in plan.evidence[:_EVIDENCE_KEPT]],
            frames=plan.frames,
            decoded=sum(one.rows for one in splits),
            other=sum(one.other for one in splits),
            times=[min(times), max(times)] if times else None,
            damage=[asdict(damage) for damage in (*plan.damage, *(one for part in splits for one in part.damage))],
            warnings=[*plan.warnings, *(text for part in splits for text in part.warnings)],
            files=[
                DataFile(str(folder / f"{name}.parquet"), one.rows, one.bytes) for name, one in done.items() if one.file
            ],
        )


def _plan(dialects: Dialects, split_bytes: int, capture: str) -> CapturePlan | str:
    """In a task: a plan, or why there is none."""
    try:
        return plan_capture(capture, dialects, split_bytes)
    except TopicsharkError as error:
        return str(error)


def _sessions(captures: Sequence[str], manifest: Manifest, merge: bool) -> dict[str, str]:
    """A capture stays in its session. Merged, all go where those of them are that are there, if that is one place."""
    known = {capture: manifest.sources[capture].session for capture in captures if capture in manifest.sources}
    taken = {entry.session for entry in manifest.sources.values()}
    if merge:
        places = set(known.values())
        name = places.pop() if len(places) == 1 else session_names(captures, merge=True, taken=taken)[0]
        return dict.fromkeys(captures, name)
    new = [capture for capture in captures if capture not in known]
    return known | dict(zip(new, session_names(new, taken=taken), strict=True))

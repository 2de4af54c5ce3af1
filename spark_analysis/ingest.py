"""Captures to Parquet on Spark: plan, decode, publish.

>>> with open_session() as spark:                                     # doctest: +SKIP
...     done = ingest(spark, ["captures/"], "run")
>>> done.rows, [entry.session for entry in done.ingested]            # doctest: +SKIP

Planning walks over each capture and divides it into units; tasks decode these, and write a file for each (small ones
are several to a task). What comes back to the driver are a few numbers a unit, never packets. A capture that is in the
folder already, and has not changed, is left alone. It takes nothing but the DataFrame API, so it also runs through
Spark Connect. How files appear in the folder: `store.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from pyspark.sql import SparkSession

from pcap_tools.capture.damage import Damage
from pcap_tools.codec.detect import Dialects, wanted_dialects
from pcap_tools.columnar.decode.schema import ALL_COLUMNS, SCHEMA_VERSION
from pcap_tools.columnar.read.sources import is_remote, open_bytes
from pcap_tools.errors import TopicsharkError

from .engine.engines import Stage
from .engine.spark_session import is_local
from .engine.task_rows import packed, run_rows
from .parquet.messages_file import MessagesFile
from .sources.captures import find_captures
from .sources.planning import CapturePlan, plan_capture
from .sources.session_names import session_names
from .sources.units import Unit, open_batches
from .storage.folder import open_folder
from .storage.manifest import DataFile, Manifest, SourceEntry
from .storage.store import STAGING, Store, open_store, session_folder

SPLIT_BYTES = 128 << 20
# What one task decodes at least, if there is so much (16 MB are some 200,000 packets), and what one task plans.
_DECODED, _PLANNED = 16 << 20, 128 << 20
# To open a capture and to find its dialects takes as long as to walk over so much.
_OPENED = 4 << 20
_EVIDENCE_KEPT = 20

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Ingested:
    """What a call of `ingest` did. `failed` says why, for each capture that could not be read."""

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
    """Put the messages of all captures that `sources` name into `output`: a folder that all workers see, or a URI.

    `stage` is entered with the name of each job while it runs, to show progress.
    """
    dialects = dialects or wanted_dialects()
    captures = find_captures(sources)
    with open_store(output) as store:
        call = Call(spark, store, dialects, split_bytes, stage or _no_stage)
        todo, skipped = call.choose(captures, merge)
        plans = call.plan(list(todo))
        entries, staged = call.decode(plans, todo)
        call.publish(staged, entries)
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
        self._wish = sha256(repr((dialects.key, ALL_COLUMNS, SCHEMA_VERSION)).encode()).hexdigest()

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
        if len(captures) == 1 and is_local(self._spark):
            planned = [task(captures[0])]  # done before a task to do it has begun
        else:
            tasks = packed(captures, [_weight(capture) for capture in captures], _PLANNED)
            planned = self._run("plan", Planned, task, tasks)
        self.failed |= {name: one.error for name, one in zip(captures, planned, strict=True) if one.plan is None}
        return [one.plan for one in planned if one.plan is not None]

    def decode(
        self, plans: Sequence[CapturePlan], sessions: dict[str, str]
    ) -> tuple[list[SourceEntry], dict[str, str]]:
        """Write all files to `_staging`; returns the new entries of the manifest, and where each file belongs."""
        targets = [target for plan in plans for target in self._targets(plan)]
        sizes = {target.name: target.unit.bytes for target in targets}
        targets.sort(key=lambda target: sizes[target.name], reverse=True)
        tasks = packed(targets, [sizes[target.name] for target in targets], min(_DECODED, self._split_bytes))
        done = self._run("decode", Written, partial(write_unit, self._dialects), tasks)
        by_name = dict(zip((target.name for target in targets), done, strict=True))
        entries: list[SourceEntry] = []
        staged: dict[str, str] = {}
        for plan in plans:
            named = {target.name: by_name[target.name] for target in self._targets(plan)}
            errors = [one.error for one in named.values() if one.error]
            if errors:
                self.failed[plan.source] = errors[0]
                continue
            entry = self._entry(plan, sessions[plan.source], named)
            files = [f"{STAGING}/{one.file}" for one in named.values() if one.file]
            staged |= dict(zip(files, (file.name for file in entry.files), strict=True))
            entries.append(entry)
        return entries, staged

    def publish(self, staged: dict[str, str], entries: Sequence[SourceEntry]) -> None:
        """Files get their places, then the manifest lists them."""
        start = time.monotonic()
        self._store.publish(staged, entries)
        self.seconds["publish"] = time.monotonic() - start

    def _run(
        self, label: str, gives: type[Result], task: Callable[[Item], Result], tasks: Sequence[Sequence[Item]]
    ) -> list[Result]:
        start = time.monotonic()
        with self._stage(label):
            results = run_rows(self._spark, gives, task, tasks, label)
        self.seconds[label] = time.monotonic() - start
        return results

    def _targets(self, plan: CapturePlan) -> list[UnitFile]:
        """Names tell captures apart, and a capture from what it was before."""
        of = "\0".join((plan.source, plan.version, self._wish))
        key = blake2b(of.encode(errors="surrogateescape"), digest_size=8).hexdigest()
        folder = self._store.folder.place(STAGING)
        return [UnitFile(unit, folder, f"part-{key}-{place:05}") for place, unit in enumerate(plan.units)]

    def _entry(self, plan: CapturePlan, session: str, done: dict[str, Written]) -> SourceEntry:
        written = list(done.values())
        times = [time_ns for one in written for time_ns in one.times or ()]
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
            decoded=sum(one.rows for one in written),
            other=sum(one.other for one in written),
            times=[min(times), max(times)] if times else None,
            damage=[asdict(damage) for damage in (*plan.damage, *(one for unit in written for one in unit.damage))],
            warnings=[*plan.warnings, *(text for unit in written for text in unit.warnings)],
            files=[
                DataFile(f"{session_folder(session)}/{name}.parquet", one.rows, one.bytes)
                for name, one in done.items()
                if one.file
            ],
            schema=SCHEMA_VERSION,
        )


def _weight(capture: str) -> int:
    """Of its plan. One in a store is not asked for its size: that takes as long as to begin a task."""
    try:
        return _PLANNED if is_remote(capture) else _OPENED + os.path.getsize(capture)
    except OSError:
        return _OPENED  # the plan will say what is wrong with it


@dataclass(frozen=True)
class Planned:
    """A plan, or the error that says why there is none."""

    plan: CapturePlan | None = None
    error: str = ""


def _plan(dialects: Dialects, split_bytes: int, capture: str) -> Planned:
    """In a task."""
    try:
        return Planned(plan_capture(capture, dialects, split_bytes, in_full=True))
    except TopicsharkError as error:
        return Planned(error=str(error))


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


@dataclass(frozen=True)
class UnitFile:
    """Where a unit is to be written: to `folder`, a path or URI, as `name` and an ending that no other attempt has."""

    unit: Unit
    folder: str
    name: str


@dataclass(frozen=True)
class Written:
    """What became of a unit. `file` is None if it has no message; `error` says why the capture cannot be used."""

    file: str | None = None
    rows: int = 0
    bytes: int = 0
    other: int = 0
    times: tuple[int, int] | None = None
    damage: list[Damage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    error: str = ""


def write_unit(dialects: Dialects, target: UnitFile) -> Written:
    """Trouble with the capture is a result; any other, such as a full disk, is raised: Spark tries again elsewhere."""
    damage: list[Damage] = []
    warnings: list[str] = []
    name = f"{target.name}-{uuid4().hex}.parquet"
    file = MessagesFile(open_folder(target.folder).new_file(name))
    try:
        with file:
            batches = open_batches(
                target.unit, dialects, ALL_COLUMNS, on_damage=damage.append, on_warning=warnings.append
            )
            for batch in batches:
                file.add(batch)
    except TopicsharkError as error:
        return Written(error=str(error))
    return Written(name if file.rows else None, file.rows, file.bytes, batches.other, file.times, damage, warnings)

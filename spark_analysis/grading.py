"""One row for each submission of a class: what was judged, how it ended, what was wrong with it.

>>> grades = grade(find_submissions(["submissions/"]).submissions)      # doctest: +SKIP
>>> [(one.submission, one.verdict) for one in grades]                   # doctest: +SKIP
[('anna', 'pass'), ('bert', 'fail'), ('carla', 'unreadable')]

A submission is one job: it has its own dialect, its own sessions and its own troubles, and none stops the others. So
200 of them are one run, in this process or as tasks of one Spark session; only a very large one is read in units.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pcap_tools.codec.detect import Dialects, wanted_dialects
from pcap_tools.dialect import load_dialect
from pcap_tools.errors import TopicsharkError, UsageError
from pcap_tools.escaping import escape_text

from .check import SMALL_BYTES, check, judge
from .engine.engines import Packed, Stage, spark_engine
from .pipeline import Options
from .reports.as_json import troubles
from .results.grades import Grade
from .results.safe_text import shown
from .results.verdicts import CheckResult, Finding, Place, RuleVerdict, SessionResult
from .sessions.ingested import Sources
from .sources.submissions import Submission
from .summaries.ack_timing import TimingSummary
from .summaries.fanout import FanoutSummary

LARGE_BYTES = 512 << 20  # a submission that is not left to one task
BUNDLE, BUNDLE_BYTES = 8, 16 << 20  # submissions that one task does


@dataclass(frozen=True)
class GradingOptions:
    """How all submissions are judged. ``dialects``: of those that bring none; if they are named, of all."""

    dialects: Dialects = field(default_factory=wanted_dialects)
    brokers: tuple[str, ...] = ()
    merge: bool = False
    rules: tuple[str, ...] = ()
    limit: int = 100


def grade(
    submissions: Sequence[Submission],
    options: GradingOptions | None = None,
    *,
    engine: str = "auto",
    master: str | None = None,
    stage: Callable[[object], Stage] | None = None,
    told: Callable[[int, int], None] | None = None,
) -> list[Grade]:
    """A grade for each, in their order. ``told`` hears after each submission how many of how many are done, ``stage``
    is as for `check`."""
    if engine not in ("auto", "local", "spark"):
        raise UsageError(f"--engine is auto, local or spark, not {engine!r}")
    options = options or GradingOptions()
    if engine == "local" or (engine == "auto" and sum(map(_size, submissions)) <= SMALL_BYTES):
        grades = []
        for number, one in enumerate(submissions, start=1):
            grades.append(_grade(options, one))
            if told:
                told(number, len(submissions))
        return grades
    return _grade_on_spark(submissions, options, master, stage)


def _grade_on_spark(
    submissions: Sequence[Submission],
    options: GradingOptions,
    master: str | None,
    stage: Callable[[object], Stage] | None,
) -> list[Grade]:
    """Some in each task; then those that are large, one after the other, each in tasks of its own."""
    large = {one.folder for one in submissions if _size(one) > LARGE_BYTES}
    with spark_engine(master, stage) as engine:
        bundles = _bundles([one for one in submissions if one.folder not in large])
        found = []
        if bundles:
            rows = engine.read(partial(_grade_all, options), bundles, "grade")
            found = engine.collect([rows], (_GRADE, _REFUSED), "grade")
        for row in found:
            if row.kind == _REFUSED:
                raise UsageError(row.data.decode())
        grades = {one.folder: one for one in (_unpacked(row.data) for row in found)}

        def in_units(captures: Sequence[str], dialects: Dialects) -> CheckResult:
            judging = Options(dialects, options.brokers, summaries=False, limit=options.limit)
            return judge(Sources(tuple(captures)), judging, options.merge, engine, options.rules)

        grades |= {one.folder: _grade(options, one, in_units) for one in submissions if one.folder in large}
    return [grades[one.folder] for one in submissions]


def _bundles(submissions: Sequence[Submission]) -> list[list[Submission]]:
    """What one task does: starting it takes as long as judging a small submission."""
    bundles: list[list[Submission]] = []
    size = 0
    for one in submissions:
        size += _size(one)
        if not bundles or size > BUNDLE_BYTES or len(bundles[-1]) == BUNDLE:
            bundles.append([])
            size = _size(one)
        bundles[-1].append(one)
    return bundles


_GRADE, _REFUSED = "grade", "refused"


def _grade_all(options: GradingOptions, submissions: Sequence[Submission]) -> Iterator[Packed]:
    """In a task."""
    for one in submissions:
        try:
            yield Packed(0, _GRADE, _packed(_grade(options, one)))
        except UsageError as error:
            yield Packed(0, _REFUSED, str(error).encode(errors="replace"))
            return


def _packed(grade: Grade) -> bytes:
    """Without summaries, which are not made here."""
    sessions = [
        {**vars(one), "rules": list(map(vars, one.rules)), "findings": list(map(vars, one.findings))}
        for one in grade.sessions
    ]
    for one in sessions:
        del one["timing"], one["fanout"]
    return json.dumps({**vars(grade), "sessions": sessions}).encode()


def _unpacked(data: bytes) -> Grade:
    said = json.loads(data)
    for name in ("dialects", "problems"):
        said[name] = tuple(said[name])
    return Grade(**said | {"sessions": tuple(_session(one) for one in said["sessions"])})


def _session(said: dict[str, Any]) -> SessionResult:
    findings = [
        Finding(**one | {"related": tuple(Place(*place) for place in one["related"])}) for one in said["findings"]
    ]
    rules = [RuleVerdict(**one) for one in said["rules"]]
    summaries = {"timing": TimingSummary.empty(), "fanout": FanoutSummary.empty()}
    return SessionResult(**said | {"rules": rules, "findings": findings} | summaries)


def _size(submission: Submission) -> int:
    sizes = 0
    for capture in submission.captures:
        try:
            sizes += os.stat(capture).st_size
        except OSError:  # told when it is read
            continue
    return sizes


# -- one submission -----------------------------------------------------------------------------------------------


Check = Callable[[Sequence[str], Dialects], CheckResult]


def _grade(options: GradingOptions, submission: Submission, checked: Check | None = None) -> Grade:
    """In a task, or here. Whatever a submission holds ends in its row."""
    row = Grade(submission.name, submission.folder, len(submission.captures), problems=tuple(submission.problems))
    try:
        dialects = _dialects(options, submission)
        row = replace(row, dialects=tuple(one.name for one in dialects.wanted) if dialects.named else ())
        if not submission.captures:
            return _with_problems(
                row, ["no captures in it; expected names like *.pcap, *.pcapng or *.cap, also with .gz, .zst or .lz4"]
            )
        result = (checked or partial(_check_here, options))(submission.captures, dialects)
    except UsageError:  # of the command line: the same for all
        raise
    except TopicsharkError as error:
        return _with_problems(replace(row, unread=True), str(error).splitlines())
    except Exception as error:  # a defect of ours, on one submission: the others must not suffer, and it is told
        return _with_problems(replace(row, unread=True), [f"could not be judged: {type(error).__name__}: {error}"])
    return _judged(row, submission, dialects, result)


def _check_here(options: GradingOptions, captures: Sequence[str], dialects: Dialects) -> CheckResult:
    return check(
        captures,
        dialects=dialects,
        brokers=options.brokers,
        merge=options.merge,
        engine="local",
        rules=options.rules,
        limit=options.limit,
        summaries=False,
    )


def _dialects(options: GradingOptions, submission: Submission) -> Dialects:
    """Its own dialect, unless the user has named one for all."""
    if options.dialects.named or not submission.dialect_files:
        return options.dialects
    if len(submission.dialect_files) > 1:
        names = ", ".join(os.path.relpath(path, submission.folder) for path in submission.dialect_files)
        raise TopicsharkError(f"several dialect files ({names}): name the one that counts dialect.toml")
    return Dialects((load_dialect(submission.dialect_files[0]),), named=True)


def _judged(row: Grade, submission: Submission, dialects: Dialects, result: CheckResult) -> Grade:
    told = {capture for session in result.sessions for capture in session.captures}.union(result.failed)
    silent = [one for one in submission.captures if told.isdisjoint((one, escape_text(one))) and not result.sessions]
    sought = f"in {dialects.wanted[0].name}" if len(dialects.wanted) == 1 else "in a known dialect"
    problems = [*troubles(result), *(f"{escape_text(one)}: no datagram {sought}" for one in silent)]
    sessions = [replace(one, name=f"{row.submission}/{one.name}") for one in result.sessions]
    names = dict.fromkeys(one.dialect for one in sessions) or row.dialects
    row = replace(row, sessions=tuple(sessions), dialects=tuple(names), unread=bool(result.failed))
    return _with_problems(row, problems)


def _with_problems(row: Grade, sentences: Sequence[str]) -> Grade:
    """Safe to print, and without the path that all of a submission's files have in common."""
    texts = [shown(sentence) for sentence in (*row.problems, *sentences)]
    for folder in {row.folder, escape_text(row.folder)}:
        texts = [text.replace(f"{shown(folder)}{os.sep}", "") for text in texts]
    return replace(row, problems=tuple(dict.fromkeys(texts)))


def as_check_result(grades: Sequence[Grade]) -> CheckResult:
    """All sessions and troubles, for reports that know nothing of submissions."""
    sessions = [session for one in grades for session in one.sessions]
    return CheckResult(sessions, [f"{one.submission}: {problem}" for one in grades for problem in one.problems])

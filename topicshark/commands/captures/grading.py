"""`topicshark check --by-directory`: a class of submissions, one row each. The options are those of `check`."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from topicshark.commands.captures.checking import CheckOptions
from topicshark.exit_codes import ExitCode
from topicshark.output import put
from topicshark.progress import spark_stages

FINDINGS_OF_A_SESSION = 100


def run_grading(options: CheckOptions, rules: tuple[str, ...], output: str, most: int, to: Path | None) -> ExitCode:
    """Judge, print or write, and say how it ended. ``most``: findings in all, of which each submission has a share."""
    from pcap_tools.codec.detect import wanted_dialects
    from spark_analysis.grading import GradingOptions, grade
    from spark_analysis.results.safe_text import shown
    from spark_analysis.sources.submissions import find_submissions

    found = find_submissions(options.sources)
    if to is not None:
        _check_output(to, [one.folder for one in found.submissions])
    for note in found.notes:
        typer.echo(shown(note), err=True)
    share = max(1, most // len(found.submissions))
    limit = share if output in ("json", "junit", "sarif") else FINDINGS_OF_A_SESSION
    dialects = wanted_dialects(options.dialect, options.port or ())
    grades = grade(
        found.submissions,
        GradingOptions(dialects, tuple(options.broker or ()), options.merge, rules, limit),
        engine=options.engine.value,
        master=options.master,
        stage=spark_stages,
        told=_progress(),
    )
    put(_text(grades, output, share), to)
    return _exit_code(grades)


def _check_output(to: Path, folders: Sequence[str]) -> None:
    """Told before the work is done. A result must not replace what a student has handed in."""
    from pcap_tools.errors import UsageError

    place = os.path.realpath(to)
    if not os.path.isdir(os.path.dirname(place)):
        raise UsageError(f"-o {to}: no such folder: {os.path.dirname(place)}")
    for folder in folders:
        if os.path.commonpath([place, os.path.realpath(folder)]) == os.path.realpath(folder):
            raise UsageError(f"-o {to}: lies in a submission ({os.path.basename(folder)}); choose another place")


def _progress() -> Callable[[int, int], None] | None:
    """A line on the terminal that counts submissions; taken away at the end."""
    if not sys.stderr.isatty():
        return None

    def tell(done: int, total: int) -> None:
        sys.stderr.write(f"\rgraded {done:,} of {total:,} submissions\033[K" if done < total else "\r\033[K")
        sys.stderr.flush()

    return tell


def _text(grades: Sequence[Any], output: str, share: int) -> str:
    if output == "text":
        from spark_analysis.reports.grading.text import lines

        return "\n".join(lines(grades)) + "\n"
    if output == "csv":
        from spark_analysis.reports.grading.spreadsheet import csv_text

        return csv_text(grades)
    if output == "html":
        from spark_analysis.reports.grading.html import html_text

        return html_text(grades)
    return _for_programs(grades, output, share)


def _for_programs(grades: Sequence[Any], output: str, share: int) -> str:
    everything = sys.maxsize  # the share of each is cut already
    if output == "junit":
        from spark_analysis.reports.junit import Suite, suites_text

        return suites_text((Suite(one.submission, one.sessions, one.problems) for one in grades), everything)
    if output == "sarif":
        from spark_analysis.grading import as_check_result
        from spark_analysis.reports.sarif import sarif_object

        return _json(sarif_object(as_check_result(grades), everything))
    from spark_analysis.reports.grading.as_json import grading_object

    return _json(grading_object(grades, share))


def _json(whole: object) -> str:
    return json.dumps(whole, ensure_ascii=False, indent=2) + "\n"


def _exit_code(grades: Sequence[Any]) -> ExitCode:
    """A broken rule first; then whether all could be judged."""
    if any(one.verdict == "fail" for one in grades):
        return ExitCode.FINDINGS
    if not any(one.datagrams for one in grades):
        return ExitCode.UNREADABLE
    is_partial = any(one.problems or not one.datagrams for one in grades)
    return ExitCode.PARTIAL if is_partial else ExitCode.CLEAN

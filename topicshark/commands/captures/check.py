"""`topicshark check`: which rules of its protocol the traffic in a capture keeps, and which it breaks."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from topicshark.app import new_app
from topicshark.commands.captures.checking import (
    Brokers,
    CheckOptions,
    DialectNames,
    Engine,
    EngineChoice,
    Master,
    Merge,
    Ports,
    Sources,
    block_pandas_import,
    exit_code,
    run_check,
    verdict_code,
)
from topicshark.commands.captures.grading import run_grading
from topicshark.commands.captures.period import Period, Since, Until
from topicshark.exit_codes import ExitCode
from topicshark.output import check_output, put

app = new_app()

IN_ALL, OF_A_RULE = 1_000, 20  # findings shown to programs, and to people


class Format(StrEnum):
    TEXT = "text"
    CSV = "csv"
    JSON = "json"
    JUNIT = "junit"
    SARIF = "sarif"
    HTML = "html"


def list_rules(wanted: bool) -> None:
    if not wanted:
        return
    from spark_analysis.checker.rulebook.catalogue import RULES

    for rule in RULES.values():
        typer.echo(f"{rule.id:<20}  {rule.level:<7}  {rule.sentence}")
    raise typer.Exit(ExitCode.CLEAN)


@app.command(epilog="Example: topicshark check capture.pcap")
def check(
    sources: Sources,
    dialect: DialectNames = None,
    port: Ports = None,
    broker: Brokers = None,
    merge: Merge = False,
    since: Since = None,
    until: Until = None,
    engine: EngineChoice = Engine.AUTO,
    rule: Annotated[list[str] | None, typer.Option(metavar="ID", help="Check only this rule (repeatable).")] = None,
    output: Annotated[Format, typer.Option("--format", help="Output format. csv needs --by-directory.")] = Format.TEXT,
    limit: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Maximum findings to show. Default: 20 per rule in text, 10 per rule in html, else 1000 in total.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Output of an earlier check --format json: fail on new findings only."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also list all rules, with their counts.")] = False,
    master: Master = None,
    by_directory: Annotated[
        bool,
        typer.Option("--by-directory", help="Grade each folder in SOURCE as one submission (docs/grading.md)."),
    ] = False,
    to: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
    ] = None,
    _list_rules: Annotated[
        bool, typer.Option("--list-rules", callback=list_rules, is_eager=True, help="Print all rules and exit.")
    ] = False,
) -> None:
    """Check captures against the rules of their protocol.

    With --baseline text shows new findings and those that are gone; json has them under "baseline". Findings are the
    same if dialect, rule, host and topic are the same.

    Exit code 0: no error-level findings. 1: at least one. 3: nothing could be read, or no datagram belongs to a known
    dialect. 4: a capture is damaged, or one of several could not be read; the rest was checked. 1 takes precedence
    over 4.
    """
    chosen = _known(rule or [])
    most = limit if limit is not None else OF_A_RULE if output is Format.TEXT else IN_ALL
    options = CheckOptions(sources, dialect, port, broker, merge, engine, master, Period(since, until))
    if by_directory:
        raise typer.Exit(run_grading(options, chosen, output.value, limit if limit is not None else IN_ALL, to))
    _refuse(output, to, sources, baseline)
    if baseline is not None:
        raise typer.Exit(_check_baseline(options, chosen, baseline, output, most, to))
    if output is Format.HTML:
        result, text = _page(options, chosen, limit)
    else:
        result = run_check(options, chosen, most * _rules() if output is Format.TEXT else most)
        text = _text(result, output, most, verbose)
    put(text, to)
    raise typer.Exit(verdict_code(result))


def _check_baseline(
    options: CheckOptions, rules: tuple[str, ...], baseline: Path, output: Format, most: int, to: Path | None
) -> ExitCode:
    """Judge by what is new; returns the exit code."""
    block_pandas_import()
    from spark_analysis.reports.as_json import check_object
    from spark_analysis.reports.comparison import baseline_lines, change_object
    from spark_analysis.reports.text import heading
    from spark_analysis.results.comparing import read_baseline, since_baseline

    old = read_baseline(baseline)
    result = run_check(options, rules, sys.maxsize)
    found = since_baseline([one for one in old if not rules or one.rule in rules], result)
    if output is Format.JSON:
        told = check_object(result, most) | {"baseline": change_object(found, most)}
        put(json.dumps(told, ensure_ascii=False, indent=2) + "\n", to)
    else:
        lines = [line for session in result.sessions for line in heading(session)]
        put("".join(f"{line}\n" for line in (*lines, *baseline_lines(found, str(baseline), most))), to)
    return ExitCode.FINDINGS if found.is_worse else exit_code(result)


def _refuse(output: Format, to: Path | None, sources: list[str], baseline: Path | None) -> None:
    from pcap_tools.errors import UsageError

    if baseline is not None and output not in (Format.TEXT, Format.JSON):
        raise UsageError("--baseline goes with --format text or json")

    if output is Format.CSV:
        raise UsageError("--format csv needs --by-directory, which grades a folder of submissions")
    if to is not None:
        check_output(to, sources)


def _page(options: CheckOptions, rules: tuple[str, ...], limit: int | None) -> tuple[Any, str]:
    """What `topicshark report` writes."""
    from topicshark.commands.captures.report import OF_A_RULE, report_page, report_result

    most = limit if limit is not None else OF_A_RULE
    result = report_result(options, rules, most)
    return result, report_page(options, result, most)


def _rules() -> int:
    from spark_analysis.checker.rulebook.catalogue import RULES

    return len(RULES)


def _known(rules: list[str]) -> tuple[str, ...]:
    from pcap_tools.errors import UsageError
    from spark_analysis.checker.rulebook.catalogue import RULES

    chosen = tuple(name.upper() for name in rules)
    for name in chosen:
        if name not in RULES:
            raise UsageError(f"{name}: unknown rule; topicshark check --list-rules lists all rules")
    return chosen


def _text(result: Any, output: Format, most: int, verbose: bool) -> str:
    if output is Format.TEXT:
        from spark_analysis.reports.text import check_lines

        return "".join(f"{line}\n" for line in check_lines(result, most, verbose))
    if output is Format.JUNIT:
        from spark_analysis.reports.junit import junit_text

        return junit_text(result, most)
    if output is Format.SARIF:
        from spark_analysis.reports.sarif import sarif_object as told
    else:
        from spark_analysis.reports.as_json import check_object as told
    return json.dumps(told(result, most), ensure_ascii=False, indent=2) + "\n"

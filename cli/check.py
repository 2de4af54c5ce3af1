"""`topicshark check`: which rules of its protocol the traffic in a capture keeps, and which it breaks."""

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from cli.app import new_app
from cli.checking import (
    Asked,
    Brokers,
    DialectNames,
    Engine,
    EngineChoice,
    Master,
    Merge,
    Ports,
    Sources,
    exit_code,
    run_check,
)
from cli.exit_codes import ExitCode

app = new_app()

IN_ALL, OF_A_RULE = 1_000, 20  # findings shown to programs, and to people


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    SARIF = "sarif"


def list_rules(wanted: bool) -> None:
    if not wanted:
        return
    from spark_analysis.checker.rules import RULES

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
    engine: EngineChoice = Engine.AUTO,
    rule: Annotated[list[str] | None, typer.Option(metavar="ID", help="Only this rule (may be repeated).")] = None,
    output: Annotated[Format, typer.Option("--format", help="For people, programs, CI servers.")] = Format.TEXT,
    limit: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Findings shown: of a rule in text (20), in all else (1000).")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Name rules that nothing put to the test.")] = False,
    master: Master = None,
    _list_rules: Annotated[
        bool, typer.Option("--list-rules", callback=list_rules, is_eager=True, help="Print all rules and exit.")
    ] = False,
) -> None:
    """Check captures against the rules of their protocol.

    Exit code: 0 no rule of level error is broken, 1 one is, 3 nothing could be read or no datagram is in a known
    dialect, 4 a capture is damaged or one of several could not be read (what was read is judged). 1 goes before 4.
    """
    chosen = _known(rule or [])
    most = limit if limit is not None else OF_A_RULE if output is Format.TEXT else IN_ALL
    asked = Asked(sources, dialect, port, broker, merge, engine, master)
    result = run_check(asked, chosen, most * _rules() if output is Format.TEXT else most)
    _print(result, output, most, verbose)
    is_broken = any(session.verdict == "fail" for session in result.sessions)
    raise typer.Exit(ExitCode.FINDINGS if is_broken else exit_code(result))


def _rules() -> int:
    from spark_analysis.checker.rules import RULES

    return len(RULES)


def _known(rules: list[str]) -> tuple[str, ...]:
    from pcap_tools.errors import UsageError
    from spark_analysis.checker.rules import RULES

    chosen = tuple(name.upper() for name in rules)
    for name in chosen:
        if name not in RULES:
            raise UsageError(f"{name}: there is no such rule; topicshark check --list-rules names them")
    return chosen


def _print(result: Any, output: Format, most: int, verbose: bool) -> None:
    if output is Format.TEXT:
        from spark_analysis.reports.text import check_lines

        for line in check_lines(result, most, verbose):
            typer.echo(line)
    elif output is Format.JUNIT:
        from spark_analysis.reports.junit import junit_text

        typer.echo(junit_text(result, most), nl=False)
    elif output is Format.SARIF:
        from spark_analysis.reports.sarif import sarif_object

        typer.echo(json.dumps(sarif_object(result, most), ensure_ascii=False, indent=2))
    else:
        from spark_analysis.reports.as_json import check_object

        typer.echo(json.dumps(check_object(result, most), ensure_ascii=False, indent=2))

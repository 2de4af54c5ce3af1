"""`topicshark compare`: two runs side by side: findings, ACK timing, fan-out."""

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
    block_pandas_import,
    exit_code,
    run_check,
)
from topicshark.exit_codes import ExitCode
from topicshark.output import check_output, put

app = new_app()

OF_A_KIND, IN_ALL = 20, 1_000


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    HTML = "html"


@app.command(epilog="Example: topicshark compare monday.pcap tuesday.pcap")
def compare(
    old: Annotated[str, typer.Argument(metavar="A", help="Captures of the old run: a file, folder, glob or URI.")],
    new: Annotated[str, typer.Argument(metavar="B", help="Captures of the new run.")],
    dialect: DialectNames = None,
    port: Ports = None,
    broker: Brokers = None,
    merge: Merge = False,
    engine: EngineChoice = Engine.AUTO,
    output: Annotated[Format, typer.Option("--format", help="Output format; html has plots.")] = Format.TEXT,
    limit: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Maximum findings to show, new and gone. Default: 20, in json 1000."),
    ] = None,
    master: Master = None,
    to: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
    ] = None,
) -> None:
    """Compare two runs: findings that are new or gone, ACK times and fan-out side by side.

    Findings are the same if dialect, rule, host and topic are the same. Frames, ports and file names may differ.

    Exit code 0: no new error-level findings in B. 1: at least one. 3: nothing could be read in A or B. 4: a capture is
    damaged; the rest was compared.
    """
    block_pandas_import()
    if to is not None:
        check_output(to, [old, new])
    both = [
        run_check(
            CheckOptions([source], dialect, port, broker, merge, engine, master),
            most_findings=sys.maxsize,
            summaries=True,
        )
        for source in (old, new)
    ]
    codes = [exit_code(result) for result in both]
    if ExitCode.UNREADABLE in codes:
        raise typer.Exit(ExitCode.UNREADABLE)
    from spark_analysis.results import comparing

    compared = comparing.compare(*both)
    most = limit if limit is not None else OF_A_KIND if output is not Format.JSON else IN_ALL
    put(_text(compared, (old, new), both, output, most), to)
    if any(one.findings.is_worse for one in compared):
        raise typer.Exit(ExitCode.FINDINGS)
    raise typer.Exit(max(codes))


def _text(compared: Any, names: tuple[str, str], both: list[Any], output: Format, most: int) -> str:
    if output is Format.HTML:
        from spark_analysis.reports.html.comparison import comparison_page

        return comparison_page(compared, names, most)
    from spark_analysis.reports.comparison import comparison_lines, comparison_object

    if output is Format.TEXT:
        return "".join(f"{line}\n" for line in comparison_lines(compared, names, most))
    captures = [[capture for session in result.sessions for capture in session.captures] for result in both]
    told = comparison_object(compared, (captures[0], captures[1]), both, most)
    return json.dumps(told, ensure_ascii=False, indent=2) + "\n"

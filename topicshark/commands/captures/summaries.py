"""`topicshark timing` and `topicshark fanout`: the same options, a report each."""

import json
from enum import StrEnum
from importlib import import_module
from typing import Annotated

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
    exit_code,
    run_check,
)
from topicshark.commands.captures.period import Period, Since, Until

EXIT_CODES = """Exit code 0: everything was read. 3: nothing could be read, or no datagram belongs to a known dialect.
4: a capture is damaged, or one of several could not be read; the rest was evaluated."""


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"


def summary_app(name: str, summary: str) -> typer.Typer:
    """The command of this name. Its report is ``spark_analysis.reports.<name>``: ``lines`` and ``as_object``."""
    app = new_app()

    @app.command(name, help=f"{summary}\n\n{EXIT_CODES}", epilog=f"Example: topicshark {name} capture.pcap")
    def summary_command(
        sources: Sources,
        dialect: DialectNames = None,
        port: Ports = None,
        broker: Brokers = None,
        merge: Merge = False,
        since: Since = None,
        until: Until = None,
        engine: EngineChoice = Engine.AUTO,
        output: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.TEXT,
        limit: Annotated[int, typer.Option(min=0, metavar="N", help="Maximum rows per table in text.")] = 20,
        master: Master = None,
    ) -> None:
        report = import_module(f"spark_analysis.reports.{name}")
        options = CheckOptions(sources, dialect, port, broker, merge, engine, master, Period(since, until))
        result = run_check(options, most_findings=0, summaries=True)
        if output is Format.JSON:
            typer.echo(json.dumps(report.as_object(result), ensure_ascii=False, indent=2))
        else:
            for line in report.lines(result, limit):
                typer.echo(line)
        raise typer.Exit(exit_code(result))

    return app


timing = summary_app("timing", "Measure acknowledgement and forwarding times; list missing acknowledgements.")
fanout = summary_app("fanout", "Show fan-out: copies expected and delivered, by topic and by filter.")

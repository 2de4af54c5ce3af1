"""`topicshark report`: what is wrong with the traffic in captures, as one HTML page to read, print or send."""

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
    run_check,
    verdict_code,
)
from topicshark.commands.captures.period import Period, Since, Until
from topicshark.output import check_output, put

app = new_app()

OF_A_RULE = 10


@app.command(epilog="Example: topicshark report capture.pcap -o report.html")
def report(
    sources: Sources,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")] = Path(
        "report.html"
    ),
    dialect: DialectNames = None,
    port: Ports = None,
    broker: Brokers = None,
    merge: Merge = False,
    since: Since = None,
    until: Until = None,
    engine: EngineChoice = Engine.AUTO,
    limit: Annotated[int, typer.Option(min=0, metavar="N", help="Maximum findings to show per rule.")] = OF_A_RULE,
    master: Master = None,
) -> None:
    """Write one HTML page: verdict, broken rules with diagrams, ACK timing, fan-out, capture quality.

    The page is self-contained: it runs no scripts and loads no other files.

    Exit codes: the same as for topicshark check, so 1 means error-level findings.
    """
    options = CheckOptions(sources, dialect, port, broker, merge, engine, master, Period(since, until))
    check_output(output, sources)
    result = report_result(options, (), limit)
    put(report_page(options, result, limit), output)
    _tell(output, result)
    raise typer.Exit(verdict_code(result))


def report_result(options: CheckOptions, rules: tuple[str, ...], limit: int) -> Any:
    """What the page tells of."""
    from spark_analysis.checker.rulebook.catalogue import RULES

    return run_check(options, rules, limit * len(RULES) or 1, summaries=True)


def report_page(options: CheckOptions, result: Any, limit: int) -> str:
    """The page as text."""
    from pcap_tools.codec.detect import wanted_dialects
    from spark_analysis.reports.html.page import html_page
    from spark_analysis.sessions.ingested import find_sources

    return html_page(result, find_sources(options.sources), wanted_dialects(options.dialect, options.port or ()), limit)


def _tell(output: Path, result: Any) -> None:
    from spark_analysis.reports.html.sentences import page_sentence, page_verdict
    from spark_analysis.results.safe_text import shown

    typer.echo(f"{page_verdict(result)}: {page_sentence(result)}")
    typer.echo(f"report: {shown(str(output))}")

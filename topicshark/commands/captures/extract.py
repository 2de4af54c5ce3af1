"""`topicshark extract`: the packets around a finding, or of a client, a topic, a time, as a small capture."""

import json
import sys
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
    Merge,
    Ports,
    Sources,
    block_pandas_import,
    run_check,
)
from topicshark.commands.captures.period import Period, Since, Until, begin_of, duration_ns
from topicshark.exit_codes import ExitCode
from topicshark.output import check_output
from topicshark.progress import counter, end_counter

app = new_app()


@app.command(
    epilog="Examples: topicshark extract huge.pcap --finding 3f9a12 --results check.json -o small.pcapng; "
    "topicshark extract huge.pcap --client 10.0.0.12 --since 10:15:00 --until 10:16:00 -o small.pcapng"
)
def extract(
    sources: Sources,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="OUT.pcapng", help="File to write.")],
    finding: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Packets around this finding (repeatable): the id from check --format json."),
    ] = None,
    around: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time before and after a finding. Default: 2s.")
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Find the ID in this output of check --format json. Default: check again."),
    ] = None,
    client: Annotated[
        str | None, typer.Option(metavar="HOST[:PORT]", help="Only packets to and from this address.")
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(metavar="TOPIC", help="Only messages with this topic or filter; * is any text, ? any character."),
    ] = None,
    since: Since = None,
    until: Until = None,
    dialect: DialectNames = None,
    port: Ports = None,
    broker: Brokers = None,
    merge: Merge = False,
    engine: EngineChoice = Engine.AUTO,
) -> None:
    """Copy the packets around a finding, or of a client, a topic or a time, to a small pcapng.

    Options can be combined: a packet is copied if it matches all. The packets of the finding itself are always copied.
    A comment on each packet names its capture and frame. Of a large capture only the parts that hold these packets are
    read. From an ingested folder the packets are taken out of the original captures.

    Exit code 0: the file was written. 3: nothing could be read, or no packet matches. 4: a capture is damaged; its
    readable part was searched.
    """
    block_pandas_import()
    from pcap_tools.codec.detect import wanted_dialects
    from spark_analysis.sessions.extract import Selection
    from spark_analysis.sessions.extract import extract as extracted
    from spark_analysis.sessions.ingested import find_sources

    period = Period(since, until)
    _refuse(finding, around, results, bool(client or topic or period))
    check_output(output, sources)
    options = CheckOptions(sources, dialect, port, broker, merge, engine, None)
    selection = Selection(
        _findings(options, finding or [], results),
        duration_ns(around or "2s"),
        _endpoint(client) if client else None,
        topic,
        period.nanoseconds(lambda: begin_of(sources)) if period else None,
    )
    try:
        done = extracted(
            find_sources(sources), wanted_dialects(dialect, port or ()), selection, output, counter("packets copied")
        )
    finally:
        end_counter()
    for sentence in done.damage:
        typer.echo(_shown(sentence), err=True)
    many = f" from {done.captures:,} captures" if done.captures > 1 else ""
    typer.echo(f"{_shown(str(output))}: {done.frames:,} packets{many}", err=True)
    raise typer.Exit(ExitCode.PARTIAL if done.damage else ExitCode.CLEAN)


def _refuse(finding: list[str] | None, around: str | None, results: Path | None, has_more: bool) -> None:
    from pcap_tools.errors import UsageError

    if not finding and not has_more:
        raise UsageError("say what to extract: --finding ID, --client HOST, --topic TOPIC, --since or --until TIME")
    if not finding and (around is not None or results is not None):
        raise UsageError(f"{'--around' if around is not None else '--results'} goes with --finding ID")


def _endpoint(text: str) -> tuple[str, int | None]:
    from ipaddress import ip_address

    from pcap_tools.errors import UsageError

    host, port = text, ""
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    try:
        address = ip_address(host).compressed
        number = int(port) if port else None
    except ValueError:
        raise UsageError(
            f"--client {text}: not an address; write 10.0.0.12, 10.0.0.12:50000 or [fd00::1]:50000"
        ) from None
    return address, number


def _findings(options: CheckOptions, ids: list[str], results: Path | None) -> Any:
    from spark_analysis.sessions.extract import places_of

    if not ids:
        return ()
    if results is not None:
        return places_of(_read(results), ids)
    typer.echo("checking the captures for the finding; --results check.json avoids this", err=True)
    result = run_check(options, most_findings=sys.maxsize)
    return places_of((one for session in result.sessions for one in session.findings), ids)


def _read(results: Path) -> list[dict[str, Any]]:
    from pcap_tools.errors import TopicsharkError

    try:
        told = json.loads(results.read_text())
        return [finding for session in told["sessions"] for finding in session["findings"]]
    except OSError as error:
        raise TopicsharkError(f"{results}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise TopicsharkError(f"{results}: not an output of topicshark check --format json: {error!r}") from error


def _shown(text: str) -> str:
    from spark_analysis.results.safe_text import shown

    return shown(text)

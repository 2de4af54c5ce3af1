"""`topicshark ingest`: the messages of captures, however many and large, as Parquet."""

from typing import Annotated, Any

import typer

from topicshark.app import new_app
from topicshark.exit_codes import ExitCode
from topicshark.progress import spark_stages

app = new_app()

MEGABYTE = 1 << 20
EVIDENCE_SHOWN = 3


@app.command(epilog="Example: topicshark ingest 'captures/*.pcap' -o run")
def ingest(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE", help="Captures (pcap or pcapng, optionally compressed), folders, globs, URIs."
        ),
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Output folder.")],
    dialect: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|FILE.toml", help="Use only this dialect (repeatable). Default: detect."),
    ] = None,
    port: Annotated[list[int] | None, typer.Option(help="Additional UDP port of the dialect (repeatable).")] = None,
    merge: Annotated[bool, typer.Option("--merge", help="Treat all captures as one session.")] = False,
    split_size: Annotated[float, typer.Option(metavar="MB", min=0.001, help="Megabytes of a capture per task.")] = 128,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark master URL. Default: all cores of this machine.")
    ] = None,
) -> None:
    """Write the messages of captures as Parquet: DIR/messages, partitioned by session, and DIR/manifest.json.

    Run it again to add new and changed captures.

    Exit code 0: everything was read. 3: nothing could be read, or no datagram belongs to a known dialect. 4: some
    captures are damaged, unreadable or without a known dialect; the rest was written.
    """
    from pcap_tools.codec.detect import wanted_dialects
    from spark_analysis.sources.captures import find_captures

    dialects = wanted_dialects(dialect, port or ())
    find_captures(sources)  # what is wrong with them is said before Spark takes its time to start
    done = _ingest(sources, output, dialects, merge, round(split_size * MEGABYTE), master)
    _tell(done, output)
    raise typer.Exit(_exit_code(done))


def _ingest(sources: list[str], output: str, dialects: Any, merge: bool, split_bytes: int, master: str | None) -> Any:
    from spark_analysis.engine.spark_session import LOCAL, PYTHON_WORK, open_session
    from spark_analysis.ingest import ingest as run

    with open_session(master or LOCAL, PYTHON_WORK) as spark:
        return run(spark, sources, output, dialects, merge=merge, split_bytes=split_bytes, stage=spark_stages(spark))


def _tell(done: Any, output: str) -> None:
    for entry in done.ingested:
        _tell_of(entry)
    for capture, why in done.failed.items():
        _say(why if capture in why else f"{capture}: {why}")
    if done.skipped:
        _say(f"skipped {_captures(len(done.skipped))} without changes")
    seconds = sum(done.seconds.values())
    typer.echo(f"{done.rows:,} messages of {_captures(len(done.ingested))} in {output}, {seconds:.1f} s")


def _captures(count: int) -> str:
    return f"{count} capture" + ("s" if count != 1 else "")


def _tell_of(entry: Any) -> None:
    for text in [*entry.evidence[:EVIDENCE_SHOWN], *entry.warnings]:
        _say(f"{entry.uri}: {text}")
    for damage in entry.damage:
        _say(f"{entry.uri}: damaged at byte {damage['offset']}: {damage['text']}")
    if entry.other:
        _say(f"{entry.uri}: skipped {entry.other} UDP datagrams of no known dialect")
    if not entry.decoded:
        _say(f"{entry.uri}: no datagram matches a selected dialect; to use your own: --dialect FILE.toml")


def _say(text: str) -> None:
    from pcap_tools.escaping import escape_text

    typer.echo("\n".join(escape_text(line) for line in text.splitlines()), err=True)


def _exit_code(done: Any) -> ExitCode:
    """Of all captures of the call, also of those that were there: the same call again ends alike."""
    entries = [*done.ingested, *done.skipped]
    if not any(entry.decoded for entry in entries):
        return ExitCode.UNREADABLE
    whole = not done.failed and all(entry.decoded and not entry.damage for entry in entries)
    return ExitCode.CLEAN if whole else ExitCode.PARTIAL

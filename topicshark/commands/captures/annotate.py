"""`topicshark annotate`: a capture with its findings in it, to be looked at in Wireshark."""

import os
import shlex
import sys
from typing import Annotated, Any

import typer

from topicshark.app import new_app
from topicshark.commands.captures.checking import (
    Brokers,
    CheckOptions,
    DialectNames,
    Engine,
    EngineChoice,
    Ports,
    exit_code,
    run_check,
    was_judged,
)
from topicshark.exit_codes import ExitCode
from topicshark.progress import counter, end_counter

app = new_app()

ENDING = ".pcapng"


@app.command(epilog="Example: topicshark annotate capture.pcap -o annotated.pcapng && wireshark annotated.pcapng")
def annotate(
    capture: Annotated[
        str, typer.Argument(metavar="CAPTURE", help="Capture to annotate: pcap or pcapng, optionally compressed.")
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="OUT.pcapng", help="File to write.")],
    dialect: DialectNames = None,
    port: Ports = None,
    broker: Brokers = None,
    engine: EngineChoice = Engine.AUTO,
) -> None:
    """Copy a capture and add its findings as packet comments.

    Frames and existing comments stay unchanged. Wireshark lists the findings under Analyze > Expert Information.
    Addresses are named by role: broker, publisher-1, subscriber-1, client-1.

    Exit code 0: the file was written, with or without findings (check gives the verdict). 3: nothing could be read,
    or no datagram belongs to a known dialect; no file is written, because a capture without comments would look like a
    pass. 4: the capture is damaged; its readable part was written.
    """
    _refuse(capture, output)
    result = run_check(CheckOptions([capture], dialect, port, broker, False, engine, None), most_findings=sys.maxsize)
    if not was_judged(result):
        typer.echo(f"{_shown(output)}: not written", err=True)
        raise typer.Exit(ExitCode.UNREADABLE)
    names = _names(capture, dialect, port, broker)
    findings = [finding for session in result.sessions for finding in session.findings]
    done = _write(capture, output, findings, names)
    if done.damage and not result.partial:
        typer.echo(_shown(str(done.damage)), err=True)
    _tell(output, done, len(findings), len(names))
    raise typer.Exit(ExitCode.PARTIAL if done.damage else exit_code(result))


def _refuse(capture: str, output: str) -> None:
    """What cannot be meant is told before an hour of work, not after."""
    from pcap_tools.columnar.read.sources import is_remote
    from pcap_tools.errors import UsageError

    if capture == "-" or is_remote(capture) or os.path.isdir(capture):
        raise UsageError(f"{capture}: annotate needs one local capture file")
    if not output.lower().endswith(ENDING):
        raise UsageError(f"{output}: only pcapng files can hold comments; use a name that ends in {ENDING}")
    if os.path.exists(output) and os.path.exists(capture) and os.path.samefile(output, capture):
        raise UsageError(f"{output}: is the capture itself; write to another file")
    folder = os.path.dirname(os.path.realpath(output))
    if not os.path.isdir(folder):
        raise UsageError(f"{output}: no such folder: {folder}")


def _names(capture: str, dialect: list[str] | None, port: list[int] | None, broker: list[str] | None) -> dict[str, str]:
    from pcap_tools.codec.detect import wanted_dialects
    from spark_analysis.sessions.roles import roles_of

    return roles_of(capture, wanted_dialects(dialect, port or ()), tuple(broker or ()))


def _write(capture: str, output: str, findings: list[Any], names: dict[str, str]) -> Any:
    from pcap_tools.capture.annotating import annotate_capture
    from spark_analysis.reports.packet_comments import packet_comments

    try:
        return annotate_capture(capture, output, packet_comments(findings), names, counter("frames written"))
    finally:
        end_counter()


def _tell(output: str, done: Any, findings: int, names: int) -> None:
    typer.echo(
        f"{_shown(output)}: {done.frames:,} frames, {findings:,} findings in {done.comments:,} comments, "
        f"{names:,} addresses named; open it with: wireshark {_shown(shlex.quote(output))}",
        err=True,
    )
    if done.aside:
        typer.echo(
            f"{done.aside:,} comments are in the file's properties, because their packets cannot hold comments",
            err=True,
        )
    if done.lost:
        typer.echo(f"{done.lost:,} comments could not be written; topicshark check lists all findings", err=True)


def _shown(text: str) -> str:
    from spark_analysis.results.safe_text import shown

    return shown(text)

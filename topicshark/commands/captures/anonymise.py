"""`topicshark anonymise`: a capture without real addresses, topics and payloads, to be shared."""

from pathlib import Path
from typing import Annotated

import typer

from topicshark.app import new_app
from topicshark.commands.captures.checking import DialectNames, Ports
from topicshark.exit_codes import ExitCode
from topicshark.progress import counter, end_counter

app = new_app()


@app.command(epilog="Example: topicshark anonymise field.pcap -o public.pcapng --key-file secret.key")
def anonymise(
    capture: Annotated[str, typer.Argument(metavar="IN", help="Capture: pcap or pcapng, optionally compressed.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="OUT.pcapng", help="File to write.")],
    key_file: Annotated[
        Path, typer.Option(metavar="FILE", help="Secret key; a new one is made if there is no such file.")
    ],
    dialect: DialectNames = None,
    port: Ports = None,
) -> None:
    """Copy a capture with other addresses, topics and payloads.

    The same key gives the same replacements in every file. Lengths, times, ports, numbers, separators, wildcards and
    errors stay, so topicshark check gives the same verdicts. Comments and names are left out, and so is all that is not
    UDP. Keep the key secret: with it, guesses can be tested.

    Exit code 0: the file was written. 3: nothing could be read, or no datagram belongs to a known dialect; no file is
    written. 4: the capture is damaged; its readable part was written.
    """
    from pcap_tools.anonymising import anonymise as run
    from pcap_tools.anonymising import read_key
    from pcap_tools.dialect import load_dialect
    from pcap_tools.errors import UsageError

    if port and (not dialect or len(dialect) != 1):
        raise UsageError("--port needs exactly one --dialect")
    named = [load_dialect(name) for name in dialect] if dialect else None
    ports = dict.fromkeys(port or (), named[0].name if named else "")
    try:
        done = run(capture, output, read_key(key_file), named, ports, counter("frames"))
    finally:
        end_counter()
    from pcap_tools.escaping import escape_text

    for damage in done.damage:
        typer.echo(escape_text(str(damage)), err=True)
    typer.echo(f"{escape_text(str(output))}: {done.frames:,} frames, {done.messages:,} messages", err=True)
    if done.other:
        typer.echo(f"{done.other:,} datagrams of no known dialect hold nothing now", err=True)
    if done.changed:
        typer.echo(f"{done.changed:,} datagrams with errors are read in another way than before", err=True)
    raise typer.Exit(ExitCode.PARTIAL if done.damage else ExitCode.CLEAN)

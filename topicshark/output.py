"""Results to stdout, or whole into a file that is none of the sources."""

import os
from pathlib import Path

import typer


def check_output(output: Path, sources: list[str]) -> None:
    """Before the work: a result must not replace what it is about, and needs a place."""
    from pcap_tools.errors import UsageError
    from spark_analysis.sessions.ingested import find_sources

    if output.is_dir() or not output.absolute().parent.is_dir():
        raise UsageError(f"-o {output}: must be a file name in an existing folder")
    found = find_sources(sources)
    place = os.path.realpath(output)
    inside = any(Path(place).is_relative_to(os.path.realpath(folder.where)) for folder in found.folders)
    if inside or place in {os.path.realpath(capture) for capture in found.captures}:
        raise UsageError(f"-o {output}: is one of the sources; choose another file")


def put(text: str, to: Path | None) -> None:
    """``to`` gets its name only when all is written."""
    from pcap_tools.capture.writer import new_file

    if to is None:
        typer.echo(text, nl=False)
        return
    with new_file(to) as stream:
        stream.write(text.encode())

"""`topicshark dissector`: writes the Wireshark dissector for the built-in dialects and the user's own."""

import re
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from topicshark.app import new_app
from topicshark.exit_codes import ExitCode

app = new_app()

TSHARK_TIMEOUT_S = 20
FILE_NAME = "dissector.lua"


def plugin_folder() -> Path:
    """The personal Lua plugins folder, as tshark itself reports it."""
    from pcap_tools.errors import TopicsharkError

    try:
        done = subprocess.run(["tshark", "-G", "folders"], capture_output=True, timeout=TSHARK_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise TopicsharkError(
            "cannot get the plugin folder from tshark; is tshark installed? (topicshark doctor)"
        ) from error
    found = re.search(r"^Personal Lua Plugins:\s+(\S.*?)\s*$", done.stdout.decode(errors="replace"), re.MULTILINE)
    if found is None:
        raise TopicsharkError("tshark reports no folder for personal Lua plugins; was it built with Lua?")
    return Path(found.group(1))


def install(text: str) -> Path:
    """Puts the dissector where Wireshark and tshark load it from."""
    from pcap_tools.errors import TopicsharkError

    path = plugin_folder() / FILE_NAME
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TopicsharkError(f"cannot write {path}: {error.strerror}") from error
    return path


def is_stale(text: str, path: Path) -> bool:
    try:
        return path.read_text(encoding="utf-8") != text
    except OSError:
        return True


@app.command(epilog="Example: topicshark dissector --dialect my.toml --install")
def dissector(
    dialects: Annotated[
        list[str] | None,
        typer.Option("--dialect", metavar="FILE.toml", help="Add your own dialect (repeatable)."),
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to this file.")] = None,
    to_wireshark: Annotated[
        bool, typer.Option("--install", help="Install it in Wireshark's personal Lua plugins folder.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if the file is out of date.")
    ] = False,
) -> None:
    """Write the Wireshark dissector, including your own dialects.

    Without -o or --install, write to stdout. --check looks at the file given with -o, or else at ./dissector.lua.
    """
    from pcap_tools.dialect import builtin_names, load_dialect
    from pcap_tools.dissector import dissector_text
    from pcap_tools.errors import TopicsharkError, UsageError

    if sum((output is not None and not check, to_wireshark, check)) > 1:
        raise UsageError("-o, --install and --check exclude each other")
    text = dissector_text([load_dialect(name) for name in [*builtin_names(), *(dialects or [])]])
    if check:
        path = output or Path(FILE_NAME)
        if is_stale(text, path):
            typer.echo(f"{path} is out of date; update it with: topicshark dissector -o {path}", err=True)
            raise typer.Exit(ExitCode.FINDINGS)
    elif to_wireshark:
        typer.echo(f"installed {install(text)}; restart Wireshark, or press Ctrl+Shift+L in it", err=True)
    elif output is not None:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise TopicsharkError(f"cannot write {output}: {error.strerror}") from error
    else:
        typer.echo(text, nl=False)

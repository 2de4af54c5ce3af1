"""`topicshark dissector`: writes the Wireshark dissector for the built-in dialects and the user's own."""

import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from topicshark.app import new_app
from topicshark.exit_codes import ExitCode

app = new_app()

TSHARK_TIMEOUT_S = 20
FILE_NAME = "dissector.lua"
PROFILE = "topicshark"


def personal_folder(title: str) -> Path:
    """A folder of the user's, as tshark itself reports it: `Personal Lua Plugins`, `Personal configuration`."""
    from pcap_tools.errors import TopicsharkError

    try:
        done = subprocess.run(["tshark", "-G", "folders"], capture_output=True, timeout=TSHARK_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise TopicsharkError(
            "cannot get the folders of Wireshark from tshark; is tshark installed? (topicshark doctor)"
        ) from error
    found = re.search(rf"^{title}:\s+(\S.*?)\s*$", done.stdout.decode(errors="replace"), re.MULTILINE)
    if found is None:
        raise TopicsharkError(f"tshark reports no folder called {title!r}; was it built with Lua?")
    return Path(found.group(1))


def plugin_path() -> Path:
    """Where Wireshark and tshark load the dissector from."""
    return personal_folder("Personal Lua Plugins") / FILE_NAME


def profile_folder() -> Path:
    """Where Wireshark looks for the profile."""
    return personal_folder("Personal configuration") / "profiles" / PROFILE


def profile_files() -> dict[str, str]:
    """Columns, colours, filter buttons and graphs, by the names that Wireshark gives them."""
    from importlib.resources import files

    folder = files("pcap_tools") / "dissector" / "profile"
    return {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if one.is_file()}


def write_files(texts: Mapping[Path, str]) -> None:
    """Each with the folders above it."""
    from pcap_tools.errors import TopicsharkError

    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise TopicsharkError(f"cannot write {path}: {error.strerror}") from error


def uninstall() -> list[Path]:
    """Removes the dissector and the profile; returns what there was. Files that the user added to the profile stay."""
    from pcap_tools.errors import TopicsharkError

    folder = profile_folder()
    removed = []
    for path in (plugin_path(), *(folder / name for name in profile_files())):
        try:
            path.unlink()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise TopicsharkError(f"cannot remove {path}: {error.strerror}") from error
        removed.append(path)
    with suppress(OSError):
        folder.rmdir()
    return removed


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
    with_profile: Annotated[
        bool,
        typer.Option("--profile", help=f"With --install: add the profile {PROFILE!r} (columns, colours, graphs)."),
    ] = False,
    remove: Annotated[
        bool, typer.Option("--uninstall", help="Remove what --install and --profile have installed.")
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

    if sum((output is not None and not check, to_wireshark, remove, check)) > 1:
        raise UsageError("-o, --install, --uninstall and --check exclude each other")
    if with_profile and not to_wireshark:
        raise UsageError("--profile goes with --install")
    if remove:
        removed = uninstall()
        typer.echo("\n".join(f"removed {path}" for path in removed) or "nothing was installed", err=True)
        return
    text = dissector_text([load_dialect(name) for name in [*builtin_names(), *(dialects or [])]])
    if check:
        path = output or Path(FILE_NAME)
        if is_stale(text, path):
            typer.echo(f"{path} is out of date; update it with: topicshark dissector -o {path}", err=True)
            raise typer.Exit(ExitCode.FINDINGS)
    elif to_wireshark:
        path = plugin_path()
        write_files({path: text})
        typer.echo(f"installed {path}; restart Wireshark, or press Ctrl+Shift+L in it", err=True)
        if with_profile:
            folder = profile_folder()
            write_files({folder / name: content for name, content in profile_files().items()})
            typer.echo(f"installed the profile {PROFILE!r}; choose it under Edit > Configuration Profiles", err=True)
    elif output is not None:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise TopicsharkError(f"cannot write {output}: {error.strerror}") from error
    else:
        typer.echo(text, nl=False)

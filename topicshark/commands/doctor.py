"""`topicshark doctor`: what is installed, what is missing and how to get it.

Nothing heavy is imported: Python packages are looked up in their metadata, tools are asked for their version.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from topicshark.app import new_app
from topicshark.exit_codes import ExitCode

app = new_app()

TOOL_TIMEOUT_S = 20
MIN_PYTHON = (3, 11)

# command, how it tells its version, its Debian package, required
TOOLS = (
    ("capinfos", "--version", "wireshark-common", True),
    ("editcap", "--version", "wireshark-common", True),
    ("tcpdump", "--version", "tcpdump", False),
    ("ip", "-Version", "iproute2", False),
    ("lua5.2", "-v", "lua5.2", False),
    ("lua5.3", "-v", "lua5.3", False),
    ("lua5.4", "-v", "lua5.4", False),
    ("luacheck", "--version", "lua-check", False),
)


@dataclass(frozen=True)
class Check:
    """One line of the table. `fix` says how to get it and is empty when all is well."""

    name: str
    required: bool
    found: str = ""
    fix: str = ""

    @property
    def state(self) -> str:
        if not self.fix:
            return "ok"
        return "MISSING" if self.required else "optional"


def output_of(*command: str) -> str | None:
    """What a tool prints, on either stream; None when it is not there, fails or hangs."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, timeout=TOOL_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return (done.stdout + done.stderr).decode(errors="replace")


def first_version(text: str) -> str:
    found = re.search(r"\d+(?:\.\d+)+", text)
    return found.group() if found else "version unknown"


def apt(package: str) -> str:
    return f"sudo apt-get install {package}"


def check_python() -> Check:
    current = ".".join(map(str, sys.version_info[:3]))
    fix = "" if sys.version_info >= MIN_PYTHON else apt("python3.11 python3.11-venv")
    return Check("Python", True, f"{current} ({sys.executable})", fix)


def check_packages() -> Iterator[Check]:
    """The packages that topicshark itself declares, without those of its extras."""
    for requirement in metadata.requires("topicshark") or []:
        if "extra ==" in requirement:
            continue
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        try:
            yield Check(name, True, metadata.version(name))
        except metadata.PackageNotFoundError:
            yield Check(name, True, "", f'{sys.executable} -m pip install "{requirement}"')


def check_java() -> Check:
    """As Spark looks for it: JAVA_HOME, then PATH. Spark runs on 17 and on 21 or later."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    fix = f"{apt('openjdk-17-jre-headless')} (or openjdk-21-jre-headless)"
    if home:
        fix += f", and unset JAVA_HOME ({home}) or point it there"
    text = output_of(java, "-version")
    if text is None:
        return Check("Java", True, "", fix)
    release = re.search(r'version "(?:1\.)?(\d+)[^"]*"', text)
    major = int(release.group(1)) if release else 0
    found = first_version(text) if release else "version unknown"
    if major != 17 and major < 21:
        return Check("Java", True, f"{found}, Spark needs 17 or 21+", fix)
    if "jdk.incubator.vector" not in (output_of(java, "--list-modules") or ""):
        return Check("Java", True, f"{found} without jdk.incubator.vector, which Spark needs", fix)
    return Check("Java", True, f"{found} with jdk.incubator.vector")


def check_tshark() -> Check:
    text = output_of("tshark", "--version")
    if text is None:
        return Check("tshark", True, "", apt("tshark"))
    found = first_version(text)
    lua = re.search(r"with Lua (\d+\.\d+(?:\.\d+)?)", " ".join(text.split()))
    if lua is None:
        return Check("tshark", True, f"{found} without Lua", f"a tshark built with Lua: {apt('tshark')}")
    return Check("tshark", True, f"{found} with Lua {lua.group(1)}")


def check_tool(command: str, option: str, package: str, required: bool) -> Check:
    text = output_of(command, option)
    if text is None:
        return Check(command, required, "", apt(package))
    return Check(command, required, first_version(text))


def check_plugin_folder() -> Check:
    """Where `topicshark dissector --install` puts the dissector."""
    name = "Lua plugin folder"
    text = output_of("tshark", "-G", "folders") or ""
    folder = re.search(r"^Personal Lua Plugins:\s+(\S.*?)\s*$", text, re.MULTILINE)
    if folder is None:
        return Check(name, False, "", f"needs tshark: {apt('tshark')}")
    path = folder.group(1)
    return Check(name, False, path if Path(path).is_dir() else f"{path} (not created yet)")


def check_live_capture() -> Check:
    """Asking an interface for its link types opens it, which takes the same right as capturing on it."""
    tools = [tool for tool in ("tcpdump", "dumpcap") if shutil.which(tool)]
    if not tools:
        return Check("live capture", False, "", apt("tcpdump"))
    for tool in tools:
        if output_of(tool, "-i", "lo", "-L") is not None:
            return Check("live capture", False, f"permitted ({tool})")
    fix = "run as root, or: sudo dpkg-reconfigure wireshark-common && sudo adduser $USER wireshark"
    return Check("live capture", False, "not permitted", fix)


def check_namespaces() -> Check:
    """What `topicshark lab` gives each node."""
    for how, options in (("", ("--net",)), (" (in a user namespace)", ("--map-root-user", "--net"))):
        if output_of("unshare", *options, "true") is not None:
            return Check("network namespaces", False, f"permitted{how}")
    return Check("network namespaces", False, "not permitted", "run as root, outside of a restricted container")


def all_checks() -> list[Check]:
    """Tools are asked side by side: each takes a moment to start."""
    probes: list[Callable[[], Check]] = [check_java, check_tshark]
    probes += [partial(check_tool, *tool) for tool in TOOLS]
    probes += [check_plugin_folder, check_live_capture, check_namespaces]
    with ThreadPoolExecutor() as pool:
        results = pool.map(lambda probe: probe(), probes)
        return [check_python(), *check_packages(), *results]


def print_table(checks: list[Check]) -> None:
    """Colour on a terminal only (and not with NO_COLOR); through a pipe no line is folded."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 1000
    style = {"ok": "green", "MISSING": "bold red", "optional": "yellow"}
    table = Table("", "tool", "found", "how to install", box=None, pad_edge=False)
    for check in checks:
        state = Text(check.state, style[check.state])
        table.add_row(state, Text(check.name), Text(check.found or "-"), Text(check.fix))
    console.print(table)


@app.command(epilog="Example: topicshark doctor --json")
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")] = False,
) -> None:
    """Show installed and missing tools, and how to install them.

    Some features and tests need optional tools.

    Exit code 0: all required tools are installed. 1: a required tool is missing.
    """
    checks = all_checks()
    complete = all(check.state != "MISSING" for check in checks)
    if as_json:
        rows = [{**asdict(check), "state": check.state.lower()} for check in checks]
        typer.echo(json.dumps({"complete": complete, "checks": rows}, indent=2))
    else:
        print_table(checks)
    raise typer.Exit(ExitCode.CLEAN if complete else ExitCode.FINDINGS)

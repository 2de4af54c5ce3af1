"""`topicshark lab`: a scenario live, each node a process at its own address, and a capture of it."""

import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from topicshark.app import new_app
from topicshark.exit_codes import ExitCode

app = new_app()

MODES = ("auto", "netns", "loopback")
INTERFACES = ("bridge", "any")


@app.command(epilog="Example: topicshark lab report-rolebyte -o rolebyte.pcap")
def lab(
    scenario: Annotated[str | None, typer.Argument(help="Scenario to run; see --list.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.pcap", help="Capture to write.")
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            metavar="auto|netns|loopback",
            help="netns: network namespaces (needs root). loopback: loopback addresses. auto: netns if possible.",
        ),
    ] = "auto",
    capture_on: Annotated[
        str,
        typer.Option(
            metavar="bridge|any", help="With netns: interface to capture on. any shows each frame several times."
        ),
    ] = "bridge",
    timeout: Annotated[float, typer.Option(min=1, help="Give up after this many seconds.")] = 60.0,
    show: Annotated[bool, typer.Option("--list", help="List the scenarios and exit.")] = False,
) -> None:
    """Run a scenario with every node at its own address, and record it.

    Exit code 0: the scenario ran as expected. 1: an expected event did not occur; the capture shows the actual
    traffic.
    """
    from pcap_tools.errors import UsageError
    from reference_broker.lab import SCENARIOS

    if show:
        for name, known in SCENARIOS.items():
            typer.echo(f"{name:<20}{known.title}")
        raise typer.Exit(ExitCode.CLEAN)
    if scenario not in SCENARIOS:
        problem = "no scenario given" if scenario is None else f"unknown scenario {scenario!r}"
        raise UsageError(f"{problem}; known: {', '.join(SCENARIOS)}")
    if output is None:
        raise UsageError("no output file given; use -o FILE.pcap")
    for word, known_words in ((mode, MODES), (capture_on, INTERFACES)):
        if word not in known_words:
            raise UsageError(f"expected one of {', '.join(known_words)}, not {word!r}")
    _check_writable(output)
    _run(SCENARIOS[scenario], output, mode, capture_on, timeout)


def _check_writable(output: Path) -> None:
    from pcap_tools.errors import TopicsharkError

    try:
        output.open("wb").close()
    except OSError as error:
        raise TopicsharkError(f"{output}: cannot be written: {error.strerror}") from error


def _run(scenario: Any, output: Path, mode: str, interface: str, timeout: float) -> None:
    from pcap_tools.capture import read_datagrams
    from reference_broker.lab import LabError, Mode, open_network, run
    from topicshark.commands.traffic.clients import say

    problem: LabError | None = None
    interrupted = _noted_interrupts()
    with open_network(scenario, output, Mode(mode), interface) as network:
        say(f"{scenario.title} ({network.mode})")
        try:
            run(scenario, network, [sys.executable, "-m", "topicshark.main"], timeout, say, lambda: bool(interrupted))
        except LabError as error:
            problem = error
    datagrams = sum(1 for datagram in read_datagrams(output) if datagram.copy_of is None)
    typer.echo(f"{datagrams} datagrams in {output}")
    if problem is not None:
        say(str(problem))
        raise typer.Exit(ExitCode.FINDINGS)


def _noted_interrupts() -> list[int]:
    """From now on SIGINT and SIGTERM are noted here: the lab ends where it is safe, and cleans up undisturbed."""
    noted: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda which, frame: noted.append(which))
    return noted

"""The `topicshark` command: finds the sub-command, runs it, and turns errors into exit codes.

Sub-commands are imported only when called, so that `topicshark --help` does not wait for Spark or numba. To
add one: write a module below `commands/` with an `app` (see `app.py`) and give it a line in `COMMANDS`.
"""

import os
import sys
from importlib import import_module
from typing import Annotated, Any, NamedTuple, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from topicshark.app import new_app
from topicshark.exit_codes import ExitCode


class Command(NamedTuple):
    """`module:app` below `topicshark.commands`, and the line of help."""

    entry: str
    summary: str


COMMANDS = {
    "annotate": Command(
        "captures.annotate:app", "Copy a capture and add its findings as packet comments, for Wireshark."
    ),
    "anonymise": Command(
        "captures.anonymise:app", "Copy a capture with other addresses, topics and payloads, to share it."
    ),
    "broker": Command("traffic.broker:app", "Run a conforming broker for any dialect."),
    "check": Command("captures.check:app", "Check captures against the rules of their protocol."),
    "compare": Command("captures.compare:app", "Compare two runs: findings new and gone, ACK times, fan-out."),
    "decode": Command("captures.decode:app", "Decode the datagrams of captures, one line each, without Spark."),
    "demo": Command("demo:app", "Run the whole toolkit once on generated traffic and write a report."),
    "dialects": Command("dialects:app", "List, show and check dialects: built-in ones and your own."),
    "dissector": Command("dissector:app", "Write the Wireshark dissector, including your own dialects."),
    "doctor": Command("doctor:app", "Show installed and missing tools, and how to install them."),
    "extract": Command(
        "captures.extract:app", "Copy the packets around a finding, or of a client, topic or time, to a small capture."
    ),
    "fanout": Command(
        "captures.summaries:fanout", "Show fan-out: copies expected and delivered, by topic and by filter."
    ),
    "generate": Command(
        "traffic.generate:app", "Generate traffic with labelled faults: a capture of any size, or live to a broker."
    ),
    "ingest": Command("captures.ingest:app", "Write the messages of captures of any number and size as Parquet."),
    "lab": Command("traffic.lab:app", "Run a scenario with every node at its own address, and record it."),
    "play": Command("traffic.play:app", "Play a sensor, actuator, dashboard or window, or an interactive node."),
    "publish": Command("traffic.publish:app", "Publish a message and resend it until it is acknowledged."),
    "replay": Command(
        "traffic.replay:app", "Send the datagrams of a capture's clients to a broker again, and record the answers."
    ),
    "report": Command("captures.report:app", "Write an HTML report on the traffic in captures."),
    "subscribe": Command("traffic.subscribe:app", "Subscribe to a filter and print the messages that arrive."),
    "timing": Command(
        "captures.summaries:timing", "Measure acknowledgement and forwarding times; list missing acknowledgements."
    ),
}


class LazyCommands(TyperGroup):
    """Lists the commands from the table, and imports one only when it is called or asked for its own help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, (_, summary) in COMMANDS.items():
            self.add_command(TyperCommand(name, help=summary, short_help=summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, placeholder, rest = super().resolve_command(ctx, args)
        if name is None:  # completing a word that is no command yet
            return name, placeholder, rest
        return name, load_command(name), rest


def load_command(name: str) -> Any:
    """Import a sub-command."""
    module, _, attribute = COMMANDS[name].entry.partition(":")
    return typer.main.get_command(getattr(import_module(f"topicshark.commands.{module}"), attribute))


app = new_app(cls=LazyCommands, add_completion=True, epilog="Example: topicshark doctor")


def print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"topicshark {version('topicshark')}")
        raise typer.Exit(ExitCode.CLEAN)


@app.callback()
def topicshark(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Dissect, generate, check and analyse publish/subscribe traffic over UDP."""


def run() -> NoReturn:
    """The entry point of the console script."""
    sys.exit(exit_code_of(sys.argv[1:]))


def exit_code_of(args: list[str]) -> int:
    """Runs the command line. Whatever happens ends in an exit code and, at most, a message on stderr."""
    try:
        app(args, prog_name="topicshark")
    except SystemExit as stop:
        # typer ends every run with SystemExit; what it was handling then tells which status is the right one.
        if isinstance(stop.__context__, typer.Abort):
            return report(stop.__context__)
        if isinstance(stop.__context__, BrokenPipeError):
            return pipe_closed()
        return flushed(stop.code if isinstance(stop.code, int) else ExitCode.CLEAN)
    except Exception as error:
        return report(error)
    return flushed(ExitCode.CLEAN)


def flushed(code: int) -> int:
    """Sends out buffered results while a closed pipe can still be handled."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return pipe_closed()
    return code


def pipe_closed() -> int:
    """Nobody reads our results any more: end silently, also when the interpreter flushes stdout at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.PIPE_CLOSED


def report(error: Exception) -> int:
    """One line for what the user can mend, a traceback for what we have to."""
    from pcap_tools.errors import TopicsharkError, UsageError

    if not isinstance(error, TopicsharkError | UsageError):
        import traceback

        traceback.print_exception(error)
        return ExitCode.BUG
    from pcap_tools.escaping import escape_text

    for line in str(error).splitlines():  # it may quote a packet or a file name
        typer.echo(f"topicshark: {escape_text(line)}", err=True)
    return ExitCode.UNREADABLE if isinstance(error, TopicsharkError) else ExitCode.USAGE


if __name__ == "__main__":
    run()

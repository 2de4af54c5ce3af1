"""`topicshark broker`: the reference broker of any dialect on a UDP socket."""

import sys
from typing import Annotated, Any

import typer

from cli.app import new_app
from cli.exit_codes import ExitCode

app = new_app()

SYNC_WORDS = {"always": True, "never": False}
SILENT_HELP = (
    "Send more than --amplification allows to clients that never acknowledge, as those of some dialects never do. "
    "Unless said, so on a loopback address and not so on any other."
)


@app.command(epilog="Example: topicshark broker --dialect colon --state broker.state --pcap broker.pcap")
def broker(
    dialect: Annotated[str, typer.Option(metavar="NAME|FILE.toml", help="Whose broker to be.")] = "colon",
    host: Annotated[str, typer.Option(help="The address to listen on, IPv4 or IPv6; :: is all of both.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The UDP port; unless said, the dialect's. 0: any free one.")
    ] = None,
    state: Annotated[
        str | None, typer.Option(metavar="FILE", help="Keep retained messages and subscriptions over a restart here.")
    ] = None,
    state_sync: Annotated[
        str,
        typer.Option(
            metavar="always|never",
            help="Wait for the disk before an ACK: survives a power cut too. never: a kill of the broker only.",
        ),
    ] = "always",
    pcap: Annotated[str | None, typer.Option(metavar="FILE", help="Record all traffic here; needs no root.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No line a message.")] = False,
    mistake: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Make a mistake of the original systems; may be repeated.")
    ] = None,
    nak: Annotated[
        bool, typer.Option("--nak", help="Refuse requests with a NAK, where the dialect has one and clients know it.")
    ] = False,
    list_mistakes: Annotated[bool, typer.Option("--list-mistakes", help="List the mistakes and exit.")] = False,
    subscriptions_by_source: Annotated[int, typer.Option(min=0, help="Limit for one address.")] = 1_000,
    subscriptions: Annotated[int, typer.Option(min=0, help="Limit in all.")] = 100_000,
    retained_bytes: Annotated[int, typer.Option(min=0, help="Limit of all retained messages.")] = 16 << 20,
    topic_bytes: Annotated[int, typer.Option(min=1, help="Limit of a topic or filter.")] = 1_024,
    topic_depth: Annotated[int, typer.Option(min=1, help="Limit of levels in a topic or filter.")] = 64,
    datagram_bytes: Annotated[int, typer.Option(min=1, help="Limit of a datagram.")] = 65_507,
    requests_by_second: Annotated[int, typer.Option(min=1, help="Limit for one address.")] = 20_000,
    amplification: Annotated[
        float, typer.Option(min=0, help="At most so many times its own bytes to an address that never acknowledged.")
    ] = 3.0,
    trust_silent: Annotated[bool | None, typer.Option("--trust-silent/--no-trust-silent", help=SILENT_HELP)] = None,
) -> None:
    """Run a conforming broker for any dialect.

    The first line on stdout tells the address; then one line a message. SIGTERM or Ctrl-C stops it, SIGUSR1 prints the
    counters, as the end does.
    """
    if list_mistakes:
        from reference_broker import Mistake

        for known in Mistake:
            typer.echo(f"{known:<20}{known.about}")
        raise typer.Exit(ExitCode.CLEAN)
    from pcap_tools.dialect import load_dialect
    from pcap_tools.errors import UsageError
    from reference_broker import Limits, broker_for

    spoken = load_dialect(dialect)
    limits = Limits(
        subscriptions_by_source=subscriptions_by_source,
        subscriptions=subscriptions,
        retained_bytes=retained_bytes,
        topic_bytes=topic_bytes,
        topic_depth=topic_depth,
        datagram_bytes=datagram_bytes,
        requests_by_second=requests_by_second,
        amplification=amplification,
        trust_silent=_is_loopback(host) if trust_silent is None else trust_silent,
    )
    if nak and spoken.spec.broker.nak is None:
        raise UsageError(f"{spoken.name} has no NAK")
    core = broker_for(spoken, limits, _mistakes(mistake or []), nak)
    _serve(core, host, _port(spoken) if port is None else port, state, _is_sync(state_sync), pcap, quiet)


def _serve(core: Any, host: str, port: int, state: str | None, sync: bool, pcap: str | None, quiet: bool) -> None:
    from reference_broker.message_log import MessageLog
    from reference_broker.recorder import Recorder
    from reference_broker.server import Server
    from reference_broker.state import State

    server = Server(core, host, port, _say)  # first: a port in use must not cost anybody a capture
    server.state = State(state, core, sync=sync, say=_say) if state else None
    server.recorder = Recorder(pcap, _say) if pcap else None
    server.log = None if quiet else MessageLog(sys.stdout.fileno(), core.dialect, core.counters)
    server.handle_signals()
    if not core.limits.trust_silent:
        _say(f"an address that acknowledges nothing gets at most {core.limits.amplification:g} times its own bytes")
    typer.echo(f"listening on {server.address[0]} port {server.address[1]} ({core.dialect.name})")
    sys.stdout.flush()
    server.serve()


def _mistakes(names: list[str]) -> list[Any]:
    from pcap_tools.errors import UsageError
    from reference_broker import Mistake

    for name in names:
        if name not in list(Mistake):
            raise UsageError(f"there is no mistake {name!r}; there are: {', '.join(Mistake)}")
    return [Mistake(name) for name in names]


def _is_sync(word: str) -> bool:
    from pcap_tools.errors import UsageError

    if word not in SYNC_WORDS:
        raise UsageError(f"--state-sync is always or never, not {word!r}")
    return SYNC_WORDS[word]


def _port(dialect: Any) -> int:
    """The dialect's own port for a broker, else the first that it has."""
    from pcap_tools.errors import UsageError

    ports = dialect.spec.ports.get("broker") or [port for ports in dialect.spec.ports.values() for port in ports]
    if not ports:
        raise UsageError(f"the dialect {dialect.name} names no port: say one with --port")
    return int(ports[0])


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


def _say(text: str) -> None:
    from pcap_tools.escaping import escape_text

    typer.echo("\n".join(escape_text(line) for line in text.splitlines()), err=True)

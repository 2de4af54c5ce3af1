"""`topicshark broker`: the reference broker of any dialect on a UDP socket."""

import sys
from typing import Annotated, Any

import typer

from topicshark.app import new_app
from topicshark.exit_codes import ExitCode

app = new_app()

SYNC_WORDS = {"always": True, "never": False}
SILENT_HELP = (
    "Exempt clients that never acknowledge from --amplification; some dialects have no client ACKs. "
    "Default: on for loopback addresses, off otherwise."
)


@app.command(epilog="Example: topicshark broker --dialect colon --state broker.state --pcap broker.pcap")
def broker(
    dialect: Annotated[str, typer.Option(metavar="NAME|FILE.toml", help="Dialect to speak.")] = "colon",
    host: Annotated[str, typer.Option(help="Address to listen on. :: means all IPv4 and IPv6.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="UDP port; 0: any free port. Default: the dialect's port.")
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Keep retained messages and subscriptions in this file across restarts."),
    ] = None,
    state_sync: Annotated[
        str,
        typer.Option(
            metavar="always|never",
            help="always: sync to disk before each ACK (survives power loss). never: no sync (survives a kill).",
        ),
    ] = "always",
    pcap: Annotated[
        str | None, typer.Option(metavar="FILE", help="Record all traffic to this file; needs no root.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not print each message.")] = False,
    mistake: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Imitate a mistake of the original systems (repeatable).")
    ] = None,
    nak: Annotated[
        bool, typer.Option("--nak", help="Refuse requests with a NAK. Dialect and clients must support it.")
    ] = False,
    list_mistakes: Annotated[bool, typer.Option("--list-mistakes", help="List the mistakes and exit.")] = False,
    subscriptions_by_source: Annotated[int, typer.Option(min=0, help="Maximum subscriptions per address.")] = 1_000,
    subscriptions: Annotated[int, typer.Option(min=0, help="Maximum subscriptions in total.")] = 100_000,
    retained_bytes: Annotated[int, typer.Option(min=0, help="Maximum bytes of all retained messages.")] = 16 << 20,
    topic_bytes: Annotated[int, typer.Option(min=1, help="Maximum bytes of a topic or filter.")] = 1_024,
    topic_depth: Annotated[int, typer.Option(min=1, help="Maximum levels of a topic or filter.")] = 64,
    datagram_bytes: Annotated[int, typer.Option(min=1, help="Maximum bytes of a datagram.")] = 65_507,
    requests_by_second: Annotated[int, typer.Option(min=1, help="Maximum requests per second and address.")] = 20_000,
    amplification: Annotated[
        float,
        typer.Option(
            min=0, help="Maximum bytes to an address that never acknowledged, as a multiple of its own bytes."
        ),
    ] = 3.0,
    trust_silent: Annotated[bool | None, typer.Option("--trust-silent/--no-trust-silent", help=SILENT_HELP)] = None,
) -> None:
    """Run a conforming broker for any dialect.

    The first line on stdout shows the address. Each message then gets one line. SIGTERM or Ctrl-C stops the broker.
    It prints its counters on SIGUSR1 and when it stops.
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
        raise UsageError(f"--nak: the dialect {spoken.name} has no NAK")
    core = broker_for(spoken, limits, _mistakes(mistake or []), nak)
    _serve(core, host, _port(spoken) if port is None else port, state, _is_sync(state_sync), pcap, quiet)


def _serve(core: Any, host: str, port: int, state: str | None, sync: bool, pcap: str | None, quiet: bool) -> None:
    from reference_broker.server.message_log import MessageLog
    from reference_broker.server.recorder import Recorder
    from reference_broker.server.state import State
    from reference_broker.server.udp import Server

    server = Server(core, host, port, _say)  # first: a port in use must not cost anybody a capture
    server.state = State(state, core, sync=sync, say=_say) if state else None
    server.recorder = Recorder(pcap, _say) if pcap else None
    server.log = None if quiet else MessageLog(sys.stdout.fileno(), core.dialect, core.counters)
    server.handle_signals()
    if not core.limits.trust_silent:
        _say(f"clients that never acknowledge get at most {core.limits.amplification:g} times their own bytes")
    typer.echo(f"listening on {server.address[0]} port {server.address[1]} ({core.dialect.name})")
    sys.stdout.flush()
    server.serve()


def _mistakes(names: list[str]) -> list[Any]:
    from pcap_tools.errors import UsageError
    from reference_broker import Mistake

    for name in names:
        if name not in list(Mistake):
            raise UsageError(f"unknown mistake {name!r}; known: {', '.join(Mistake)}")
    return [Mistake(name) for name in names]


def _is_sync(word: str) -> bool:
    from pcap_tools.errors import UsageError

    if word not in SYNC_WORDS:
        raise UsageError(f"--state-sync must be always or never, not {word!r}")
    return SYNC_WORDS[word]


def _port(dialect: Any) -> int:
    """The dialect's own port for a broker, else the first that it has."""
    from pcap_tools.errors import UsageError

    ports = dialect.spec.ports.get("broker") or [port for ports in dialect.spec.ports.values() for port in ports]
    if not ports:
        raise UsageError(f"the dialect {dialect.name} defines no port; set one with --port")
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

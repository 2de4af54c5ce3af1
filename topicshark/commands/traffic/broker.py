"""`topicshark broker`: the reference broker of any dialect on a UDP socket."""

import sys
import tomllib
from typing import Annotated, Any, NamedTuple

import typer

from topicshark.app import new_app
from topicshark.commands.traffic import clients
from topicshark.exit_codes import ExitCode

app = new_app()

SYNC_WORDS = {"always": True, "never": False}
SILENT_HELP = (
    "--trust-silent: exempt every address from --amplification. --no-trust-silent: exempt only addresses that have "
    "acknowledged something. Default: exempt also addresses of this machine and of attached networks, and those that "
    "have sent two datagrams at least a second apart."
)


def read_config(context: typer.Context, path: str | None) -> str | None:
    """Take defaults for the options from a file; options on the command line win."""
    if path is None:
        return None
    from pcap_tools.errors import UsageError

    try:
        with open(path, "rb") as stream:
            settings = tomllib.load(stream)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    options = {option.name for option in context.command.params} - {"config", "help", None}
    defaults = {name.replace("-", "_"): value for name, value in settings.items()}
    for name in defaults:
        if name not in options:
            known = ", ".join(sorted(str(option).replace("_", "-") for option in options))
            raise UsageError(f"{path}: unknown option {name.replace('_', '-')!r}; known: {known}")
    context.default_map = defaults
    return path


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
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.toml",
            is_eager=True,
            callback=read_config,
            help="Read options from this file, as `retained-bytes = 1000`. The command line wins.",
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Switch to this user once the files and ports are open."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NETWORK",
            help="Serve only this network, such as 10.0.0.0/8 (repeatable). Default: all.",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve the counters for Prometheus over HTTP."),
    ] = None,
    predefined: Annotated[
        str | None,
        typer.Option(metavar="FILE.toml", help='MQTT-SN: topic ids, as `7 = "alarm"`, that need no REGISTER.'),
    ] = None,
    gateway_id: Annotated[int, typer.Option(min=1, max=255, help="MQTT-SN: id in GWINFO and ADVERTISE.")] = 1,
    advertise: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="MQTT-SN: send ADVERTISE to this broadcast or multicast address."),
    ] = None,
    advertise_every: Annotated[
        int, typer.Option(min=1, max=65535, help="MQTT-SN: seconds between two ADVERTISE.")
    ] = 900,
    subscriptions_by_source: Annotated[int, typer.Option(min=0, help="Maximum subscriptions per address.")] = 1_000,
    subscriptions: Annotated[int, typer.Option(min=0, help="Maximum subscriptions in total.")] = 100_000,
    wildcards_by_source: Annotated[
        int, typer.Option(min=0, help="Maximum inner wildcards in the filters of an address.")
    ] = 4_000,
    wildcards: Annotated[int, typer.Option(min=0, help="Maximum inner wildcards in all filters.")] = 50_000,
    retained: Annotated[int, typer.Option(min=0, help="Maximum number of retained messages.")] = 20_000,
    retained_bytes: Annotated[int, typer.Option(min=0, help="Maximum bytes of all retained messages.")] = 16 << 20,
    sessions: Annotated[int, typer.Option(min=1, help="MQTT-SN: maximum sessions.")] = 10_000,
    unacknowledged_bytes: Annotated[
        int,
        typer.Option(min=0, help="MQTT-SN: maximum bytes of messages that wait for ACKs."),
    ] = 64 << 20,
    topic_bytes: Annotated[int, typer.Option(min=1, help="Maximum bytes of a topic or filter.")] = 1_024,
    topic_depth: Annotated[int, typer.Option(min=1, help="Maximum levels of a topic or filter.")] = 64,
    datagram_bytes: Annotated[int, typer.Option(min=1, help="Maximum bytes of a datagram.")] = 65_507,
    requests_by_second: Annotated[int, typer.Option(min=1, help="Maximum requests per second and address.")] = 20_000,
    amplification: Annotated[
        float,
        typer.Option(
            min=0,
            help="Maximum bytes to an address that is not trusted, as a multiple of its own bytes.",
        ),
    ] = 3.0,
    trust_silent: Annotated[bool | None, typer.Option("--trust-silent/--no-trust-silent", help=SILENT_HELP)] = None,
) -> None:
    """Run a conforming broker for any dialect.

    The first line on stdout shows the address. Each message then gets one line. SIGTERM or Ctrl-C stops the broker.
    It prints its counters on SIGUSR1 and when it stops.

    An address may hold as much of a limit as remains free for others: at most half if it is the only one.
    """
    if list_mistakes:
        from reference_broker import Mistake

        for known in Mistake:
            typer.echo(f"{known:<20}{known.about}")
        raise typer.Exit(ExitCode.CLEAN)
    from pcap_tools.dialect import load_dialect
    from pcap_tools.errors import UsageError
    from reference_broker import Limits
    from reference_broker.broker import Gateway, broker_for
    from reference_broker.server.nearby import network

    spoken = load_dialect(dialect)
    limits = Limits(
        subscriptions_by_source=subscriptions_by_source,
        subscriptions=subscriptions,
        wildcards_by_source=wildcards_by_source,
        wildcards=wildcards,
        retained=retained,
        retained_bytes=retained_bytes,
        sessions=sessions,
        unacknowledged_bytes=unacknowledged_bytes,
        topic_bytes=topic_bytes,
        topic_depth=topic_depth,
        datagram_bytes=datagram_bytes,
        requests_by_second=requests_by_second,
        amplification=amplification,
        trust_silent=trust_silent,
    )
    if nak and spoken.spec.broker.nak is None:
        raise UsageError(f"--nak: the dialect {spoken.name} has no NAK")
    advertise_to = clients.endpoint(advertise, clients.broker_port(spoken)) if advertise else None
    gateway = Gateway(gateway_id, advertise_to, advertise_every) if advertise or gateway_id != 1 else None
    core = broker_for(spoken, limits, _mistakes(mistake or []), nak, _predefined(predefined), gateway)
    try:
        allowed = [network(word) for word in allow] if allow else None
    except ValueError as error:
        raise UsageError(f"--allow: {error}") from error
    parts = _Parts(state, _is_sync(state_sync), pcap, quiet, user, metrics, allowed)
    _serve(core, host, _port(spoken) if port is None else port, parts)


class _Parts(NamedTuple):
    """What the server has besides the broker."""

    state: str | None
    sync: bool
    pcap: str | None
    quiet: bool
    user: str | None
    metrics: str | None
    allowed: list[Any] | None


def _serve(core: Any, host: str, port: int, parts: _Parts) -> None:
    from reference_broker.server.message_log import MessageLog
    from reference_broker.server.metrics import MetricsServer, exposition
    from reference_broker.server.recorder import Recorder
    from reference_broker.server.state import State
    from reference_broker.server.udp import Server

    server = Server(core, host, port, _say)  # first: a port in use must not cost anybody a capture
    served = None
    if parts.metrics is not None:
        at = clients.endpoint(parts.metrics, 0)
        served = MetricsServer(at, lambda: exposition(dict(core.counters), server.gauges()))
        _say(f"metrics on http://{served.address[0]}:{served.address[1]}/metrics")
    if parts.user is not None:
        _become(parts.user, [parts.state] if parts.state else [])
    server.state = State(parts.state, core, sync=parts.sync, say=_say) if parts.state else None
    server.recorder = Recorder(parts.pcap, _say) if parts.pcap else None
    server.log = None if parts.quiet else MessageLog(sys.stdout.fileno(), core.dialect, core.counters)
    server.allowed = parts.allowed
    server.handle_signals()
    typer.echo(f"listening on {server.address[0]} port {server.address[1]} ({core.dialect.name})")
    sys.stdout.flush()
    try:
        server.serve()
    finally:
        if served is not None:
            served.close()


def _become(name: str, owned: list[str]) -> None:
    """Give up root for good. A state file that root has made is handed over, so that it can be rewritten."""
    import grp
    import os
    import pwd

    from pcap_tools.errors import UsageError

    try:
        found = pwd.getpwnam(name)
    except KeyError as error:
        raise UsageError(f"--user: unknown user {name!r}") from error
    try:
        for path in owned:
            if os.path.exists(path) and os.geteuid() == 0:
                os.chown(path, found.pw_uid, found.pw_gid, follow_symlinks=False)
        if os.geteuid() == 0:
            os.setgroups([group.gr_gid for group in grp.getgrall() if name in group.gr_mem] + [found.pw_gid])
        os.setgid(found.pw_gid)
        os.setuid(found.pw_uid)
    except OSError as error:
        raise UsageError(f"--user: cannot become {name}: {error.strerror}") from error


def _predefined(path: str | None) -> dict[int, bytes] | None:
    """The predefined topic ids of a file."""
    if path is None:
        return None
    from pcap_tools.errors import UsageError

    try:
        with open(path, "rb") as stream:
            known = tomllib.load(stream)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    topics: dict[int, bytes] = {}
    for word, topic in known.items():
        if not word.isascii() or not word.isdigit() or not 1 <= int(word) <= 0xFFFE or not isinstance(topic, str):
            raise UsageError(f'{path}: expected lines such as 7 = "alarm" with an id from 1 to 65534, not {word!r}')
        topics[int(word)] = topic.encode()
    return topics


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


def _say(text: str) -> None:
    from pcap_tools.escaping import escape_text

    typer.echo("\n".join(escape_text(line) for line in text.splitlines()), err=True)

"""What `publish`, `subscribe` and `play` share: their options, the client they make, and how they tell what happens."""

import os
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from topicshark.exit_codes import ExitCode

GOODBYE_S = 2.0

Dialect = Annotated[str, typer.Option(metavar="NAME|FILE.toml", help="Dialect to speak.")]
To = Annotated[
    str | None,
    typer.Option(metavar="HOST[:PORT]", help="Broker address. Default: 127.0.0.1 and the dialect's port."),
]
Bind = Annotated[str | None, typer.Option(metavar="HOST[:PORT]", help="Local address. Default: any free port.")]
Form = Annotated[str | None, typer.Option(help="Message form to write; see `topicshark dialects show NAME`.")]
Role = Annotated[str | None, typer.Option(help="Role to speak as, if the dialect has several.")]
ResendAfter = Annotated[
    float | None, typer.Option(min=0.001, help="Seconds before a resend. Default: set by the dialect, or 1.")
]
Tries = Annotated[int | None, typer.Option(min=1, help="Maximum number of sends. Default: set by the dialect, or 5.")]
Backoff = Annotated[float, typer.Option(min=1.0, help="Multiply the wait by this factor after each send.")]
Qos = Annotated[int, typer.Option(min=-1, max=2, help="MQTT-SN: quality of service.")]
Fields = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Set another field of the request (repeatable)."),
]
LongWindow = Annotated[
    int,
    typer.Option(
        "--window",
        min=0,
        max=128,
        help="topicnumber: send long messages as a sequence, this many packets at a time. Both ends need it.",
    ),
]
Mistake = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="Imitate a mistake of the original clients (repeatable): retain-on-resend, number-zero."
    ),
]


def make_client(
    dialect: str,
    to: str | None,
    bind: str | None,
    form: str | None,
    role: str | None,
    resend_after: float | None,
    tries: int | None,
    backoff: float,
    qos: int = 1,
    mistakes: list[str] | None = None,
    window: int = 0,
    is_subscriber: bool = True,
) -> tuple[Any, Callable[[Callable[[Any], None]], Any]]:
    """The client, and what makes a node of it once there is somebody to tell its events to."""
    from pcap_tools.dialect import load_dialect
    from pcap_tools.errors import UsageError
    from reference_broker.client import client_for
    from reference_broker.client.node import Node
    from reference_broker.client.requests import ClientMistake, Timing

    spoken = load_dialect(dialect)
    for name in mistakes or []:
        if name not in list(ClientMistake):
            raise UsageError(f"unknown mistake {name!r}; known: {', '.join(ClientMistake)}")
    broker = endpoint(to or "127.0.0.1", broker_port(spoken))
    own = endpoint(bind, 0) if bind else ("::" if ":" in broker[0] else "0.0.0.0", 0)  # noqa: S104 - a client's socket
    settings: dict[str, Any] = {
        "role": role,
        "timing": Timing.of(spoken, resend_after, tries - 1 if tries else None, backoff),
        "mistakes": [ClientMistake(name) for name in mistakes or []],
        "window": window,
        "first_number": secrets.randbelow(1 << 31),  # another publisher may share the broker's numbers
    }
    if spoken.spec.broker.sessions == "mqtt-sn":
        settings |= {"qos": qos, "client_id": f"topicshark-{os.getpid()}".encode()}
    else:
        settings["follows_form"] = form is None
    if form is None and "ack" not in spoken.spec.broker.order.get("publish", ["ack"]):
        form = spoken.forms[-1].name  # nothing will tell which one the broker speaks: the observed one
    client = client_for(spoken, broker, form, **settings)

    def node(on_event: Callable[[Any], None]) -> Any:
        made = Node(client, own, on_event, is_subscriber)
        client.listen_port = made.address[1]
        return made

    return client, node


def broker_port(dialect: Any) -> int:
    """The dialect's own port for a broker, else the first that it has."""
    ports = dialect.spec.ports.get("broker") or [port for ports in dialect.spec.ports.values() for port in ports]
    return int(ports[0]) if ports else 0


def endpoint(text: str, default_port: int) -> tuple[str, int]:
    """`127.0.0.1:50000`, `localhost`, `[::1]:50000`, `::1`: an address and a port."""
    import socket

    from pcap_tools.errors import UsageError

    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    else:
        host, port = text, ""
    if port and (not port.isdigit() or int(port) > 65535):
        raise UsageError(f"invalid port {port}: must be between 0 and 65535")
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"unknown host or invalid address: {host}") from error
    return str(found[0][4][0]), int(port) if port else default_port


def fields_of(settings: list[str] | None, layout: Any) -> dict[str, Any]:
    """`--set text=hello` as fields of a message."""
    from pcap_tools.errors import UsageError
    from reference_broker.messages.composing import value_of

    fields: dict[str, Any] = {}
    for setting in settings or []:
        name, equals, value = setting.partition("=")
        step = layout.step(name)
        if not equals or step is None:
            known = ", ".join(step.name for step in layout.steps)
            raise UsageError(f"--set takes FIELD=VALUE with a field of {layout.message} ({known}), not {setting!r}")
        fields[name] = value_of(step, value.encode())
    return fields


def say(text: str) -> None:
    """A line about what is going on; it may quote a packet."""
    from pcap_tools.escaping import escape_text

    typer.echo("\n".join(escape_text(line) for line in text.splitlines()), err=True)


class Teller:
    """Tells each event, and keeps count: messages go to stdout, all else to stderr."""

    def __init__(self, acks_on_stdout: bool = False) -> None:
        self.acknowledged = self.received = self.failed = 0
        self._acks_on_stdout = acks_on_stdout

    def tell(self, event: Any) -> None:
        from pcap_tools.escaping import escape
        from reference_broker.client.requests import EventKind

        about = f"{event.message.message or 'a datagram'}{' ' + escape(event.topic) if event.topic else ''}"
        tries = f" (sent {event.sends} times)" if event.sends > 1 else ""
        if event.kind is EventKind.RECEIVED:
            self.received += 1
            again = " (again)" if event.duplicate else ""
            _out(f"{escape(event.topic or b'')}: {escape(event.payload or b'')}{again}")
        elif event.kind is EventKind.STATUS:
            _out(f"the broker says: {escape(event.payload or b'')}")
        elif event.kind is EventKind.ACKNOWLEDGED:
            self.acknowledged += 1
            (_out if self._acks_on_stdout else _err)(f"acknowledged: {about}{tries}")
        elif event.kind is EventKind.RESENT:
            _err(f"no acknowledgement yet, resent: {about} (send {event.sends}){' ' + event.why if event.why else ''}")
        elif event.kind is EventKind.FORM:
            _err(f"{event.why}: following it")
        else:
            self.failed += event.kind in (EventKind.GAVE_UP, EventKind.REFUSED)
            words = {EventKind.GAVE_UP: "never acknowledged", EventKind.REFUSED: "refused"}
            _err(f"{words.get(event.kind, 'unexpected')}: {about}{tries}{': ' + event.why if event.why else ''}")

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.FINDINGS if self.failed else ExitCode.CLEAN


def _out(line: str) -> None:
    typer.echo(line)
    typer.get_text_stream("stdout").flush()


def _err(line: str) -> None:
    typer.echo(line, err=True)


def finish(node: Any, client: Any) -> None:
    """Wait for what is still on its way, then say good-bye. A signal shortens the wait."""
    with until_signal():
        node.settle()
    with until_signal():
        node.send(client.close(node.now()))
        node.run(lambda: client.is_idle, GOODBYE_S)


class _Signalled(BaseException):
    """SIGTERM or SIGINT came."""


@contextmanager
def until_signal() -> Iterator[None]:
    """Run a block that SIGTERM and SIGINT end early, so that what comes after it still happens."""

    def end(*_: object) -> None:
        raise _Signalled

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except _Signalled:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_prompt(
    node: Any, prompt: Any, is_over: Callable[[], bool] = lambda: False, timeout: float | None = None
) -> None:
    """Serve the network and the keyboard until the user, ``is_over`` or the time ends it."""
    import sys

    from reference_broker.client.node import Keyboard

    def on_line(line: bytes | None) -> None:
        if prompt.is_over:
            return
        node.send(prompt.take(line, node.now()))
        if not prompt.is_over:
            say(prompt.hint)

    say(prompt.hint)
    keyboard = Keyboard(sys.stdin.fileno(), on_line)
    node.run(lambda: prompt.is_over or is_over(), timeout, keyboard=keyboard)

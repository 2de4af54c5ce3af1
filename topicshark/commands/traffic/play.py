"""`topicshark play ROLE`: the nodes of the reports' applications, each in its loop until it is stopped."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from topicshark.app import new_app
from topicshark.commands.traffic import clients

app = new_app()


class Part(StrEnum):
    SENSOR = "sensor"
    ACTUATOR = "actuator"
    DASHBOARD = "dashboard"
    WINDOW = "window"
    NODE = "node"


@app.command(epilog="Example: topicshark play sensor --topic temperature/room1 --readings 20,27,33 --every 2")
def play(
    part: Annotated[
        Part,
        typer.Argument(
            help="sensor, dashboard, actuator: as in rolebyte. window: as in topicbyte. node: interactive prompt."
        ),
    ],
    topic: Annotated[
        str | None,
        typer.Option(help="Topic of the room. Default: temperature/room1 with a control loop, else temperature."),
    ] = None,
    readings: Annotated[
        str | None, typer.Option(metavar="N,N,...", help="sensor: values to publish. Default: random values.")
    ] = None,
    every: Annotated[float, typer.Option(min=0, help="sensor: seconds between readings.")] = 1.0,
    seed: Annotated[int, typer.Option(help="sensor: seed of the random values.")] = 1,
    count: Annotated[int | None, typer.Option(min=1, help="Stop after this many messages or random readings.")] = None,
    timeout: Annotated[float | None, typer.Option(min=0, help="Stop after this many seconds.")] = None,
    dialect: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE.toml", help="Dialect to speak. Default: rolebyte; window: topicbyte; node: colon."
        ),
    ] = None,
    to: clients.To = None,
    bind: clients.Bind = None,
    form: clients.Form = None,
    qos: clients.Qos = 1,
    resend_after: clients.ResendAfter = None,
    tries: clients.Tries = None,
    backoff: clients.Backoff = 1.5,
    window: clients.LongWindow = 0,
) -> None:
    """Play a sensor, actuator, dashboard or window, or an interactive node.

    Exit code 0: every request was acknowledged. 1: a request was refused or never acknowledged.
    """
    from pcap_tools.dialect import load_dialect

    spoken = dialect or {Part.WINDOW: "topicbyte", Part.NODE: "colon"}.get(part, "rolebyte")
    loop = load_dialect(spoken).spec.application.loop
    role = part.value if loop and part in (Part.SENSOR, Part.ACTUATOR, Part.DASHBOARD) else None
    client, make_node = clients.make_client(
        spoken,
        to,
        bind,
        form,
        role,
        resend_after,
        tries,
        backoff,
        qos,
        window=window,
        is_subscriber=part is not Part.SENSOR,
    )
    subject = (topic or ("temperature/room1" if loop else "temperature")).encode()
    teller = clients.Teller()
    reactor = _Reactor(_application(part, client.dialect, subject), client, teller)
    with make_node(reactor.on_event) as node:
        reactor.node = node

        def is_over() -> bool:
            return count is not None and teller.received >= count

        with clients.until_signal():
            if part is Part.NODE:
                from reference_broker.client.prompt import Prompt

                clients.run_prompt(node, Prompt(client, clients.say), is_over, timeout)
            elif part is Part.SENSOR:
                _measure(node, client, teller, subject, _values(readings, seed, count), every, timeout)
            else:
                node.send(client.subscribe(reactor.application.filter, node.now()))
                node.run(lambda: bool(teller.failed) or is_over(), timeout)
        clients.finish(node, client)
    raise typer.Exit(teller.exit_code)


def _application(part: Part, dialect: Any, topic: bytes) -> Any:
    from reference_broker.client.applications import Actuator, Dashboard, Window, loop_of

    if part in (Part.DASHBOARD, Part.ACTUATOR):
        return {Part.DASHBOARD: Dashboard, Part.ACTUATOR: Actuator}[part](loop_of(dialect), topic)
    return Window(topic) if part is Part.WINDOW else None


class _Reactor:
    """Tells each event, and lets the application answer the messages."""

    def __init__(self, application: Any, client: Any, teller: clients.Teller) -> None:
        self.application, self._client, self._teller = application, client, teller
        self.node: Any = None

    def on_event(self, event: Any) -> None:
        from pcap_tools.errors import UsageError
        from reference_broker.client.requests import EventKind

        self._teller.tell(event)
        if self.application is None or event.kind is not EventKind.RECEIVED or event.duplicate:
            return
        reaction = self.application.on_message(event.topic or b"", event.payload or b"")
        typer.echo(reaction.says)
        typer.get_text_stream("stdout").flush()
        if reaction.publish is not None:
            try:
                self.node.send(self._client.publish(*reaction.publish, self.node.now()))
            except UsageError as error:  # a message can make us want to say what the dialect has no room for
                clients.say(str(error))


def _measure(
    node: Any, client: Any, teller: clients.Teller, topic: bytes, values: Any, every: float, timeout: float | None
) -> None:
    from reference_broker.client.applications import reading

    end = None if timeout is None else node.now() + int(timeout * 1e9)
    for number, value in enumerate(values):
        if number and not teller.failed:
            node.run(lambda: bool(teller.failed), every)
        if teller.failed or (end is not None and node.now() >= end):
            return
        node.send(client.publish(topic, reading(client.dialect, topic, value), node.now()))
        node.settle()


def _values(readings: str | None, seed: int, count: int | None) -> Any:
    """The readings to send: those given, else numbers that wander as a temperature does."""
    from itertools import islice
    from random import Random

    from pcap_tools.errors import UsageError

    if readings is not None:
        words = readings.split(",")
        if not all(word.strip().removeprefix("-").isdigit() for word in words):
            raise UsageError(f"--readings takes whole numbers separated by commas, not {readings!r}")
        return [int(word) for word in words]
    random = Random(seed)  # noqa: S311 - a toy thermometer
    endless = (random.randrange(15, 40) for _ in iter(int, 1))
    return islice(endless, count) if count else endless

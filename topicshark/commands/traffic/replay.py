"""`topicshark replay`: the clients of a capture play again, against a live broker."""

from typing import Annotated, Any

import typer

from topicshark.app import new_app
from topicshark.commands.traffic.clients import endpoint, say
from topicshark.exit_codes import ExitCode
from topicshark.progress import counter, end_counter

app = new_app()


@app.command(epilog="Example: topicshark replay field.pcap --to 127.0.0.1:50000 -o answers.pcapng")
def replay(
    capture: Annotated[str, typer.Argument(metavar="CAPTURE", help="Capture: pcap or pcapng, optionally compressed.")],
    to: Annotated[
        str,
        typer.Option(metavar="HOST[:PORT]", help="Broker to send to. Default port: that of the broker in the capture."),
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="OUT.pcapng", help="Record requests and answers in this file."),
    ] = None,
    speed: Annotated[float, typer.Option(min=0.01, max=10_000, help="2: twice as fast as in the capture.")] = 1.0,
    dialect: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|FILE.toml", help="Use only this dialect (repeatable). Default: detect."),
    ] = None,
    port: Annotated[list[int] | None, typer.Option(help="Additional UDP port of the dialect (repeatable).")] = None,
    broker: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST[:PORT]", help="The broker in the capture (repeatable). Default: detect."),
    ] = None,
    wait: Annotated[
        float, typer.Option(min=0, max=600, metavar="SECONDS", help="Time to wait for answers after the last datagram.")
    ] = 2.0,
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Give up after this time, however much is left.")
    ] = 600.0,
) -> None:
    """Send the datagrams of a capture's clients to a broker again, with their timing, and record the answers.

    Each client has a socket of its own: on loopback its own address, elsewhere its own port. Acknowledgements by
    clients and topic numbers follow what the new broker sends; resends of requests that it has acknowledged are left
    out. The recording has the addresses of the capture: topicshark compare CAPTURE OUT.pcapng shows what the new
    broker does differently. Send only to brokers that are yours to test.

    Exit code 0: the capture was played to its end. 1: the time was up before. 3: the capture
    cannot be read, or holds no broker of a known dialect.
    """
    from generators.replay import LiveReplay, plan_replay
    from pcap_tools.capture import read_datagrams
    from reference_broker.server.recorder import Recorder

    _refuse(capture, output)
    brokers = _brokers(capture, dialect, port, broker)
    planned = plan_replay(read_datagrams(capture), brokers)
    host, number = endpoint(to, 0)
    recorder = Recorder(output, say) if output is not None else None
    try:
        with LiveReplay(
            planned, (host, number or None), recorder, speed, wait, timeout, counter("sent", len(planned.planned))
        ) as live:
            outcome = live.run()
    finally:
        if recorder is not None:
            recorder.close()
        end_counter()
    _tell(outcome, len(planned.planned), output)
    raise typer.Exit(ExitCode.FINDINGS if outcome.is_cut else ExitCode.CLEAN)


def _refuse(capture: str, output: str | None) -> None:
    import os

    from pcap_tools.errors import UsageError

    if output is not None and os.path.exists(output) and os.path.exists(capture) and os.path.samefile(output, capture):
        raise UsageError(f"{output}: is the capture itself; write to another file")


def _brokers(
    capture: str, dialect: list[str] | None, port: list[int] | None, broker: list[str] | None
) -> dict[tuple[str, int], Any]:
    """The dialect of each broker in the capture."""
    from pcap_tools.codec.detect import wanted_dialects
    from pcap_tools.errors import TopicsharkError
    from spark_analysis.check import check

    wanted = wanted_dialects(dialect, port or ())
    result = check([capture], dialects=wanted, brokers=tuple(broker or ()), engine="local", limit=1, summaries=False)
    by_name = {one.name: one for one in wanted.wanted}
    found = {
        _parsed(place): by_name[session.dialect]
        for session in sorted(result.sessions, key=lambda session: session.datagrams)
        for place in session.brokers
    }
    if not found:
        raise TopicsharkError(f"{capture}: nothing tells which end is the broker; name it with --broker HOST:PORT")
    return found


def _parsed(place: str) -> tuple[str, int]:
    host, _, number = place.rpartition(":")
    return host.strip("[]"), int(number)


def _tell(outcome: Any, planned: int, output: str | None) -> None:
    where = f"; recorded in {output}" if output is not None else ""
    say(f"{outcome.sent:,} of {planned:,} datagrams sent, {outcome.received:,} received{where}")
    if outcome.spared:
        say(f"{outcome.spared:,} resends were left out: the broker had acknowledged the request")
    if outcome.unanswered:
        say(f"{outcome.unanswered:,} acknowledgements were not sent: what they acknowledge never came")
    if outcome.is_cut:
        say("the time was up before all was sent (--timeout, --speed)")

"""`topicshark generate`: traffic of any dialect with labelled faults, simulated to a file or played to a broker."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topicshark.app import new_app
from topicshark.exit_codes import ExitCode
from topicshark.progress import counter, end_counter

if TYPE_CHECKING:
    from generators.generate import GeneratedRun, GeneratorOptions

app = new_app()

MOST_PACKETS = 10**18  # more than any format has times for

Sensors = Annotated[int | None, typer.Option(min=1, help="Number of publishers. Default: 8.")]
Dashboards = Annotated[int | None, typer.Option(min=1, help="Number of subscribers to many topics. Default: 4.")]
Actuators = Annotated[int | None, typer.Option(min=0, help="Number of subscribers to one topic. Default: 2.")]
Rounds = Annotated[int | None, typer.Option(min=1, help="Number of times each sensor publishes. Default: 10.")]


@app.command(
    epilog="Example: topicshark generate building -o building.pcap --fault ack-missing=0.05 --truth truth.json"
)
def generate(
    scenario: Annotated[str | None, typer.Argument(help="Scenario to run; see --list.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.pcap[ng]", help="Capture to write; - for stdout.")
    ] = None,
    dialect: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|FILE.toml", help="Dialect to speak (repeatable for mixed). Default: colon."),
    ] = None,
    form: Annotated[str | None, typer.Option(help="Message form to write, if the dialect has several.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed. The same seed gives the same bytes.")] = 1,
    packets: Annotated[
        str | None, typer.Option(metavar="N", help="Write exactly this many packets, for example 100_000_000.")
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=RATE]", help="Fault to inject (repeatable). RATE: share of its opportunities. Default: 0.1."
        ),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write the ground truth about the capture to this file.")
    ] = None,
    sensors: Sensors = None,
    dashboards: Dashboards = None,
    actuators: Actuators = None,
    rounds: Rounds = None,
    capture_at: Annotated[
        str | None,
        typer.Option(
            metavar="broker|any|NODE",
            help="Where to capture; NODE is the name of a node. Default: set by the scenario.",
        ),
    ] = None,
    link: Annotated[
        str | None, typer.Option(metavar="ethernet|cooked1|cooked2|raw|null", help="Link layer of the capture.")
    ] = None,
    vlan: Annotated[list[int] | None, typer.Option(help="802.1Q tag; give two for QinQ.")] = None,
    mtu: Annotated[int | None, typer.Option(help="Fragment packets longer than this. Default: 1500.")] = None,
    ip_ids: Annotated[
        str | None,
        typer.Option(metavar="HOW", help="IP ids of each host: `counted` (by one, the default) or `random`."),
    ] = None,
    noise: Annotated[
        float | None, typer.Option(min=0, help="Background packets (DNS, NTP, ARP, ...) per packet of traffic.")
    ] = None,
    microseconds: Annotated[
        bool, typer.Option("--us", help="Write times in microseconds instead of nanoseconds.")
    ] = False,
    ipv6: Annotated[bool, typer.Option(help="Use IPv6 instead of IPv4.")] = False,
    to: Annotated[
        str | None,
        typer.Option(metavar="HOST[:PORT]", help="Run the clients against this broker and record the traffic."),
    ] = None,
    rate: Annotated[float, typer.Option(min=0.1, help="With --to: approximate number of requests per second.")] = 50.0,
    show: Annotated[bool, typer.Option("--list", help="List the scenarios and exit.")] = False,
    list_faults: Annotated[bool, typer.Option(help="List the faults and the rules they break, and exit.")] = False,
) -> None:
    """Generate traffic with labelled faults: a capture of any size, or live to a broker.

    The truth file lists every fault with the frames that show it, every exchange with the frame of its ACK, and every
    delivery with the frame of its forward. It comes from the simulation, not from the capture.
    """
    if show or list_faults:
        _show_scenarios() if show else _show_faults()
        raise typer.Exit(ExitCode.CLEAN)
    wanted = _order(scenario, output, dialect, form, seed, fault, ipv6) | {
        "sensors": sensors,
        "dashboards": dashboards,
        "actuators": actuators,
        "rounds": rounds,
    }
    capture = {"vlan": tuple(vlan) if vlan else None, "mtu": mtu, "noise": noise, "link": link, "ip_ids": ip_ids}
    capture |= {"resolution": "us" if microseconds else None}
    capture["format"] = "pcapng" if output is not None and output.suffix == ".pcapng" else None
    place = {"capture": {name: value for name, value in capture.items() if value is not None}} | _point(capture_at)
    if to is not None:
        _live(wanted, to, rate, str(output), truth)
    elif packets is not None:
        _bulk(wanted, place, _whole_number(packets), str(output), truth)
    else:
        _simulated(wanted, place, str(output), truth)


def _show_scenarios() -> None:
    from generators.scenarios import SCENARIOS

    for name, known in SCENARIOS.items():
        typer.echo(f"{name:<20}{known.about}")


def _show_faults() -> None:
    import generators.generate  # noqa: F401 - fills the catalogue
    from generators.simulation.fault import CATALOGUE

    in_order = sorted(CATALOGUE.items(), key=lambda item: item[1].is_condition)
    for name, known in in_order:
        typer.echo(f"{name:<26}{', '.join(known.rules) or '-':<24}{known.place:<12}{known.about}")


def _order(
    scenario: str | None,
    output: Path | None,
    dialect: list[str] | None,
    form: str | None,
    seed: int,
    fault: list[str] | None,
    ipv6: bool,
) -> dict[str, Any]:
    from pcap_tools.errors import UsageError

    if scenario is None:
        raise UsageError("no scenario given; `topicshark generate --list` shows all")
    if output is None:
        raise UsageError("no output file given; use -o FILE.pcap")
    return {
        "scenario": scenario,
        "seed": seed,
        "dialects": tuple(dialect or ()),
        "form": form,
        "faults": dict(_fault(one) for one in fault or ()),
        "ipv6": ipv6,
    }


def _fault(text: str) -> tuple[str, float]:
    """`ack-missing=0.05`."""
    from generators.simulation.fault import DEFAULT_RATE
    from pcap_tools.errors import UsageError

    name, equals, rate = text.partition("=")
    try:
        return name, float(rate) if equals else DEFAULT_RATE
    except ValueError:
        raise UsageError(f"--fault takes NAME or NAME=RATE with a rate like 0.05, not {text!r}") from None


def _point(text: str | None) -> dict[str, Any]:
    """Where to capture: two words that are places, or the name of a node."""
    if text is None:
        return {}
    return {"point": text if text in ("broker", "any") else "client", "client": text}


def _whole_number(text: str) -> int:
    """`20_000_000` or `2e7`."""
    from decimal import Decimal, InvalidOperation

    from pcap_tools.errors import UsageError

    try:
        number = Decimal(text)
        if -MOST_PACKETS <= number <= MOST_PACKETS and number == int(number):
            return int(number)
    except InvalidOperation:
        pass
    raise UsageError(f"--packets takes a whole number like 1_000_000 or 1e6, not {text!r}")


def _order_at(wanted: dict[str, Any], place: dict[str, Any]) -> "GeneratorOptions":
    """The order with the place at which the capture is taken."""
    from generators.capture.options import LinkType, Point
    from generators.generate import GeneratorOptions
    from pcap_tools.errors import UsageError

    capture = place["capture"]
    if "point" in place:
        capture["point"] = Point(place["point"])
    if "link" in capture:
        if capture["link"] not in list(LinkType):
            raise UsageError(f"unknown link layer {capture['link']!r}; known: {', '.join(LinkType)}")
        capture["link"] = LinkType(capture["link"])
    return GeneratorOptions(**wanted, capture=capture, client=place.get("client"))


def _made(order: "GeneratorOptions") -> "GeneratedRun":
    from generators.generate import generate

    made = generate(order, counter("simulated datagrams"))
    end_counter()
    for name in made.idle_faults:
        typer.echo(
            f"the scenario {order.scenario} has no opportunity for the fault {name}; try another scenario", err=True
        )
    return made


def _simulated(wanted: dict[str, Any], place: dict[str, Any], output: str, truth: Path | None) -> None:
    from generators.capture.capture_point import write

    made = _made(_order_at(wanted, place))
    write(made.capture, output, names=made.host_names() if output.endswith(".pcapng") else None)
    told = made.truth()
    _write_truth(told, truth)
    faults = f", {len(told['faults'])} faults" if made.injectors else ""
    typer.echo(f"{len(made.capture.frames)} frames in {output}{faults}", err=output == "-")


def _bulk(wanted: dict[str, Any], place: dict[str, Any], packets: int, output: str, truth: Path | None) -> None:
    from generators.bulk.tiling import options_to_repeat, segment_of, tiling_facts
    from generators.bulk.write import write_bulk

    made = _made(options_to_repeat(_order_at(wanted, place)))
    options = made.capture.options
    tell = counter("packets", packets)
    tiling = write_bulk(
        segment_of(made), packets, output, format=options.format, resolution=options.resolution, progress=tell
    )
    end_counter()
    if truth is not None:
        _write_truth({**made.truth(), "tiling": tiling_facts(tiling)}, truth)
    typer.echo(
        f"{tiling.packets:,} packets in {output}: "
        f"{tiling.prologue} at the start, then {tiling.tiles} repeats of {tiling.body}",
        err=output == "-",
    )


def _live(wanted: dict[str, Any], to: str, rate: float, output: str, truth: Path | None) -> None:
    from generators.generate import DEFAULT_DIALECT, GeneratorOptions
    from generators.live import play
    from pcap_tools.dialect import load_dialect
    from topicshark.commands.traffic.clients import broker_port, endpoint

    dialect = load_dialect((wanted["dialects"] or (DEFAULT_DIALECT,))[0])
    broker = endpoint(to, broker_port(dialect))
    told = play(GeneratorOptions(**wanted, broker_at=broker), output, rate, _say, counter("datagrams"))
    end_counter()
    _write_truth(told, truth)
    exchanges = told["exchanges"]
    acked = sum(one["ack_frame"] is not None for one in exchanges)
    typer.echo(
        f"{told['capture']['frames']} datagrams in {output}: {acked} of {len(exchanges)} requests acknowledged, "
        f"{len(told['deliveries'])} messages received, {len(told['faults'])} faults"
    )
    if exchanges and not acked:
        _say(f"no answer from {to}: is a {dialect.name} broker running there?")
        raise typer.Exit(ExitCode.FINDINGS)


def _say(text: str) -> None:
    from pcap_tools.escaping import escape_text

    typer.echo(escape_text(text), err=True)


def _write_truth(told: dict[str, Any], target: Path | None) -> None:
    from pcap_tools.errors import TopicsharkError

    if target is None:
        return
    try:
        target.write_text(json.dumps(told, indent=1) + "\n")
    except OSError as error:
        raise TopicsharkError(f"{target}: cannot be written: {error.strerror}") from error

"""`topicshark demo`: the main job end to end on traffic made here, as far as the project goes today."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.app import new_app

app = new_app()

START_NS = 1_700_000_000_000_000_000
OUTGOING, TO_OTHERS = 4, 3  # a capture on `any` sees a frame twice: coming in and going out
COOKED = 113

# who sends to whom: message and fields
Said = tuple[str, str, str, dict[str, Any]]
BUILDING: dict[str, list[Said]] = {
    "colon": [
        ("panel", "broker", "SUBSCRIBE", {"filter": "home/*/light"}),
        ("broker", "panel", "SUBACK", {}),
        ("switch", "broker", "PUBLISH", {"retain": 1, "topic": "home/room/light", "payload": "ON"}),
        ("broker", "panel", "PUBLISH", {"retain": 1, "topic": "home/room/light", "payload": "ON"}),
        ("broker", "switch", "PUBACK", {}),
    ],
    "topicbyte": [
        ("window", "broker", "SUB", {"topic": 10}),
        ("broker", "window", "ACK", {"topic": 0, "text": "OK - Received this"}),
        ("meter", "broker", "MESSAGE", {"topic": 10, "text": "Temperature:61"}),
        ("broker", "meter", "ACK", {"topic": 0, "text": "OK - Received this"}),
        ("broker", "window", "MESSAGE", {"topic": 10, "text": "Temperature:61"}),
    ],
    "rolebyte": [
        ("dashboard", "broker", "DASHBOARD_SUBSCRIBE", {"filter": "temperature/room1"}),
        ("broker", "dashboard", "ACK", {}),
        ("sensor", "broker", "SENSOR_PUBLISH", {"topic": "temperature/room1", "value": "20"}),
        ("broker", "sensor", "ACK", {}),
        ("broker", "dashboard", "BROKER", {"topic": "temperature/room1", "value": "20"}),
        ("dashboard", "broker", "ACK", {}),
    ],
}


@app.command(epilog="Example: topicshark demo -o demo")
def demo(
    folder: Annotated[Path, typer.Option("--output", "-o", help="Where to put the files.")] = Path("demo"),
) -> None:
    """Show the main job end to end on traffic made here."""
    from cli.decode import line_of
    from pcap_tools.decoding import Notes, decode_capture

    folder.mkdir(parents=True, exist_ok=True)
    capture = folder / "building.pcap"
    _tell(f"Three dialects talk in one building, captured on Linux's `any`: {capture}")
    _write(capture)
    notes = Notes()
    copies = 0
    for row in decode_capture(capture, notes=notes):
        copies += row.datagram.copy_of is not None
        typer.echo(line_of(row))
    _tell(f"{notes.decoded} datagrams decoded, {copies} of them copies that the capture made.")
    _tell(f"Now try:  topicshark decode {capture} --format jsonl")


def _tell(text: str) -> None:
    typer.echo(text, err=True)


def _write(capture: Path) -> None:
    """Each datagram as the wire would have it, each frame twice."""
    from pcap_tools.capture import CaptureWriter

    now = START_NS
    with CaptureWriter(capture, link_type=COOKED) as out:
        for subnet, (dialect, dialogue) in enumerate(BUILDING.items(), start=10):
            for number, said in enumerate(dialogue, start=1):
                packet = _packet(dialect, subnet, number, said)
                for packet_type in (TO_OTHERS, OUTGOING):
                    out.write(_cooked(packet_type) + packet, now)
                    now += 14_000
                now += 700_000


def _packet(dialect_name: str, subnet: int, number: int, said: Said) -> bytes:
    from scapy.layers.inet import IP, UDP

    from pcap_tools import Codec, load_dialect

    dialect = load_dialect(dialect_name)
    sender, receiver, message, fields = said
    codec = Codec(dialect)
    ports = {node: _port(dialect, node) for node in (sender, receiver)}
    nodes = sorted({node for line in BUILDING[dialect_name] for node in line[:2]})
    hosts = {node: f"10.0.{subnet}.{1 + index}" for index, node in enumerate(nodes)}
    datagram = codec.build(codec.message(message, form=dialect.forms[-1].name, **fields))
    ip = IP(src=hosts[sender], dst=hosts[receiver], id=subnet * 1000 + number)
    return bytes(ip / UDP(sport=ports[sender], dport=ports[receiver]) / datagram)


def _port(dialect: Any, node: str) -> int:
    """A node's own port where the dialect has one for its role, else the clients' port."""
    roles = {"window": "subscriber", "meter": "client", "panel": "client", "switch": "client"}
    return int(dialect.spec.ports[roles.get(node, node)][0])


def _cooked(packet_type: int) -> bytes:
    return packet_type.to_bytes(2, "big") + bytes.fromhex("0001 0006 024200000001 0000 0800")

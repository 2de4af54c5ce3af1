"""The five reports' dialogues, live: every node a process at its own address, byte for byte and in order, as recorded.

The bytes are typed by hand from the reports and from the protocols' page, and are not built by the code under test.
"""

import json
from pathlib import Path

import pytest

from pcap_tools.capture import Datagram, read_datagrams
from tests.conftest import Command
from tests.reference_broker.labs import run_lab

pytestmark = pytest.mark.net

Said = tuple[str, str, bytes]


def record(topicshark: Command, dialect: str, folder: Path) -> list[Datagram]:
    """Run a report's scenario, have `topicshark decode` read the capture, and return what is in it."""
    capture = folder / f"{dialect}.pcap"
    answer = run_lab(topicshark, f"report-{dialect}", capture, "--mode", "loopback")
    assert answer.returncode == 0, answer.stderr
    datagrams = list(read_datagrams(capture))
    decoded = topicshark("decode", str(capture), "--dialect", dialect, "--format", "jsonl")
    assert decoded.returncode == 0, decoded.stderr
    rows = [json.loads(line) for line in decoded.stdout.splitlines()]
    assert [row["error"] for row in rows] == [None] * len(datagrams)
    return datagrams


def said(datagrams: list[Datagram], nodes: dict[str, str]) -> list[Said]:
    """Who said what to whom, by name."""
    hosts = {host: name for name, host in nodes.items()}
    return [(hosts[one.src], hosts[one.dst], one.payload) for one in datagrams]


def test_colon(topicshark: Command, tmp_path: Path) -> None:
    """Figures 3, 5 and 7: forwards before the PUBACK; a subscription and an unsubscription with their ACKs."""
    datagrams = record(topicshark, "colon", tmp_path)
    nodes = {"broker": "127.0.10.10", "one": "127.0.10.20", "two": "127.0.10.30", "sub": "127.0.10.40"}
    assert said(datagrams, nodes) == [
        ("sub", "broker", b"\x03\x00temperature"),
        ("broker", "sub", b"\x04"),
        ("one", "broker", b"\x01\x01temperature:12C"),
        ("broker", "sub", b"\x01\x01temperature:12C"),
        ("broker", "one", b"\x02"),
        ("one", "broker", b"\x01\x00home/room/fan:ON"),
        ("broker", "one", b"\x02"),
        ("sub", "broker", b"\x03\x00*/lights"),
        ("broker", "sub", b"\x04"),
        ("two", "broker", b"\x01\x00home/bedroom/lights:ON"),
        ("broker", "sub", b"\x01\x00home/bedroom/lights:ON"),
        ("broker", "two", b"\x02"),
        ("sub", "broker", b"\x05\x00temperature"),
        ("broker", "sub", b"\x06"),
    ]
    assert {port for one in datagrams for port in (one.sport, one.dport)} == {50000}


def test_topicbyte(topicshark: Command, tmp_path: Path) -> None:
    """Everything is acknowledged before it is looked at; forwards are byte for byte and not acknowledged."""
    datagrams = record(topicshark, "topicbyte", tmp_path)
    nodes = {"broker": "127.0.10.10", "window": "127.0.10.20", "client": "127.0.10.30"}
    ack = bytes.fromhex("aced0005 77 16 01 00 0012") + b"OK - Received this"
    hot = bytes.fromhex("aced0005 77 12 03 0a 000e") + b"Temperature:61"
    humid = bytes.fromhex("aced0005 77 0f 03 14 000b") + b"Humidity:40"
    cold = bytes.fromhex("aced0005 77 12 03 0a 000e") + b"Temperature:32"
    assert said(datagrams, nodes) == [
        ("window", "broker", bytes.fromhex("aced00057702020a")),
        ("broker", "window", ack),
        ("client", "broker", hot),
        ("broker", "client", ack),
        ("broker", "window", hot),
        ("client", "broker", humid),
        ("broker", "client", ack),
        ("client", "broker", cold),
        ("broker", "client", ack),
        ("broker", "window", cold),
    ]
    ports = {name: {one.sport for one in datagrams if one.src == host} for name, host in nodes.items()}
    assert ports == {"broker": {50000}, "window": {50003}, "client": {50002}}


def test_portdigits(topicshark: Command, tmp_path: Path) -> None:
    """The nine steps of section 3.4: no ACKs, nothing to publishers, forwards to the ports that the headers name."""
    datagrams = record(topicshark, "portdigits", tmp_path)
    nodes = {f"node{last}": f"127.0.10.{last}" for last in (10, 20, 30, 40, 50, 60)}
    asks = bytes.fromhex("aced0005 77 0d 000b") + b"subscribing"

    def whole(header: str, text: bytes) -> bytes:
        return (bytes.fromhex(header) + text).ljust(1500, b"\0")

    temperature = whole("0102030405 01 0001", bytes.fromhex("aced0005 77 07 0005 313443c2b0"))
    wind = whole("0102030405 01 0002", bytes.fromhex("aced0005 77 08 0006") + b"20km/h")
    humidity = whole("0102030405 01 0003", bytes.fromhex("aced0005 77 05 0003") + b"81%")
    assert said(datagrams, nodes) == [
        ("node20", "node10", whole("0102030406 00 0001", asks)),
        ("node30", "node10", whole("0102030409 00 0002", asks)),
        ("node40", "node10", temperature),
        ("node10", "node20", temperature),
        ("node50", "node10", wind),
        ("node10", "node30", wind),
        ("node20", "node10", whole("0102030406 00 0003", asks)),
        ("node60", "node10", humidity),
        ("node10", "node20", humidity),
    ]
    forwards = [one for one in datagrams if one.src == nodes["node10"]]
    assert [one.dport for one in forwards] == [12346, 12349, 12346]
    assert 12345 not in {one.sport for one in forwards}  # an ephemeral port of the broker's
    assert {one.dport for one in datagrams if one.dst == nodes["node10"]} == {12345}
    assert not {one.sport for one in datagrams if one.src == nodes["node20"]} & {12346}


def test_topicnumber(topicshark: Command, tmp_path: Path) -> None:
    """Figures 1 to 3: each request is echoed, then answered with a sentence, which is echoed too."""
    datagrams = record(topicshark, "topicnumber", tmp_path)
    nodes = {"broker": "127.0.10.10", "pub": "127.0.10.20", "sub": "127.0.10.30"}
    assert {len(one.payload) for one in datagrams} == {1400}
    story = said(datagrams, nodes)
    chosen = story[8][2][2:6]  # by the publisher, so that two of them do not take the same
    assert chosen != bytes(4)
    requests = [
        ("sub", 6, bytes(4), b"This topic does not exist."),
        ("sub", 7, bytes(4), b"The topic weather was not subscribed to."),
        ("pub", 4, chosen, b"The topic weather was created."),
        ("sub", 7, bytes(4), b"The topic weather was not subscribed to."),
        ("sub", 6, bytes(4), b"The topic weather is subscribed to."),
    ]
    for place, (who, kind, number, words) in enumerate(requests):
        request, echo, sentence, its_echo = story[4 * place : 4 * place + 4]
        assert request == (who, "broker", bytes([kind, 0]) + number + b"weather".ljust(1394, b"\0"))
        assert echo == ("broker", who, b"\0" + request[2][1:])
        assert sentence[:2] == ("broker", who)
        assert sentence[2][0] == 8
        assert sentence[2][6:].rstrip(b"\0") == words
        assert its_echo == (who, "broker", b"\0" + sentence[2][1:])
    publication = bytes([5, 0]) + chosen + b"sunny".ljust(1394, b"\0")
    request, echo, forward, *rest = story[20:]
    assert request == ("pub", "broker", publication)
    assert echo == ("broker", "pub", b"\0" + publication[1:])
    assert forward == ("broker", "sub", publication)
    (sentence,) = [one for one in rest if one[2][0] == 8]  # the subscriber's echo may come before or after it
    assert sentence[:2] == ("broker", "pub")
    assert ("sub", "broker", b"\0" + publication[1:]) in rest
    assert ("pub", "broker", b"\0" + sentence[2][1:]) in rest
    assert len(rest) == 3
    ports = {name: {one.sport for one in datagrams if one.src == host} for name, host in nodes.items()}
    assert ports == {"broker": {50003}, "pub": {50002}, "sub": {50004}}


def test_rolebyte(topicshark: Command, tmp_path: Path) -> None:
    """The frames that the report prints, from its frame 4 on, and those before and after them."""
    datagrams = record(topicshark, "rolebyte", tmp_path)
    nodes = {"broker": "127.0.10.10", "dash": "127.0.10.20", "sensor": "127.0.10.30", "act": "127.0.10.40"}
    ack = b"\x07\x0a"
    instruction = b"temperature/room1Instructions raise_temperature"
    done = b"Instructions_completed_as_per_request"
    assert said(datagrams, nodes) == [
        ("dash", "broker", b"\x01\x11temperature/room1"),
        ("broker", "dash", ack),
        ("act", "broker", b"\x04\x1dtemperature/room1Instructions"),
        ("broker", "act", ack),
        ("sensor", "broker", b"\x03\x14temperature/room1 20"),
        ("broker", "sensor", ack),
        ("broker", "dash", b"\x02\x14temperature/room1 20"),
        ("dash", "broker", ack),
        ("dash", "broker", b"\x06\x2f" + instruction),
        ("broker", "dash", ack),
        ("broker", "act", b"\x02\x2f" + instruction),
        ("act", "broker", ack),
        ("act", "broker", b"\x05\x43temperature/room1Instructions " + done),
        ("broker", "act", ack),
        ("broker", "dash", b"\x02\x37temperature/room1 " + done),
        ("dash", "broker", ack),
    ]
    printed = [(one.sport, one.dport, len(one.payload)) for one in datagrams][1:13]
    assert printed == [
        (50001, 50002, 2),
        (50008, 50001, 31),
        (50001, 50008, 2),
        (50003, 50001, 22),
        (50001, 50003, 2),
        (50001, 50002, 22),
        (50002, 50001, 2),
        (50002, 50001, 49),
        (50001, 50002, 2),
        (50001, 50008, 49),
        (50008, 50001, 2),
        (50008, 50001, 69),
    ]

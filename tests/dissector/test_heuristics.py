"""On ports that nobody named: what is surely ours is found, what is other people's is left alone."""

from __future__ import annotations

import random
from pathlib import Path
from struct import pack

import pytest

from tests.dissector.tshark import Address, fields_of, run_tshark, udp_packet, write_pcap

pytestmark = pytest.mark.tshark

CLIENT, SERVER = ("10.1.0.1", 34567), ("10.1.0.2", 23456)


def dialects_of(datagrams: list[tuple[bytes, Address, Address]], folder: Path, **settings: object) -> list[str]:
    """The dialect that tshark sees in each datagram; "" for none."""
    frames = [(n * 0.01, udp_packet(raw, source, target)) for n, (raw, source, target) in enumerate(datagrams)]
    capture = write_pcap(folder / "heuristics.pcap", frames)
    return [row[0] for row in fields_of(capture, "pubsub.dialect", home=folder / "home", **settings)]  # type: ignore[arg-type]


def dns(name: bytes, identifier: int, answer: bool = False) -> bytes:
    labels = b"".join(bytes([len(part)]) + part for part in name.split(b".")) + b"\0"
    head = pack(">HHHHHH", identifier, 0x8180 if answer else 0x0100, 1, int(answer), 0, 0)
    tail = b"\xc0\x0c" + pack(">HHIH", 1, 1, 300, 4) + bytes([93, 184, 216, 34]) if answer else b""
    return head + labels + pack(">HH", 1, 1) + tail


def foreign() -> list[bytes]:
    """Other protocols, on whatever port."""
    rng = random.Random(3)
    found = [dns(b"www.example.org", rng.randrange(65536), bool(n % 2)) for n in range(600)]
    found += [dns(b"_services._dns-sd._udp.local", 0) for _ in range(5)]
    found += [bytes([first]) + rng.randbytes(47) for first in (0x1B, 0x23, 0x24, 0xE3, 0xDB) for _ in range(60)]
    found += [b"\x1b" + bytes(47)]
    for size in (30, 120, 1200, 1350):
        found += [bytes([0xC0 | rng.randrange(16)]) + b"\0\0\0\1" + rng.randbytes(size) for _ in range(30)]
        found += [bytes([0x40 | rng.randrange(64)]) + rng.randbytes(size) for _ in range(30)]
    ssdp = b'M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: "ssdp:discover"\r\nMX: 2\r\nST: ssdp:all\r\n\r\n'
    found += [ssdp, b"NOTIFY * HTTP/1.1\r\nNT: upnp:rootdevice\r\n\r\n", b"<13>syslog: hello", b"cpu.load:12|g"]
    found += [rng.randbytes(rng.choice([1, 2, 3, 5, 8, 16, 33, 64, 200])) for _ in range(3000)]
    return found


def test_other_protocols_are_not_claimed(tmp_path: Path) -> None:
    datagrams = [(raw, ("10.1.0.1", 13000 + n), ("10.1.0.2", 23000 + n)) for n, raw in enumerate(foreign())]
    claimed = [
        (raw.hex(), seen) for (raw, _, _), seen in zip(datagrams, dialects_of(datagrams, tmp_path), strict=True) if seen
    ]
    assert claimed == []


def test_other_protocols_on_their_own_ports_keep_them(tmp_path: Path) -> None:
    pairs = [(dns(b"example.org", 257), 53), (b"\x23" + bytes(47), 123), (dns(b"x.local", 0), 5353)]
    datagrams = [(raw, ("10.1.0.1", 50000), ("10.1.0.2", port)) for raw, port in pairs]
    assert dialects_of(datagrams, tmp_path) == ["", "", ""]


def test_a_one_byte_ack_never_matches_by_itself(tmp_path: Path) -> None:
    assert dialects_of([(bytes([n]), SERVER, CLIENT) for n in range(1, 8)], tmp_path) == [""] * 7


def test_a_conversation_once_recognised_sticks(tmp_path: Path) -> None:
    publish = b"\x01\x00home/room/light:ON"
    datagrams = [
        (b"\x02", SERVER, CLIENT),
        (publish, CLIENT, SERVER),
        (b"\x02", SERVER, CLIENT),
        (publish, SERVER, ("10.1.0.3", 40404)),
        (b"\x03\x00a", ("10.1.0.4", 40405), SERVER),
    ]
    assert dialects_of(datagrams, tmp_path) == ["", "colon", "colon", "colon", "colon"]
    assert dialects_of(datagrams, tmp_path, options=["-2"]) == ["", "colon", "colon", "colon", "colon"]


def test_java_blocks_are_recognised(tmp_path: Path) -> None:
    message = bytes.fromhex("aced00057711030a000d54656d70657261747572653a30")
    publish = bytes.fromhex("0102030405010001aced000577070005313443c2b0").ljust(1500, b"\0")
    datagrams = [(message, CLIENT, SERVER), (publish, ("10.1.0.7", 4), ("10.1.0.8", 5))]
    assert dialects_of(datagrams, tmp_path) == ["topicbyte", "portdigits"]


def test_dialects_that_share_a_port(tmp_path: Path) -> None:
    a, b = "10.1.0.1", "10.1.0.2"
    datagrams = [
        (b"\x01\x00home/fan:ON", (a, 50000), (b, 50000)),
        (b"\x02", (b, 50000), (a, 50000)),
        (b"\x03\x0aTemperature:3", ("10.1.0.5", 50002), ("10.1.0.6", 50000)),
        (b"\x03\x16temperature/room1 20.5", ("10.2.0.5", 50003), ("10.2.0.6", 50001)),
        (b"\x07\x0a", ("10.2.0.6", 50001), ("10.2.0.5", 50003)),
        (b"\x04\0\0\0\0\0weather".ljust(1400, b"\0"), ("10.3.0.5", 50002), ("10.3.0.6", 50003)),
    ]
    expected = ["colon", "colon", "topicbyte", "rolebyte", "rolebyte", "topicnumber"]
    assert dialects_of(datagrams, tmp_path) == expected


def test_arguments_and_preferences_name_dialect_and_ports(tmp_path: Path) -> None:
    datagrams = [(b"\x02", SERVER, CLIENT)]
    named = ["dialect=colon", f"ports={SERVER[1]}"]
    assert dialects_of(datagrams, tmp_path, arguments=named) == ["colon"]
    assert dialects_of(datagrams, tmp_path, options=["-o", f"pubsub.colon_ports:{SERVER[1]}"]) == ["colon"]
    assert dialects_of(datagrams, tmp_path, options=["-d", f"udp.port=={SERVER[1]},pubsub_colon"]) == ["colon"]
    on_default = [(b"\x02", ("10.1.0.1", 50000), ("10.1.0.2", 50000))]
    moved = ["-o", "pubsub.colon_ports:4000", "-o", "pubsub.topicbyte_ports:4001"]
    assert dialects_of(on_default, tmp_path, options=moved) == [""]
    without = ["-o", "pubsub.heuristics:FALSE"]
    assert dialects_of([(b"\x01\x00home/room/light:ON", CLIENT, SERVER)], tmp_path, options=without) == [""]


def test_payloads_go_to_the_dissector_that_the_user_names(tmp_path: Path) -> None:
    frame = udp_packet(b'\x01\x00home/fan:{"on": true}', ("10.1.0.1", 50000), ("10.1.0.2", 50000))
    capture = write_pcap(tmp_path / "json.pcap", [(0, frame)])
    named = ["-o", "pubsub.payloads:garden/*=xml; home/*=json"]

    def key(*options: str) -> str:
        return run_tshark(capture, *options, "-T", "fields", "-e", "json.key", home=tmp_path / "home").strip()

    off = ("-o", "pubsub.json:FALSE")
    assert key(*off, *named) == "on"
    assert key(*off) == ""
    assert key() == "on"  # JSON is known by itself

"""The reports' own runs, byte for byte and in order, and report 004's printed list of frames as tshark prints it.

The bytes are typed by hand from the reports and from the protocols' page, and are not built by the code under test.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from generators.capture.capture_point import write
from generators.generate import GeneratorOptions, generate
from pcap_tools.capture import Datagram, read_datagrams
from pcap_tools.errors import UsageError
from tests.dissector.tshark import run_tshark

Said = tuple[str, str, bytes]
REPORTS = ("colon", "topicbyte", "portdigits", "topicnumber", "rolebyte")
SEEDS = (1, 2, 77)


def play(dialect: str, seed: int, folder: Path) -> list[Datagram]:
    """What the capture of a report's run holds, without the copies that the capture made."""
    made = generate(GeneratorOptions(f"report-{dialect}", seed))
    write(made.capture, folder / "run.pcap")
    return [one for one in read_datagrams(folder / "run.pcap") if one.copy_of is None]


def said(datagrams: list[Datagram], **hosts: int) -> list[Said]:
    """Who said what to whom; ``hosts`` gives the last byte of each one's address."""
    names = {f"172.20.0.{last}": name for name, last in hosts.items()}
    return [(names[one.src], names[one.dst], one.payload) for one in datagrams]


def ports(datagrams: list[Datagram]) -> dict[str, set[int]]:
    return {host: {one.sport for one in datagrams if one.src == host} for host in {one.src for one in datagrams}}


@pytest.mark.parametrize("seed", SEEDS)
def test_colon(seed: int, tmp_path: Path) -> None:
    """A subscription; a retained publish goes out before its PUBACK; a wildcard; an unsubscription."""
    datagrams = play("colon", seed, tmp_path)
    assert said(datagrams, broker=10, one=20, two=30, sub=40) == [
        ("sub", "broker", bytes.fromhex("0300") + b"temperature"),
        ("broker", "sub", bytes.fromhex("04")),
        ("one", "broker", bytes.fromhex("0101") + b"temperature:12C"),
        ("broker", "sub", bytes.fromhex("0101") + b"temperature:12C"),
        ("broker", "one", bytes.fromhex("02")),
        ("one", "broker", bytes.fromhex("0100") + b"home/room/fan:ON"),
        ("broker", "one", bytes.fromhex("02")),
        ("sub", "broker", bytes.fromhex("0300") + b"*/lights"),
        ("broker", "sub", bytes.fromhex("04")),
        ("two", "broker", bytes.fromhex("0100") + b"home/bedroom/lights:ON"),
        ("broker", "sub", bytes.fromhex("0100") + b"home/bedroom/lights:ON"),
        ("broker", "two", bytes.fromhex("02")),
        ("sub", "broker", bytes.fromhex("0500") + b"temperature"),
        ("broker", "sub", bytes.fromhex("06")),
    ]
    assert {port for one in datagrams for port in (one.sport, one.dport)} == {50000}


@pytest.mark.parametrize("seed", SEEDS)
def test_topicbyte(seed: int, tmp_path: Path) -> None:
    """All in Java blocks: an ACK first, then the forward, byte for byte; nobody subscribed to humidity."""
    datagrams = play("topicbyte", seed, tmp_path)
    ack = bytes.fromhex("aced00057716010000124f4b202d2052656365697665642074686973")
    hot = bytes.fromhex("aced00057712030a000e") + b"Temperature:61"
    humid = bytes.fromhex("aced0005770f0314000b") + b"Humidity:40"
    cold = bytes.fromhex("aced00057712030a000e") + b"Temperature:32"
    assert said(datagrams, broker=10, window=20, client=30) == [
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
    assert ports(datagrams) == {"172.20.0.10": {50000}, "172.20.0.20": {50003}, "172.20.0.30": {50002}}


@pytest.mark.parametrize("seed", SEEDS)
def test_portdigits(seed: int, tmp_path: Path) -> None:
    """No ACKs; forwards leave from other ports of the broker and go where the subscribers' headers say."""
    datagrams = play("portdigits", seed, tmp_path)

    def padded(text: str) -> bytes:
        return bytes.fromhex(text).ljust(1500, b"\0")

    laptop_temperature = padded("0102030406 00 0001 aced0005770d000b7375627363726962696e67")
    mobile_wind = padded("0102030409 00 0002 aced0005770d000b7375627363726962696e67")
    laptop_humidity = padded("0102030406 00 0003 aced0005770d000b7375627363726962696e67")
    temperature = padded("0102030405 01 0001 aced000577070005313443c2b0")
    wind = padded("0102030405 01 0002 aced00057708000632306b6d2f68")
    humidity = padded("0102030405 01 0003 aced000577050003383125")
    story = said(datagrams, broker=10, laptop=20, mobile=30, thermometer=40, anemometer=50, hygrometer=60)
    assert story == [
        ("laptop", "broker", laptop_temperature),
        ("mobile", "broker", mobile_wind),
        ("thermometer", "broker", temperature),
        ("broker", "laptop", temperature),
        ("anemometer", "broker", wind),
        ("broker", "mobile", wind),
        ("laptop", "broker", laptop_humidity),
        ("hygrometer", "broker", humidity),
        ("broker", "laptop", humidity),
    ]
    to_broker = [one for one in datagrams if one.dst == "172.20.0.10"]
    forwards = [one for one in datagrams if one.src == "172.20.0.10"]
    assert {one.dport for one in to_broker} == {12345}
    assert not {one.sport for one in to_broker} & {12345, 12346, 12349}
    assert [one.dport for one in forwards] == [12346, 12349, 12346]
    assert 12345 not in {one.sport for one in forwards}


@pytest.mark.parametrize("seed", SEEDS)
def test_topicnumber(seed: int, tmp_path: Path) -> None:
    """Each request is echoed with type 0 and then answered with a sentence, which is echoed too."""
    datagrams = play("topicnumber", seed, tmp_path)
    assert {len(one.payload) for one in datagrams} == {1400}
    story = said(datagrams, broker=10, pub=20, sub=30)
    requests = (
        ("sub", 6, b"This topic does not exist."),  # the original's words, after which its subscriber asks again
        ("sub", 7, b"The topic weather was not subscribed to."),
        ("pub", 4, b"The topic weather was created."),
        ("sub", 7, b"The topic weather was not subscribed to."),
        ("sub", 6, b"The topic weather is subscribed to."),
    )
    for who, kind, words in requests:
        (request, echo, sentence, its_echo), story = story[:4], story[4:]
        assert request == (who, "broker", (bytes([kind, 0, 0, 0, 0, 0]) + b"weather").ljust(1400, b"\0"))
        assert echo == ("broker", who, (bytes(6) + b"weather").ljust(1400, b"\0"))
        assert sentence[:2] == ("broker", who)
        assert sentence[2] == (bytes([8, 0, 0, 0, 0, 0]) + words).ljust(1400, b"\0")
        assert its_echo == (who, "broker", bytes([0]) + sentence[2][1:])
    sunny = (bytes([5, 0, 0, 0, 0, 0]) + b"sunny").ljust(1400, b"\0")
    echoed = (bytes(6) + b"sunny").ljust(1400, b"\0")
    assert story[:3] == [("pub", "broker", sunny), ("broker", "pub", echoed), ("broker", "sub", sunny)]
    sentence = next(one for one in story[3:] if one[2][0] == 8)
    assert sentence[:2] == ("broker", "pub")
    # the subscriber's echo and the broker's sentence go different ways: either may be the first
    rest = [("sub", "broker", echoed), sentence, ("pub", "broker", bytes([0]) + sentence[2][1:])]
    assert sorted(story[3:]) == sorted(rest)
    assert ports(datagrams) == {"172.20.0.10": {50003}, "172.20.0.20": {50002}, "172.20.0.30": {50004}}


@pytest.mark.parametrize("seed", SEEDS)
def test_rolebyte(seed: int, tmp_path: Path) -> None:
    """The loop: reading, instruction, report; every hop acknowledged, by the broker before it forwards."""
    ack, room = bytes.fromhex("070a"), b"temperature/room1"
    raise_it = room + b"Instructions raise_temperature"
    assert said(play("rolebyte", seed, tmp_path), broker=2, dash=3, sensor=4, act=5) == [
        ("dash", "broker", bytes.fromhex("0111") + room),
        ("broker", "dash", ack),
        ("act", "broker", bytes.fromhex("041d") + room + b"Instructions"),
        ("broker", "act", ack),
        ("sensor", "broker", bytes.fromhex("0314") + room + b" 20"),
        ("broker", "sensor", ack),
        ("broker", "dash", bytes.fromhex("0214") + room + b" 20"),
        ("dash", "broker", ack),
        ("dash", "broker", bytes.fromhex("062f") + raise_it),
        ("broker", "dash", ack),
        ("broker", "act", bytes.fromhex("022f") + raise_it),
        ("act", "broker", ack),
        ("act", "broker", bytes.fromhex("0543") + room + b"Instructions Instructions_completed_as_per_request"),
        ("broker", "act", ack),
        ("broker", "dash", bytes.fromhex("0237") + room + b" Instructions_completed_as_per_request"),
        ("dash", "broker", ack),
    ]


# Report 004, listing 12: number, time, last byte of source and destination, frame length, ports, UDP payload.
PRINTED = """
 4  0.000717 2 3  46 50001 50002  2
 5 10.427818 5 2  75 50008 50001 31
 6 10.427855 5 2  75 50008 50001 31
 7 10.428263 2 5  46 50001 50008  2
 8 10.428273 2 5  46 50001 50008  2
 9 18.845462 4 2  66 50003 50001 22
10 18.845522 4 2  66 50003 50001 22
11 18.845926 2 4  46 50001 50003  2
12 18.845940 2 4  46 50001 50003  2
13 18.847272 2 3  66 50001 50002 22
14 18.847286 2 3  66 50001 50002 22
15 18.848208 3 2  46 50002 50001  2
16 18.848223 3 2  46 50002 50001  2
17 18.849501 3 2  93 50002 50001 49
18 18.849519 3 2  93 50002 50001 49
19 18.849930 2 3  46 50001 50002  2
20 18.849947 2 3  46 50001 50002  2
21 18.850310 2 5  93 50001 50008 49
22 18.850331 2 5  93 50001 50008 49
23 18.851301 5 2  46 50008 50001  2
24 18.851316 5 2  46 50008 50001  2
25 18.852583 5 2 113 50008 50001 69
26 18.852596 5 2 113 50008 50001 69
"""
COLUMNS = (
    "frame.number", "frame.time_relative", "ip.src", "ip.dst", "frame.len", "udp.srcport", "udp.dstport", "udp.length",
    "sll.pkttype",
)  # fmt: skip


def listing(folder: Path, seed: int) -> list[dict[str, str]]:
    """tshark's own list of the frames of ``report-rolebyte``."""
    write(generate(GeneratorOptions("report-rolebyte", seed)).capture, folder / "run.pcap")
    wanted = [part for name in COLUMNS for part in ("-e", name)]
    text = run_tshark(folder / "run.pcap", "-T", "fields", *wanted, home=folder / "home", script=None)
    return [dict(zip(COLUMNS, line.split("\t"), strict=True)) for line in text.splitlines()]


@pytest.mark.tshark
@pytest.mark.parametrize("seed", SEEDS)
def test_the_frames_are_those_that_report_004_prints(seed: int, tmp_path: Path) -> None:
    frames = listing(tmp_path, seed)
    printed = [line.split() for line in PRINTED.strip().splitlines()]
    assert len(printed) == 23
    for frame, (number, time, src, dst, length, sport, dport, payload) in zip(frames[3:26], printed, strict=True):
        shown = [frame[name] for name in COLUMNS if name not in ("frame.time_relative", "sll.pkttype")]
        expected = [number, f"172.20.0.{src}", f"172.20.0.{dst}", length, sport, dport, str(int(payload) + 8)]
        assert shown == expected
        assert abs(float(frame["frame.time_relative"]) - float(time)) < 0.005
    before = [(frame["ip.src"], frame["udp.length"]) for frame in frames[:3]]
    assert before == [("172.20.0.3", "27"), ("172.20.0.3", "27"), ("172.20.0.2", "10")]


@pytest.mark.tshark
@pytest.mark.parametrize("seed", SEEDS)
def test_every_frame_of_report_004_comes_twice(seed: int, tmp_path: Path) -> None:
    """10 to 60 microseconds apart, and the copies differ in the packet type."""
    frames = listing(tmp_path, seed)
    assert len(frames) == 32
    for first, second in zip(frames[::2], frames[1::2], strict=True):
        same = ("ip.src", "ip.dst", "frame.len", "udp.srcport", "udp.dstport", "udp.length")
        assert [first[name] for name in same] == [second[name] for name in same]
        apart = float(second["frame.time_relative"]) - float(first["frame.time_relative"])
        assert 0.000_009_9 < apart < 0.000_060_1
        assert first["sll.pkttype"] != second["sll.pkttype"]


@pytest.mark.parametrize("dialect", REPORTS)
def test_a_report_has_its_own_nodes_dialect_and_form(dialect: str) -> None:
    with pytest.raises(UsageError, match="nodes of its report"):
        generate(GeneratorOptions(f"report-{dialect}", sensors=3))
    with pytest.raises(UsageError, match="it has no other dialect"):
        generate(GeneratorOptions(f"report-{dialect}", dialects=("mqttsn",)))
    with pytest.raises(UsageError, match="leave the form out"):
        generate(GeneratorOptions(f"report-{dialect}", form="documented"))


@pytest.mark.parametrize("dialect", REPORTS)
def test_a_report_can_be_had_in_ipv6(dialect: str, tmp_path: Path) -> None:
    made = generate(GeneratorOptions(f"report-{dialect}", ipv6=True))
    write(made.capture, tmp_path / "run.pcap")
    assert {one.src.partition("::")[0] for one in read_datagrams(tmp_path / "run.pcap")} == {"fd00:172:20"}

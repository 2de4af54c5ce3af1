"""Noise is right in itself, belongs to the network it is heard in, and no reader takes it for traffic."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from generators.capture.capture_point import Capture, take, write
from generators.capture.options import CaptureOptions, LinkType, Point
from generators.simulation.network import Transit
from generators.simulation.random_source import RandomSource
from pcap_tools.codec.decoding import decode_capture
from pcap_tools.dialect import builtin_names
from tests.conftest import Command
from tests.dissector.tshark import fields_of
from tests.generators.transits import (
    BROKER,
    BROKER6,
    CLIENTS,
    PUBLISH,
    STEP_NS,
    both_families,
    captured,
    dialogue,
    in_memory,
    transit,
)
from tests.pcap_tools.capture.tshark import needs_tshark, tshark_datagrams
from tests.vectors import dialect_of, load_vectors

LOUD = CaptureOptions(host=BROKER[0], noise=1.0)
LOUD6 = replace(LOUD, host=BROKER6[0])
ANY = CaptureOptions(Point.ANY, noise=1.0)


def noise_numbers(capture: Capture) -> set[int]:
    return {number for number, frame in enumerate(capture.frames, 1) if frame.transit is None}


def heard(capture: Capture, tmp_path: Path, *fields: str) -> list[list[str]]:
    """What tshark says of the frames that are noise."""
    write(capture, tmp_path / "noise.pcap")
    rows = fields_of(tmp_path / "noise.pcap", "frame.number", *fields, home=tmp_path / "home", script=None)
    noise = noise_numbers(capture)
    return [row[1:] for row in rows if int(row[0]) in noise]


# -- what it is -------------------------------------------------------------------------------------------------------


@needs_tshark
@pytest.mark.tshark
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (LOUD, {"dns", "mdns", "ntp", "arp", "icmp"}),
        (LOUD6, {"dns", "mdns", "ntp", "icmpv6"}),
        (replace(LOUD, link=LinkType.COOKED1), {"dns", "mdns", "ntp", "arp", "icmp"}),
        (replace(LOUD, link=LinkType.RAW), {"dns", "mdns", "ntp", "icmp"}),
        (replace(LOUD, link=LinkType.NULL), {"dns", "mdns", "ntp", "icmp"}),
        (replace(LOUD6, link=LinkType.NULL), {"dns", "mdns", "ntp", "icmpv6"}),
        (ANY, {"dns", "mdns", "ntp", "arp", "icmp", "icmpv6"}),
    ],
)
def test_all_kinds_are_heard_where_they_can_be(tmp_path: Path, options: CaptureOptions, expected: set[str]) -> None:
    protocols = [row[0].split(":") for row in heard(captured(both_families(), options), tmp_path, "frame.protocols")]
    known = {"dns", "mdns", "ntp", "arp", "icmp", "icmpv6"}
    assert all(known & set(layers) for layers in protocols)
    assert {layer for layers in protocols for layer in layers} & known == expected


@needs_tshark
@pytest.mark.tshark
def test_answers_follow_their_questions(tmp_path: Path) -> None:
    rows = heard(
        captured(both_families(), ANY), tmp_path, "dns.response_to", "arp.opcode", "icmpv6.type", "ntp.flags.mode"
    )
    assert any(answered for answered, *_ in rows)
    for column, (question, answer) in ((1, ("1", "2")), (2, ("135", "136")), (3, ("3", "4"))):
        told = [row[column] for row in rows if row[column] in (question, answer)]
        assert answer in told
        for at in range(len(told)):
            assert told[: at + 1].count(answer) <= told[: at + 1].count(question)


@needs_tshark
@pytest.mark.tshark
@pytest.mark.parametrize(("options", "error"), [(LOUD, "icmp.code"), (LOUD6, "icmpv6.code")])
def test_an_icmp_error_quotes_a_datagram_of_the_traffic_that_was_there_before(
    tmp_path: Path, options: CaptureOptions, error: str
) -> None:
    transits = both_families()
    capture = captured(transits, options)
    write(capture, tmp_path / "noise.pcap")
    quoting = f"udp && {error} && (icmp.type == 3 || icmpv6.type == 1)"
    fields = ["frame.number", "udp.srcport", "udp.dstport", "udp.length", "ip.src", "ipv6.src", "ip.dst", "ipv6.dst"]
    rows = fields_of(tmp_path / "noise.pcap", *fields, home=tmp_path / "home", options=["-Y", quoting], script=None)
    assert rows
    for number, sport, dport, length, *addresses in rows:
        src, src6, dst, dst6 = (column.split(",") for column in addresses)
        (outer_src, inner_src), (outer_dst, inner_dst) = (
            a if len(a) == 2 else b for a, b in ((src, src6), (dst, dst6))
        )
        assert (outer_src, outer_dst) == (inner_dst, inner_src)
        quoted = [
            one
            for one in transits
            if (one.src, one.dst) == ((inner_src, int(sport)), (inner_dst, int(dport)))
            and len(one.datagram) + 8 == int(length)
        ]
        assert any((capture.frame_of(one.number) or int(number)) < int(number) for one in quoted)


# -- how much, when and between whom ----------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 3.0])
def test_as_much_as_was_asked_for_and_the_traffic_stays_as_it_is(share: float) -> None:
    transits = both_families()
    options = CaptureOptions(Point.ANY, drop=0.1, skip_ns=2 * STEP_NS, stop_ns=20 * STEP_NS)
    quiet, loud = captured(transits, options), captured(transits, replace(options, noise=share))
    assert len(noise_numbers(loud)) == round(share * len(quiet.frames))
    assert [frame for frame in loud.frames if frame.transit is not None] == quiet.frames
    times = [frame.time_ns for frame in quiet.frames]
    assert all(times[0] <= frame.time_ns <= times[-1] for frame in loud.frames)


@needs_tshark
@pytest.mark.tshark
@pytest.mark.parametrize("options", [LOUD, LOUD6, ANY])
def test_it_stays_within_the_network_and_within_earshot(tmp_path: Path, options: CaptureOptions) -> None:
    fields = ["ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "arp.src.proto_ipv4", "arp.dst.proto_ipv4"]
    rows = heard(captured(both_families(), options), tmp_path, *fields)
    assert rows
    for row in rows:
        ends = [ip_address(column.split(",")[0]) for column in row if column]
        assert all(_is_local(str(end)) or end.is_multicast for end in ends)
        if options.host:
            assert ip_address(options.host) in ends


def _is_local(address: str) -> bool:
    return address.startswith(("10.0.0.", "2001:db8::"))


def test_a_network_without_a_free_address_serves_itself() -> None:
    hosts = [(f"10.0.0.{last}", 50000) for last in range(1, 255)]
    transits = [transit(number, host, BROKER, PUBLISH) for number, host in enumerate(hosts[1:])]
    assert noise_numbers(captured(transits, replace(LOUD, noise=0.1)))


# -- nobody takes it for traffic --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [LOUD, LOUD6, ANY, replace(LOUD, link=LinkType.NULL)])
def test_decode_leaves_it_alone(topicshark: Command, tmp_path: Path, options: CaptureOptions) -> None:
    capture = captured(both_families(), options)
    write(capture, tmp_path / "noise.pcap")
    answer = topicshark("decode", str(tmp_path / "noise.pcap"), "--all", "--format", "jsonl")
    assert answer.returncode == 0, answer.stderr
    rows: list[dict[str, Any]] = [json.loads(line) for line in answer.stdout.splitlines()]
    noise = noise_numbers(capture)
    assert {row["dialect"] for row in rows if row["frame"] in noise} == {None}
    assert {row["dialect"] for row in rows if row["frame"] not in noise} == {"colon"}


@pytest.mark.parametrize("dialect", builtin_names())
def test_no_dialect_claims_it(dialect: str) -> None:
    transits = spoken(dialect)
    capture = take(transits, replace(LOUD, noise=2.0), RandomSource(5), {dialect: dialect_of(dialect)})
    noise = noise_numbers(capture)
    for dialects in (None, [dialect_of(dialect)]):
        rows = list(decode_capture(in_memory(capture), dialects))
        assert [row for row in rows if row.datagram.frame in noise and row.message is not None] == []
        decoded = [row for row in rows if row.message is not None and row.message.dialect == dialect]
        assert len(decoded) == len(transits)


def spoken(dialect: str) -> list[Transit]:
    """The valid vectors of a dialect, sent to its broker, from its own port where it has one for clients."""
    ports = dialect_of(dialect).spec.ports
    broker = (BROKER[0], ports["broker"][0])
    clients = [(CLIENTS[0][0], numbers[0]) for role, numbers in ports.items() if role != "broker"] or [CLIENTS[0]]
    valid: Sequence[bytes] = [one.datagram for one in load_vectors() if one.dialect == dialect and not one.error]
    return [transit(number, clients[0], broker, datagram, dialect) for number, datagram in enumerate(valid)]


def test_icmp_errors_are_no_datagrams(tmp_path: Path) -> None:
    """Each datagram of the traffic is found once, however often it is quoted."""
    transits = dialogue()
    capture = captured(transits, replace(LOUD, noise=5.0))
    write(capture, tmp_path / "noise.pcap")
    noise = noise_numbers(capture)
    found = [row for row in decode_capture(tmp_path / "noise.pcap") if row.datagram.frame not in noise]
    assert len(found) == len(transits)


@needs_tshark
@pytest.mark.tshark
def test_our_reader_and_tshark_hear_the_same(tmp_path: Path) -> None:
    capture = captured(both_families(), replace(LOUD, noise=5.0))
    write(capture, tmp_path / "noise.pcap")
    ours = [row.datagram for row in decode_capture(tmp_path / "noise.pcap")]
    assert [(row.frame, row.payload) for row in ours] == [
        (row.frame, row.payload) for row in tshark_datagrams(tmp_path / "noise.pcap")
    ]

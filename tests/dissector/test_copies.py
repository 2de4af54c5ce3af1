"""Copies in tshark are those of pcap_tools: the same datagrams seen at several places, within a millisecond or not.

The dissector keeps its own account of them; it waits until a second place is seen, so that comes late in some files.
"""

from __future__ import annotations

import random
from pathlib import Path
from struct import pack

import pytest

from pcap_tools.capture import CaptureWriter, read_datagrams
from pcap_tools.capture.writer import Interface
from tests.dissector.tshark import fields_of, udp_packet

pytestmark = pytest.mark.tshark

START = 1_700_000_000 * 10**9
ETHERNET, COOKED = 1, 113
HOSTS = [(f"10.0.0.{number}", 50000) for number in range(1, 4)]
PLACES = [(kind, interface) for kind in (0, 3, 4) for interface in (0, 1)]


def framed(packet: bytes, kind: int, link_type: int) -> bytes:
    if link_type == COOKED:
        return pack(">HHH", kind, 1, 6) + bytes(8) + b"\x08\x00" + packet
    return bytes(12) + b"\x08\x00" + packet


def write(path: Path, seed: int, link_type: int, one_place_until: int) -> Path:
    """Few contents and few ids, so that many datagrams look alike."""
    rng = random.Random(seed)
    now = START
    with CaptureWriter(path, "pcapng", interfaces=[Interface(link_type, "a"), Interface(link_type, "b")]) as out:
        for number in range(600):
            now += rng.choice((1_000, 40_000, 300_000, 700_000, 1_000_000, 1_000_001))
            source, target = rng.sample(HOSTS, 2)
            payload = rng.choice((b"\x01\x00t:1", b"\x01\x00t:2", b"\x02", b"\x01\x00t:" + b"x" * 500))
            kind, interface = PLACES[0] if number < one_place_until else rng.choice(PLACES)
            packet = udp_packet(payload, source, target, rng.choice((0, 0, 7, 8)))
            out.write(framed(packet, kind, link_type), now, interface=interface)
    return path


@pytest.mark.parametrize("link_type", [ETHERNET, COOKED])
@pytest.mark.parametrize(
    "one_place_until", [0, 600, pytest.param(100, marks=pytest.mark.long), pytest.param(580, marks=pytest.mark.long)]
)
def test_tshark_and_pcap_tools_find_the_same_copies(link_type: int, one_place_until: int, tmp_path: Path) -> None:
    found = 0
    for seed in range(4):
        capture = write(tmp_path / f"{seed}.pcapng", seed, link_type, one_place_until)
        want = [str(datagram.copy_of or "") for datagram in read_datagrams(capture)]
        got = [row[0] for row in fields_of(capture, "pubsub.copy_of", home=tmp_path / "home")]
        assert got == want
        found += sum(map(bool, want))
    assert (found > 0) == (one_place_until < 600)

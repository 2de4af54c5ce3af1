"""GeneratedRun-up transits of a broker and its clients, IPv4 and IPv6, short and long: no simulation needed."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

import pytest

from generators.capture.capture_point import Capture, take, write
from generators.capture.options import CaptureOptions
from generators.simulation.network import Transit
from generators.simulation.random_source import RandomSource
from pcap_tools.capture import Damage, Datagram, read_datagrams
from pcap_tools.dialect import load_dialect
from reference_broker import Endpoint

T0 = 1_700_000_000_123_456_789
BROKER, CLIENTS = ("10.0.0.1", 50000), (("10.0.0.10", 50000), ("10.0.0.11", 40001), ("10.0.0.12", 50000))
BROKER6, CLIENTS6 = ("2001:db8::1", 50000), (("2001:db8::10", 50000), ("2001:db8::11", 40001))
DELAY_NS = 200_000
DOUBLE_NS = 3_000_000
STEP_NS = 5_000_000

COLON = {"colon": load_dialect("colon")}
PUBLISH, PUBACK = b"\x01\x01temp:123", b"\x02"
LONG = b"\x01\x01temp:" + b"0123456789" * 400  # three fragments of 1500 bytes


def transit(number: int, src: Endpoint, dst: Endpoint, datagram: bytes, dialect: str = "colon") -> Transit:
    sent_ns = T0 + number * STEP_NS
    return Transit(number, dialect, src, dst, datagram, sent_ns, (sent_ns + DELAY_NS,))


def dialogue(broker: Endpoint = BROKER, clients: Sequence[Endpoint] = CLIENTS, first: int = 0) -> list[Transit]:
    """Each client publishes something short and something long; the broker acknowledges and forwards."""
    made: list[Transit] = []
    for client, other in zip(clients, [*clients[1:], clients[0]], strict=True):
        for datagram in (PUBLISH, LONG):
            for src, dst, what in ((client, broker, datagram), (broker, client, PUBACK), (broker, other, datagram)):
                made.append(transit(first + len(made), src, dst, what))
    return made


def both_families() -> list[Transit]:
    four = dialogue()
    return [*four, *dialogue(BROKER6, CLIENTS6, len(four))]


def with_mishaps(transits: list[Transit]) -> list[Transit]:
    """Every fifth is lost on the way, every fifth is doubled."""
    for one in transits:
        if one.number % 5 == 1:
            one.arrived_ns = ()
        elif one.number % 5 == 3:
            one.arrived_ns += (one.arrived_ns[0] + DOUBLE_NS,)
    return transits


def captured(transits: Sequence[Transit], options: CaptureOptions, seed: int = 1) -> Capture:
    return take(transits, options, RandomSource(seed), COLON)


def in_memory(capture: Capture) -> BytesIO:
    stream = BytesIO()
    write(capture, stream)
    stream.seek(0)
    return stream


def no_damage(damage: Damage) -> None:
    pytest.fail(str(damage))


def rows_of(capture: Capture) -> dict[int, Datagram]:
    """What our reader finds, by frame; noise left out."""
    rows = read_datagrams(in_memory(capture), no_damage, pytest.fail)
    return {row.frame: row for row in rows if capture.frames[row.frame - 1].transit is not None}

"""Any datagram whatever leaves the broker running: no exception, memory bounded, and it still answers.

`make fuzz` runs this with a million datagrams a dialect, and 100,000 at each live socket.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from pcap_tools.dialect import builtin_names, load_dialect
from reference_broker import Broker, Limits, Mistake, broker_for
from reference_broker.messages.sending import SECOND
from tests.reference_broker.running import counters_in, running_broker
from tests.vectors import dialect_of, load_vectors, own_dialect_names
from topicshark.exit_codes import ExitCode

COUNT = int(os.environ.get("TOPICSHARK_FUZZ", "20000"))
LIVE_COUNT = 5_000 if COUNT <= 20_000 else 100_000
LIMITS = Limits(subscriptions=300, subscriptions_by_source=50, retained_bytes=1 << 20, requests_by_second=10**9)
MAX_GROWTH = 96 << 20
STATUS = 8

# What still has to work afterwards: a request, and how its answer begins.
STILL = {
    "colon": (b"\x01\x00still:x", b"\x02"),
    "mqttsn": (bytes.fromhex("080404 01 003c 6331"), bytes.fromhex("03 05 00")),
    "rolebyte": (b"\x03\x07still x", b"\x07\x0a"),
    "topicbyte": (b"\x03\x00still", b"\x01\x00OK"),
    "topicnumber": ((b"\x04\x00\x00\x00\x00\x07still").ljust(1400, b"\0"), b"\x00\x00\x00\x00\x00\x07still"),
}


def hostile(name: str, count: int, seed: int) -> Iterator[bytes]:
    """Valid datagrams, those with a few bytes or pieces altered, and plain noise."""
    chance = random.Random(seed)
    seeds = [vector.datagram[:2000] for vector in load_vectors() if vector.dialect == name]
    if name in STILL:
        seeds.append(STILL[name][0])
    for _ in range(count):
        kind = chance.random()
        if kind < 0.1:
            yield chance.randbytes(chance.choice((0, 1, 2, 3, 8, 40, 300)))
            continue
        datagram = bytearray(chance.choice(seeds))
        if kind > 0.3:
            mutate(datagram, chance, seeds)
        if name == "mqttsn" and kind > 0.5 and 2 <= len(datagram) < 256:
            datagram[0] = len(datagram)  # else nearly all would be refused at the first byte
        yield bytes(datagram)


def mutate(datagram: bytearray, chance: random.Random, seeds: list[bytes]) -> None:
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        at = chance.randrange(len(datagram) + 1)
        way = chance.randrange(6)
        if way == 0 and at < len(datagram):
            datagram[at] = chance.randrange(256)
        elif way == 1 and at < len(datagram):
            datagram[at] ^= 1 << chance.randrange(8)
        elif way == 2:
            datagram[at:at] = chance.choice((b"*", b"/", b":", b" ", b"\0", b"#", b"+", b"\xff", chance.randbytes(4)))
        elif way == 3:
            del datagram[at:]
        elif way == 4:
            datagram[at:] = chance.choice(seeds)[at:]
        else:
            datagram[at:at] = datagram[at : at + 20] * chance.choice((1, 2, 50))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def batter(broker: Broker, name: str, count: int, seed: int = 7) -> None:
    """Many senders, some addresses in both families, and a clock that jumps now and then."""
    chance = random.Random(seed)
    now = 10**18
    for datagram in hostile(name, count, seed):
        now += chance.choice((0, 1_000, 1_000_000, 20_000_000))
        if chance.random() < 0.001:
            now += chance.choice((-1, 1)) * chance.choice((SECOND, 3_600 * SECOND))
        number = chance.randrange(30) if chance.random() < 0.9 else chance.randrange(1 << 24)
        host = str(IPv4Address(0x0A000000 + number)) if number % 5 else f"2001:db8::{number:x}"
        broker.handle(datagram, (host, 40_000 if number < 30 else chance.choice((1, 1024, 65_535))), now)
        if chance.random() < 0.01:
            broker.tick(now)


@pytest.mark.parametrize("name", builtin_names())
def test_fuzz_of_the_core(name: str) -> None:
    broker = broker_for(load_dialect(name), LIMITS)
    batter(broker, name, 2_000, seed=1)  # caches and tables fill first
    before = resident_bytes()
    batter(broker, name, COUNT)
    growth = resident_bytes() - before
    assert growth < MAX_GROWTH
    assert len(broker.subscriptions) <= LIMITS.subscriptions
    assert sum(len(topic) + len(datagram) for topic, datagram in broker.retained) <= LIMITS.retained_bytes
    assert len(broker.counters) < 60, "what a stranger sends must not make new counters"
    assert broker.counters["received"] == COUNT + 2_000
    if name in STILL:
        request, answer = STILL[name]
        sends = broker.handle(request, ("192.0.2.9", 5_555), 2 * 10**18)
        assert any(send.datagram.startswith(answer) for send in sends)
    else:
        sends = broker.handle(b"12345101hello", ("192.0.2.8", 5_555), 2 * 10**18)
        assert {send.datagram for send in sends} == {b"12345101hello"}


@pytest.mark.parametrize("name", own_dialect_names())
def test_fuzz_of_other_dialects(name: str) -> None:
    batter(broker_for(dialect_of(name), LIMITS), name, COUNT // 10)


@pytest.mark.parametrize("name", builtin_names())
def test_fuzz_of_a_broker_with_every_mistake(name: str) -> None:
    batter(broker_for(load_dialect(name), LIMITS, list(Mistake)), name, COUNT // 10)


@pytest.mark.net
@pytest.mark.parametrize("name", STILL)
def test_fuzz_of_a_live_socket(tmp_path: Path, name: str) -> None:
    request, answer = STILL[name]
    options = ("--dialect", name, "--requests-by-second", "1000000", "--state", str(tmp_path / "state"))
    with running_broker(tmp_path, *options, "--pcap", str(tmp_path / "fuzz.pcap")) as broker:
        with broker.peer() as sender, broker.peer() as waiting:
            for number, datagram in enumerate(hostile(name, LIVE_COUNT, seed=3)):
                sender.send(datagram)
                if number % 200 == 199:  # let it keep up, so that the datagrams reach it
                    assert waiting.ask(request).startswith(answer)
                    while name == "topicnumber" and waiting.receive()[0] != STATUS:
                        pass
        assert broker.stop() == ExitCode.CLEAN
        assert "bug:" not in broker.err
        assert counters_in(broker.err)["received"] == LIVE_COUNT + LIVE_COUNT // 200

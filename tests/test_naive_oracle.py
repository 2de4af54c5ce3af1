"""The truth of generated traffic is what the naive oracle works out from the clients' datagrams: a mistake of the
reference broker's core, from which the truth comes, would show here."""

from __future__ import annotations

import struct
from collections import Counter
from typing import Any

import pytest

from generators.generate import GeneratedRun, GeneratorOptions, generate

from .naive_oracle import ORACLES, End

SCENARIOS = ("building", "churn", "retained")
FEW, MANY = 3, 50


def _played(dialect: str, scenario: str) -> bool:
    return scenario != "retained" or dialect == "colon"


CASES = [(dialect, scenario) for dialect in ORACLES for scenario in SCENARIOS if _played(dialect, scenario)]


def datagrams(made: GeneratedRun) -> list[tuple[int, End, End, bytes]]:
    """Number of the last frame, ends and payload of each datagram: Ethernet, IPv4, fragments put together."""
    parts: dict[tuple[bytes, bytes], bytes] = {}
    found = []
    for number, frame in enumerate(made.capture.frames, 1):
        packet = frame.data[14:]
        if frame.data[12:14] != b"\x08\x00" or packet[9] != 17:
            continue
        header, (length, ident, flags) = 4 * (packet[0] & 15), struct.unpack(">HHH", packet[2:8])
        key = packet[12:20], struct.pack(">H", ident)
        body = parts.pop(key, b"") + packet[header:length]
        if flags & 0x2000:
            parts[key] = body
            continue
        sport, dport, size = struct.unpack(">HHH", body[:6])
        src, dst = (".".join(map(str, packet[at : at + 4])) for at in (12, 16))
        found.append((number, (src, sport), (dst, dport), body[8:size]))
    return found


def _end(text: str) -> End:
    host, _, port = text.rpartition(":")
    return host, int(port)


def _agree(dialect: str, scenario: str, seed: int) -> None:
    made = generate(GeneratorOptions(scenario, seed, (dialect,)))
    truth: dict[str, Any] = made.truth()
    broker = _end(truth["sites"][0]["broker"])
    owed = ORACLES[dialect]((frame, src, data) for frame, src, dst, data in datagrams(made) if dst == broker)
    live, kept = (
        Counter(
            (one["publish_frame"], _end(one["subscriber"])) for one in truth["deliveries"] if one["retained"] is flag
        )
        for flag in (False, True)
    )
    acks: Counter[End] = Counter()
    for one in truth["exchanges"]:
        if _end(one["to"]) == broker:
            acks[_end(one["from"])] += one["acks_due"]
    assert (live, kept) == (owed.live, owed.kept)
    assert +acks == +owed.acks


@pytest.mark.parametrize(("dialect", "scenario"), CASES)
def test_the_truth_is_what_a_naive_reader_works_out(dialect: str, scenario: str) -> None:
    for seed in range(1, FEW + 1):
        _agree(dialect, scenario, seed)


@pytest.mark.long
@pytest.mark.parametrize(("dialect", "scenario"), CASES)
def test_fifty_seeds(dialect: str, scenario: str) -> None:
    for seed in range(1, MANY + 1):
        _agree(dialect, scenario, seed)

"""The captures of `benchmarks/hot_captures.py`: conforming traffic, spread as their names say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.hot_captures import CLIENTS, PUBLISHES, SHAPES, write_capture
from pcap_tools.codec.decoding import decode_capture
from tests.generators.replay import replay
from tests.vectors import dialect_of

BROKER = "10.0.0.1"
PACKETS = 8_000
PER_PUBLISH = {"even": 3, "hot-publisher": 3, "hot-subscriber": 3, "even-fan-out": 12, "hot-topic": 12}


@pytest.fixture(scope="module", params=sorted(SHAPES))
def capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    return request.param, write_capture(request.param, tmp_path_factory.mktemp("hot") / "hot.pcap", PACKETS)


def test_one_broker_does_what_it_should(capture: tuple[str, Path]) -> None:
    name, path = capture
    shown, expected = replay(path, dialect_of("colon"), [BROKER], 50_000)
    assert not shown - expected
    assert (expected - shown).total() <= PER_PUBLISH[name]  # the capture ends while it passes on the last publish


def test_the_traffic_is_spread_as_the_name_says(capture: tuple[str, Path]) -> None:
    name, path = capture
    rows = list(decode_capture(path, [dialect_of("colon")]))
    assert len(rows) == PACKETS
    publishes = [row for row in rows if row.message and row.message.meaning == "publish"]
    sent = [row for row in publishes if row.datagram.dst == BROKER]
    assert len(sent) == pytest.approx(PACKETS / PER_PUBLISH[name], rel=0.05)
    publishers = Counter(row.datagram.src for row in sent)
    subscribers = Counter(row.datagram.dst for row in publishes if row.datagram.src == BROKER)
    payloads = {row.message.payload for row in sent if row.message}
    topics = {row.message.topic for row in sent if row.message}
    assert len(publishers) == CLIENTS
    hottest = max(publishers.values()) / len(sent)
    assert hottest == pytest.approx(0.9 if name == "hot-publisher" else 1 / CLIENTS, rel=0.05)
    assert len(subscribers) == (1 if name == "hot-subscriber" else CLIENTS)
    assert len(topics) == (1 if name == "hot-topic" else CLIENTS)
    assert len(payloads) == (1 if name == "hot-topic" else len(sent))
    assert len(sent) > PUBLISHES

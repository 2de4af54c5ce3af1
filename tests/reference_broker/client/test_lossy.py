"""A thousand publishes through a network that loses, doubles and reorders a fifth of what it carries, each way."""

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from pcap_tools import load_dialect
from pcap_tools.dialect import Dialect, builtin_text, parse_dialect
from reference_broker import Broker, Endpoint, broker_for
from reference_broker.client import client_for
from reference_broker.client.requests import EventKind, Timing
from reference_broker.messages.sending import SECOND
from reference_broker.topic_index import index_for
from tests.conftest import REPO
from tests.reference_broker.lossy import HOLD_NS, Loop, Party, address, loopback_socket
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.net

PUBLISHES = 1_000
TOPICS = [b"home/bedroom/fan", b"home/bedroom/light", b"home/kitchen/light", b"garage/light", b"garage/door"]
COLON_FILTERS = [[b"home/*"], [b"*/light"], [b"garage/door"], [b"home/bedroom/*", b"garage/*"], [b"office/*"]]
MQTTSN_FILTERS = [[b"home/#"], [b"+/light"], [b"garage/door"], [b"home/bedroom/+", b"garage/+"], [b"office/#"]]
# Longer than a datagram and its ACK can be held back, so that an ACK which comes later is not an old one.
SETTLE_NS = 4 * HOLD_NS


def run_through(
    loop: Loop,
    dialect: Dialect,
    broker: Endpoint,
    filters: list[list[bytes]],
    publishers: int,
    timing: Timing,
    proxied_subscribers: bool,
    seconds: float,
) -> tuple[list[Party], list[Party], list[tuple[bytes, bytes]]]:
    """Subscribe, then publish all, each publisher its share; every publish has a payload of its own."""
    random = Random(20)

    def party(number: int, proxied: bool) -> Party:
        to = broker
        if proxied:
            to = address(loop.proxy(broker, Random(random.random())).front)
        settings: dict[str, Any] = {"client_id": b"client%d" % number} if dialect.name == "mqttsn" else {}
        loop.parties.append(Party(client_for(dialect, to, timing=timing, **settings)))
        return loop.parties[-1]

    subscribers = [party(number, proxied_subscribers) for number in range(len(filters))]
    for subscriber, texts in zip(subscribers, filters, strict=True):
        for text in texts:
            for send in subscriber.client.subscribe(text, loop.now):
                loop.send(subscriber.at, send)
    assert loop.run(seconds), "the subscriptions were never acknowledged"
    sources = [party(100 + number, True) for number in range(publishers)]
    published = [(random.choice(TOPICS), b"message %d" % number) for number in range(PUBLISHES)]
    for number, (topic, payload) in enumerate(published):
        source = sources[number % publishers]
        for send in source.client.publish(topic, payload, loop.now):
            loop.send(source.at, send)
    assert loop.run(seconds), "the publishes were never all acknowledged"
    return subscribers, sources, published


def check(
    dialect: Dialect,
    filters: list[list[bytes]],
    subscribers: list[Party],
    sources: list[Party],
    published: list[tuple[bytes, bytes]],
) -> None:
    acknowledged = Counter(payload for source in sources for payload in source.acknowledged())
    assert acknowledged == Counter(payload for _, payload in published), "each acknowledged, each once"
    for texts, subscriber in zip(filters, subscribers, strict=True):
        index = index_for(dialect.spec.topics)
        for text in texts:
            index.add(text)
        wanted = {payload for topic, payload in published if any(index.matching(topic))}
        assert set(subscriber.received()) == wanted, f"the subscriber of {texts}"


@contextmanager
def core(dialect: Dialect) -> Iterator[tuple[Loop, Endpoint, Broker]]:
    """The broker in the loop, in a time that jumps."""
    broker, at = broker_for(dialect), loopback_socket()
    loop = Loop(broker, at)
    try:
        yield loop, address(at), broker
    finally:
        loop.close()


def test_colon_gets_everything_through() -> None:
    """The proxies stand between publishers and broker: forwards to subscribers carry no ACK in this dialect."""
    dialect = load_dialect("colon")
    timing = Timing(SECOND, limit=40, settle_ns=SETTLE_NS)
    with core(dialect) as (loop, broker, _):
        outcome = run_through(loop, dialect, broker, COLON_FILTERS, 4, timing, False, 100_000)
        check(dialect, COLON_FILTERS, *outcome)
        assert min(proxy.lost for proxy in loop.proxies) > 50
        assert min(proxy.doubled for proxy in loop.proxies) > 50
        assert min(proxy.delayed for proxy in loop.proxies) > 50
        resent = sum(event.kind is EventKind.RESENT for source in outcome[1] for event in source.events)
        assert resent > 300


def test_without_waiting_for_late_acks_messages_would_be_lost() -> None:
    """What the settling time is for: an old ACK would be taken for that of a publish that never arrived."""
    dialect = load_dialect("colon")
    with core(dialect) as (loop, broker, _):
        subscribers, sources, published = run_through(
            loop, dialect, broker, COLON_FILTERS, 4, Timing(HOLD_NS // 2, backoff=1.0, limit=400), False, 100_000
        )
        acknowledged = {payload for source in sources for payload in source.acknowledged()}
        assert len(acknowledged) == PUBLISHES
        garage = {payload for topic, payload in published if topic == b"garage/door"}
        assert set(subscribers[2].received()) < garage


def test_mqttsn_at_qos_1_gets_everything_through_on_both_sides() -> None:
    text = builtin_text("mqttsn").replace("limit = 5", "limit = 40")  # one client in a thousand gives up after five
    dialect = parse_dialect(text)
    timing = Timing(SECOND, limit=40, settle_ns=SETTLE_NS)
    with core(dialect) as (loop, broker, served):
        subscribers, sources, published = run_through(loop, dialect, broker, MQTTSN_FILTERS, 4, timing, True, 100_000)
        loop.now += SECOND
        for _ in range(2_000):  # forwards are on their way to subscribers after their publish was acknowledged
            loop.drain()
            loop.tick()
            loop.pass_time()
        check(dialect, MQTTSN_FILTERS, subscribers, sources, published)
        duplicates = sum(event.duplicate for subscriber in subscribers for event in subscriber.events)
        assert duplicates > 100, "the network doubles, and clients tell"
        assert served.counters["given up"] == 0


@contextmanager
def process() -> Iterator[Endpoint]:
    """The real command, in a process of its own."""
    words = [sys.executable, "-m", "topicshark.main", "broker", "--dialect", "colon", "--port", "0", "--quiet"]
    broker = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=REPO)
    try:
        assert broker.stdout is not None
        words = broker.stdout.readline().split()  # listening on ADDR port N (dialect)
        yield words[2], int(words[4])
    finally:
        broker.send_signal(signal.SIGTERM)
        broker.communicate(timeout=PATIENCE_S)


@pytest.mark.long
def test_colon_gets_everything_through_to_a_real_broker_in_real_time() -> None:
    dialect = load_dialect("colon")
    timing = Timing(SECOND // 5, backoff=1.2, limit=60, settle_ns=SECOND * 2 // 5)
    with process() as broker:
        loop = Loop(None, real_time=True)
        try:
            outcome = run_through(loop, dialect, broker, COLON_FILTERS, 50, timing, False, 90)
            check(dialect, COLON_FILTERS, *outcome)
        finally:
            loop.close()

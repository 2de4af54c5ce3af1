"""ACK times when many requests are under way and some ACKs are missing from the capture.

Four publishers each have up to eight publishes on their way to one broker (the reference broker's core, in virtual
time); the capture, taken at the broker, lacks one ACK in a hundred. No message has an id in three of the four dialects,
so whoever pairs ACKs by order alone is one off from the first gap on. Here the true pairs are known.
"""

from __future__ import annotations

import random
import statistics
import struct
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from ipaddress import ip_address
from pathlib import Path

from benchmarks.accuracy.exchanges import exchanges_of
from generators.scenarios.script import PUBLISHERS, SUBSCRIBERS, role
from generators.simulation.site import Node, Site
from generators.simulation.vocabulary import Vocabulary
from pcap_tools import Codec
from pcap_tools.capture import CaptureWriter
from pcap_tools.dialect import Dialect, load_dialect
from reference_broker import Endpoint, Limits, broker_for

DIALECTS = ("colon", "rolebyte", "topicbyte", "topicnumber")
LOST = 0.01
WINDOW, SENDERS, WATCHERS = 8, 4, 3
MICROSECOND, MILLISECOND = 1_000, 1_000_000
START_NS = 1_700_000_000 * 1_000_000_000
SURE = ("exact", "anchored")
MEDIAN_WITHIN, WRONG_AT_MOST, SURE_AT_LEAST = 0.05, 0.001, 0.9


@dataclass(frozen=True)
class Datagram:
    time_ns: int
    src: Endpoint
    dst: Endpoint
    data: bytes
    publish: int | None = None  # which publish it is
    answers: int | None = None  # or which publish it acknowledges


@dataclass
class _Play:
    """The broker takes one datagram after the other; clients answer what they must, and publishers go on."""

    dialect: Dialect
    rng: random.Random
    publishes: int
    wire: list[Datagram] = field(default_factory=list)
    free_ns: int = 0
    made: int = 0

    def __post_init__(self) -> None:
        self.site = Site(self.dialect)
        self.codec = Codec(self.dialect)
        self.words = Vocabulary(self.dialect, None, role(self.dialect, PUBLISHERS))
        self.topics = self.words.topics(SENDERS)
        self.senders = [self.site.node(f"sensor{n}", role(self.dialect, PUBLISHERS)) for n in range(SENDERS)]
        self.watchers = [self.site.node(f"dashboard{n}", role(self.dialect, SUBSCRIBERS)) for n in range(WATCHERS)]
        self.by_endpoint = {node.endpoint: node for node in self.site.nodes}
        self.broker = broker_for(self.dialect, Limits(requests_by_second=1_000_000))
        self.arrivals: list[tuple[int, int, Node, bytes, int | None]] = []
        self.number = 0

    def play(self) -> list[Datagram]:
        begin = self._set_up(START_NS)
        for sender in self.senders:
            for _ in range(WINDOW):
                self._publish(sender, begin + self.rng.randrange(MILLISECOND))
        self._run()
        return sorted(self.wire, key=lambda one: one.time_ns)

    def _set_up(self, now: int) -> int:
        """Topics are created where they must be; topic n has 1 to 3 subscribers."""
        step = 20 * MILLISECOND
        for number, sender in enumerate(self.senders):
            if self.dialect.spec.topics.kind == "number":
                now += step
                self._send(sender, sender.client.create(self._topic(number), now)[0].datagram, now)
                self._run()
        for number, topic in enumerate(self.topics):
            for watcher in self.watchers[: 1 + number % WATCHERS]:
                now += step
                message = watcher.client.compose.subscribe(topic)
                self._send(watcher, self.codec.build(message), now)
                self._run()
        return now + step

    def _topic(self, number: int) -> bytes:
        return self.topics[number % len(self.topics)]

    def _publish(self, sender: Node, now: int) -> None:
        if self.made < self.publishes:
            topic = self._topic(self.senders.index(sender))
            payload = self.words.payload(20, topic)
            named = b"0" if self.dialect.spec.topics.kind == "number" else topic  # the first that it has created
            datagram = self.codec.build(sender.client.compose.publish(named, payload))
            self._send(sender, datagram, now, self.made)
            self.made += 1

    def _send(self, node: Node, datagram: bytes, now: int, publish: int | None = None) -> None:
        self.number += 1
        heappush(self.arrivals, (now, self.number, node, datagram, publish))

    def _run(self) -> None:
        while self.arrivals:
            now, _, node, datagram, publish = heappop(self.arrivals)
            self.wire.append(Datagram(now, node.source, self.site.broker, datagram, publish))
            self.free_ns = max(self.free_ns, now) + self._service(publish is not None)
            for send in self.broker.handle(datagram, node.source, now):
                self.free_ns += self.rng.randint(2, 6) * MICROSECOND
                is_ack = publish is not None and self.codec.decode(send.datagram).meaning == "ack"
                self.wire.append(
                    Datagram(self.free_ns, self.site.broker, send.to, send.datagram, None, publish if is_ack else None)
                )
                self._arrive(send.to, send.datagram, is_ack)

    def _service(self, is_publish: bool) -> int:
        """Some 25 µs, of ACKs less; once in a thousand times 10 ms, during which requests pile up."""
        if self.rng.random() < 0.001:
            return 10 * MILLISECOND
        return self.rng.randint(10, 40) * MICROSECOND if is_publish else self.rng.randint(1, 3) * MICROSECOND

    def _arrive(self, to: Endpoint, datagram: bytes, is_ack: bool) -> None:
        node, then = self.by_endpoint[to], self.free_ns + self.rng.randint(200, 500) * MICROSECOND
        if is_ack:
            self._publish(node, then)
        else:
            for answer in node.client.handle(datagram, self.site.broker, then)[0]:
                self._send(node, answer.datagram, then)


@dataclass(frozen=True)
class Matched:
    """What came of one dialect; times in milliseconds."""

    dialect: str
    publishes: int
    lost: int
    sure: int
    wrong: int
    true_median: float
    sure_median: float
    fifo_median: float
    fifo_wrong: int
    fifo_matched: int

    @property
    def is_good(self) -> bool:
        off = abs(self.sure_median - self.true_median) / self.true_median
        enough = self.sure >= SURE_AT_LEAST * (self.publishes - self.lost)
        return enough and off <= MEDIAN_WITHIN and self.wrong <= WRONG_AT_MOST * self.sure


def measure(name: str, folder: Path, publishes: int = 10_000, seed: int = 1) -> Matched:
    """Play, capture, and hold what the checker pairs against what was."""
    dialect, rng = load_dialect(name), random.Random(f"{name} {seed}")
    wire = _Play(dialect, rng, publishes).play()
    captured = [one for one in wire if one.answers is None or rng.random() >= LOST]
    path = folder / "pipelined.pcap"
    _write(path, captured)
    sent = {one.publish: frame for frame, one in enumerate(captured, 1) if one.publish is not None}
    acked = {sent[one.answers]: frame for frame, one in enumerate(captured, 1) if one.answers is not None}
    publishes_at = set(sent.values())
    pairs = [
        (row["frame"], row["ack"]["frame"])
        for row in exchanges_of(path, name).to_pylist()
        if row["asks"] == "client" and row["quality"] in SURE and row["frame"] in publishes_at
    ]
    fifo = _by_order(captured)
    took = {one.publish: one.time_ns for one in wire if one.publish is not None}
    return Matched(
        dialect=name,
        publishes=publishes,
        lost=len(wire) - len(captured),
        sure=len(pairs),
        wrong=sum(acked.get(frame) != ack for frame, ack in pairs),
        true_median=_median(one.time_ns - took[one.answers] for one in wire if one.answers is not None),
        sure_median=_median(captured[ack - 1].time_ns - captured[frame - 1].time_ns for frame, ack in pairs),
        fifo_median=_median(captured[ack - 1].time_ns - captured[frame - 1].time_ns for frame, ack in fifo),
        fifo_wrong=sum(acked.get(frame) != ack for frame, ack in fifo),
        fifo_matched=len(fifo),
    )


def _by_order(captured: list[Datagram]) -> list[tuple[int, int]]:
    """The plain way: an ACK answers the oldest publish of its client that has none."""
    waiting: dict[Endpoint, deque[int]] = defaultdict(deque)
    pairs = []
    for frame, one in enumerate(captured, 1):
        if one.publish is not None:
            waiting[one.src].append(frame)
        elif one.answers is not None and waiting[one.dst]:
            pairs.append((waiting[one.dst].popleft(), frame))
    return pairs


def _median(times_ns: Iterable[int]) -> float:
    found = list(times_ns)
    return statistics.median(found) / MILLISECOND if found else 0.0


def _write(path: Path, datagrams: list[Datagram]) -> None:
    with CaptureWriter(path) as out:
        for number, one in enumerate(datagrams):
            out.write(_frame(one, number), one.time_ns)


def _frame(one: Datagram, number: int) -> bytes:
    """Ethernet, IPv4 and UDP; each packet has an id of its own, as if it had been sent by a host that counts."""
    udp = struct.pack(">HHHH", one.src[1], one.dst[1], 8 + len(one.data), 0) + one.data
    ends = ip_address(one.src[0]).packed + ip_address(one.dst[0]).packed
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), number % 0xFFFF + 1, 0, 64, 17, 0) + ends
    return bytes(12) + b"\x08\x00" + head + udp

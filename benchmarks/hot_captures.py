"""Captures in which one client or one topic has most of the traffic, beside captures in which all have the same.

>>> write_capture("hot-publisher", Path("hot.pcap"), 10_000_000)      # doctest: +SKIP

    python -m benchmarks.hot_captures --packets 1e7 --folder captures

One colon broker and ten publishers. The traffic of 600 publishes is simulated once and then repeated by the same
clients, with other payloads unless these are constant. Compare each hot capture with its even one:

| name           | traffic                                                    | even capture | packets per publish |
|----------------|------------------------------------------------------------|--------------|---------------------|
| even           | ten topics, each with one of ten subscribers               |              | 3                   |
| hot-publisher  | one client sends 90 % of the publishes                     | even         | 3                   |
| hot-subscriber | one subscriber with the filter `*` gets everything         | even         | 3                   |
| even-fan-out   | ten topics, each with all ten subscribers                  |              | 12                  |
| hot-topic      | one topic with all ten subscribers, and a constant payload | even-fan-out | 12                  |
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import number
from generators.bulk.segment import Segment
from generators.bulk.write import write_bulk
from generators.capture.capture_point import take
from generators.capture.options import CaptureOptions
from generators.simulation.engine import START_NS, Simulation
from generators.simulation.random_source import RandomSource
from generators.simulation.site import Site, Verb
from pcap_tools.dialect import load_dialect
from reference_broker.messages.sending import SECOND

CLIENTS = 10  # publishers, and as many subscribers
PUBLISHES = 600
GAP_S = 0.006  # a client's activation comes every 60 ms: the same bytes within 50 ms of their ACK count as sent again
FIRST_PUBLISH_S = 1.0


@dataclass(frozen=True)
class Shape:
    """How the traffic is spread over clients and topics. ``even`` names the capture to compare with."""

    even: str = ""
    is_publisher_hot: bool = False
    is_topic_hot: bool = False
    has_one_subscriber: bool = False
    has_fan_out: bool = False

    def publisher(self, publish: int) -> int:
        """If one is hot, the others have every tenth publish in activation."""
        activation, place = divmod(publish, CLIENTS)
        if not self.is_publisher_hot:
            return place
        return 0 if place else 1 + activation % (CLIENTS - 1)

    def topic(self, publish: int) -> bytes:
        """Every publisher has every topic in activation."""
        return _topic(0 if self.is_topic_hot else (publish + publish // CLIENTS) % CLIENTS)

    def payload(self, publish: int) -> bytes:
        return b"20" if self.is_topic_hot else b"20 #%09d" % publish

    def filters(self) -> list[list[bytes]]:
        """Those of each subscriber."""
        if self.has_one_subscriber:
            return [[b"*"]]
        if self.is_topic_hot:
            return [[_topic(0)]] * CLIENTS
        topics = [_topic(topic) for topic in range(CLIENTS)]
        return [topics] * CLIENTS if self.has_fan_out else [[topic] for topic in topics]


SHAPES = {
    "even": Shape(),
    "hot-publisher": Shape("even", is_publisher_hot=True),
    "hot-subscriber": Shape("even", has_one_subscriber=True),
    "even-fan-out": Shape(has_fan_out=True),
    "hot-topic": Shape("even-fan-out", is_topic_hot=True, has_fan_out=True),
}


def write_capture(name: str, path: Path, packets: int) -> Path:
    """Write the capture of this name."""
    write_bulk(segment_of(SHAPES[name]), packets, path)
    return path


def segment_of(shape: Shape) -> Segment:
    """Subscriptions once, then the publishes with all that follows from them, which the same clients repeat."""
    site = _site(shape)
    transits = Simulation([site]).run().transits
    options = CaptureOptions(host=site.broker[0])
    capture = take(transits, options, RandomSource("capture"), {site.dialect.name: site.dialect})
    begin = START_NS + int(FIRST_PUBLISH_S * SECOND)
    frames = [(frame.time_ns, frame.data) for frame in capture.frames]
    return Segment(
        options.link_type.number,
        [one for one in frames if one[0] < begin],
        [one for one in frames if one[0] >= begin],
        int((PUBLISHES + 1) * GAP_S * SECOND),
        frozenset(),
        step=PUBLISHES,
    )


def _site(shape: Shape) -> Site:
    site = Site(load_dialect("colon"))
    publishers = [site.node(f"publisher{client}") for client in range(CLIENTS)]
    for client, filters in enumerate(shape.filters()):
        subscriber = site.node(f"subscriber{client}")
        for text in filters:
            site.at(0, subscriber, Verb.SUBSCRIBE, text)
    for publish in range(PUBLISHES):
        time, node = FIRST_PUBLISH_S + publish * GAP_S, publishers[shape.publisher(publish)]
        site.at(time, node, Verb.PUBLISH, shape.topic(publish), shape.payload(publish))
    return site


def _topic(number: int) -> bytes:
    return b"home/room%d/temperature" % number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=number, default=10_000_000, help="in each capture (1e7)")
    parser.add_argument("--folder", type=Path, required=True, help="where the captures go")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in SHAPES:
        print(write_capture(name, options.folder / f"{name}.pcap", options.packets))


if __name__ == "__main__":
    main()

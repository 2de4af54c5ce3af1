"""A play for the simulator, made up from a seed: who publishes, subscribes and leaves when, and what the network does.

Every publish has a payload of its own. In dialects without ACKs what one node does lies at least ``SPACING_S`` apart,
longer than any datagram is under way: no late copy of one request can undo the next. Elsewhere clients see to that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from generators.scenarios.building import create_topics, wanted
from generators.scenarios.script import PUBLISHERS, SUBSCRIBERS, role
from generators.simulation.engine import START_NS
from generators.simulation.network import DOUBLE_AFTER_NS, MILLISECOND, Cut, Delay, NetworkOptions
from generators.simulation.random_source import RandomSource
from generators.simulation.site import Node, Site, Verb
from generators.simulation.vocabulary import Vocabulary
from pcap_tools.dialect import Dialect
from reference_broker.client.requests import Timing
from reference_broker.messages.sending import SECOND

LASTS_S = 24.0
SPACING_S = 1.0
FIRST_PAYLOAD = 10_000  # five digits: every dialect has room for them
LONGEST_CUT_S = 15.0
WORST_EXPONENTIAL = 37  # so many times the mean is the longest delay that rng can draw
WORST_HOPS = 12  # a delay, ten more of what is overtaken, one more of a double
SHORT_TOPICS = [b"aa", b"ab", b"ba"]


@dataclass(frozen=True, slots=True)
class Play:
    """What the simulator is given."""

    seed: int
    site: Site
    network: NetworkOptions
    restarts: tuple[int, ...]

    def restarts_ns(self) -> list[int]:
        return [START_NS + restart for restart in self.restarts]


def write_play(dialect: Dialect, seed: int) -> Play:
    """The play of a seed: always the same one."""
    rng = RandomSource(f"{seed} play {dialect.name}")
    network = _network(rng)
    site = Site(dialect, client_settings=_settings(dialect, network, rng))
    publishers = [site.node(f"publisher{number}", role(dialect, PUBLISHERS)) for number in range(rng.between(1, 4))]
    words = Vocabulary(dialect, role=role(dialect, PUBLISHERS))
    topics = words.topics(rng.between(1, 5))
    if site.client_settings.get("qos") is not None and (site.client_settings["qos"] < 0 or rng.happens(0.2)):
        topics = SHORT_TOPICS
    begin = create_topics(site, topics)
    haste = 0.3 if any(one.means == "ack" for variants in dialect.spec.messages.values() for one in variants) else 0.0
    _subscribe(site, rng, words, wanted(dialect, publishers, topics), begin, haste)
    _publish(site, rng, publishers, topics, words.can_retain(), haste)
    return Play(seed, site, _with_cuts(network, rng, site), _restarts(rng))


def _settings(dialect: Dialect, network: NetworkOptions, rng: RandomSource) -> dict[str, Any]:
    """Clients that wait for as long as an old ACK may still come: where ACKs carry no id there is no other way."""
    settle_ns = 2 * worst_delay_ns(network) + SECOND // 20
    backoff = rng.pick((1.0, 1.5))
    timing = Timing(SECOND, backoff, limit=rng.between(3, 9), settle_ns=settle_ns)
    settings: dict[str, Any] = {"timing": timing}
    if dialect.spec.broker.sessions == "mqtt-sn":
        settings["qos"] = rng.pick((1, 1, 1, 0, -1))
    return settings


def worst_delay_ns(network: NetworkOptions) -> int:
    """No datagram is under way for longer."""
    worst = network.delay_ns * (WORST_EXPONENTIAL if network.delay is Delay.EXPONENTIAL else 1 + network.spread)
    return int(worst * WORST_HOPS) + DOUBLE_AFTER_NS


# -- who does what ----------------------------------------------------------------------------------------------------


def _subscribe(
    site: Site, rng: RandomSource, words: Vocabulary, topics: list[bytes], begin: float, haste: float
) -> None:
    """Some stay, some leave, some come back, some subscribe to the same twice."""
    filters = words.filters(topics)
    if not filters:
        return
    leaves = words.can_unsubscribe(filters[0])
    has_sessions = site.dialect.spec.broker.sessions != "none"
    for number in range(rng.between(1, 5)):
        node = site.node(f"subscriber{number}", role(site.dialect, SUBSCRIBERS))
        time = begin + rng.random() * 5
        mine = [rng.pick(filters) for _ in range(rng.between(1, 4))]
        for _ in range(rng.between(1, 7)):
            verb = Verb.UNSUBSCRIBE if leaves and rng.happens(0.35) else Verb.SUBSCRIBE
            site.at(time, node, verb, rng.pick(mine))
            time += _pause(rng, haste)
        if has_sessions and rng.happens(0.3):
            site.at(time, node, Verb.CLOSE)


def _publish(
    site: Site, rng: RandomSource, publishers: list[Node], topics: list[bytes], can_retain: bool, haste: float
) -> None:
    number = FIRST_PAYLOAD
    for publisher in publishers:
        time = rng.random() * 4
        while time < LASTS_S:
            number += 1
            retain = can_retain and rng.happens(0.4)
            site.at(time, publisher, Verb.PUBLISH, rng.pick(topics), b"%d" % number, retain)
            time += _pause(rng, haste)


def _pause(rng: RandomSource, haste: float) -> float:
    """Between two things that a node does; in haste, hardly any."""
    return rng.random() * 0.2 if rng.happens(haste) else SPACING_S + rng.random() * 4


# -- what goes wrong --------------------------------------------------------------------------------------------------


def _network(rng: RandomSource) -> NetworkOptions:
    delay = rng.pick(tuple(Delay))
    most = MILLISECOND if delay is Delay.EXPONENTIAL else 20 * MILLISECOND
    return NetworkOptions(
        delay_ns=rng.between(50_000, most),
        delay=delay,
        loss=_share(rng),
        double=_share(rng),
        reorder=_share(rng),
    )


def _share(rng: RandomSource) -> float:
    return rng.random() * 0.3 if rng.happens(0.6) else 0.0


def _with_cuts(network: NetworkOptions, rng: RandomSource, site: Site) -> NetworkOptions:
    """Partitions: a node that nobody reaches for a while, or the broker, which is all of them."""
    cuts = []
    for _ in range(rng.pick((0, 0, 1, 2))):
        begin = START_NS + int(rng.random() * LASTS_S * SECOND)
        cuts.append(Cut(rng.pick(site.hosts), begin, begin + int(rng.random() * LONGEST_CUT_S * SECOND)))
    return replace(network, cuts=tuple(cuts))


def _restarts(rng: RandomSource) -> tuple[int, ...]:
    return tuple(sorted(int(rng.random() * LASTS_S * SECOND) for _ in range(rng.pick((0, 0, 0, 1, 2)))))

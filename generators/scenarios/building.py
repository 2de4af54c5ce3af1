"""A building: sensors publish readings, dashboards watch many of them by wildcards, actuators one each.

All subscriptions stand before the first publish, so the publishes can be repeated to make captures of any size. Where
the dialect has the roles for it (``rolebyte``), dashboards instruct actuators, which report back.
"""

from __future__ import annotations

from dataclasses import replace

from generators.capture.options import MIN_MTU, MIN_MTU_IPV6, CaptureOptions, Point
from generators.scenarios.rooms import LONG_ROOM_BYTES, rooms_with_loops
from generators.scenarios.script import ACTUATORS, PUBLISHERS, SUBSCRIBERS, ScenarioOptions, Script, has_loop, role
from generators.simulation.network import NetworkOptions
from generators.simulation.site import Node, Site, Verb
from generators.simulation.vocabulary import Vocabulary
from pcap_tools.dialect import Dialect
from pcap_tools.errors import UsageError
from reference_broker.messages.sending import SECOND

STEP_S = 0.05  # between two nodes' first words
FILTERS_EACH = 2


def building(options: ScenarioOptions) -> Script:
    return Script([populate(options, options.site())])


def lossy(options: ScenarioOptions) -> Script:
    script = building(options)
    script.network = NetworkOptions(loss=0.05, double=0.02, reorder=0.02)
    return script


def populate(options: ScenarioOptions, site: Site, payload_bytes: int = 0) -> Site:
    """Fill a site with a building's nodes and what they do; ``payload_bytes`` makes what they publish so long."""
    if has_loop(site.dialect):
        return rooms_with_loops(options, site, STEP_S, long_names=payload_bytes > 0)
    dialect = site.dialect
    words = vocabulary(site)
    sensors = publishers(options, site)
    topics = words.topics(options.sensors)
    topics += [alike for topic in topics[:2] for alike in words.look_alikes(topic)]
    at = create_topics(site, topics)
    at = _subscribe(options, site, words, wanted(dialect, sensors, topics), at)
    if dialect.spec.broker.sessions == "none":  # else a repeat would register topics that its subscribers know already
        site.settled_ns = int((at + 0.5) * SECOND)
    end = _publish(options, site, sensors, topics, words, at + 1.0, payload_bytes)
    close_sessions(site, end, len(sensors))
    return site


# -- parts that other scenarios use as well ---------------------------------------------------------------------------


def vocabulary(site: Site) -> Vocabulary:
    return Vocabulary(site.dialect, site.form, role(site.dialect, PUBLISHERS))


def publishers(options: ScenarioOptions, site: Site) -> list[Node]:
    named = role(site.dialect, PUBLISHERS)
    return [site.node(f"sensor{number}", named) for number in range(1, options.sensors + 1)]


def dashboards(options: ScenarioOptions, site: Site) -> list[Node]:
    named = role(site.dialect, SUBSCRIBERS)
    return [site.node(f"dashboard{number}", named) for number in range(1, options.dashboards + 1)]


def actuators(options: ScenarioOptions, site: Site) -> list[Node]:
    named = role(site.dialect, ACTUATORS)
    return [site.node(f"actuator{number}", named) for number in range(1, options.actuators + 1)]


def wanted(dialect: Dialect, sensors: list[Node], topics: list[bytes]) -> list[bytes]:
    """What there is to subscribe to: the topics, or the publishers' addresses where these are the topics."""
    by_address = [sensor.source[0].encode() for sensor in sensors]
    return by_address if dialect.spec.topics.kind == "source-address" else topics


def filters_for(words: Vocabulary, topics: list[bytes]) -> list[bytes]:
    """Filters, for scenarios that are nothing without subscribers."""
    filters = words.filters(topics)
    if not filters:
        raise UsageError(f"in {words.dialect.name} nobody can subscribe; use `building`")
    return filters


def must_create_first(dialect: Dialect) -> bool:
    """Whether topics exist only once a publisher has created them (``topicnumber``)."""
    topics = dialect.spec.topics
    return topics.kind == "number" and topics.named_by is not None and dialect.spec.broker.sessions == "none"


def create_topics(site: Site, topics: list[bytes], creator: Node | None = None, at: float = 0.0) -> float:
    """Where topics must be created, have a node do it that is there for nothing else, or the one given; returns when
    all are there."""
    if not must_create_first(site.dialect):
        return at
    registrar = creator or site.node("registrar", role(site.dialect, PUBLISHERS))
    for number, topic in enumerate(topics):
        site.at(at + number * STEP_S, registrar, Verb.CREATE, topic)
    return at + len(topics) * STEP_S + 0.5


def close_sessions(site: Site, at: float, first: int = 0) -> None:
    """End the sessions where the dialect has them; the ``first`` nodes, the publishers, leave before the others."""
    if site.dialect.spec.broker.sessions == "none":
        return
    at += 2
    for number, node in enumerate(site.nodes):
        if number == first:
            at += 1
        site.at(at, node, Verb.CLOSE)
        at += STEP_S


def _subscribe(options: ScenarioOptions, site: Site, words: Vocabulary, topics: list[bytes], at: float) -> float:
    """Dashboards take turns with the filters; the last one watches exact topics, and actuators one each."""
    filters = words.filters(topics)
    if not filters:
        return at  # a dialect in which nobody can subscribe
    watching = dashboards(options, site)
    exact = [text for text in topics[:FILTERS_EACH] if text in filters]
    for number, dashboard in enumerate(watching):
        mine = [filters[(number * FILTERS_EACH + offset) % len(filters)] for offset in range(FILTERS_EACH)]
        for text in dict.fromkeys(exact if dashboard is watching[-1] and exact else mine):
            site.at(at, dashboard, Verb.SUBSCRIBE, text)
        at += STEP_S
    exact = [text for text in topics if text in filters] or filters
    for number, actuator in enumerate(actuators(options, site), 1):
        site.at(at, actuator, Verb.SUBSCRIBE, exact[number % len(exact)])
        at += STEP_S
    return at


def _publish(
    options: ScenarioOptions,
    site: Site,
    sensors: list[Node],
    topics: list[bytes],
    words: Vocabulary,
    at: float,
    payload_bytes: int,
) -> float:
    """Each sensor has one topic, and now and then publishes one that looks like another."""
    retains = words.can_retain()
    time = at
    for round_number in range(options.rounds):
        for number, sensor in enumerate(sensors):
            time = publish_time(options, at, round_number, number)
            topic = topics[(number + (round_number // 3) * len(sensors)) % len(topics)]
            payload = words.payload(options.rng.between(15, 35), topic, payload_bytes)
            site.at(time, sensor, Verb.PUBLISH, topic, payload, retain=retains and round_number % 5 == 4)
    return time


def publish_time(options: ScenarioOptions, at: float, round_number: int, number: int) -> float:
    """When a sensor publishes in a round: one after the other, not quite evenly."""
    share = options.period_s / options.sensors
    return at + round_number * options.period_s + number * share + options.rng.random() * share / 2


USUAL_MTU = 1500
SIZES = (4000, 2000, 1300, 1000, 500, 250, 200, 120, 80, 50, 20, 0)
IP_AND_UDP = {False: 28, True: 48}  # without and with IPv6


def fragmented(options: ScenarioOptions) -> Script:
    site = options.site()
    payload_bytes, datagram_bytes = _most(site)
    mtu = _mtu(site, datagram_bytes + IP_AND_UDP[options.ipv6], options.ipv6)
    return Script([populate(options, site, payload_bytes)], capture=CaptureOptions(mtu=mtu))


def _most(site: Site) -> tuple[int, int]:
    """How long the payloads can be, and how long the datagrams then are at least."""
    if has_loop(site.dialect):
        return 1, LONG_ROOM_BYTES  # readings are numbers there, so it is the topics that are long
    words = vocabulary(site)
    topic = words.topics(1)[0]
    for size in SIZES:
        payload = words.payload(20, topic, size)
        if words.can_publish(topic, payload):
            return size, words.datagram_bytes(topic, payload)
    return 0, 0


def _mtu(site: Site, packet_bytes: int, ipv6: bool) -> int:
    """The usual one; where packets are shorter than that, one that makes two of each."""
    if packet_bytes > USUAL_MTU:
        return USUAL_MTU
    least = MIN_MTU_IPV6 if ipv6 else MIN_MTU
    mtu = max(least, packet_bytes * 2 // 3)
    if mtu >= packet_bytes:
        way_out = "leave IPv6 out, whose packets may be smaller" if ipv6 else "use `building`"
        raise UsageError(
            f"a packet of {site.dialect.name} has {packet_bytes} bytes here, and every link takes {least}, so that it "
            f"never travels in fragments; {way_out}"
        )
    return mtu


NOISE = 0.3


def mixed(options: ScenarioOptions) -> Script:
    if options.form is not None and len(options.dialects) > 1:
        raise UsageError("a form belongs to one dialect; leave it out where several take part")
    sites = [_site(options, dialect, number) for number, dialect in enumerate(options.dialects)]
    return Script(sites, capture=CaptureOptions(point=Point.ANY, noise=NOISE))


def _site(options: ScenarioOptions, dialect: Dialect, number: int) -> Site:
    site = populate(replace(options, dialects=(dialect,)), options.site(dialect, number))
    for node in site.nodes:
        node.name = f"{dialect.name}-{node.name}"
    return site

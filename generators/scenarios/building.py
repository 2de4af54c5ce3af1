"""A building: sensors publish readings, dashboards watch many of them by wildcards, actuators one each.

All subscriptions stand before the first publish, so the publishes can be repeated to make captures of any size. Where
the dialect has the roles for it (``rolebyte``), dashboards instruct actuators, which report back.
"""

from __future__ import annotations

from generators.scenarios.rooms import rooms_with_loops
from generators.scenarios.script import ACTUATORS, PUBLISHERS, SUBSCRIBERS, Script, Setting, has_loop, role
from generators.simulation.network import NetworkOptions
from generators.simulation.site import Node, Site, Verb
from generators.simulation.vocabulary import Vocabulary
from pcap_tools.dialect import Dialect
from pcap_tools.errors import UsageError
from reference_broker.messages.sending import SECOND

STEP_S = 0.05  # between two nodes' first words
FILTERS_EACH = 2


def building(setting: Setting) -> Script:
    return Script([populate(setting, setting.site())])


def lossy(setting: Setting) -> Script:
    script = building(setting)
    script.network = NetworkOptions(loss=0.05, double=0.02, reorder=0.02)
    return script


def populate(setting: Setting, site: Site, payload_bytes: int = 0) -> Site:
    """Fill a site with a building's nodes and what they do; ``payload_bytes`` makes what they publish so long."""
    if has_loop(site.dialect):
        return rooms_with_loops(setting, site, STEP_S, long_names=payload_bytes > 0)
    dialect = site.dialect
    words = vocabulary(site)
    sensors = publishers(setting, site)
    topics = words.topics(setting.sensors)
    topics += [alike for topic in topics[:2] for alike in words.look_alikes(topic)]
    at = create_topics(site, topics)
    at = _subscribe(setting, site, words, wanted(dialect, sensors, topics), at)
    if dialect.spec.broker.sessions == "none":  # else a repeat would register topics that its subscribers know already
        site.settled_ns = int((at + 0.5) * SECOND)
    end = _publish(setting, site, sensors, topics, words, at + 1.0, payload_bytes)
    close_sessions(site, end, len(sensors))
    return site


# -- parts that other scenarios use as well ---------------------------------------------------------------------------


def vocabulary(site: Site) -> Vocabulary:
    return Vocabulary(site.dialect, site.form, role(site.dialect, PUBLISHERS))


def publishers(setting: Setting, site: Site) -> list[Node]:
    named = role(site.dialect, PUBLISHERS)
    return [site.node(f"sensor{number}", named) for number in range(1, setting.sensors + 1)]


def dashboards(setting: Setting, site: Site) -> list[Node]:
    named = role(site.dialect, SUBSCRIBERS)
    return [site.node(f"dashboard{number}", named) for number in range(1, setting.dashboards + 1)]


def actuators(setting: Setting, site: Site) -> list[Node]:
    named = role(site.dialect, ACTUATORS)
    return [site.node(f"actuator{number}", named) for number in range(1, setting.actuators + 1)]


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


def _subscribe(setting: Setting, site: Site, words: Vocabulary, topics: list[bytes], at: float) -> float:
    """Dashboards take turns with the filters; the last one watches exact topics, and actuators one each."""
    filters = words.filters(topics)
    if not filters:
        return at  # a dialect in which nobody can subscribe
    watching = dashboards(setting, site)
    exact = [text for text in topics[:FILTERS_EACH] if text in filters]
    for number, dashboard in enumerate(watching):
        mine = [filters[(number * FILTERS_EACH + offset) % len(filters)] for offset in range(FILTERS_EACH)]
        for text in dict.fromkeys(exact if dashboard is watching[-1] and exact else mine):
            site.at(at, dashboard, Verb.SUBSCRIBE, text)
        at += STEP_S
    exact = [text for text in topics if text in filters] or filters
    for number, actuator in enumerate(actuators(setting, site), 1):
        site.at(at, actuator, Verb.SUBSCRIBE, exact[number % len(exact)])
        at += STEP_S
    return at


def _publish(
    setting: Setting,
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
    for turn in range(setting.rounds):
        for number, sensor in enumerate(sensors):
            time = publish_time(setting, at, turn, number)
            topic = topics[(number + (turn // 3) * len(sensors)) % len(topics)]
            payload = words.payload(setting.chance.between(15, 35), topic, payload_bytes)
            site.at(time, sensor, Verb.PUBLISH, topic, payload, retain=retains and turn % 5 == 4)
    return time


def publish_time(setting: Setting, at: float, turn: int, number: int) -> float:
    """When a sensor publishes in a round: one after the other, not quite evenly."""
    share = setting.period_s / setting.sensors
    return at + turn * setting.period_s + number * share + setting.chance.rng.random() * share / 2

"""Churn: subscribers come and go all the time while publishers publish.

Where the dialect has no unsubscription, nodes subscribe one after the other. In a run that is to be repeated every
subscription ends before the run does, so that one broker serves all repeats. Sensors and dashboards are the same in
all of them, and actuators are new in each; where clients have sessions, all of them are new.
"""

from __future__ import annotations

from generators.scenarios.building import (
    actuators,
    close_sessions,
    create_topics,
    dashboards,
    filters_for,
    publish_time,
    publishers,
    vocabulary,
    wanted,
)
from generators.scenarios.rooms import rooms_with_loops
from generators.scenarios.script import ScenarioOptions, Script, has_loop
from generators.simulation.site import Node, Site, Verb
from generators.simulation.vocabulary import Vocabulary
from reference_broker.messages.sending import SECOND

FILTERS_EACH = 3
STAY_S, AWAY_S, SPREAD = 1.5, 0.8, 0.5  # in periods
HEAD_START_S = 0.4  # of the subscribers


def churn(options: ScenarioOptions) -> Script:
    site = options.site()
    if has_loop(site.dialect):
        step_s = options.duration_s / (options.dashboards + options.actuators + 1)
        return Script([rooms_with_loops(options, site, step_s, first_reading_s=0.0)])
    words = vocabulary(site)
    sensors = publishers(options, site)
    topics = words.topics(options.sensors)
    filters = filters_for(words, wanted(site.dialect, sensors, topics))
    start = create_topics(site, topics) + 0.5
    watching = dashboards(options, site)
    for node in (*sensors, *watching):
        node.stays = site.dialect.spec.broker.sessions == "none"
    nodes = [*watching, *actuators(options, site)]
    come_and_go = words.can_unsubscribe(filters[0])
    for number, node in enumerate(nodes):
        mine = dict.fromkeys(filters[(number * FILTERS_EACH + offset) % len(filters)] for offset in range(FILTERS_EACH))
        if come_and_go:
            _come_and_go(options, site, node, list(mine), start)
        else:
            _come(options, site, node, list(mine), start + options.duration_s * number / len(nodes))
    _publish(options, site, sensors, topics, words, start)
    close_sessions(site, start + options.duration_s + options.period_s, len(sensors))
    if come_and_go and options.repeated:
        site.settled_ns = int((start - HEAD_START_S) * SECOND)
    return Script([site])


def _come_and_go(options: ScenarioOptions, site: Site, node: Node, filters: list[bytes], start: float) -> None:
    """Each filter for itself: subscribed to for a while, given up for a while, until the end."""
    period, rng, end = options.period_s, options.rng, start + options.duration_s
    for text in filters:
        time = start - HEAD_START_S + rng.random() * period
        while time < end:
            site.at(time, node, Verb.SUBSCRIBE, text)
            time += period * STAY_S * (1 + SPREAD * (2 * rng.random() - 1))
            if time < end or options.repeated:
                site.at(min(time, end + period), node, Verb.UNSUBSCRIBE, text)
            time += period * AWAY_S * (1 + SPREAD * (2 * rng.random() - 1))


def _come(options: ScenarioOptions, site: Site, node: Node, filters: list[bytes], time: float) -> None:
    for text in filters:
        site.at(time, node, Verb.SUBSCRIBE, text)
        time += options.period_s


def _publish(
    options: ScenarioOptions, site: Site, sensors: list[Node], topics: list[bytes], words: Vocabulary, start: float
) -> None:
    for round_number in range(options.rounds):
        for number, sensor in enumerate(sensors):
            topic = topics[number % len(topics)]
            payload = words.payload(options.rng.between(15, 35), topic)
            site.at(publish_time(options, start, round_number, number), sensor, Verb.PUBLISH, topic, payload)

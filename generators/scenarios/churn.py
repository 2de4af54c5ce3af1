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
from generators.scenarios.script import Script, Setting, has_loop
from generators.simulation.site import Node, Site, Verb
from generators.simulation.vocabulary import Vocabulary
from reference_broker.messages.sending import SECOND

FILTERS_EACH = 3
STAY_S, AWAY_S, SPREAD = 1.5, 0.8, 0.5  # in periods
HEAD_START_S = 0.4  # of the subscribers


def churn(setting: Setting) -> Script:
    site = setting.site()
    if has_loop(site.dialect):
        step_s = setting.duration_s / (setting.dashboards + setting.actuators + 1)
        return Script([rooms_with_loops(setting, site, step_s, first_reading_s=0.0)])
    words = vocabulary(site)
    sensors = publishers(setting, site)
    topics = words.topics(setting.sensors)
    filters = filters_for(words, wanted(site.dialect, sensors, topics))
    start = create_topics(site, topics) + 0.5
    watching = dashboards(setting, site)
    for node in (*sensors, *watching):
        node.stays = site.dialect.spec.broker.sessions == "none"
    nodes = [*watching, *actuators(setting, site)]
    come_and_go = words.can_unsubscribe(filters[0])
    for number, node in enumerate(nodes):
        mine = dict.fromkeys(filters[(number * FILTERS_EACH + offset) % len(filters)] for offset in range(FILTERS_EACH))
        if come_and_go:
            _come_and_go(setting, site, node, list(mine), start)
        else:
            _come(setting, site, node, list(mine), start + setting.duration_s * number / len(nodes))
    _publish(setting, site, sensors, topics, words, start)
    close_sessions(site, start + setting.duration_s + setting.period_s, len(sensors))
    if come_and_go and setting.repeated:
        site.settled_ns = int((start - HEAD_START_S) * SECOND)
    return Script([site])


def _come_and_go(setting: Setting, site: Site, node: Node, filters: list[bytes], start: float) -> None:
    """Each filter for itself: subscribed to for a while, given up for a while, until the end."""
    period, chance, end = setting.period_s, setting.chance, start + setting.duration_s
    for text in filters:
        time = start - HEAD_START_S + chance.rng.random() * period
        while time < end:
            site.at(time, node, Verb.SUBSCRIBE, text)
            time += period * STAY_S * (1 + SPREAD * (2 * chance.rng.random() - 1))
            if time < end or setting.repeated:
                site.at(min(time, end + period), node, Verb.UNSUBSCRIBE, text)
            time += period * AWAY_S * (1 + SPREAD * (2 * chance.rng.random() - 1))


def _come(setting: Setting, site: Site, node: Node, filters: list[bytes], time: float) -> None:
    for text in filters:
        site.at(time, node, Verb.SUBSCRIBE, text)
        time += setting.period_s


def _publish(
    setting: Setting, site: Site, sensors: list[Node], topics: list[bytes], words: Vocabulary, start: float
) -> None:
    for turn in range(setting.rounds):
        for number, sensor in enumerate(sensors):
            topic = topics[number % len(topics)]
            payload = words.payload(setting.chance.between(15, 35), topic)
            site.at(publish_time(setting, start, turn, number), sensor, Verb.PUBLISH, topic, payload)

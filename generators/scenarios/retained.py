"""Retained messages: values are kept, replaced, and published without being kept; some subscribe before, some after."""

from __future__ import annotations

from generators.scenarios.building import (
    STEP_S,
    actuators,
    close_sessions,
    dashboards,
    filters_for,
    publish_time,
    publishers,
    vocabulary,
    wanted,
)
from generators.scenarios.script import ScenarioOptions, Script
from generators.simulation.site import Node, Site, Verb
from generators.simulation.vocabulary import Vocabulary
from pcap_tools.errors import UsageError

FILTERS_EACH = 2
START_S = 1.0


def retained(options: ScenarioOptions) -> Script:
    site = options.site()
    words = vocabulary(site)
    if not words.can_retain():
        raise UsageError(f"{site.dialect.name} has no retained messages; use `building`, or a dialect such as colon")
    sensors = publishers(options, site)
    topics = words.topics(options.sensors)
    exact = wanted(site.dialect, sensors, topics)
    filters = filters_for(words, exact)
    end = START_S + options.duration_s
    _subscribe(options, site, dashboards(options, site), filters)
    for number, actuator in enumerate(actuators(options, site)):
        site.at(end + number * STEP_S, actuator, Verb.SUBSCRIBE, exact[number % len(exact)])
    _publish(options, site, sensors, topics, words)
    close_sessions(site, end + options.actuators * STEP_S, len(sensors))
    return Script([site])


def _subscribe(options: ScenarioOptions, site: Site, watching: list[Node], filters: list[bytes]) -> None:
    """The first half before anything is published, the others one after the other while values come and go."""
    early, late = watching[: len(watching) // 2], watching[len(watching) // 2 :]
    for number, dashboard in enumerate(early):
        _ask(site, dashboard, filters, number, number * STEP_S)
    pause = (options.duration_s - options.period_s) / (len(late) + 1)
    for number, dashboard in enumerate(late):
        _ask(site, dashboard, filters, number, START_S + options.period_s + number * (pause + STEP_S))


def _ask(site: Site, dashboard: Node, filters: list[bytes], number: int, at: float) -> None:
    mine = [filters[(number * FILTERS_EACH + offset) % len(filters)] for offset in range(FILTERS_EACH)]
    for text in dict.fromkeys(mine):
        site.at(at, dashboard, Verb.SUBSCRIBE, text)


def _publish(options: ScenarioOptions, site: Site, sensors: list[Node], topics: list[bytes], words: Vocabulary) -> None:
    """Of three values of a sensor two are to be kept, and the one between them is not."""
    for round_number in range(options.rounds):
        for number, sensor in enumerate(sensors):
            topic = topics[number % len(topics)]
            payload = words.payload(options.rng.between(15, 35), topic)
            time = publish_time(options, START_S, round_number, number)
            site.at(time, sensor, Verb.PUBLISH, topic, payload, retain=(round_number + number) % 3 != 1)

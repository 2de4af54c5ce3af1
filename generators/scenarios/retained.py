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
from generators.scenarios.script import Script, Setting
from generators.simulation.site import Node, Site, Verb
from generators.simulation.vocabulary import Vocabulary
from pcap_tools.errors import UsageError

FILTERS_EACH = 2
START_S = 1.0


def retained(setting: Setting) -> Script:
    site = setting.site()
    words = vocabulary(site)
    if not words.can_retain():
        raise UsageError(f"{site.dialect.name} has no retained messages; use `building`, or a dialect such as colon")
    sensors = publishers(setting, site)
    topics = words.topics(setting.sensors)
    exact = wanted(site.dialect, sensors, topics)
    filters = filters_for(words, exact)
    end = START_S + setting.duration_s
    _subscribe(setting, site, dashboards(setting, site), filters)
    for number, actuator in enumerate(actuators(setting, site)):
        site.at(end + number * STEP_S, actuator, Verb.SUBSCRIBE, exact[number % len(exact)])
    _publish(setting, site, sensors, topics, words)
    close_sessions(site, end + setting.actuators * STEP_S, len(sensors))
    return Script([site])


def _subscribe(setting: Setting, site: Site, watching: list[Node], filters: list[bytes]) -> None:
    """The first half before anything is published, the others one after the other while values come and go."""
    early, late = watching[: len(watching) // 2], watching[len(watching) // 2 :]
    for number, dashboard in enumerate(early):
        _ask(site, dashboard, filters, number, number * STEP_S)
    pause = (setting.duration_s - setting.period_s) / (len(late) + 1)
    for number, dashboard in enumerate(late):
        _ask(site, dashboard, filters, number, START_S + setting.period_s + number * (pause + STEP_S))


def _ask(site: Site, dashboard: Node, filters: list[bytes], number: int, at: float) -> None:
    mine = [filters[(number * FILTERS_EACH + offset) % len(filters)] for offset in range(FILTERS_EACH)]
    for text in dict.fromkeys(mine):
        site.at(at, dashboard, Verb.SUBSCRIBE, text)


def _publish(setting: Setting, site: Site, sensors: list[Node], topics: list[bytes], words: Vocabulary) -> None:
    """Of three values of a sensor two are to be kept, and the one between them is not."""
    for turn in range(setting.rounds):
        for number, sensor in enumerate(sensors):
            topic = topics[number % len(topics)]
            payload = words.payload(setting.chance.between(15, 35), topic)
            time = publish_time(setting, START_S, turn, number)
            site.at(time, sensor, Verb.PUBLISH, topic, payload, retain=(turn + number) % 3 != 1)

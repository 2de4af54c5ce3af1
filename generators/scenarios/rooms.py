"""Rooms with a loop each (``rolebyte``): a sensor's reading, the dashboard's instruction, the actuator's report."""

from __future__ import annotations

from generators.scenarios.script import ScenarioOptions
from generators.simulation.site import Site, Verb
from reference_broker.client.applications import Actuator, Dashboard, loop_of
from reference_broker.messages.sending import SECOND

# The longest message (topic, suffix of the loop and the actuator's report) then stays within 127 bytes: above them the
# running system's signed length byte breaks.
LONG_ROOM_BYTES = 76


def rooms_with_loops(
    options: ScenarioOptions, site: Site, step_s: float, long_names: bool = False, first_reading_s: float | None = None
) -> Site:
    """``step_s`` lies between two subscriptions. Sensors begin when all of them stand, or at ``first_reading_s``."""
    rooms = [_room(number, long_names) for number in range(1, options.sensors + 1)]
    after_all = _subscribe(options, site, rooms, step_s)
    if first_reading_s is None:
        site.settled_ns = int((after_all + 0.5) * SECOND)
        first_reading_s = after_all + 1.0
    for number, room in enumerate(rooms, 1):
        sensor = site.node(f"sensor{number}", "sensor")
        for round_number in range(options.rounds):
            time = first_reading_s + round_number * options.period_s + number * options.period_s / (len(rooms) + 1)
            site.at(time, sensor, Verb.PUBLISH, room, b"%d" % options.rng.between(15, 40))
    return site


def _subscribe(options: ScenarioOptions, site: Site, rooms: list[bytes], step_s: float) -> float:
    at, loop = 0.0, loop_of(options.dialect)
    for number in range(options.dashboards):
        # one dashboard a room instructs its actuator; more of them only watch, or each reading had two answers
        room = rooms[number % len(rooms)]
        application = Dashboard(loop, room) if number < len(rooms) else None
        site.at(at, site.node(f"dashboard{number + 1}", "dashboard", application), Verb.SUBSCRIBE, room)
        at += step_s
    for number in range(options.actuators):
        # and one actuator a room carries instructions out, or each had two reports
        room = rooms[number % len(rooms)]
        application_of = Actuator(loop, room) if number < len(rooms) else None
        actuator = site.node(f"actuator{number + 1}", "actuator", application_of)
        site.at(at, actuator, Verb.SUBSCRIBE, room + loop.suffix.encode())
        at += step_s
    return at


def _room(number: int, long_name: bool) -> bytes:
    name = b"temperature/room%d" % number
    return (name + b"/").ljust(LONG_ROOM_BYTES, b"x") if long_name else name

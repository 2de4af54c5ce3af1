"""The reports' own runs, as their figures and listings show them: who, where, and what each said when.

The same dialogues can be had live (`topicshark lab`). Times are those of people at their prompts, where a report gives
none. ``report-rolebyte`` gives the frames that its report prints, each seen twice on the ``any`` interface.
"""

from __future__ import annotations

from generators.capture.options import CaptureOptions, LinkType, Point
from generators.scenarios.script import ScenarioOptions, Script
from generators.simulation.site import Site, Verb
from pcap_tools.errors import UsageError
from reference_broker.client.applications import Actuator, Dashboard, Window, loop_of

NET, NET_IPV6 = "172.20.0.0", "fd00:172:20::"
# Java in containers, as the one capture printed shows it: half a millisecond to an answer, a whole one to the next.
PROCESSING_NS, GAP_NS = 300_000, 900_000


def report_colon(options: ScenarioOptions) -> Script:
    site = _site(options)
    first, second = site.node("publisher1", "client", host=20), site.node("publisher2", "client", host=30)
    subscriber = site.node("subscriber", "client", host=40)
    site.at(0, subscriber, Verb.SUBSCRIBE, b"temperature")
    site.at(6.2, first, Verb.PUBLISH, b"temperature", b"12C", retain=True)
    site.at(14.7, first, Verb.PUBLISH, b"home/room/fan", b"ON")
    site.at(21.3, subscriber, Verb.SUBSCRIBE, b"*/lights")
    site.at(29.9, second, Verb.PUBLISH, b"home/bedroom/lights", b"ON")
    site.at(36.4, subscriber, Verb.UNSUBSCRIBE, b"temperature")
    return Script([site])


def report_topicbyte(options: ScenarioOptions) -> Script:
    site = _site(options, "java")
    window = site.node("subscriber", "subscriber", Window(), host=20)
    client = site.node("client", "client", host=30)
    site.at(0, window, Verb.SUBSCRIBE, b"temperature")
    site.at(4.1, client, Verb.PUBLISH, b"temperature", b"Temperature:61")
    site.at(9.8, client, Verb.PUBLISH, b"humidity", b"Humidity:40")
    site.at(15.2, client, Verb.PUBLISH, b"temperature", b"Temperature:32")
    return Script([site])


def report_portdigits(options: ScenarioOptions) -> Script:
    site = _site(options, "java")
    laptop = site.node("laptop", "subscriber", host=20, port=12346)
    mobile = site.node("mobile", "subscriber", host=30, port=12349)
    thermometer, anemometer, hygrometer = (
        site.node(name, "publisher", host=host)
        for name, host in (("thermometer", 40), ("anemometer", 50), ("hygrometer", 60))
    )
    site.at(0, laptop, Verb.SUBSCRIBE, b"temperature")
    site.at(5.6, mobile, Verb.SUBSCRIBE, b"wind speed")
    site.at(12.3, thermometer, Verb.PUBLISH, b"temperature", "14C°".encode())
    site.at(19.0, anemometer, Verb.PUBLISH, b"wind speed", b"20km/h")
    site.at(25.4, laptop, Verb.SUBSCRIBE, b"humidity")
    site.at(31.7, hygrometer, Verb.PUBLISH, b"humidity", b"81%")
    return Script([site])


def report_topicnumber(options: ScenarioOptions) -> Script:
    site = _site(options)
    publisher, subscriber = site.node("publisher", "publisher", host=20), site.node("subscriber", "subscriber", host=30)
    site.at(0, subscriber, Verb.SUBSCRIBE, b"weather")
    site.at(5.9, subscriber, Verb.UNSUBSCRIBE, b"weather")
    site.at(13.4, publisher, Verb.CREATE, b"weather")
    site.at(19.8, subscriber, Verb.UNSUBSCRIBE, b"weather")
    site.at(24.1, subscriber, Verb.SUBSCRIBE, b"weather")
    site.at(32.6, publisher, Verb.PUBLISH, b"weather", b"sunny")
    return Script([site])


def report_rolebyte(options: ScenarioOptions) -> Script:
    site = _site(options, broker_host=2)
    room, loop = b"temperature/room1", loop_of(options.dialect)
    dashboard = site.node("dashboard", "dashboard", Dashboard(loop, room), host=3, port=50002)
    sensor = site.node("sensor", "sensor", host=4, port=50003)
    actuator = site.node("actuator", "actuator", Actuator(loop, room), host=5, port=50008)
    site.at(0, dashboard, Verb.SUBSCRIBE, room)
    site.at(10.4276, actuator, Verb.SUBSCRIBE, room + loop.suffix.encode())
    site.at(18.8452, sensor, Verb.PUBLISH, room, b"20")
    return Script([site], capture=CaptureOptions(point=Point.ANY, link=LinkType.COOKED1, copies=2))


def _site(options: ScenarioOptions, form: str | None = None, broker_host: int = 10) -> Site:
    if options.form not in (None, form):
        raise UsageError(f"this run of {options.dialect.name} is as the report has it; leave the form out")
    site = options.site()
    site.form, site.broker_host = form, broker_host
    site.processing_ns, site.gap_ns = PROCESSING_NS, GAP_NS
    if options.broker_at is None:
        site.net = NET_IPV6 if options.ipv6 else NET
    return site

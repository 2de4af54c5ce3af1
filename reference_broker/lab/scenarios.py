"""The reports' own runs as data: who plays at which address, who does what when, and what must then be seen.

A player's ``command`` is a `topicshark` command line; ``{to}`` stands for the broker, ``{bind}`` for the player's own
address. A step starts a player or types a line at its prompt, and is over when all of ``then`` has been printed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

BROKER = "broker"


@dataclass(frozen=True, slots=True)
class Player:
    """A node: the last byte of its address, its UDP port (0: any), and what it runs."""

    host: int
    port: int
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """``types`` is None where the player is started. ``then``: player and text, in this order."""

    player: str
    types: str | None = None
    then: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """A run that ends by itself. The broker is always there and need not be started."""

    title: str
    dialect: str
    port: int
    players: dict[str, Player] = field(default_factory=dict)
    script: tuple[Step, ...] = ()


def _command(text: str, *more: str) -> tuple[str, ...]:
    return (*text.split(), "--to", "{to}", "--bind", "{bind}", *more)


def _starts(player: str, *then: tuple[str, str]) -> Step:
    return Step(player, None, then)


def _types(player: str, line: str, *then: tuple[str, str]) -> Step:
    return Step(player, line, then)


def _prompt(player: str) -> Step:
    return _starts(player, (player, "or exit"))


REPORT_COLON = Scenario(
    "a publisher and a subscriber at their prompts: a retained message, a wildcard, an unsubscription",
    "colon",
    50000,
    {
        "publisher1": Player(20, 50000, _command("publish --dialect colon")),
        "publisher2": Player(30, 50000, _command("publish --dialect colon --no-retain")),
        "subscriber": Player(40, 50000, _command("subscribe --dialect colon")),
    },
    (
        _prompt("subscriber"),
        _types("subscriber", "sub:temperature", ("subscriber", "acknowledged: SUBSCRIBE temperature")),
        _prompt("publisher1"),
        _types("publisher1", "temperature:12C", ("publisher1", "retain it?")),
        _types("publisher1", "y", ("publisher1", "acknowledged: PUBLISH"), ("subscriber", "temperature: 12C")),
        _types("publisher1", "home/room/fan:ON", ("publisher1", "retain it?")),
        _types("publisher1", "n", ("publisher1", "acknowledged: PUBLISH home/room/fan")),
        _types("publisher1", "exit"),
        _types("subscriber", "sub:*/lights", ("subscriber", "acknowledged: SUBSCRIBE */lights")),
        _prompt("publisher2"),
        _types(
            "publisher2",
            "home/bedroom/lights:ON",
            ("publisher2", "acknowledged: PUBLISH"),
            ("subscriber", "home/bedroom/lights: ON"),
        ),
        _types("publisher2", "exit"),
        _types("subscriber", "unsub:temperature", ("subscriber", "acknowledged: UNSUBSCRIBE temperature")),
        _types("subscriber", "exit"),
    ),
)

REPORT_TOPICBYTE = Scenario(
    "a window that opens and closes with the temperature, and a client that measures once each time",
    "topicbyte",
    50000,
    {
        "subscriber": Player(20, 50003, _command("play window --dialect topicbyte --form java")),
        "client1": Player(30, 50002, _command("publish --dialect topicbyte --form java temperature Temperature:61")),
        "client2": Player(30, 50002, _command("publish --dialect topicbyte --form java humidity Humidity:40")),
        "client3": Player(30, 50002, _command("publish --dialect topicbyte --form java temperature Temperature:32")),
    },
    (
        _starts("subscriber", ("subscriber", "acknowledged: SUB temperature")),
        _starts("client1", ("client1", "acknowledged: MESSAGE"), ("subscriber", "opened the window")),
        _starts("client2", ("client2", "acknowledged: MESSAGE humidity")),
        _starts("client3", ("client3", "acknowledged: MESSAGE"), ("subscriber", "closed the window")),
    ),
)

_SUBSCRIBER = "subscribe --dialect portdigits --form java --set text=subscribing"
_PUBLISHER = "publish --dialect portdigits --form java"

REPORT_PORTDIGITS = Scenario(
    "a laptop and a mobile subscribe; a thermometer, an anemometer and a hygrometer publish",
    "portdigits",
    12345,
    {
        "laptop": Player(20, 12346, _command(_SUBSCRIBER)),
        "mobile": Player(30, 12349, _command(_SUBSCRIBER)),
        "thermometer": Player(40, 0, _command(_PUBLISHER, "temperature", "14C°")),
        "anemometer": Player(50, 0, _command(_PUBLISHER, "wind speed", "20km/h")),
        "hygrometer": Player(60, 0, _command(_PUBLISHER, "humidity", "81%")),
    },
    (
        _prompt("laptop"),
        _types("laptop", "sub:temperature", (BROKER, "SUBSCRIBE temperature")),
        _prompt("mobile"),
        _types("mobile", "sub:wind speed", (BROKER, "SUBSCRIBE wind speed")),
        _starts("thermometer", ("laptop", "temperature: 14C°")),
        _starts("anemometer", ("mobile", "wind speed: 20km/h")),
        _types("laptop", "sub:humidity", (BROKER, "SUBSCRIBE humidity")),
        _starts("hygrometer", ("laptop", "humidity: 81%")),
        _types("laptop", "exit"),
        _types("mobile", "exit"),
    ),
)

REPORT_TOPICNUMBER = Scenario(
    "a subscriber that is told what does not exist, a topic created, subscribed to and published",
    "topicnumber",
    50003,
    {
        "publisher": Player(20, 50002, _command("publish --dialect topicnumber")),
        "subscriber": Player(30, 50004, _command("subscribe --dialect topicnumber")),
    },
    (
        _prompt("subscriber"),
        _types("subscriber", "sub:weather", ("subscriber", "refused: MESSAGE: ")),
        _types("subscriber", "unsub:weather", ("subscriber", "refused: MESSAGE: ")),
        _prompt("publisher"),
        _types("publisher", "create:weather", ("publisher", "the broker says: The topic weather was created")),
        _types("subscriber", "unsub:weather", ("subscriber", "refused: MESSAGE: ")),
        _types("subscriber", "sub:weather", ("subscriber", "the broker says: ")),
        _types("publisher", "weather:sunny", ("publisher", "the broker says: "), ("subscriber", "weather: sunny")),
        _types("publisher", "exit"),
        _types("subscriber", "exit"),
    ),
)

REPORT_ROLEBYTE = Scenario(
    "a sensor's reading makes the dashboard instruct the actuator, which says that it is done",
    "rolebyte",
    50001,
    {
        "dashboard": Player(20, 50002, _command("play dashboard --topic temperature/room1")),
        "sensor": Player(30, 50003, _command("play sensor --topic temperature/room1 --readings 20")),
        "actuator": Player(40, 50008, _command("play actuator --topic temperature/room1")),
    },
    (
        _starts("dashboard", ("dashboard", "acknowledged: DASHBOARD_SUBSCRIBE")),
        _starts("actuator", ("actuator", "acknowledged: ACTUATOR_SUBSCRIBE")),
        _starts(
            "sensor",
            ("actuator", "carrying out: raise_temperature"),
            ("actuator", "acknowledged: ACTUATOR_PUBLISH"),
            ("dashboard", "the instruction was carried out"),
        ),
    ),
)

SCENARIOS = {
    "report-colon": REPORT_COLON,
    "report-topicbyte": REPORT_TOPICBYTE,
    "report-portdigits": REPORT_PORTDIGITS,
    "report-topicnumber": REPORT_TOPICNUMBER,
    "report-rolebyte": REPORT_ROLEBYTE,
}

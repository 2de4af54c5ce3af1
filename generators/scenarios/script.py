"""What a scenario is given, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from generators.capture.options import CaptureOptions
from generators.simulation.network import NetworkOptions
from generators.simulation.random_source import RandomSource
from generators.simulation.site import Site
from pcap_tools.dialect import Dialect
from pcap_tools.errors import UsageError
from reference_broker import Endpoint

PUBLISHERS = ("sensor", "publisher", "client")
SUBSCRIBERS = ("dashboard", "subscriber", "client")
ACTUATORS = ("actuator", *SUBSCRIBERS)
LIVE_NET = "127.0.20.0"
# Sizes of a run that is to be repeated: enough hosts and rounds for variety, few enough to be simulated in seconds.
TILE = {"sensors": 24, "dashboards": 4, "actuators": 2, "rounds": 30}


@dataclass(frozen=True, slots=True)
class ScenarioOptions:
    """``dialects`` has one, or for ``mixed`` all that take part. Sizes are numbers of nodes; ``rounds`` is how often
    each publisher publishes, about ``period_s`` apart. ``repeated``: the run will be repeated for a large capture."""

    dialects: tuple[Dialect, ...]
    rng: RandomSource
    form: str | None = None
    sensors: int = 8
    dashboards: int = 4
    actuators: int = 2
    rounds: int = 10
    period_s: float = 1.0
    ipv6: bool = False
    broker_at: Endpoint | None = None
    repeated: bool = False

    def __post_init__(self) -> None:
        for name, least in (("sensors", 1), ("dashboards", 0), ("actuators", 0), ("rounds", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"{name} is {least} or more, not {getattr(self, name)}")
        if self.period_s <= 0:
            raise UsageError(f"the period is a time above 0, not {self.period_s}")

    @property
    def dialect(self) -> Dialect:
        """The only dialect, for scenarios of one."""
        if len(self.dialects) != 1:
            names = ", ".join(dialect.name for dialect in self.dialects)
            raise UsageError(f"this scenario has one dialect, not {names}; `mixed` takes several")
        return self.dialects[0]

    @property
    def duration_s(self) -> float:
        """How long publishers publish."""
        return self.rounds * self.period_s

    def site(self, dialect: Dialect | None = None, number: int = 0) -> Site:
        """An empty site; each has a network of its own. With a broker that is really there it lives on loopback."""
        net = f"fd00:{number:x}::" if self.ipv6 else f"10.{number}.0.0"
        if self.broker_at is not None:
            net = LIVE_NET
        return Site(dialect or self.dialect, self.form, net, broker_at=self.broker_at)


@dataclass(slots=True)
class Script:
    """Who does what when, and what else belongs to the scenario: faults by name and rate, network, capture."""

    sites: list[Site]
    network: NetworkOptions = field(default_factory=NetworkOptions)
    capture: CaptureOptions = field(default_factory=CaptureOptions)
    faults: dict[str, float] = field(default_factory=dict)
    restarts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """``dialect`` is the one that a report's run is about; None: any. ``by_default`` are those that take part if
    nobody names any. ``tile`` has the sizes of a run that is to be repeated; ``only_once`` says why it cannot be."""

    build: Callable[[ScenarioOptions], Script]
    about: str
    dialect: str | None = None
    by_default: tuple[str, ...] = ()
    tile: Mapping[str, int] = field(default_factory=lambda: TILE)
    only_once: str = ""


def role(dialect: Dialect, candidates: tuple[str, ...]) -> str | None:
    """The first of these roles that the dialect has."""
    return next((name for name in candidates if name in dialect.spec.ports), None)


def has_loop(dialect: Dialect) -> bool:
    """Whether clients answer each other's readings in a control loop, as in ``rolebyte``."""
    return dialect.spec.application.loop is not None

"""From a scenario's name to a capture and its truth.

>>> from generators.generate import Order, generate
>>> made = generate(Order("building", dialects=("colon",), sensors=2, rounds=1))
>>> len(made.capture.frames) > 10, made.truth()["faults"]
(True, [])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from generators import faults as _catalogue  # noqa: F401 - enters the faults in the catalogue
from generators.capture.capture_point import Capture, take
from generators.capture.options import CaptureOptions, Point
from generators.faults.conditions import conditions
from generators.scenarios import SCENARIOS, Scenario, Script, Setting
from generators.simulation.engine import START_NS, Simulation
from generators.simulation.fault import CATALOGUE, Armed
from generators.simulation.random_source import Chance
from generators.simulation.run import Run
from generators.truth import truth
from pcap_tools.dialect import Dialect, load_dialect
from pcap_tools.errors import UsageError
from reference_broker import Endpoint

DEFAULT_DIALECT = "colon"
SIZES = ("sensors", "dashboards", "actuators", "rounds")


@dataclass(frozen=True, slots=True)
class Order:
    """What is wanted. ``dialects`` are names or files. ``network`` and ``capture`` go over what the scenario says.
    ``client`` names the node at which the capture is taken (point ``client``). ``repeated``: the run is made to be
    repeated (``tiling.order_to_repeat``)."""

    scenario: str
    seed: int = 1
    dialects: tuple[str, ...] = ()
    form: str | None = None
    faults: Mapping[str, float] = field(default_factory=dict)
    network: Mapping[str, Any] = field(default_factory=dict)
    capture: Mapping[str, Any] = field(default_factory=dict)
    client: str | None = None
    restarts: tuple[int, ...] = ()
    ipv6: bool = False
    sensors: int | None = None
    dashboards: int | None = None
    actuators: int | None = None
    rounds: int | None = None
    broker_at: Endpoint | None = None
    repeated: bool = False


@dataclass(slots=True)
class Made:
    """A capture with all that is known of it."""

    order: Order
    script: Script
    run: Run
    capture: Capture
    armed: list[Armed]

    def truth(self) -> dict[str, Any]:
        about = {"scenario": self.order.scenario, "seed": self.order.seed}
        return truth(self.run, self.capture, self.armed, about)

    def host_names(self) -> dict[str, str]:
        """Addresses by the names of who lives there."""
        names = {site.broker[0]: "broker" for site in self.script.sites}
        return names | {node.endpoint[0]: node.name for site in self.script.sites for node in site.nodes}

    @property
    def idle_faults(self) -> list[str]:
        """Faults that found no occasion in this scenario."""
        return [one.fault.name for one in self.armed if not one.occasions]


def scenario_named(name: str) -> Scenario:
    scenario = SCENARIOS.get(name)
    if scenario is None:
        raise UsageError(f"unknown scenario {name!r}; known: {', '.join(SCENARIOS)}")
    return scenario


def stage(order: Order) -> Script:
    """Set the stage: the scenario, with what the order says over it."""
    scenario = scenario_named(order.scenario)
    dialects = order.dialects or scenario.by_default or (scenario.dialect or DEFAULT_DIALECT,)
    if scenario.dialect and dialects != (scenario.dialect,):
        raise UsageError(f"{order.scenario} is a run of {scenario.dialect}; it has no other dialect")
    sizes = {name: getattr(order, name) for name in SIZES if getattr(order, name) is not None}
    if scenario.dialect and sizes:
        raise UsageError(f"{order.scenario} has the nodes of its report; leave out: {', '.join(sizes)}")
    loaded = tuple(load_dialect(name) for name in dialects)
    setting = Setting(
        loaded,
        Chance(f"{order.seed} scenario"),
        order.form,
        ipv6=order.ipv6,
        broker_at=order.broker_at,
        repeated=order.repeated,
        **sizes,
    )
    script = scenario.stage(setting)
    script.faults = {**script.faults, **order.faults}
    asked = conditions(script.faults, script.sites, START_NS)
    script.network = replace(script.network, **asked.network, **order.network)
    script.capture = _place(replace(script.capture, **asked.capture, **order.capture), script, order.client)
    script.restarts = (*script.restarts, *asked.restarts, *order.restarts)
    return script


def generate(order: Order, progress: Callable[[int], None] = lambda sent: None) -> Made:
    """Simulate and capture."""
    script = stage(order)
    armed = arm(script.faults, [site.dialect for site in script.sites])
    run = Simulation(script.sites, order.seed, script.network, armed, script.restarts, progress).run()
    dialects = {site.dialect.name: site.dialect for site in script.sites}
    capture = take(run.crossings, script.capture, Chance(f"{order.seed} capture"), dialects)
    return Made(order, script, run, capture, armed)


def arm(wanted: Mapping[str, float], dialects: list[Dialect]) -> list[Armed]:
    """The faults of these names, if the dialects can have them. Conditions have no turns to step into."""
    armed = []
    for name, rate in wanted.items():
        fault = CATALOGUE.get(name)
        if fault is None:
            raise UsageError(f"there is no fault {name!r}; `topicshark generate --list-faults` shows them")
        reasons = [fault.fits(dialect) for dialect in dialects]
        if all(reasons):
            raise UsageError(f"the fault {name} is not for {dialects[0].name}: {reasons[0]}")
        if not fault.is_condition:
            armed.append(Armed(fault, rate))
    return armed


def _place(options: CaptureOptions, script: Script, client: str | None) -> CaptureOptions:
    """The address at which the capture is taken."""
    if options.point is Point.BROKER:
        if len(script.sites) > 1:
            raise UsageError("with several brokers, capture at one client or on any: --capture-at any")
        return replace(options, host=script.sites[0].broker[0])
    if options.point is Point.CLIENT:
        nodes = {node.name: node for site in script.sites for node in site.nodes}
        if client not in nodes:
            raise UsageError(f"there is no node {client!r} to capture at; there are: {', '.join(nodes)}")
        return replace(options, host=nodes[client].endpoint[0])
    return options

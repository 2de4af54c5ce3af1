"""From a scenario's name to a capture and its truth.

>>> from generators.generate import GeneratorOptions, generate
>>> made = generate(GeneratorOptions("building", dialects=("colon",), sensors=2, rounds=1))
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
from generators.scenarios import SCENARIOS, Scenario, ScenarioOptions, Script
from generators.simulation.engine import START_NS, Simulation
from generators.simulation.fault import CATALOGUE, FaultInjector
from generators.simulation.random_source import RandomSource
from generators.simulation.run import Run
from generators.truth import truth
from pcap_tools.dialect import Dialect, load_dialect
from pcap_tools.errors import UsageError
from reference_broker import Endpoint

DEFAULT_DIALECT = "colon"
SIZES = ("sensors", "dashboards", "actuators", "rounds")


@dataclass(frozen=True, slots=True)
class GeneratorOptions:
    """What is wanted. ``dialects`` are names or files. ``network`` and ``capture`` go over what the scenario says.
    ``client`` names the node at which the capture is taken (point ``client``). ``repeated``: the run is made to be
    repeated (``tiling.options_to_repeat``)."""

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
class GeneratedRun:
    """A capture with all that is known of it."""

    options: GeneratorOptions
    script: Script
    run: Run
    capture: Capture
    injectors: list[FaultInjector]

    def truth(self) -> dict[str, Any]:
        about = {"scenario": self.options.scenario, "seed": self.options.seed}
        return truth(self.run, self.capture, self.injectors, about)

    def host_names(self) -> dict[str, str]:
        """Addresses by the names of who lives there."""
        names = {site.broker[0]: "broker" for site in self.script.sites}
        return names | {node.endpoint[0]: node.name for site in self.script.sites for node in site.nodes}

    @property
    def idle_faults(self) -> list[str]:
        """Faults that found no occasion in this scenario."""
        return [one.fault.name for one in self.injectors if not one.occasions]


def scenario_named(name: str) -> Scenario:
    scenario = SCENARIOS.get(name)
    if scenario is None:
        raise UsageError(f"unknown scenario {name!r}; known: {', '.join(SCENARIOS)}")
    return scenario


def prepare(options: GeneratorOptions) -> Script:
    """The script of the scenario, with these options applied."""
    scenario = scenario_named(options.scenario)
    dialects = options.dialects or scenario.by_default or (scenario.dialect or DEFAULT_DIALECT,)
    if scenario.dialect and dialects != (scenario.dialect,):
        raise UsageError(f"{options.scenario} is a run of {scenario.dialect}; it has no other dialect")
    sizes = {name: getattr(options, name) for name in SIZES if getattr(options, name) is not None}
    if scenario.dialect and sizes:
        raise UsageError(f"{options.scenario} has the nodes of its report; leave out: {', '.join(sizes)}")
    loaded = tuple(load_dialect(name) for name in dialects)
    scenario_options = ScenarioOptions(
        loaded,
        RandomSource(f"{options.seed} scenario"),
        options.form,
        ipv6=options.ipv6,
        broker_at=options.broker_at,
        repeated=options.repeated,
        **sizes,
    )
    script = scenario.build(scenario_options)
    script.faults = {**script.faults, **options.faults}
    from_faults = conditions(script.faults, script.sites, START_NS)
    script.network = replace(script.network, **from_faults.network, **options.network)
    script.capture = _place(replace(script.capture, **from_faults.capture, **options.capture), script, options.client)
    script.restarts = (*script.restarts, *from_faults.restarts, *options.restarts)
    return script


def generate(options: GeneratorOptions, progress: Callable[[int], None] = lambda sent: None) -> GeneratedRun:
    """Simulate and capture."""
    script = prepare(options)
    injectors = injectors_for(script.faults, [site.dialect for site in script.sites])
    run = Simulation(script.sites, options.seed, script.network, injectors, script.restarts, progress).run()
    dialects = {site.dialect.name: site.dialect for site in script.sites}
    capture = take(run.transits, script.capture, RandomSource(f"{options.seed} capture"), dialects)
    return GeneratedRun(options, script, run, capture, injectors)


def injectors_for(wanted: Mapping[str, float], dialects: list[Dialect]) -> list[FaultInjector]:
    """The faults of these names, if the dialects can have them. Conditions have no turns to step into."""
    injectors = []
    for name, rate in wanted.items():
        fault = CATALOGUE.get(name)
        if fault is None:
            raise UsageError(f"there is no fault {name!r}; `topicshark generate --list-faults` shows them")
        reasons = [fault.fits(dialect) for dialect in dialects]
        if all(reasons):
            raise UsageError(f"the fault {name} is not for {dialects[0].name}: {reasons[0]}")
        if not fault.is_condition:
            injectors.append(FaultInjector(fault, rate))
    return injectors


def _place(options: CaptureOptions, script: Script, client: str | None) -> CaptureOptions:
    """The address at which the capture is taken."""
    if options.point == Point.BROKER:
        if len(script.sites) > 1:
            raise UsageError("with several brokers, capture at one client or on any: --capture-at any")
        return replace(options, host=script.sites[0].broker[0])
    if options.point == Point.CLIENT:
        nodes = {node.name: node for site in script.sites for node in site.nodes}
        if client not in nodes:
            raise UsageError(f"there is no node {client!r} to capture at; there are: {', '.join(nodes)}")
        return replace(options, host=nodes[client].endpoint[0])
    return options

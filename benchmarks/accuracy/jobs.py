"""What is run: every fault on every dialect that can have it, and traffic without faults under all conditions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generators.capture.options import Point
from generators.generate import GeneratorOptions, prepare
from generators.simulation.fault import CATALOGUE
from pcap_tools.dialect import builtin_names, load_dialect
from pcap_tools.errors import UsageError

ROOT = Path(__file__).parent.parent.parent
RATE = 0.1
# Of some there are few occasions.
RATES = {
    "wildcard-dot-regex": 1.0,
    "number-zero": 0.3,
    "number-collision": 0.3,
    "forward-after-unsubscribe": 0.3,
    "retained-missing": 0.3,
    "retained-cleared": 0.3,
    "retained-stale": 0.3,
    "retained-late": 0.3,
}
SCENARIOS = {
    "forward-after-unsubscribe": "churn",
    "retained-missing": "retained",
    "retained-cleared": "retained",
    "retained-stale": "retained",
    "retained-late": "retained",
}
SIZES = {"retained": {"dashboards": 12, "rounds": 8}}

# One who publishes and one who subscribes; of the nodes they stand for all others of their kind.
CLIENTS = ("sensor1", "dashboard1")
POINTS = ("broker", "any", *CLIENTS)

# Without faults: a scenario, and what is done to the network or the capture.
CLEAN: tuple[tuple[str, dict[str, float]], ...] = (
    ("building", {}),
    ("building", {"network-loss": 0.05}),
    ("building", {"network-duplicate": 0.05}),
    ("building", {"network-reorder": 0.05}),
    ("building", {"network-cut": 0.2}),
    ("building", {"broker-restart": 0.1}),
    ("building", {"capture-late": 0.3}),
    ("building", {"capture-early-end": 0.3}),
    ("lossy", {}),
    ("lossy", {"broker-restart": 0.1}),
    ("lossy", {"capture-late": 0.3}),
    ("churn", {}),
    ("churn", {"network-loss": 0.05}),
    ("churn", {"network-duplicate": 0.05}),
    ("churn", {"network-reorder": 0.05}),
    ("churn", {"network-cut": 0.2}),
    ("churn", {"broker-restart": 0.1}),
    ("churn", {"capture-late": 0.3}),
    ("churn", {"capture-early-end": 0.3}),
    ("retained", {}),
    ("retained", {"network-loss": 0.05}),
    ("retained", {"capture-late": 0.3}),
    ("retained", {"broker-restart": 0.1}),
    ("fragmented", {}),
    ("fragmented", {"network-loss": 0.05}),
)
# Frames that the capture lost look like frames that nobody sent: here nothing is promised.
DAMAGED: tuple[tuple[str, dict[str, float]], ...] = (
    ("building", {"capture-drop": 0.02}),
    ("churn", {"capture-drop": 0.02}),
    ("retained", {"capture-drop": 0.02}),
    ("building", {"capture-cut": 0.5}),
    ("retained", {"capture-cut": 0.5}),
)


@dataclass(frozen=True)
class Job:
    """One run, and the points at which it is captured. ``faults`` holds conditions as well."""

    scenario: str
    dialect: str
    seed: int
    faults: dict[str, float] = field(default_factory=dict)
    points: tuple[str, ...] = ("broker",)

    def order(self, point: str) -> GeneratorOptions:
        kind = point_kind(point)
        return GeneratorOptions(
            self.scenario,
            seed=self.seed,
            dialects=(self.dialect,),
            faults=self.faults,
            capture={"point": Point(kind), "ip_ids": self.ip_ids},
            client=point if kind == "client" else None,
            **self._sizes,
        )

    def command(self, point: str) -> str:
        """What makes the same capture and checks it."""
        words = [f"topicshark generate {self.scenario} -o run.pcap --dialect {self.dialect} --seed {self.seed}"]
        words += [f"--{name} {size}" for name, size in self._sizes.items()]
        words += [f"--fault {name}={rate}" for name, rate in self.faults.items()]
        words += [f"--capture-at {point}"] if point != "broker" else []
        words += [f"--ip-ids {self.ip_ids}"] if self.ip_ids != "counted" else []
        return " ".join(words)

    @property
    def has_fault(self) -> bool:
        """Whether somebody does wrong: the network and the capture do not count."""
        return any(not CATALOGUE[name].is_condition for name in self.faults)

    @property
    def ip_ids(self) -> str:
        """Both ways in turn: real hosts seldom count."""
        return "random" if self.seed % 2 else "counted"

    @property
    def _sizes(self) -> dict[str, Any]:
        return SIZES.get(self.scenario, {})


def point_kind(point: str) -> str:
    """broker, any or client."""
    return point if point in ("broker", "any") else "client"


def all_dialects() -> list[str]:
    """Built in by name, the tests' own by path."""
    own = sorted((ROOT / "tests" / "dialects").glob("*.toml"))
    return [*builtin_names(), *(str(path.relative_to(ROOT)) for path in own)]


def faulty_jobs(
    dialects: Sequence[str], seeds: int, points: Sequence[str] = POINTS, only: str | None = None, first_seed: int = 1
) -> Iterator[Job]:
    """Each fault by itself, on each dialect that can have it."""
    for dialect in dialects:
        loaded = load_dialect(dialect)
        for name, fault in CATALOGUE.items():
            if fault.is_condition or fault.fits(loaded) is not None or only not in (None, name):
                continue
            scenario, rate = SCENARIOS.get(name, "building"), RATES.get(name, RATE)
            if not _can_play(scenario, dialect):
                continue
            there = _present(scenario, dialect, points)
            for seed in range(first_seed, first_seed + seeds) if there else ():
                yield Job(scenario, dialect, seed, {name: rate}, there)


def clean_jobs(
    dialects: Sequence[str],
    count: int,
    points: Sequence[str] = POINTS,
    settings: Sequence[tuple[str, dict[str, float]]] = CLEAN,
    first_seed: int = 1,
) -> Iterator[Job]:
    """So many runs, each with a seed of its own: settings take turns, and in each the dialects that can play it."""
    for number in range(count):
        turn, at = divmod(number, len(settings))
        scenario, conditions = settings[at]
        playing = [dialect for dialect in dialects if _can_play(scenario, dialect)]
        if not playing:
            continue
        dialect, seed = playing[(turn + at) % len(playing)], first_seed + number
        there = _present(scenario, dialect, points)
        if there:
            yield Job(scenario, dialect, seed, conditions, (random.Random(seed).choice(there),))


_nodes: dict[tuple[str, str], tuple[str, ...] | None] = {}


def _cast(scenario: str, dialect: str) -> tuple[str, ...] | None:
    """The nodes of a scenario; None if the dialect cannot play it."""
    if (scenario, dialect) not in _nodes:
        try:
            script = prepare(GeneratorOptions(scenario, dialects=(dialect,)))
            _nodes[scenario, dialect] = tuple(node.name for site in script.sites for node in site.nodes)
        except UsageError:
            _nodes[scenario, dialect] = None
    return _nodes[scenario, dialect]


def _can_play(scenario: str, dialect: str) -> bool:
    return _cast(scenario, dialect) is not None


def _present(scenario: str, dialect: str, points: Sequence[str]) -> tuple[str, ...]:
    nodes = _cast(scenario, dialect) or ()
    return tuple(point for point in points if point_kind(point) != "client" or point in nodes)

"""Faults of the network and of the capture, by name: they set options and are no party's doing.

None of them breaks a rule. A checker that is right stays silent about them, or says that it cannot tell.

>>> conditions({"network-loss": 0.05, "capture-drop": 0.01}, []).network
{'loss': 0.05}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from generators.simulation.fault import CATALOGUE, Fault, Place
from generators.simulation.network import Cut
from generators.simulation.site import Site
from pcap_tools.errors import UsageError

SNAPLEN = 60  # the headers and a few bytes of the datagram
RATE_OF_ONE = 0.1  # of what happens so many times: once at this rate, ten times at 1


@dataclass(slots=True)
class Conditions:
    """What to set: fields of ``NetworkOptions`` and ``CaptureOptions``, and when the broker restarts."""

    network: dict[str, Any] = field(default_factory=dict)
    capture: dict[str, Any] = field(default_factory=dict)
    restarts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Run:
    """What conditions need to know of a run. Cuts are told in the time of the network, which begins at ``start_ns``."""

    duration_ns: int
    hosts: tuple[str, ...]
    start_ns: int


Sets = Callable[[Conditions, float, _Run], None]
_SETS: dict[str, Sets] = {}


def conditions(wanted: Mapping[str, float], sites: Sequence[Site], start_ns: int = 0) -> Conditions:
    """The options that the wanted conditions ask for; other faults are left alone."""
    last = max((action.time_ns for site in sites for action in site.actions), default=0)
    run = _Run(last, tuple(node.endpoint[0] for site in sites for node in site.nodes), start_ns)
    made = Conditions()
    for name, rate in wanted.items():
        if name in _SETS:
            if not 0 < rate < 1:
                raise UsageError(f"the rate of {name} is a share between 0 and 1, not {rate}")
            _SETS[name](made, rate, run)
    return made


def _condition(name: str, place: Place, about: str) -> Callable[[Sets], Sets]:
    def enter(sets: Sets) -> Sets:
        CATALOGUE[name] = Fault(name, (), place, f"{about}; breaks no rule")
        _SETS[name] = sets
        return sets

    return enter


@_condition("network-loss", Place.NETWORK, "the network loses this share of the datagrams")
def _loss(made: Conditions, rate: float, run: _Run) -> None:
    made.network["loss"] = rate


@_condition("network-duplicate", Place.NETWORK, "the network duplicates this share of the datagrams")
def _duplicate(made: Conditions, rate: float, run: _Run) -> None:
    made.network["double"] = rate


@_condition(
    "network-reorder",
    Place.NETWORK,
    "the network delays this share of the datagrams, so that later ones may overtake them",
)
def _reorder(made: Conditions, rate: float, run: _Run) -> None:
    made.network["reorder"] = rate


@_condition(
    "network-cut", Place.NETWORK, "one client is unreachable for this share of the time, in the middle of the run"
)
def _cut(made: Conditions, rate: float, run: _Run) -> None:
    if run.hosts:
        begin = run.start_ns + int(run.duration_ns * (1 - rate) / 2)
        host = run.hosts[len(run.hosts) // 2]
        made.network["cuts"] = (Cut(host, begin, begin + max(1, int(run.duration_ns * rate))),)


@_condition("broker-restart", Place.NETWORK, "the broker stops for half a second, once per 0.1 of the rate")
def _restart(made: Conditions, rate: float, run: _Run) -> None:
    times = max(1, round(rate / RATE_OF_ONE))
    made.restarts = tuple(run.duration_ns * number // (times + 1) for number in range(1, times + 1))


@_condition("capture-drop", Place.CAPTURE, "the capture misses this share of the frames")
def _drop(made: Conditions, rate: float, run: _Run) -> None:
    made.capture["drop"] = rate


@_condition("capture-late", Place.CAPTURE, "the capture starts after this share of the run")
def _late(made: Conditions, rate: float, run: _Run) -> None:
    made.capture["skip_ns"] = int(run.duration_ns * rate)


@_condition("capture-early-end", Place.CAPTURE, "the capture ends before the last share of the run")
def _early_end(made: Conditions, rate: float, run: _Run) -> None:
    made.capture["stop_ns"] = max(1, int(run.duration_ns * (1 - rate)))


@_condition("capture-cut", Place.CAPTURE, f"every frame is truncated to {SNAPLEN} bytes, at any rate")
def _snaplen(made: Conditions, rate: float, run: _Run) -> None:
    made.capture["snaplen"] = SNAPLEN

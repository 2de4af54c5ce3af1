"""The mechanism of faults. The faults are in ``faults/``, one file per family; ``@fault`` registers them here.

    @fault("status-missing", "A-STATUS-MISSING", Place.BROKER, "a request is acknowledged, but no status follows")
    def status_missing(activation: Activation) -> Edit | None:
        ...

The function inspects an activation. It returns None if there is no opportunity for the fault, otherwise a function that
makes the fault and returns labels. So a rate is a share of the opportunities. Faults of the network and of the capture
set options instead (see ``faults/conditions.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from generators.simulation.activation import Activation, Edit, Label
from pcap_tools.dialect import Dialect
from pcap_tools.errors import UsageError

DEFAULT_RATE = 0.1


class Place(StrEnum):
    """The party or part that makes the fault."""

    BROKER = "broker"
    CLIENT = "client"
    APPLICATION = "application"
    NETWORK = "network"
    CAPTURE = "capture"


Find = Callable[[Activation], Edit | None]
Follow = Callable[[Activation], list[Label] | None]
Fits = Callable[[Dialect], str | None]
NO_FAMILY = "-"


def _fits_all(dialect: Dialect) -> str | None:
    return None


def _finds_nothing(activation: Activation) -> Edit | None:
    return None


@dataclass(frozen=True, slots=True)
class Fault:
    """
    rules   rules that the fault breaks, its own first; faults of the network and the capture break none
    find    looks for an opportunity in an activation, and returns the edit to make or None
    follow  runs in every activation, before any ``find``: carries on the effects of an earlier edit
    fits    returns the reason why a dialect cannot have the fault, or None
    """

    name: str
    rules: tuple[str, ...]
    place: Place
    about: str
    find: Find = _finds_nothing
    follow: Follow | None = None
    fits: Fits = _fits_all

    @property
    def family(self) -> str:
        return self.rules[0].partition("-")[0] if self.rules else NO_FAMILY

    @property
    def is_condition(self) -> bool:
        """Whether options of the network or the capture set it, instead of edits in activations."""
        return self.place in (Place.NETWORK, Place.CAPTURE)


CATALOGUE: dict[str, Fault] = {}


def fault(
    name: str,
    rule: str,
    place: Place,
    about: str,
    *,
    also: tuple[str, ...] = (),
    follow: Follow | None = None,
    fits: Fits = _fits_all,
) -> Callable[[Find], Find]:
    def enter(find: Find) -> Find:
        CATALOGUE[name] = Fault(name, (rule, *also), place, about, find, follow, fits)
        return find

    return enter


@dataclass(slots=True)
class FaultInjector:
    """A fault of a run, with its rate and its state for each site."""

    fault: Fault
    rate: float = DEFAULT_RATE
    memories: dict[int, dict[Any, Any]] = field(default_factory=dict)
    fitting: dict[str, bool] = field(default_factory=dict)
    occasions: int = 0
    done: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise UsageError(f"the rate of {self.fault.name} is a share above 0 up to 1, not {self.rate}")

    def inject(self, activation: Activation) -> list[Label]:
        """Make the fault if this activation is an opportunity and the draw succeeds."""
        activation.memory = self._memory(activation)
        fits = self.fault.place is _place_of(activation) and self._fits(activation)
        edit = self.fault.find(activation) if fits else None
        if edit is None:
            return []
        self.occasions += 1
        if not activation.rng.happens(self.rate):
            return []
        labels = self._signed(edit())
        self.done += bool(labels)
        return labels

    def follow_up(self, activation: Activation) -> list[Label]:
        if self.fault.follow is None:
            return []
        activation.memory = self._memory(activation)
        return self._signed(self.fault.follow(activation) or [])

    def _signed(self, labels: list[Label]) -> list[Label]:
        for label in labels:
            label.fault = self.fault.name
        return labels

    def _fits(self, activation: Activation) -> bool:
        """Whether the site's dialect can have the fault; sites may have different dialects."""
        name = activation.site.dialect.name
        if name not in self.fitting:
            self.fitting[name] = self.fault.fits(activation.site.dialect) is None
        return self.fitting[name]

    def _memory(self, activation: Activation) -> dict[Any, Any]:
        return self.memories.setdefault(id(activation.site), {})


def _place_of(activation: Activation) -> Place:
    if activation.is_brokers:
        return Place.BROKER
    return Place.APPLICATION if activation.reaction is not None else Place.CLIENT

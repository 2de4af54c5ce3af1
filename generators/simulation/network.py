"""The network between the nodes: datagrams in transit, which it delays, loses, doubles and reorders; links can be cut.

Without faults it keeps the order of what goes from one host to another, as a switch does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import log

from generators.simulation.random_source import RandomSource
from pcap_tools.errors import UsageError
from reference_broker import Endpoint

MILLISECOND = 1_000_000
# Later than any copy that a capture makes: readers take the same bytes within a millisecond for one of those.
DOUBLE_AFTER_NS = 2 * MILLISECOND
IN_ORDER_GAP_NS = 1_000


class Delay(StrEnum):
    """Distribution of the delay: constant, uniform around the mean, or exponential."""

    FIXED = "fixed"
    UNIFORM = "uniform"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class Cut:
    """A host that is unreachable for a while."""

    host: str
    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """``loss``, ``double`` and ``reorder`` are shares of the datagrams."""

    delay_ns: int = 200_000
    delay: Delay = Delay.UNIFORM
    spread: float = 0.3
    loss: float = 0.0
    double: float = 0.0
    reorder: float = 0.0
    cuts: tuple[Cut, ...] = ()

    def __post_init__(self) -> None:
        for name in ("loss", "double", "reorder"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name} is a share from 0 to 1, not {getattr(self, name)}")
        if self.delay not in list(Delay):
            raise UsageError(f"delay is {', '.join(Delay)}, not {self.delay!r}")
        if self.delay_ns < 1:
            raise UsageError("the network needs some time; delay must be above 0")


class Network:
    """Computes the arrival times of a datagram: none, one, or several."""

    def __init__(self, options: NetworkOptions, rng: RandomSource) -> None:
        self._options, self._rng = options, rng
        self._last: dict[tuple[str, str], int] = {}

    def arrivals(self, src: str, dst: str, sent_ns: int) -> tuple[int, ...]:
        options = self._options
        if any(cut.host in (src, dst) and cut.begin_ns <= sent_ns < cut.end_ns for cut in options.cuts):
            return ()
        if self._rng.happens(options.loss):
            return ()
        arrival = sent_ns + self._delay()
        if self._rng.happens(options.reorder):
            arrival += 10 * self._delay()  # what is sent next may overtake it
        else:
            arrival = max(arrival, self._last.get((src, dst), 0) + IN_ORDER_GAP_NS)
            self._last[src, dst] = arrival
        if self._rng.happens(options.double):
            return arrival, arrival + DOUBLE_AFTER_NS + self._delay()
        return (arrival,)

    def _delay(self) -> int:
        options = self._options
        if options.delay == Delay.FIXED:
            return options.delay_ns
        if options.delay == Delay.UNIFORM:
            return max(1, self._rng.jitter(options.delay_ns, options.spread))
        # `log` may differ in its last bit between machines: a microsecond hides that.
        micros = -log(1 - self._rng.random()) * options.delay_ns // 1_000
        return max(1, int(micros)) * 1_000


@dataclass(slots=True)
class Transit:
    """One datagram on its way. ``number`` counts datagrams from 0. ``arrived_ns`` is empty if the datagram was lost,
    and has several times if it was duplicated. ``dialect`` names its scapy layer.
    """

    number: int
    dialect: str
    src: Endpoint
    dst: Endpoint
    datagram: bytes
    sent_ns: int
    arrived_ns: tuple[int, ...] = ()

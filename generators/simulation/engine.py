"""A run in virtual time: clients, brokers and the network between them, driven by one seed.

Everything is an event at a time. A datagram leaves its host after some microseconds and goes through the network.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

from generators.simulation.activation import Sent
from generators.simulation.fault import FaultInjector
from generators.simulation.network import Network, NetworkOptions, Transit
from generators.simulation.parties import Parties
from generators.simulation.random_source import RandomSource
from generators.simulation.run import Run
from generators.simulation.site import Site
from reference_broker.messages.sending import SECOND

START_NS = 1_767_225_600 * SECOND  # the first moment of 2026: runs do not depend on the day they are made
LINGER_NS = 120 * SECOND
FIRST_EPHEMERAL, EPHEMERAL_PORTS = 32_768, 16_384


class Simulation:
    """Runs sites together. ``restarts``: times at which every broker stops for half a second. It then has only
    the state that a broker keeps on disk.
    """

    def __init__(
        self,
        sites: Sequence[Site],
        seed: int = 1,
        network: NetworkOptions | None = None,
        faults: Iterable[FaultInjector] = (),
        restarts: Sequence[int] = (),
        progress: Callable[[int], None] = lambda sent: None,
    ) -> None:
        self.start_ns = START_NS
        self.run_so_far = Run(list(sites))
        self.faults = list(faults)
        self.network = Network(network or NetworkOptions(), RandomSource(f"{seed} network"))
        self.thinking, self.fault_rng = RandomSource(f"{seed} thinking"), RandomSource(f"{seed} faults")
        self._progress = progress
        self._queue: list[tuple[int, int, Callable[[int], None]]] = []
        self._order = 0
        self._busy_until: dict[str, int] = {}
        self._paces = {host: (site.processing_ns, site.gap_ns) for site in sites for host in site.hosts}
        self._ephemeral = 0
        self.last_action_ns = (
            max((action.time_ns for site in sites for action in site.actions), default=0) + self.start_ns
        )
        self.parties = [Parties(self, site, restarts) for site in sites]

    def run(self) -> Run:
        """Run until no datagram is in transit and no event is pending, or for two minutes after the last action."""
        while self._queue:
            now, _, happens = heapq.heappop(self._queue)
            if now > self.last_action_ns + LINGER_NS:
                break
            happens(now)
        self.run_so_far.sent.sort(key=lambda sent: sent.transit.number)
        return self.run_so_far

    def later(self, time_ns: int, happens: Callable[[int], None]) -> None:
        heapq.heappush(self._queue, (time_ns, self._order, happens))
        self._order += 1

    def leaves(self, host: str, now: int) -> int:
        """The time at which a datagram of this host leaves: after its processing time, and after the previous one."""
        processing_ns, gap_ns = self._paces[host]
        earliest = now + self.thinking.jitter(processing_ns, 0.5)
        at = max(earliest, self._busy_until.get(host, 0) + self.thinking.jitter(gap_ns, 0.5))
        self._busy_until[host] = at
        return at

    def carry(self, transit: Transit, now: int) -> tuple[int, ...]:
        return self.network.arrivals(transit.src[0], transit.dst[0], now)

    def ephemeral_port(self) -> int:
        self._ephemeral += 1
        return FIRST_EPHEMERAL + self._ephemeral % EPHEMERAL_PORTS

    def note_sent(self, sent: Sent) -> None:
        self.run_so_far.sent.append(sent)
        self._progress(len(self.run_so_far.sent))

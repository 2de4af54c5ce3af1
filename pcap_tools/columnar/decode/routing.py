"""Which dialect each datagram of a batch is in: the answer of ``Detector.codec_for``, for all rows at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import int64
from numba import types as numba_types
from numpy.typing import NDArray

from pcap_tools.codec.detect import WELL_KNOWN_PORTS, Routes
from pcap_tools.errors import UsageError
from pcap_tools.kernels.jit import i64, inlined, kernel, type_of

PORTS = 1 << 16
OTHER = -1
_FREE = -1
_SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)  # 2**64 over the golden ratio, as an int64
_I32 = numba_types.Array(numba_types.int32, 1, "C")


class PortTables(NamedTuple):
    """What a port says by itself."""

    learned: NDArray[np.uint8]  # some address is known by this port
    dialect: NDArray[np.int16]  # of those ports where any address will do
    well_known: NDArray[np.uint8]  # 1 + its place among the well-known ports, 0 if it is none
    own: NDArray[np.uint8]  # by dialect and place: whether a well-known port is one of its own


class EndpointTable(NamedTuple):
    """A hash table of addresses with their ports. Ranks are in the order of the evidence."""

    keys: NDArray[np.int64]
    ranks: NDArray[np.int32]
    dialect_of_rank: NDArray[np.int16]


def _new_ports(dialects: int) -> PortTables:
    own = np.zeros((dialects, len(WELL_KNOWN_PORTS) + 1), np.uint8)
    return PortTables(np.zeros(PORTS, np.uint8), np.full(PORTS, OTHER, np.int16), np.zeros(PORTS, np.uint8), own)


def _new_endpoints(slots: int, ranks: NDArray[np.int16]) -> EndpointTable:
    return EndpointTable(np.full(slots, _FREE, np.int64), np.zeros(slots, np.int32), ranks)


@inlined
def _rank(endpoints: EndpointTable, key: int) -> Any:
    """The rank of an endpoint, -1 if it is not known."""
    keys = endpoints.keys
    slot = (key * _SPREAD >> 32) & (keys.size - 1)
    while keys[slot] != key:
        if keys[slot] == _FREE:
            return -1
        slot = (slot + 1) & (keys.size - 1)
    return endpoints.ranks[slot]


@kernel(
    _I32, _I32, _I32, _I32, int64, type_of(_new_ports(1)), type_of(_new_endpoints(2, np.zeros(1, np.int16))),
    numba_types.Array(numba_types.int16, 1, "C"),
)  # fmt: skip
def route_rows(
    src: Any,
    sport: Any,
    dst: Any,
    dport: Any,
    count: int,
    ports: PortTables,
    endpoints: EndpointTable,
    routes: Any,
) -> None:
    """The dialect of each row, OTHER for those of none."""
    learned, by_port, well_known, own = ports.learned, ports.dialect, ports.well_known, ports.own
    for row in range(count):
        source, target = i64(sport[row]), i64(dport[row])
        rank = i64(-1)
        if learned[source]:
            rank = i64(_rank(endpoints, i64(src[row]) << 16 | source))
        if learned[target]:
            rank = max(rank, i64(_rank(endpoints, i64(dst[row]) << 16 | target)))
        if rank >= 0:
            dialect = endpoints.dialect_of_rank[rank]
        else:
            dialect = by_port[target]
            if dialect == OTHER:
                dialect = by_port[source]
        if dialect >= 0 and (well_known[source] or well_known[target]):
            for place in (well_known[source], well_known[target]):
                if place and not own[dialect, place]:
                    dialect = np.int16(OTHER)
                    break
        routes[row] = dialect


class Router:
    """Routes rows by what was decided; learns the addresses of a reading as they come."""

    def __init__(self, routes: Routes, dialects: Mapping[str, int]) -> None:
        unknown = {name for _, name in routes.endpoints.values()}.union(routes.ports.values()) - dialects.keys()
        if unknown:
            raise UsageError(f"the routes name a dialect that is not given: {min(unknown)!r}")
        ranked = sorted(set(routes.endpoints.values()))
        rank_of = {evidence: rank for rank, evidence in enumerate(ranked)}
        self._by_address: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for (address, port), evidence in routes.endpoints.items():
            self._by_address[address].append((port, rank_of[evidence]))
        self._ports = _new_ports(len(dialects))
        self._fill_ports(routes, dialects)
        slots = 1 << (4 * len(routes.endpoints) + 8).bit_length()
        ranks = np.array([dialects[name] for _, name in ranked] or [OTHER], np.int16)
        self._endpoints = _new_endpoints(slots, ranks)
        self._addresses: Sequence[str] = ()
        self._seen = self._filled = 0

    def _fill_ports(self, routes: Routes, dialects: Mapping[str, int]) -> None:
        for _, port in routes.endpoints:
            self._ports.learned[port] = 1
        for port, name in routes.ports.items():
            self._ports.dialect[port] = dialects[name]
        for place, port in enumerate(sorted(WELL_KNOWN_PORTS), 1):
            self._ports.well_known[port] = place
            for name, number in dialects.items():
                self._ports.own[number, place] = port in routes.own_ports.get(name, ())

    def route(self, batch: Any, routes: NDArray[np.int16]) -> None:
        """Fill in the dialect of each row of the batch."""
        self._learn(batch.addresses)
        route_rows(batch.src, batch.sport, batch.dst, batch.dport, batch.count, self._ports, self._endpoints, routes)

    def _learn(self, addresses: Sequence[str]) -> None:
        """Put the endpoints of addresses that came since into the hash table."""
        if addresses is not self._addresses or len(addresses) < self._seen:  # another reading
            self._addresses, self._seen, self._filled = addresses, 0, 0
            self._endpoints.keys.fill(_FREE)
        for number in range(self._seen, len(addresses)):
            for port, rank in self._by_address.get(addresses[number], ()):
                self._insert(number << 16 | port, rank)
        self._seen = len(addresses)

    def _insert(self, key: int, rank: int) -> None:
        keys = self._endpoints.keys
        self._filled += 1
        if self._filled * 2 > len(keys):
            raise UsageError("expected one number for each address of a batch")
        spread = key * _SPREAD & (1 << 64) - 1
        spread -= (spread >> 63) << 64
        slot = spread >> 32 & len(keys) - 1
        while keys[slot] != _FREE:
            slot = slot + 1 & len(keys) - 1
        keys[slot], self._endpoints.ranks[slot] = key, rank

"""Who sees what, when and where: the times at which a crossing passes the point of a capture."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from itertools import accumulate
from typing import NamedTuple

from generators.capture.options import CaptureOptions, Point
from generators.capture.packets import BROADCAST, canonical
from generators.simulation.random_source import Chance
from generators.simulation.transit import Crossing
from pcap_tools.errors import UsageError

# What the kernel says of a frame on cooked captures.
TO_US, TO_ALL, TO_GROUP, TO_OTHERS, FROM_US = range(5)

# Bridges see a frame come in for somebody else and go out; further copies come from the devices in between. No later
# one looks like the first: on cooked1, where an IPv6 packet has no id, that would be a new datagram to any reader.
_TYPES = (TO_OTHERS, FROM_US, TO_US, FROM_US, TO_US, FROM_US)
_OWN_INTERFACE = 2
_FIRST_PORT = 10  # interface indexes of the bridge's ports; below are the devices in between

COPY_GAP_NS = (10_000, 60_001)
FRAGMENT_GAP_NS = (1_000, 2_001)


class Sighting(NamedTuple):
    """One pass of a datagram. ``arriving``: its last fragment comes at ``time_ns``; else its first leaves then."""

    time_ns: int
    arriving: bool
    packet_type: int
    interface: int


class View:
    """What can be seen from the point of a capture."""

    def __init__(self, crossings: Sequence[Crossing], options: CaptureOptions) -> None:
        self._copies = options.copies
        hosts = {canonical(address) for crossing in crossings for address, _ in (crossing.src, crossing.dst)}
        self.host = "" if options.point == Point.ANY else _checked_host(options, hosts)
        in_order = sorted(hosts, key=lambda host: (":" in host, ip_address(host).packed))
        self._ports = {host: port for port, host in enumerate(in_order, _FIRST_PORT)}

    @property
    def group_size(self) -> int:
        """How many sightings in a row are of one pass: all but the first are copies that the capture made."""
        return 1 if self.host else self._copies

    def sees(self, crossing: Crossing) -> bool:
        """Does it pass here at all?"""
        src, dst = canonical(crossing.src[0]), canonical(crossing.dst[0])
        return not self.host or src == self.host or (dst == self.host and bool(crossing.arrived_ns))

    def sightings(self, crossing: Crossing, chance: Chance) -> list[Sighting]:
        """In the order of their times; none if it does not pass here."""
        src, dst = canonical(crossing.src[0]), canonical(crossing.dst[0])
        if not self.host:
            return self._on_any(crossing, src, dst, chance)
        if src == self.host:
            return [Sighting(crossing.sent_ns, False, FROM_US, _OWN_INTERFACE)]
        if dst == self.host:
            return [Sighting(time_ns, True, TO_US, _OWN_INTERFACE) for time_ns in sorted(crossing.arrived_ns)]
        return []

    def _on_any(self, crossing: Crossing, src: str, dst: str, chance: Chance) -> list[Sighting]:
        """What is lost is lost behind the bridge; what the network doubles passes it again."""
        devices = (self._ports[src], self._ports[dst], *range(_OWN_INTERFACE + 1, _FIRST_PORT))
        seen = []
        for start_ns in (crossing.sent_ns, *sorted(crossing.arrived_ns)[1:]):
            time_ns = start_ns
            for packet_type, interface in zip(_TYPES[: self._copies], devices, strict=False):
                seen.append(Sighting(time_ns, False, packet_type, interface))
                time_ns += chance.between(*COPY_GAP_NS)
        return seen

    def place_of_noise(self, src: str, dst: str) -> tuple[int, int]:
        """Packet type and interface of a frame that is no crossing."""
        interface = _OWN_INTERFACE if self.host else self._ports.get(src, _OWN_INTERFACE)
        if self.host and src == self.host:
            return FROM_US, interface
        if dst == BROADCAST:
            return TO_ALL, interface
        if ip_address(dst).is_multicast:
            return TO_GROUP, interface
        return (TO_US if self.host else TO_OTHERS), interface


def _checked_host(options: CaptureOptions, hosts: set[str]) -> str:
    if not options.host:
        raise UsageError(f"host is missing: the address of the {options.point} at which the capture is taken")
    host = canonical(options.host)
    if hosts and host not in hosts:
        known = ", ".join(sorted(hosts)[:5])
        raise UsageError(f"no datagram comes from or goes to {host}; hosts of this traffic are {known}")
    return host


def fragment_times(sighting: Sighting, parts: int, not_before_ns: int, chance: Chance) -> list[int]:
    """When each part passes. An earlier pass of the same datagram is over first, or readers would mix them up."""
    gaps = [chance.between(*FRAGMENT_GAP_NS) for _ in range(parts - 1)]
    start_ns = sighting.time_ns - sum(gaps) if sighting.arriving else sighting.time_ns
    return list(accumulate(gaps, initial=max(start_ns, not_before_ns)))

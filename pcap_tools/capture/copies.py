"""Which datagrams are only copies: a capture on Linux's `any` interface holds every frame two to six times.

A copy has the addresses, ports, IP id and bytes of the first one, comes within a millisecond, and was seen at
another place (packet type and interface). Once a group has two places, a non-zero IP id is proof enough:
bridges show a frame twice at the same place. A resend has a new IP id or comes later, so it is never taken
for a copy.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import TypeAlias

from pcap_tools.capture.datagram import Datagram

WINDOW_NS = 1_000_000

# More than a 10 Gbit/s link carries in a millisecond; matters only if thousands of frames have the same time.
MAX_GROUPS = 16384
_LONG = 64  # longer payloads are remembered by a digest

_Key: TypeAlias = tuple[str, int, str, int, int | None, bytes]


class _Group:
    """The first datagram of a group and whether copies of it were seen at a second place."""

    __slots__ = ("frame", "interface", "packet_type", "spread", "time_ns")

    def __init__(self, first: Datagram) -> None:
        self.frame = first.frame
        self.time_ns = first.time_ns
        self.packet_type = first.packet_type
        self.interface = first.interface
        self.spread = False


class CopyFinder:
    """Remembers the groups of the last millisecond; feed it all datagrams of a capture in file order."""

    def __init__(self) -> None:
        self._groups: OrderedDict[_Key, _Group] = OrderedDict()

    def copy_of(self, datagram: Datagram) -> int | None:
        """The frame number of the first of the group, or None if `datagram` is that first one."""
        self._forget(datagram.time_ns)
        key = (
            datagram.src,
            datagram.sport,
            datagram.dst,
            datagram.dport,
            datagram.ip_id,
            _short(datagram.payload),
        )
        group = self._groups.get(key)
        if group is not None:
            if _belongs(group, datagram):
                return group.frame
            del self._groups[key]
        self._groups[key] = _Group(datagram)
        return None

    def _forget(self, now_ns: int) -> None:
        """Times may go back a little, so the distance counts and not the order."""
        groups = self._groups
        while groups:
            key = next(iter(groups))
            if len(groups) < MAX_GROUPS and abs(now_ns - groups[key].time_ns) <= WINDOW_NS:
                return
            del groups[key]


def _short(payload: bytes) -> bytes:
    return payload if len(payload) <= _LONG else blake2b(payload, digest_size=_LONG).digest()


def _belongs(group: _Group, datagram: Datagram) -> bool:
    if abs(datagram.time_ns - group.time_ns) > WINDOW_NS:
        return False
    if datagram.packet_type != group.packet_type or datagram.interface != group.interface:
        group.spread = True
        return True
    return group.spread and bool(datagram.ip_id)

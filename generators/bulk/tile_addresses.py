"""Which addresses the varying hosts have in each tile.

Only the middle of an address changes: the 16 bits X.Y of 10.X.Y.z, the 32 bits from bit 48 of an IPv6 address. Hosts
with the same middle in the segment have the same in every tile. Tile 0 is the segment; each later tile takes the next
middles that no host of the segment has, so no address comes twice until all are used up.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pcap_tools.errors import UsageError

Integers: TypeAlias = npt.NDArray[np.int64]

# By the length of the packed address: where its middle is.
MIDDLE = {4: slice(1, 3), 16: slice(6, 10)}


def middle_of(packed: bytes) -> int:
    return int.from_bytes(packed[MIDDLE[len(packed)]], "big")


class _Middles:
    """The middles of one address family: those of the varying hosts, and which are taken in the segment."""

    def __init__(self, length: int, varying: Collection[bytes], fixed: Collection[bytes]) -> None:
        self.own = sorted({middle_of(host) for host in varying if len(host) == length})
        self._space = 1 << 8 * (MIDDLE[length].stop - MIDDLE[length].start)
        self._start = self.own[-1] + 1 if self.own else 0
        middles = {middle_of(host) for host in (*varying, *fixed) if len(host) == length}
        taken = sorted((middle - self._start) % self._space for middle in middles)
        # How many free middles lie before each taken one: the n-th free one has as many taken before it as are <= n.
        self._free_before = np.array(taken, np.int64) - np.arange(len(taken))
        self._free = self._space - len(taken)
        if self._free < len(self.own):
            raise UsageError("the hosts of the segment leave no addresses free for other tiles")

    @property
    def tiles(self) -> int:
        """How many tiles there are until an address comes again."""
        return 1 + self._free // len(self.own)

    def in_tiles(self, tiles: Integers) -> Integers:
        """A row for each tile, a column for each of `own`."""
        nth = ((tiles[:, None] - 1) * len(self.own) + np.arange(len(self.own))) % self._free
        others = (self._start + nth + np.searchsorted(self._free_before, nth, "right")) % self._space
        return np.where(tiles[:, None] == 0, np.array(self.own, np.int64), others)


class TileAddresses:
    """Addresses by tile. For the kernel each distinct middle is a slot: those of the varying hosts, then the others."""

    def __init__(self, varying: Collection[bytes], fixed: Collection[bytes]) -> None:
        self._varying = frozenset(varying)
        # IPv4 hosts outside of 10.0.0.0/8 are in nobody's way.
        in_the_way = [host for host in fixed if len(host) == 16 or host[0] == 10]
        self._families = {length: _Middles(length, self._varying, in_the_way) for length in MIDDLE}
        own = [(length, middle, True) for length, family in self._families.items() for middle in family.own]
        others = sorted({(len(host), middle_of(host), False) for host in fixed})
        self._slots = {key: slot for slot, key in enumerate((*own, *others))}
        self._fixed_middles = np.array([middle for _, middle, _ in others], np.int64)
        self._is_ipv4 = np.array([length == 4 for length, _, _ in self._slots], np.bool_)

    @property
    def tiles(self) -> int | None:
        """How many tiles have addresses of their own; None: no host varies."""
        return min((family.tiles for family in self._families.values() if family.own), default=None)

    def of(self, address: str, tile: int) -> str:
        """The address that the host with `address` in the segment has in `tile`."""
        packed = ip_address(address).packed
        if packed not in self._varying:
            return address
        family, where = self._families[len(packed)], MIDDLE[len(packed)]
        middle = int(family.in_tiles(np.array([tile], np.int64))[0, family.own.index(middle_of(packed))])
        changed = packed[: where.start] + middle.to_bytes(where.stop - where.start, "big") + packed[where.stop :]
        return ip_address(changed).compressed

    def slot(self, packed: bytes) -> int:
        return self._slots[len(packed), middle_of(packed), packed in self._varying]

    def in_tiles(self, tiles: Integers) -> Integers:
        """The middles: a row for each tile, a column for each slot."""
        own = [family.in_tiles(tiles) for family in self._families.values()]
        others = np.broadcast_to(self._fixed_middles, (len(tiles), len(self._fixed_middles)))
        return np.concatenate([*own, others], axis=1)

    def sums(self, middles: Integers) -> Integers:
        """What each middle adds to the Internet checksum. That of IPv4 lies across two words, hence the swap."""
        swapped = (middles & 0xFF) << 8 | middles >> 8
        return np.where(self._is_ipv4, swapped, (middles >> 16) + (middles & 0xFFFF))

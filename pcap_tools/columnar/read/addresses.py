"""Addresses as small numbers: a hash table that kernels fill, and the texts by number.

An address is (high, low, family): 16 bytes as two words, and 4 or 6, since ::1.2.3.4 is not 1.2.3.4.
"""

from __future__ import annotations

import os
from ipaddress import ip_address
from typing import Any, NamedTuple

import numpy as np
from numba import types

from pcap_tools.capture.ip import address_text
from pcap_tools.kernels.jit import i64, inlined, kernel, type_of, u64
from pcap_tools.kernels.words import item

HIGH, LOW, FAMILY = range(3)
ADDRESSES = types.Array(types.uint64, 2, "C")
SLOTS = types.Array(types.uint64, 1, "C")
COUNT = types.Array(types.int64, 1, "C")
BYTES = types.Array(types.uint8, 1, "C")

# A seed of its own for each table: nobody can make addresses that all fall on one slot.
_COUNT, _SEED = range(2)
_SPREAD, _MIX = u64(0x9E3779B97F4A7C15), u64(0xC2B2AE3D27D4EB4F)
_FIRST_CAPACITY = 1 << 15
_ZERO, _DOT, _LINE_END = ord("0"), ord("."), ord("\n")
_LONGEST = len("255.255.255.255\n")
_NUMBER, _SIX = u64(0x7FFFFFFF), u64(0x80000000)  # in a slot


@inlined
def address_id(known: Any, slots: Any, count: Any, high: Any, low: Any, family: int) -> Any:
    """The number of an address, a new one if it was not seen yet; the caller has seen to room for it.

    A slot holds the lower half of the address, the family and the number plus one: of IPv4 that is all there is to
    compare.
    """
    word = (low ^ u64(count[_SEED]) ^ (high * _MIX)) * _SPREAD
    mask = slots.shape[0] - 1
    at = i64((word ^ (word >> u64(29))) * _MIX >> u64(34)) & mask
    tag = low << u64(32) | (_SIX if family == 6 else u64(0))
    while True:
        slot = item(slots, at)
        ident = i64(slot & _NUMBER) - 1
        if ident < 0:
            break
        if slot & ~_NUMBER == tag and (family == 4 or (known[ident, LOW] == low and known[ident, HIGH] == high)):
            return ident
        at = (at + 1) & mask
    ident = count[_COUNT]
    known[ident, HIGH] = high
    known[ident, LOW] = low
    known[ident, FAMILY] = u64(family)
    slots[at] = tag | u64(ident + 1)
    count[_COUNT] = ident + 1
    return ident


@kernel(ADDRESSES, SLOTS, COUNT, types.uint64, types.uint64, types.int64)
def _intern(known: Any, slots: Any, count: Any, high: int, low: int, family: int) -> Any:
    return address_id(known, slots, count, high, low, family)


@kernel(ADDRESSES, ADDRESSES, SLOTS, COUNT)
def _intern_all(old: Any, known: Any, slots: Any, count: Any) -> None:
    for row in range(old.shape[0]):
        address_id(known, slots, count, old[row, HIGH], old[row, LOW], i64(old[row, FAMILY]))


@kernel(ADDRESSES, BYTES)
def _dotted(known: Any, out: Any) -> Any:
    """Write IPv4 addresses, a line each; how many bytes they are."""
    at = 0
    for row in range(known.shape[0]):
        for place in range(4):
            part = i64(known[row, LOW] >> u64(24 - 8 * place)) & 255
            if part >= 100:
                out[at] = _ZERO + part // 100
                at += 1
            if part >= 10:
                out[at] = _ZERO + part // 10 % 10
                at += 1
            out[at] = _ZERO + part % 10
            out[at + 1] = _DOT if place < 3 else _LINE_END
            at += 2
    return at


class Known(NamedTuple):
    """The addresses of a table as kernels take them."""

    known: Any
    slots: Any
    count: Any


KNOWN = type_of(Known(np.zeros((1, 3), np.uint64), np.zeros(1, np.uint64), np.zeros(1, np.int64)))


class AddressTable:
    """All addresses of one reading; `texts` is shared with every batch."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.count = np.array([0, int.from_bytes(os.urandom(7), "little")], np.int64)
        self._allocate(_FIRST_CAPACITY)

    def _allocate(self, capacity: int) -> None:
        self.known = np.zeros((capacity, 3), np.uint64)
        self.slots = np.zeros(capacity * 4, np.uint64)

    @property
    def for_kernels(self) -> Known:
        """To be asked for again after `reserve`."""
        return Known(self.known, self.slots, self.count)

    def reserve(self, more: int) -> None:
        """Room for `more` addresses that were never seen."""
        capacity, count = len(self.known), int(self.count[_COUNT])
        if count + more <= capacity:
            return
        old = self.known[:count]
        self._allocate(2 * max(capacity, more))
        self.count[_COUNT] = 0
        _intern_all(old, self.known, self.slots, self.count)

    def ident(self, text: str) -> int:
        """The number of an address that Python met."""
        self.reserve(1)
        packed = ip_address(text).packed
        whole = int.from_bytes(packed, "big")
        family = 4 if len(packed) == 4 else 6
        return int(_intern(self.known, self.slots, self.count, whole >> 64, whole & 0xFFFFFFFFFFFFFFFF, family))

    def packed(self, packed: bytes) -> int:
        """The same for the bytes of an address."""
        return self.ident(address_text(packed))

    def spell(self) -> None:
        """Bring `texts` up to date."""
        new = self.known[len(self.texts) : int(self.count[_COUNT])]
        if (new[:, FAMILY] == 4).all():  # there may be a hundred thousand of them
            lines = np.empty(_LONGEST * len(new), np.uint8)
            self.texts += lines[: _dotted(new, lines)].tobytes().decode().splitlines()
            return
        for high, low, family in new.tolist():
            whole, size = (low, 4) if family == 4 else (high << 64 | low, 16)
            self.texts.append(address_text(whole.to_bytes(size, "big")))

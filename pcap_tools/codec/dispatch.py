"""Which layouts of several are worth trying, told by one byte of the datagram.

A layout that is left out cannot be selected: one of its guards covers that byte and does not hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pcap_tools.dialect.program import Extent, Kind, Layout, Step

BYTES = range(256)


def pick_by_byte(layouts: Sequence[Layout]) -> tuple[int, list[tuple[int, ...]]]:
    """The offset of the byte that leaves the fewest layouts, and for each of its values the places of those to try."""
    wanted = [_wanted(layout) for layout in layouts]

    def left(offset: int) -> int:
        return sum(len(sets.get(offset, BYTES)) for sets in wanted)

    offset = min(sorted({0}.union(*wanted)), key=left)
    return offset, [
        tuple(place for place, sets in enumerate(wanted) if byte in sets.get(offset, BYTES)) for byte in BYTES
    ]


def _wanted(layout: Layout) -> dict[int, set[int]]:
    """For each byte at a fixed offset that a guard covers, the values that can be there."""
    wanted: dict[int, set[int]] = {}
    offset = 0
    for step in layout.steps[: layout.last_guard + 1]:
        if step.extent is not Extent.FIXED:
            break
        for index, values in enumerate(_values(step)):
            wanted[offset + index] = wanted.get(offset + index, set(BYTES)) & values
        if step.kind is not Kind.BITS or step.closes_group:
            offset += step.size
    return wanted


def _values(step: Step) -> list[set[int]]:
    """The values that each byte of a step can have if the layout is to be selected; empty if any."""
    if step.kind is Kind.MAGIC:
        return [{byte} for byte in step.literal]
    if step.kind is Kind.DIGITS:
        zero = 0 if step.binary_digits else 0x30
        numbers = [f"{value:0{step.size}d}".encode() for value in step.guard or () if isinstance(value, int)]
        return _columns(numbers, zero - 0x30) or [set(range(zero, zero + 10)) for _ in range(step.size)]
    if step.guard is None:
        return []
    if step.kind is Kind.BITS:
        return _bits(step)
    order: Literal["little", "big"] = "little" if step.little else "big"
    signed = step.kind is Kind.INT
    return _columns([v.to_bytes(step.size, order, signed=signed) if isinstance(v, int) else v for v in step.guard])


def _columns(choices: Sequence[bytes], shift: int = 0) -> list[set[int]]:
    return [{byte + shift for byte in column} for column in zip(*choices, strict=True)]


def _bits(step: Step) -> list[set[int]]:
    """The bytes of a run of bits that lie within one byte; those of a wider field are not looked at."""
    at, above = divmod(8 * step.size - step.shift - step.bits, 8)
    if above + step.bits > 8:
        return []
    down = 8 - above - step.bits
    holds = {byte for byte in BYTES if byte >> down & (1 << step.bits) - 1 in (step.guard or ())}
    return [set(BYTES)] * at + [holds]

"""Scapy fields for the steps of a dialect: what ``ls``, ``show``, ``fuzz`` and assignment by name need.

Reading and writing is the codec's work, so these fields never touch the wire themselves.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable
from typing import Any

from scapy import fields as sf
from scapy.volatile import RandNum

from pcap_tools.dialect.program import Extent, Kind, Layout, Step, Value

BODY = "body"  # what a dialect calls payload; scapy's payload is the next layer
# Parameters of scapy's own functions that take fields as keywords.
_TAKEN = frozenset({"self", "cls", "post_transform"})

_PLAIN: dict[str, Any] = {
    "!B": sf.ByteField, "!b": sf.SignedByteField,
    "!H": sf.ShortField, "!h": sf.SignedShortField, "<H": sf.LEShortField, "<h": sf.LESignedShortField,
    "!I": sf.IntField, "!i": sf.SignedIntField, "<I": sf.LEIntField, "<i": sf.LESignedIntField,
    "!Q": sf.LongField, "!q": sf.SignedLongField, "<Q": sf.LELongField, "<q": sf.LESignedLongField,
}  # fmt: skip
_NAMED: dict[str, Any] = {
    "!B": sf.ByteEnumField, "!H": sf.ShortEnumField, "<H": sf.LEShortEnumField, "!I": sf.IntEnumField,
    "!i": sf.SignedIntEnumField, "<I": sf.LEIntEnumField, "!Q": sf.LongEnumField, "<Q": sf.LELongEnumField,
}  # fmt: skip


class WideNumberField(sf.EnumField[int]):
    """A number of 3, 5, 6 or 7 bytes."""

    __slots__ = ["least", "most"]

    def __init__(self, name: str, default: int | None, names: dict[int, str], least: int, most: int) -> None:
        self.least, self.most = least, most
        super().__init__(name, default, names, "q")

    def randval(self) -> Any:
        return RandNum(self.least, self.most)


class DigitsField(WideNumberField):
    """A number written as decimal digits."""


def free_name(name: str, taken: type, others: Iterable[str]) -> str:
    """The scapy name for a dialect's field, where ``others`` are the dialect's further names."""

    def is_free(word: str) -> bool:
        return not (hasattr(taken, word) or keyword.iskeyword(word) or word in _TAKEN)

    if is_free(name):
        return name
    if name == "payload" and BODY not in others:
        return BODY
    while not is_free(name) or name in others:
        name += "_"
    return name


def merged_names(layouts: Iterable[Layout]) -> list[str]:
    """The fields of all layouts in the order of the wire: a new one goes behind the one that it follows."""
    merged: list[str] = []
    for layout in layouts:
        at = 0
        for step in layout.steps:
            if step.name not in merged:
                merged.insert(at, step.name)
            at = merged.index(step.name) + 1
    return merged


def make_field(step: Step, name: str, default: Value | None) -> Any:
    """The scapy field of a step. ``default`` None means that the builder works it out."""
    if step.kind in (Kind.UINT, Kind.INT, Kind.DIGITS, Kind.BITS):
        return _number_field(step, name, default if isinstance(default, int) else None)
    text = default if isinstance(default, bytes) else None
    if step.extent is Extent.FIXED and step.kind is not Kind.MAGIC:
        return sf.StrFixedLenField(name, text, step.size)
    return sf.StrField(name, text)


def _number_field(step: Step, name: str, default: int | None) -> Any:
    names = dict(step.names)
    if step.kind is Kind.BITS and names:
        return sf.BitEnumField(name, default, step.bits, names)
    if step.kind is Kind.BITS:
        return sf.BitField(name, default, step.bits)
    if step.kind is Kind.DIGITS:
        return DigitsField(name, default, names, 0, 10**step.size - 1)
    signed = step.kind is Kind.INT
    letter = {1: "B", 2: "H", 4: "I", 8: "Q"}.get(step.size)
    if letter is None:
        least = -(1 << step.size * 8 - 1) if signed else 0
        return WideNumberField(name, default, names, least, least + (1 << step.size * 8) - 1)
    fmt = ("<" if step.little and step.size > 1 else "!") + (letter.lower() if signed else letter)
    if not names:
        return _PLAIN[fmt](name, default)
    return _NAMED[fmt](name, default, names) if fmt in _NAMED else sf.EnumField(name, default, names, fmt)

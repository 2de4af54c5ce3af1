"""The kinds of fields: for each its keys in a dialect file, what it becomes as a step, and the numbers that it holds.

This is where a new kind begins. The other places are a function for it in ``codec/numbers.py``, a row in the tables of
``columnar/decode/tables.py`` with its reading in ``walk_kernel.py``, and a reader in ``dissector/lua/14_walk.lua``;
CONTRIBUTING lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .spec import FieldSpec

Range = tuple[int, int]

JAVA_BLOCK = bytes.fromhex("aced000577")


class Kind(IntEnum):
    """How the bytes of a step become a value."""

    UINT = 1
    INT = 2
    BITS = 3
    DIGITS = 4
    TEXT = 5
    BYTES = 6
    MAGIC = 7
    VARINT = 8


class Extent(IntEnum):
    """Where a step ends."""

    FIXED = 1  # after ``size`` bytes
    UNTIL = 2  # at ``literal``, which is not part of the value
    PREFIX = 3  # after as many bytes as the length in front says
    REST = 4  # at the end of the datagram, or of what a length field counts
    ITSELF = 5  # where its own bytes say


class Prefix(IntEnum):
    """The length in front of a text."""

    NONE = 0
    UNSIGNED = 1
    SIGNED = 2
    UNSIGNED_LITTLE = 3
    ASCII = 4


class Charset(IntEnum):
    """What a text may hold."""

    ANY = 0
    ASCII = 1
    UTF8 = 2
    JAVA = 3  # what writeUTF makes: at most three bytes a character, NUL as two


class Counts(IntEnum):
    """What a length field counts."""

    NOTHING = 0
    REST = 1  # the bytes after it
    DATAGRAM = 2  # all bytes of the message, itself included
    SPAN = 3  # the steps ``span[0]`` to ``span[1]``


# Of the kinds that are numbers: the smallest and the largest, by bytes (or digits) and bits.
NUMBERS: dict[Kind, Callable[[int, int], Range]] = {
    Kind.UINT: lambda size, bits: (0, (1 << 8 * size) - 1),
    Kind.INT: lambda size, bits: (-(1 << 8 * size - 1), (1 << 8 * size - 1) - 1),
    Kind.BITS: lambda size, bits: (0, (1 << bits) - 1),
    Kind.DIGITS: lambda size, bits: (0, int(10**size) - 1),
    Kind.VARINT: lambda size, bits: (0, (1 << 28) - 1),
}

_CHARSETS = {"ascii": Charset.ASCII, "utf-8": Charset.UTF8, "java": Charset.JAVA, "latin-1": Charset.ANY}
PREFIXES: dict[str, tuple[Prefix, int]] = {
    "u8": (Prefix.UNSIGNED, 1),
    "s8": (Prefix.SIGNED, 1),
    "u16": (Prefix.UNSIGNED, 2),
    "u16le": (Prefix.UNSIGNED_LITTLE, 2),
    **{f"ascii{size}": (Prefix.ASCII, size) for size in range(1, 6)},
}
_COUNTS = {"rest": Counts.REST, "datagram": Counts.DATAGRAM}


@dataclass(frozen=True)
class FieldKind:
    """One kind.

    about   its line in the reference
    keys    keys of a field of this kind, beside ``kind``
    step    what a step of it has beside name and guard
    check   why the values of the keys do not go together; None if they do
    """

    about: str
    keys: frozenset[str]
    step: Callable[[FieldSpec], dict[str, Any]]
    check: Callable[[FieldSpec], str | None] = lambda field: None


def number(kind: Kind, field: FieldSpec, **more: Any) -> dict[str, Any]:
    """What all numbers have: names, allowed and accepted values, and what they count."""
    values = field.values or {}
    return {
        "kind": kind,
        "names": tuple((value, word) for word, value in values.items()),
        "allowed": tuple(sorted(set(values.values()))) if values and not field.open else None,
        "accepted": tuple(sorted(set(field.accepted))),
        "counts": _COUNTS.get(str(field.counts), Counts.NOTHING),
    } | more


def _uint(field: FieldSpec) -> dict[str, Any]:
    if field.bits:
        return number(Kind.BITS, field, bits=field.bits)
    return number(Kind.UINT, field, size=field.size, little=field.order == "little")


def _check_uint(field: FieldSpec) -> str | None:
    if (field.size is None) == (field.bits is None):
        return "expected either size (1 to 8 bytes) or bits (1 to 63)"
    if field.bits is not None and (field.counts or field.order == "little"):
        return "a bit field takes neither counts nor order"
    return "expected a size of 1 to 8 bytes" if field.size is not None and field.size > 8 else None


def _int(field: FieldSpec) -> dict[str, Any]:
    return number(Kind.INT, field, size=field.size, little=field.order == "little")


def _check_int(field: FieldSpec) -> str | None:
    return "expected a size of 1 to 8 bytes" if field.size is None or field.size > 8 else None


def _digits(field: FieldSpec) -> dict[str, Any]:
    return number(Kind.DIGITS, field, size=field.size, binary_digits=field.coding == "binary")


def _check_digits(field: FieldSpec) -> str | None:
    return "expected a size of 1 to 18 digits" if field.size is None or field.size > 18 else None


def _text(field: FieldSpec) -> dict[str, Any]:
    is_text = field.kind == "text"
    common = {"kind": Kind.TEXT if is_text else Kind.BYTES}
    charset = {"charset": _CHARSETS[field.charset] if is_text else Charset.ANY}
    if field.until is not None:
        return common | charset | {"extent": Extent.UNTIL, "literal": field.until.encode(), "or_end": field.or_end}
    if field.prefix is not None:
        prefix, size = PREFIXES[field.prefix]
        return common | charset | {"extent": Extent.PREFIX, "prefix": prefix, "size": size}
    if field.size is not None:
        return common | charset | {"extent": Extent.FIXED, "size": field.size}
    return common | charset | {"extent": Extent.REST}


def _check_text(field: FieldSpec) -> str | None:
    if sum(key is not None for key in (field.size, field.until, field.prefix)) > 1:
        return "expected at most one of size, until and prefix (none: to the end)"
    return "or_end goes with until" if field.or_end and field.until is None else None


def _magic(field: FieldSpec) -> dict[str, Any]:
    literal = bytes.fromhex(field.hex) if field.hex else (field.ascii or "").encode("ascii")
    return {"kind": Kind.MAGIC, "size": len(literal), "literal": literal}


def _check_magic(field: FieldSpec) -> str | None:
    return 'expected either hex = "AA55" or ascii = "MQTT"' if (field.hex is None) == (field.ascii is None) else None


def _java_block(field: FieldSpec) -> dict[str, Any]:
    """The constant; the compiler puts the length behind it."""
    return {"kind": Kind.MAGIC, "size": len(JAVA_BLOCK), "literal": JAVA_BLOCK}


_NUMBER_KEYS = frozenset({"values", "open", "accepted", "counts"})
KINDS: dict[str, FieldKind] = {
    "uint": FieldKind(
        "a whole number; bytes (`size`) or bits (`bits`)",
        _NUMBER_KEYS | {"size", "bits", "order"},
        _uint,
        _check_uint,
    ),
    "int": FieldKind(
        "a whole number with sign, in two's complement", _NUMBER_KEYS | {"size", "order"}, _int, _check_int
    ),
    "digits": FieldKind("a whole number in decimal digits", _NUMBER_KEYS | {"size", "coding"}, _digits, _check_digits),
    "varint": FieldKind(
        "a whole number as MQTT writes lengths: 7 bits a byte, the lowest first, the highest bit set in all bytes but "
        "the last; 1 to 4 bytes, and no more than it takes",
        _NUMBER_KEYS,
        lambda field: number(Kind.VARINT, field, extent=Extent.ITSELF),
    ),
    "text": FieldKind("characters", frozenset({"size", "until", "or_end", "prefix", "charset"}), _text, _check_text),
    "bytes": FieldKind("anything", frozenset({"size", "until", "or_end", "prefix"}), _text, _check_text),
    "magic": FieldKind("constant bytes", frozenset({"hex", "ascii"}), _magic, _check_magic),
    "java-block": FieldKind(
        "`AC ED 00 05 77` and a length byte that counts the rest; its fields are called `<name>` and `<name>_length`",
        frozenset(),
        _java_block,
    ),
}


def number_range(field: FieldSpec) -> Range | None:
    """The smallest and the largest number that a field can hold; None for what is no number."""
    holds = NUMBERS.get(KINDS[field.kind].step(field)["kind"])
    return holds(field.size or 0, field.bits or 0) if holds else None

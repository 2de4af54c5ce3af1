"""A dialect as flat tables: what the codec, the scapy layers, the columnar decoder and Lua all interpret.

Decoding is the same walk everywhere. For each form, and in it for each layout in order, read the steps; a layout is
*selected* once its last guard holds. The first form without an error wins, else one that selected a message, else
the one whose error lies deepest (on a tie the first). ``docs/decoding.md`` tells the walk in full.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .kinds import Charset, Counts, Extent, Kind, Prefix

if TYPE_CHECKING:
    from .spec import DialectSpec

__all__ = [
    "Charset",
    "Counts",
    "Dialect",
    "Extent",
    "Form",
    "Kind",
    "Layout",
    "Prefix",
    "Step",
    "Value",
    "as_int64",
]

Value = int | bytes


_NUMBER = re.compile("-?[0-9]{1,9}")


def as_int64(number: int) -> int:
    """The 64 bits of a number as an int64 holds them."""
    return number - (1 << 64) if number >= 1 << 63 else number


@dataclass(frozen=True, slots=True)
class Step:
    """One field in one layout."""

    name: str
    kind: Kind
    extent: Extent = Extent.FIXED
    size: int = 0  # bytes; for BITS of the whole group, for PREFIX of the length in front
    little: bool = False
    bits: int = 0
    shift: int = 0
    opens_group: bool = False
    closes_group: bool = False
    binary_digits: bool = False
    literal: bytes = b""
    or_end: bool = False
    prefix: Prefix = Prefix.NONE
    charset: Charset = Charset.ANY
    optional: bool = False  # the datagram may end before it
    guard: tuple[Value, ...] | None = None  # the layout is selected only by one of these
    allowed: tuple[int, ...] | None = None  # other numbers are a bad value
    accepted: tuple[int, ...] = ()  # of a return code: these accept the request, others refuse it
    names: tuple[tuple[int, str], ...] = ()
    counts: Counts = Counts.NOTHING
    span: tuple[int, int] = (0, 0)
    closes_run: bool = False  # the last of the layout, or of what a length counts
    span_length: int = -1  # the step whose number counts the span that begins here

    def name_of(self, value: Value) -> str | None:
        """The dialect's word for a number."""
        return next((name for number, name in self.names if number == value), None)

    @property
    def word_numbers(self) -> dict[int, int]:
        """Numbers whose word is another number, which they stand for: a QoS of 3 is called -1."""
        return {number: int(name) for number, name in self.names if _NUMBER.fullmatch(name)}


@dataclass(frozen=True, slots=True)
class Layout:
    """One message, or one variant of it, in one form."""

    message: str
    meaning: str
    steps: tuple[Step, ...]
    last_guard: int
    topic: str | None
    filter: str | None
    payload: str | None
    retain: str | None
    code: str | None = None
    qos: str | None = None
    dup: str | None = None
    fill: tuple[tuple[str, Value], ...] = ()  # what builders write where nothing was said

    def step(self, name: str) -> Step | None:
        return next((step for step in self.steps if step.name == name), None)


@dataclass(frozen=True, slots=True)
class Form:
    """One way in which the dialect stands on the wire."""

    name: str
    layouts: tuple[Layout, ...]
    nul_padding: bool
    pad_to: int

    def layouts_of(self, message: str) -> list[Layout]:
        return [layout for layout in self.layouts if layout.message == message]


@dataclass(frozen=True, slots=True)
class Dialect:
    """A checked and compiled dialect: ``spec`` is what the file says, ``forms`` what decoders walk."""

    spec: DialectSpec
    forms: tuple[Form, ...]

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def ports(self) -> frozenset[int]:
        """Every UDP port by which this dialect is known."""
        return frozenset(port for ports in self.spec.ports.values() for port in ports)

    def form(self, name: str) -> Form | None:
        return next((form for form in self.forms if form.name == name), None)

    @property
    def messages(self) -> list[str]:
        return list(self.spec.messages)

    def _repr_html_(self) -> str:
        """For notebooks."""
        from .display import dialect_html

        return dialect_html(self)

"""A decoded datagram: what could be read of it, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from pcap_tools.dialect.program import Layout, Step, Value, as_int64

QOS_LIMIT = 1 << 31


@dataclass(slots=True)
class Message:
    """One datagram in the words of its dialect. Bytes stay bytes; numbers are ints.

    ``fields`` holds every field that was read, by name, in the order of the wire. ``padding`` counts the NULs after
    the message. ``error`` is None for a valid datagram.
    """

    dialect: str
    form: str
    message: str | None = None
    meaning: str | None = None
    fields: dict[str, Value] = field(default_factory=dict)
    padding: int = 0
    length: int = 0
    error: WireError | None = None
    error_offset: int | None = None
    layout: Layout | None = field(default=None, compare=False, repr=False)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def topic(self) -> bytes | None:
        """The topic of a publish, deliver or create: its text, or the dialect's word for its number."""
        return self._text(self.layout.topic if self.layout else None)

    @property
    def filter(self) -> bytes | None:
        """The filter of a subscribe or unsubscribe."""
        return self._text(self.layout.filter if self.layout else None)

    @property
    def payload(self) -> bytes | None:
        return self._text(self.layout.payload if self.layout else None)

    @property
    def retain(self) -> bool | None:
        value = self.fields.get(self.layout.retain) if self.layout and self.layout.retain else None
        return None if value is None else bool(value)

    @property
    def code(self) -> int | None:
        """The status or return code, as 64 bits."""
        number = self._number("code")
        return None if number is None else as_int64(number)

    @property
    def accepted(self) -> bool | None:
        """Whether the code accepts the request; None also where the dialect does not say which codes do."""
        number, step = self._number("code"), self._step("code")
        return number in step.accepted if number is not None and step and step.accepted else None

    @property
    def qos(self) -> int | None:
        """The quality of service: the number, or that which the dialect calls it. None if it does not fit 32 bits."""
        number, step = self._number("qos"), self._step("qos")
        if number is None or step is None:
            return None
        level = as_int64(step.word_numbers.get(number, number))
        return level if abs(level) < QOS_LIMIT else None

    @property
    def dup(self) -> bool | None:
        """Whether it says that it is a resend."""
        number = self._number("dup")
        return None if number is None else bool(number)

    def name_of(self, field_name: str) -> str | None:
        """The dialect's word for the number in a field, if it has one."""
        step = self.layout.step(field_name) if self.layout else None
        value = self.fields.get(field_name)
        return step.name_of(value) if step and value is not None else None

    def _step(self, column: Literal["code", "qos", "dup"]) -> Step | None:
        name = getattr(self.layout, column, None)
        return self.layout.step(name) if self.layout and name else None

    def _number(self, column: Literal["code", "qos", "dup"]) -> int | None:
        step = self._step(column)
        value = self.fields.get(step.name) if step else None
        return value if isinstance(value, int) else None

    def _text(self, field_name: str | None) -> bytes | None:
        value = self.fields.get(field_name) if field_name else None
        if isinstance(value, int):
            return (self.name_of(field_name or "") or str(value)).encode()
        return value


class WireError(StrEnum):
    """Codes of the ``error`` column; ``error_offset`` is the byte given after each."""

    EMPTY = "empty"  # no byte at all; 0
    UNKNOWN_TYPE = "unknown-type"  # no message is selected by this value; start of the deciding field
    INCOMPLETE = "incomplete"  # the datagram ends inside this field; start of the field
    NO_DELIMITER = "no-delimiter"  # the delimiter that ends this field never comes; start of the field
    BAD_MAGIC = "bad-magic"  # constant bytes that differ; start of the field
    BAD_LENGTH = "bad-length"  # a length that contradicts what is there; start of the length
    BAD_VALUE = "bad-value"  # a number that the dialect does not know, or a digit that is none; start of the field
    BAD_TEXT = "bad-text"  # a byte that is not in the text's character set; that byte
    TRAILING = "trailing-bytes"  # bytes after the last field that are no padding; the first of them
    CUT = "cut"  # the capture holds fewer bytes than the datagram had; the first missing byte

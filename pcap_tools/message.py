"""A decoded datagram: what could be read of it, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pcap_tools.dialect.program import Layout, Value
from pcap_tools.wire_errors import WireError


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

    def name_of(self, field_name: str) -> str | None:
        """The dialect's word for the number in a field, if it has one."""
        step = self.layout.step(field_name) if self.layout else None
        value = self.fields.get(field_name)
        return step.name_of(value) if step and value is not None else None

    def _text(self, field_name: str | None) -> bytes | None:
        value = self.fields.get(field_name) if field_name else None
        if isinstance(value, int):
            return (self.name_of(field_name or "") or str(value)).encode()
        return value

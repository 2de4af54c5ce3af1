"""Decoding and building single datagrams: the truth that every other decoder is measured against.

    >>> from pcap_tools import Codec, load_dialect
    >>> codec = Codec(load_dialect("colon"))
    >>> codec.decode(b"\\x01\\x00home/fan:ON").fields
    {'type': 1, 'retain': 0, 'topic': b'home/fan', 'payload': b'ON'}
    >>> codec.build(codec.message("SUBSCRIBE", retain=0, filter=b"home/*"))
    b'\\x03\\x00home/*'

``decode`` never raises. The walk is told in ``docs/decoding.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pcap_tools.codec import builder
from pcap_tools.codec.dispatch import pick_by_byte
from pcap_tools.codec.message import Message, WireError
from pcap_tools.codec.walk import Walk
from pcap_tools.dialect.program import Dialect, Form, Layout, Value
from pcap_tools.errors import UsageError


class Codec:
    """Decoder and builder of one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._dispatches = [_dispatch_of(_Same(form)) for form in dialect.forms]

    def decode(self, datagram: bytes, length: int | None = None) -> Message:
        """What this datagram says. ``length`` is its true length where the capture cut it short."""
        whole = len(datagram) if length is None else length
        best = self._decode_best(datagram)
        if whole > len(datagram):
            best.error, best.error_offset = WireError.CUT, len(datagram)
        best.length = whole
        return best

    def _decode_best(self, datagram: bytes) -> Message:
        if not datagram:
            return Message(self.dialect.name, self.dialect.forms[0].name, error=WireError.EMPTY, error_offset=0)
        best: Message | None = None
        for dispatch in self._dispatches:
            message = _message(self.dialect.name, dispatch.form, dispatch.decode(datagram))
            if message.error is None:
                return message
            if best is None or _depth(message) > _depth(best):
                best = message
        assert best is not None  # noqa: S101 - a dialect has at least one form
        return best

    def decode_if_valid(self, datagram: bytes) -> Message | None:
        """The message of a valid datagram, else None: quick, for those who ask many dialects."""
        for dispatch in self._dispatches:
            walk = dispatch.selected(datagram)
            if walk is not None and walk.error is None:
                message = _message(self.dialect.name, dispatch.form, walk)
                message.length = len(datagram)
                return message
        return None

    def message(
        self,
        name: str,
        given: Mapping[str, Value | str] | None = None,
        /,
        form: str | None = None,
        **fields: Value | str,
    ) -> Message:
        """A message to build: constants, lengths, padding and what was not said are filled in.

        Fields are given by keyword, or (for names that are no keywords) as a mapping.
        """
        return builder.complete(self.dialect, name, form, {**(given or {}), **fields})

    def build(self, message: Message, check: bool = True) -> bytes:
        """The bytes of a message. ``check=False`` builds invalid ones on purpose: wrong lengths, values and types,
        and any bytes at all in the place of a field."""
        built = builder.build(self.dialect, message, check)
        if check:
            read = self.decode(built)
            if read.error is not None or read.fields != message.fields or read.message != message.message:
                raise UsageError(f"{message.message}: {_why_invalid(message, read)}")
        return built


def _why_invalid(message: Message, read: Message) -> str:
    if read.error is not None:
        return f"would be read with the error {read.error} at byte {read.error_offset}"
    for name, value in message.fields.items():
        if read.fields.get(name) != value:
            return f"the field {name!r} would be read back as {read.fields.get(name)!r}, not {value!r}"
    return f"would be read back as {read.message}"


def _depth(message: Message) -> tuple[bool, int]:
    """How far a form with an error got: a message that was recognised goes before one that was not."""
    return message.message is not None, message.error_offset or 0


class _Dispatch:
    """Reads datagrams of one form by those of its layouts that are worth trying."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.offset, picked = pick_by_byte(form.layouts)
        self.by_byte = [tuple(form.layouts[place] for place in places) for places in picked]

    def candidates(self, datagram: bytes) -> tuple[Layout, ...]:
        return self.by_byte[datagram[self.offset]] if len(datagram) > self.offset else self.form.layouts

    def selected(self, datagram: bytes) -> Walk | None:
        """The reading by the first layout whose guards hold."""
        for layout in self.candidates(datagram):
            walk = Walk(layout, datagram, self.form.nul_padding)
            if walk.selected:
                return walk
        return None

    def decode(self, datagram: bytes) -> Walk:
        """The reading by the first layout whose guards hold, else the failure that got furthest."""
        walk = self.selected(datagram)
        if walk is not None:
            return walk
        failures = [Walk(layout, datagram, self.form.nul_padding) for layout in self.form.layouts]
        return max(failures, key=lambda walk: walk.error_offset)


@dataclass(frozen=True, eq=False, slots=True)
class _Same:
    """A form as a key: itself, not what it holds, which would take long to hash."""

    form: Form

    def __hash__(self) -> int:
        return id(self.form)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.form is self.form


@lru_cache(maxsize=256)
def _dispatch_of(same: _Same) -> _Dispatch:
    """Made once a form: clients and brokers make many codecs of one dialect."""
    return _Dispatch(same.form)


def _message(dialect: str, form: Form, walk: Walk) -> Message:
    message = Message(dialect, form.name, fields=walk.fields, ranges=walk.ranges, padding=walk.padding)
    if walk.selected:
        message.message, message.meaning, message.layout = (
            walk.layout.message,
            walk.layout.meaning,
            walk.layout,
        )
    if walk.error is not None:
        message.error, message.error_offset = walk.error, walk.error_offset
    return message

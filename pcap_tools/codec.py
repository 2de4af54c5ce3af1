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

from typing import NamedTuple

from pcap_tools import builder
from pcap_tools.charsets import first_bad_byte
from pcap_tools.dialect.program import Charset, Counts, Dialect, Extent, Form, Kind, Layout, Prefix, Step, Value
from pcap_tools.errors import UsageError
from pcap_tools.message import Message
from pcap_tools.wire_errors import WireError


class Codec:
    """Decoder and builder of one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._dispatches = [_Dispatch(form) for form in dialect.forms]

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

    def message(self, name: str, form: str | None = None, **fields: Value | str) -> Message:
        """A message to build: constants, lengths, padding and what was not said are filled in."""
        return builder.complete(self.dialect, name, form, fields)

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
    """Picks the layouts of a form worth trying, by the byte at which most of them part.

    A layout that is left out cannot be selected: one of its guards is that byte and does not hold.
    """

    def __init__(self, form: Form) -> None:
        self.form = form
        wanted = [_byte_guards(layout) for layout in form.layouts]
        values: dict[int, set[int]] = {}
        for guards in wanted:
            for offset, bytes_there in guards.items():
                values.setdefault(offset, set()).update(bytes_there)
        self.offset = max(sorted(values), key=lambda offset: len(values[offset]), default=0)
        self.by_byte = [
            tuple(
                layout
                for layout, guards in zip(form.layouts, wanted, strict=True)
                if self.offset not in guards or byte in guards[self.offset]
            )
            for byte in range(256)
        ]

    def candidates(self, datagram: bytes) -> tuple[Layout, ...]:
        return self.by_byte[datagram[self.offset]] if len(datagram) > self.offset else self.form.layouts

    def selected(self, datagram: bytes) -> _Walk | None:
        """The reading by the first layout whose guards hold."""
        for layout in self.candidates(datagram):
            walk = _Walk(layout, datagram, self.form.nul_padding)
            if walk.selected:
                return walk
        return None

    def decode(self, datagram: bytes) -> _Walk:
        """The reading by the first layout whose guards hold, else the failure that got furthest."""
        walk = self.selected(datagram)
        if walk is not None:
            return walk
        failures = [_Walk(layout, datagram, self.form.nul_padding) for layout in self.form.layouts]
        return max(failures, key=lambda walk: walk.error_offset)


def _byte_guards(layout: Layout) -> dict[int, set[int]]:
    """The guards that are one byte at a fixed offset: which values they take."""
    guards: dict[int, set[int]] = {}
    offset = 0
    for step in layout.steps[: layout.last_guard + 1]:
        if step.extent is not Extent.FIXED or step.kind is Kind.BITS:
            break
        if step.kind is Kind.MAGIC:
            guards |= {offset + index: {byte} for index, byte in enumerate(step.literal)}
        elif step.size == 1 and step.guard is not None and step.kind in (Kind.UINT, Kind.DIGITS):
            zero = 0x30 if step.kind is Kind.DIGITS and not step.binary_digits else 0
            guards[offset] = {zero + value for value in step.guard if isinstance(value, int)}
        offset += step.size
    return guards


def _message(dialect: str, form: Form, walk: _Walk) -> Message:
    message = Message(dialect, form.name, fields=walk.fields, ranges=walk.ranges, padding=walk.padding)
    if walk.selected:
        message.message, message.meaning, message.layout = walk.layout.message, walk.layout.meaning, walk.layout
    if walk.error is not None:
        message.error, message.error_offset = walk.error, walk.error_offset
    return message


class _Stop(Exception):
    """Reading cannot go on."""

    def __init__(self, error: WireError, offset: int) -> None:
        self.error, self.offset = error, offset


class _Counted(NamedTuple):
    """A run of steps whose length was told in front."""

    last_step: int
    end: int
    told_at: int


class _Walk:
    """One reading of a datagram by one layout."""

    def __init__(self, layout: Layout, data: bytes, nul_padding: bool) -> None:
        self.layout, self.data, self.nul_padding = layout, data, nul_padding
        self.at, self.end = 0, len(data)
        self.fields: dict[str, Value] = {}
        self.ranges: dict[str, tuple[int, int]] = {}
        self.starts: list[int] = []
        self.counted: _Counted | None = None
        self.padding = 0
        self.end_told = False
        self.error: WireError | None = None
        self.error_offset = 0
        self.selected = layout.last_guard < 0
        self.after_delimiter = self.after_open_end = False
        try:
            self._run()
        except _Stop as stop:
            self._note(stop.error, stop.offset)
            if not self.selected:  # why it was not selected counts for more than what was noted on the way
                self.error, self.error_offset = stop.error, stop.offset

    def _run(self) -> None:
        for index, step in enumerate(self.layout.steps):
            self._open_counted(step)
            if self._absent(step):
                break
            start = self.at
            self.starts.append(start)
            value = self._read(step)
            self.fields[step.name] = value
            self.ranges[step.name] = (start, self.at if step.kind is not Kind.BITS else start + step.size)
            if step.guard is not None and value not in step.guard:
                raise _Stop(WireError.UNKNOWN_TYPE, start)
            if index == self.layout.last_guard:
                self.selected = True
            self._judge(step, value, start)
            self._limit(index, step, value, start)
            self._close_counted(index)
        self._finish()

    def _note(self, error: WireError, offset: int) -> None:
        if self.error is None:
            self.error, self.error_offset = error, offset

    def _limit_here(self) -> int:
        return self.counted.end if self.counted else self.end

    def _absent(self, step: Step) -> bool:
        if not step.optional or self.at < self._limit_here() or self.after_delimiter:
            return False
        if step.kind is Kind.BITS:
            return step.opens_group
        return step.extent is not Extent.REST or self.after_open_end

    # -- reading one step ---------------------------------------------------------------------------------------

    def _read(self, step: Step) -> Value:
        self.after_delimiter = self.after_open_end = False
        if step.extent is Extent.FIXED:
            return self._read_fixed(step)
        if step.extent is Extent.UNTIL:
            return self._read_until(step)
        if step.extent is Extent.PREFIX:
            return self._read_prefixed(step)
        return self._take(self._end_of_rest() - self.at)

    def _end_of_rest(self) -> int:
        if self._may_be_padded():
            return max(self.at, len(self.data.rstrip(b"\0")))
        return self._limit_here()

    def _may_be_padded(self) -> bool:
        """NULs at the end are padding only where no length says that they belong to the message."""
        return self.nul_padding and not self.end_told and self.counted is None

    def _take(self, size: int) -> bytes:
        if size > self._limit_here() - self.at:
            raise _Stop(WireError.INCOMPLETE, self.at)
        taken = self.data[self.at : self.at + size]
        self.at += size
        return taken

    def _read_fixed(self, step: Step) -> Value:
        start = self.at
        raw = self._take(step.size)
        if step.kind is Kind.BITS:
            if not step.closes_group:
                self.at = start
            return int.from_bytes(raw, "big") >> step.shift & (1 << step.bits) - 1
        if step.kind in (Kind.UINT, Kind.INT):
            return int.from_bytes(raw, "little" if step.little else "big", signed=step.kind is Kind.INT)
        if step.kind is Kind.DIGITS:
            return _digits(raw, 0 if step.binary_digits else 0x30, WireError.BAD_VALUE, start)
        if step.kind is Kind.MAGIC and raw != step.literal:
            raise _Stop(WireError.BAD_MAGIC, start)
        return raw

    def _read_until(self, step: Step) -> bytes:
        found = self.data.find(step.literal, self.at, self._limit_here())
        if found < 0 and not step.or_end:
            raise _Stop(WireError.NO_DELIMITER, self.at)
        if found < 0:
            self.after_open_end = True
            return self._take(self._end_of_rest() - self.at)
        value = self._take(found - self.at)
        if not (step.or_end and step is self.layout.steps[-1]):
            self.at += len(step.literal)
            self.after_delimiter = True
        return value

    def _read_prefixed(self, step: Step) -> bytes:
        start = self.at
        raw = self._take(step.size)
        if step.prefix is Prefix.ASCII:
            size = _digits(raw, 0x30, WireError.BAD_LENGTH, start)
        else:
            order = "little" if step.prefix is Prefix.UNSIGNED_LITTLE else "big"
            size = int.from_bytes(raw, order, signed=step.prefix is Prefix.SIGNED)
        if size < 0:
            raise _Stop(WireError.BAD_LENGTH, start)
        if size > self._limit_here() - self.at:
            raise _Stop(WireError.INCOMPLETE, start)
        return self._take(size)

    # -- judging what was read ----------------------------------------------------------------------------------

    def _judge(self, step: Step, value: Value, start: int) -> None:
        if step.allowed is not None and value not in step.allowed:
            self._note(WireError.BAD_VALUE, start)
        if step.charset is not Charset.ANY and isinstance(value, bytes):
            bad = first_bad_byte(value, step.charset)
            if bad >= 0:
                offset = start + (step.size if step.extent is Extent.PREFIX else 0)
                self._note(WireError.BAD_TEXT, offset + bad)

    def _limit(self, index: int, step: Step, value: Value, start: int) -> None:
        """Let a length field say where the message, or a run of its fields, ends."""
        if step.counts is Counts.NOTHING or not isinstance(value, int):
            return
        if step.counts is Counts.SPAN:
            if step.span[0] <= index:
                self._count(self.starts[step.span[0]], value, step.span[1], start)
            return
        told = (self.at if step.counts is Counts.REST else 0) + value
        if told < self.at or told > self.end:
            self._note(WireError.BAD_LENGTH, start)
            return
        left = self.data[told : self.end]
        if left:
            if self._may_be_padded() and not left.strip(b"\0"):
                self.padding += len(left)
            else:
                self._note(WireError.BAD_LENGTH, start)
        self.end, self.end_told = told, True

    def _open_counted(self, step: Step) -> None:
        if step.span_length < 0 or self.counted:
            return
        length = self.layout.steps[step.span_length]
        value = self.fields.get(length.name)
        if isinstance(value, int):
            self._count(self.at, value, length.span[1], self.starts[step.span_length])

    def _count(self, first: int, size: int, last_step: int, told_at: int) -> None:
        end = first + size
        if end < self.at or end > self.end:
            self._note(WireError.BAD_LENGTH, told_at)
            end = self.end
        self.counted = _Counted(last_step, end, told_at)

    def _close_counted(self, index: int) -> None:
        if self.counted is None or self.counted.last_step != index:
            return
        if self.at != self.counted.end:
            self._note(WireError.BAD_LENGTH, self.counted.told_at)
            self.at = self.counted.end
        self.counted = None

    def _finish(self) -> None:
        left = self.data[self.at : self.end]
        if not left:
            return
        if self._may_be_padded() and not left.strip(b"\0"):
            self.padding += len(left)
        else:
            self._note(WireError.TRAILING, self.at)


def _digits(raw: bytes, zero: int, error: WireError, offset: int) -> int:
    number = 0
    for byte in raw:
        if not zero <= byte <= zero + 9:
            raise _Stop(error, offset)
        number = number * 10 + byte - zero
    return number

"""One reading of a datagram by one layout: fields, errors, and whether the layout is the right one at all.

Told in words in ``docs/decoding.md``. The Lua engine and the columnar decoder do the same with the same tables.
"""

from __future__ import annotations

from typing import NamedTuple

from pcap_tools.codec.message import WireError
from pcap_tools.codec.numbers import READERS, Stop, read_digits
from pcap_tools.dialect.program import Charset, Counts, Extent, Kind, Layout, Prefix, Step, Value


class _Counted(NamedTuple):
    """A run of steps whose length was told in front."""

    last_step: int
    end: int
    told_at: int


class Walk:
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
        self.after_delimiter = False
        self.open_end: int | None = None  # where the field began that ended without its delimiter
        try:
            self._run()
        except Stop as stop:
            self._note(stop.error, stop.offset)
            if not self.selected:  # why it was not selected counts for more than what was noted on the way
                self.error, self.error_offset = stop.error, stop.offset

    def _run(self) -> None:
        for index, step in enumerate(self.layout.steps):
            if step.span_length >= 0:
                self._open_counted(step)
            if (step.optional or self.open_end is not None) and self._absent(step):
                break
            start = self.at
            self.starts.append(start)
            value = self._read(step)
            self.fields[step.name] = value
            self.ranges[step.name] = (start, self.at if step.kind is not Kind.BITS else start + step.size)
            if step.guard is not None and value not in step.guard:
                raise Stop(WireError.UNKNOWN_TYPE, start)
            if index == self.layout.last_guard:
                self.selected = True
            if step.allowed is not None or step.charset is not Charset.ANY:
                self._judge(step, value, start)
            if step.counts is not Counts.NOTHING:
                self._limit(index, step, value, start)
            if self.counted is not None:
                self._close_counted(index)
        self._finish()

    def _note(self, error: WireError, offset: int) -> None:
        if self.error is None:
            self.error, self.error_offset = error, offset

    def _limit_here(self) -> int:
        return self.counted.end if self.counted else self.end

    def _absent(self, step: Step) -> bool:
        if self.open_end is not None:  # nothing can come after it
            if step.optional:
                return True
            raise Stop(WireError.NO_DELIMITER, self.open_end)
        if not step.optional or self.at < self._limit_here() or self.after_delimiter:
            return False
        return step.opens_group if step.kind is Kind.BITS else step.extent is not Extent.REST

    # -- reading one step ---------------------------------------------------------------------------------------

    def _read(self, step: Step) -> Value:
        self.after_delimiter = False
        read = READERS.get(step.kind)
        if read is not None:
            value, self.at = read(step, self.data, self.at, self._limit_here())
            return value
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
        start, self.at = self.at, self.at + size
        if self.at > (self.counted.end if self.counted else self.end):
            raise Stop(WireError.INCOMPLETE, start)
        return self.data[start : self.at]

    def _read_fixed(self, step: Step) -> bytes:
        start = self.at
        raw = self._take(step.size)
        if step.kind is Kind.MAGIC and raw != step.literal:
            raise Stop(WireError.BAD_MAGIC, start)
        return raw

    def _read_until(self, step: Step) -> bytes:
        found = self.data.find(step.literal, self.at, self._limit_here())
        if found < 0 and not step.or_end:
            raise Stop(WireError.NO_DELIMITER, self.at)
        if found < 0:
            self.open_end = self.at
            return self._take(self._end_of_rest() - self.at)
        value = self._take(found - self.at)
        if not (step.or_end and step.closes_run):
            self.at += len(step.literal)
            self.after_delimiter = True
        return value

    def _read_prefixed(self, step: Step) -> bytes:
        start = self.at
        raw = self._take(step.size)
        if step.prefix is Prefix.ASCII:
            size = read_digits(raw, 0x30, WireError.BAD_LENGTH, start)
        else:
            little = step.prefix is Prefix.UNSIGNED_LITTLE
            size = int.from_bytes(raw, "little" if little else "big", signed=step.prefix is Prefix.SIGNED)
        if size < 0:
            raise Stop(WireError.BAD_LENGTH, start)
        if size > self._limit_here() - self.at:
            raise Stop(WireError.INCOMPLETE, start)
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
        if not isinstance(value, int):
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
        if self.counted:
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
        self.counted = self.open_end = None

    def _finish(self) -> None:
        self.counted = None  # an absent field may have ended the layout inside a run
        left = self.data[self.at : self.end]
        if not left:
            return
        if self._may_be_padded() and not left.strip(b"\0"):
            self.padding += len(left)
        else:
            self._note(WireError.TRAILING, self.at)


def first_bad_byte(text: bytes, charset: Charset) -> int:
    """Index of the first byte that does not belong, or -1."""
    if charset is Charset.ANY or text.isascii():
        return -1
    if charset is Charset.UTF8:
        return _first_bad_utf8(text)
    if charset is Charset.JAVA:
        return _first_bad_java(text)
    return next(index for index, byte in enumerate(text) if byte > 127)


def _first_bad_utf8(text: bytes) -> int:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return -1


def _first_bad_java(text: bytes) -> int:
    at = 0
    while at < len(text):
        byte = text[at]
        more = 0 if byte < 0x80 else 1 if 0xC0 <= byte < 0xE0 else 2 if 0xE0 <= byte < 0xF0 else -1
        tail = text[at + 1 : at + 1 + more]
        if more < 0 or len(tail) < more or any(follower & 0xC0 != 0x80 for follower in tail):
            return at
        at += 1 + more
    return -1

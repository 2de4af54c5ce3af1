"""Numbers on the wire: for each kind of field that is a number, how it is read and how it is written.

    >>> from pcap_tools.dialect.program import Kind, Step
    >>> WRITERS[Kind.UINT](Step("id", Kind.UINT, size=2), 7, True)
    b'\\x00\\x07'

A reader gets the datagram, where the field begins and where it must end at the latest; it returns the value and where
the field ends, or raises ``Stop``. A writer of a number that does not fit raises ``UsageError``, or cuts it off if
``check`` is false. Bits are written by the group, in ``builder``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pcap_tools.codec.message import WireError
from pcap_tools.dialect.kinds import NUMBERS
from pcap_tools.dialect.program import Kind, Step
from pcap_tools.errors import UsageError

Reader = Callable[[Step, bytes, int, int], tuple[int, int]]
Writer = Callable[[Step, int, bool], bytes]
_MOST_VARINT = 4


class Stop(Exception):
    """Reading cannot go on."""

    def __init__(self, error: WireError, offset: int) -> None:
        self.error, self.offset = error, offset


def fits(step: Step, value: int) -> bool:
    low, high = NUMBERS[step.kind](step.size, step.bits)
    return low <= value <= high


def _order(step: Step) -> Literal["little", "big"]:
    return "little" if step.little else "big"


def _raw(step: Step, data: bytes, at: int, limit: int) -> bytes:
    if at + step.size > limit:
        raise Stop(WireError.INCOMPLETE, at)
    return data[at : at + step.size]


def _read_whole(step: Step, data: bytes, at: int, limit: int) -> tuple[int, int]:
    raw = _raw(step, data, at, limit)
    return int.from_bytes(raw, _order(step), signed=step.kind is Kind.INT), at + step.size


def _write_whole(step: Step, value: int, check: bool) -> bytes:
    if check and not fits(step, value):
        size = f"{step.size} signed bytes" if step.kind is Kind.INT else f"{8 * step.size} bits"
        raise UsageError(f"{value} does not fit the {size} of {step.name!r}")
    return (value % (1 << 8 * step.size)).to_bytes(step.size, _order(step))


def _read_bits(step: Step, data: bytes, at: int, limit: int) -> tuple[int, int]:
    """Only the last field of a group ends where its bytes end."""
    raw = _raw(step, data, at, limit)
    value = int.from_bytes(raw, "big") >> step.shift & (1 << step.bits) - 1
    return value, at + step.size if step.closes_group else at


def read_digits(raw: bytes, zero: int, error: WireError, offset: int) -> int:
    """Decimal digits, of which ``zero`` is 0."""
    number = 0
    for byte in raw:
        if not zero <= byte <= zero + 9:
            raise Stop(error, offset)
        number = number * 10 + byte - zero
    return number


def _read_digits(step: Step, data: bytes, at: int, limit: int) -> tuple[int, int]:
    zero = 0 if step.binary_digits else 0x30
    return read_digits(_raw(step, data, at, limit), zero, WireError.BAD_VALUE, at), at + step.size


def _write_digits(step: Step, value: int, check: bool) -> bytes:
    if check and not fits(step, value):
        raise UsageError(f"{value} does not fit the {step.size} digits of {step.name!r}")
    digits = str(abs(value) % 10**step.size).zfill(step.size)
    return bytes(int(digit) + (0 if step.binary_digits else 0x30) for digit in digits)


def _read_varint(step: Step, data: bytes, at: int, limit: int) -> tuple[int, int]:
    value = 0
    for index in range(_MOST_VARINT):
        if at + index >= limit:
            raise Stop(WireError.INCOMPLETE, at)
        byte = data[at + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            if byte == 0 and index:  # a shorter one would do
                break
            return value, at + index + 1
    raise Stop(WireError.BAD_VALUE, at)


def _write_varint(step: Step, value: int, check: bool) -> bytes:
    if check and not fits(step, value):
        raise UsageError(f"{value} does not fit the {_MOST_VARINT} bytes of {step.name!r}, which hold 7 bits each")
    rest, written = value % (1 << 7 * _MOST_VARINT), bytearray()
    while rest > 0x7F:
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*written, rest])


READERS: dict[Kind, Reader] = {
    Kind.UINT: _read_whole,
    Kind.INT: _read_whole,
    Kind.BITS: _read_bits,
    Kind.DIGITS: _read_digits,
    Kind.VARINT: _read_varint,
}
WRITERS: dict[Kind, Writer] = {
    Kind.UINT: _write_whole,
    Kind.INT: _write_whole,
    Kind.DIGITS: _write_digits,
    Kind.VARINT: _write_varint,
}

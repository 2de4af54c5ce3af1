"""One reading of a datagram by one layout, as ``pcap_tools.codec.walk`` does it; told in words in ``docs/decoding.md``.

Tables are flat: a step or a field is the place of its first number. (A row of a two-dimensional array would be an
object with a count of its users.) Offsets count from the beginning of the datagram, which is at ``base`` in the buffer.
Behind every datagram at least 64 bytes can be read, so a number is cut out of a whole word, and text is looked at in
whole blocks.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from pcap_tools.codec.message import WireError
from pcap_tools.columnar.decode.tables import PREFIX_ASCII, PREFIX_LITTLE, PREFIX_SIGNED, Flag, Op, StepColumn
from pcap_tools.columnar.decode.text_kernel import first_bad_byte
from pcap_tools.dialect.program import Counts
from pcap_tools.kernels.jit import i64, inlined, u64
from pcap_tools.kernels.words import BLOCK, equal_in_block, item, load64, swapped, zeros_above, zeros_below

ERRORS = tuple(WireError)  # an error's code is its place here, plus one; 0 is none


class FieldColumn(IntEnum):
    """What is kept of each field that was read."""

    START = 0
    END = 1
    VALUE = 2  # a number, or where the bytes of the value begin
    VALUE_END = 3


def _code(error: WireError) -> Any:
    return ERRORS.index(error) + 1


EMPTY, CUT = _code(WireError.EMPTY), _code(WireError.CUT)
UNKNOWN_TYPE, INCOMPLETE = _code(WireError.UNKNOWN_TYPE), _code(WireError.INCOMPLETE)
NO_DELIMITER, BAD_MAGIC = _code(WireError.NO_DELIMITER), _code(WireError.BAD_MAGIC)
BAD_LENGTH, BAD_VALUE = _code(WireError.BAD_LENGTH), _code(WireError.BAD_VALUE)
BAD_TEXT, TRAILING = _code(WireError.BAD_TEXT), _code(WireError.TRAILING)

# numba wants plain numbers
_OP, _FLAGS, _SIZE, _ADVANCE = (int(c) for c in (StepColumn.OP, StepColumn.FLAGS, StepColumn.SIZE, StepColumn.ADVANCE))
_SHIFT, _MASK, _LITERAL = int(StepColumn.SHIFT), int(StepColumn.MASK), int(StepColumn.LITERAL)
_LITERAL_SIZE, _GUARD, _GUARDS = int(StepColumn.LITERAL_SIZE), int(StepColumn.GUARD), int(StepColumn.GUARDS)
_ALLOWED, _ALLOWEDS, _ALLOWED_MASK = (int(StepColumn.ALLOWED) + index for index in range(3))
_CHARSET, _COUNTS, _PREFIX = int(StepColumn.CHARSET), int(StepColumn.COUNTS), int(StepColumn.PREFIX)
_SPAN_FIRST, _SPAN_LAST, _SPAN_LENGTH = (int(StepColumn.SPAN_FIRST) + index for index in range(3))
_NUMBER, _LITTLE, _SIGNED, _SIGNED_LITTLE = (int(op) for op in (Op.NUMBER, Op.LITTLE, Op.SIGNED, Op.SIGNED_LITTLE))
_DIGITS, _MAGIC, _RAW, _UNTIL, _PREFIXED = (int(op) for op in (Op.DIGITS, Op.MAGIC, Op.RAW, Op.UNTIL, Op.PREFIX))
_VARINT, _MOST_VARINT = int(Op.VARINT), 4
_HAS_GUARD, _HAS_ALLOWED, _IS_TEXT = int(Flag.GUARD), int(Flag.ALLOWED), int(Flag.TEXT)
_OPTIONAL, _MAY_BE_ABSENT, _HAS_COUNTS = int(Flag.OPTIONAL), int(Flag.MAY_BE_ABSENT), int(Flag.COUNTS)
_SPAN_BEGINS, _OR_END, _KEEPS_DELIMITER = int(Flag.SPAN_BEGINS), int(Flag.OR_END), int(Flag.KEEPS_DELIMITER)
_COUNTS_REST, _COUNTS_SPAN = int(Counts.REST), int(Counts.SPAN)
_START, _END, _VALUE, _VALUE_END = (int(column) for column in FieldColumn)
_STEP, _FIELD = len(StepColumn), len(FieldColumn)
_FAR = 1 << 40  # no datagram reaches as far; a length above it is as wrong as this one


@inlined
def walk(
    steps: Any,
    pool: Any,
    literals: Any,
    first: int,
    count: int,
    last_guard: int,
    buffer: Any,
    base: int,
    size: int,
    nul_padding: bool,
    fields: Any,
) -> tuple[bool, int, int, int, int]:
    """Whether the layout is selected, error, its offset, padding, and how many fields were read."""
    at = read = padding = 0
    end = limit = size
    content = -1  # the datagram less the NULs at its end, once somebody asked
    run_last, run_told = -1, 0
    error = error_at = stop = stop_at = 0
    open_end = -1  # where the field began that ended without its delimiter
    told = after_delimiter = False
    selected = last_guard < 0
    for index in range(count):
        step = first + index * _STEP
        flags = item(steps, step + _FLAGS)
        if flags & _SPAN_BEGINS and run_last < 0 and item(steps, step + _SPAN_LENGTH) < index:
            length = item(steps, step + _SPAN_LENGTH)
            limit = run_end(at, item(fields, length * _FIELD + _VALUE), at, end)
            run_last, run_told = (
                item(steps, first + length * _STEP + _SPAN_LAST),
                item(fields, length * _FIELD + _START),
            )
            if limit < 0:
                limit = end
                if error == 0:
                    error, error_at = BAD_LENGTH, run_told
        if open_end >= 0:
            if not flags & _OPTIONAL:
                stop, stop_at = NO_DELIMITER, open_end
            break
        if flags & _OPTIONAL and at >= limit and not after_delimiter and flags & _MAY_BE_ABSENT:
            break

        start = at
        op = item(steps, step + _OP)
        after_delimiter = False
        value = value_end = at
        if op <= _RAW:
            width = item(steps, step + _SIZE)
            advance = item(steps, step + _ADVANCE)
            if op == _VARINT:
                width = advance = varint_size(buffer, base + at, limit - at)
                if width < 0:
                    stop, stop_at = BAD_VALUE, start
                    break
            value_end = at + width
            if value_end > limit:
                stop, stop_at = INCOMPLETE, start
                break
            if op <= _DIGITS:
                value = read_number(steps, step, op, buffer, base + at)
                if op == _DIGITS and value < 0:
                    stop, stop_at = BAD_VALUE, start
                    break
            elif op == _MAGIC and not same(
                buffer, base + at, literals, item(steps, step + _LITERAL), item(steps, step + _SIZE)
            ):
                stop, stop_at = BAD_MAGIC, start
                break
            at += advance
        elif op == _PREFIXED:
            stop, value, at = read_prefixed(steps, step, buffer, base, at, limit)
            if stop:
                stop_at = start
                break
            value_end = at
        else:
            found = -1
            if op == _UNTIL:
                found = find(
                    buffer, base, at, limit, literals, item(steps, step + _LITERAL), item(steps, step + _LITERAL_SIZE)
                )
                if found < 0 and not flags & _OR_END:
                    stop, stop_at = NO_DELIMITER, start
                    break
            if found >= 0:
                at = value_end = found
                if not flags & _KEEPS_DELIMITER:
                    at += item(steps, step + _LITERAL_SIZE)
                    after_delimiter = True
            else:
                if op == _UNTIL:
                    open_end = at
                if nul_padding and not told and run_last < 0:
                    if content < 0:
                        content = without_nuls(buffer, base, size)
                    at = max(at, content)
                else:
                    at = limit
                value_end = max(start, at)

        field = index * _FIELD
        fields[field + _START] = start
        fields[field + _END] = at if op > _RAW else value_end
        fields[field + _VALUE] = value
        fields[field + _VALUE_END] = value_end
        read = index + 1

        if flags & _HAS_GUARD and not holds(steps, step, op, pool, literals, buffer, base, value, value_end):
            stop, stop_at = UNKNOWN_TYPE, start
            break
        if index == last_guard:
            selected = True
        if flags & _HAS_ALLOWED and error == 0 and not is_allowed(steps, step, pool, value):
            error, error_at = BAD_VALUE, start
        if flags & _IS_TEXT and error == 0:
            bad = first_bad_byte(buffer, base + value, base + value_end, item(steps, step + _CHARSET))
            if bad >= 0:
                error, error_at = BAD_TEXT, bad - base
        if flags & _HAS_COUNTS:
            if item(steps, step + _COUNTS) == _COUNTS_SPAN:
                if item(steps, step + _SPAN_FIRST) <= index:
                    limit = run_end(item(fields, item(steps, step + _SPAN_FIRST) * _FIELD + _START), value, at, end)
                    run_last, run_told = item(steps, step + _SPAN_LAST), start
                    if limit < 0:
                        limit = end
                        if error == 0:
                            error, error_at = BAD_LENGTH, start
            else:
                here = run_end(at if item(steps, step + _COUNTS) == _COUNTS_REST else 0, value, at, end)
                wrong = here < 0
                if here >= 0:
                    if here < end:
                        wrong = True
                        if nul_padding and not told and run_last < 0:
                            if content < 0:
                                content = without_nuls(buffer, base, size)
                            if content <= here:
                                wrong = False
                                padding += end - here
                    end, told = here, True
                    if run_last < 0:
                        limit = end
                if wrong and error == 0:
                    error, error_at = BAD_LENGTH, start
        if run_last == index:
            if at != limit:
                if error == 0:
                    error, error_at = BAD_LENGTH, run_told
                at = limit
            run_last = open_end = -1
            limit = end

    if stop:
        if error == 0 or not selected:
            error, error_at = stop, stop_at
    elif at < end:
        if nul_padding and not told:
            if content < 0:
                content = without_nuls(buffer, base, size)
            if content <= at:
                padding += end - at
                at = end
        if at < end and error == 0:
            error, error_at = TRAILING, at
    return selected, error, error_at, padding, read


@inlined
def run_end(first: int, length: int, at: int, end: int) -> Any:
    """Where what a length counts ends; -1 if that is nowhere in the message. Above 2**63 a length looks negative."""
    last = first + length if -_FAR < length < _FAR else -1
    return -1 if last < at or last > end else last


@inlined
def read_number(steps: Any, step: int, op: int, buffer: Any, place: int) -> Any:
    """The number in a field of fixed size; digits that are none give -1."""
    if op == _DIGITS:
        return digits(buffer, place, item(steps, step + _SIZE), item(steps, step + _LITERAL))
    if op == _VARINT:
        return varint(buffer, place)
    word = load64(buffer, place)
    shift = u64(item(steps, step + _SHIFT))
    if op == _NUMBER:
        return i64(swapped(word) >> shift) & item(steps, step + _MASK)
    if op == _LITTLE:
        return i64(word << shift >> shift)
    if op == _SIGNED:
        return i64(swapped(word)) >> i64(shift)
    return i64(word << shift) >> i64(shift)


@inlined
def digits(buffer: Any, place: int, size: int, zero: int) -> Any:
    number = i64(0)
    for index in range(place, place + size):
        digit = i64(item(buffer, index)) - zero
        if digit < 0 or digit > 9:
            return -1
        number = number * 10 + digit
    return number


@inlined
def varint_size(buffer: Any, place: int, available: int) -> Any:
    """How many bytes the number here takes, one more than there are if it is cut; -1 if it takes too many."""
    for index in range(_MOST_VARINT):
        if index >= available:
            return index + 1
        byte = item(buffer, place + index)
        if byte < 0x80:
            return -1 if byte == 0 and index > 0 else index + 1
    return -1


@inlined
def varint(buffer: Any, place: int) -> Any:
    number = i64(0)
    for index in range(_MOST_VARINT):
        byte = i64(item(buffer, place + index))
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            break
    return number


@inlined
def read_prefixed(steps: Any, step: int, buffer: Any, base: int, at: int, limit: int) -> tuple[int, int, int]:
    """What stops the reading, where the text begins, and where it ends."""
    text = at + item(steps, step + _SIZE)
    if text > limit:
        return INCOMPLETE, text, text
    prefix = item(steps, step + _PREFIX)
    if prefix == PREFIX_ASCII:
        size = digits(buffer, base + at, item(steps, step + _SIZE), 0x30)
    else:
        op = _SIGNED if prefix == PREFIX_SIGNED else _LITTLE if prefix == PREFIX_LITTLE else _NUMBER
        size = read_number(steps, step, op, buffer, base + at)
    if size < 0:
        return BAD_LENGTH, text, text
    if size > limit - text:
        return INCOMPLETE, text, text
    return 0, text, text + size


@inlined
def same(buffer: Any, place: int, literals: Any, literal: int, size: int) -> Any:
    """Whether the bytes here are those of a literal."""
    done = 0
    while size - done >= 8:
        if load64(buffer, place + done) != load64(literals, literal + done):
            return False
        done += 8
    if size == done:
        return True
    differ = load64(buffer, place + done) ^ load64(literals, literal + done)
    return bool(differ << u64(64 - 8 * (size - done)) == 0)


@inlined
def find(buffer: Any, base: int, at: int, limit: int, literals: Any, literal: int, size: int) -> Any:
    """Where the delimiter begins, or -1; all of it must lie before the limit."""
    last = limit - size + 1  # behind the last place where it can begin
    byte = i64(item(literals, literal))
    while at < last:
        mask = equal_in_block(buffer, base + at, byte)
        while mask != 0:
            place = at + zeros_below(mask)
            if place >= last:
                return -1
            if size == 1 or same(buffer, base + place, literals, literal, size):
                return place
            mask &= mask - u64(1)
        at += BLOCK
    return -1


@inlined
def without_nuls(buffer: Any, base: int, size: int) -> Any:
    """The size without the NULs at the end."""
    if size and item(buffer, base + size - 1):
        return size
    all_nul = u64(0xFFFFFFFF)
    while size >= 4 * BLOCK:
        last = base + size - BLOCK
        nuls = equal_in_block(buffer, last, 0) & equal_in_block(buffer, last - BLOCK, 0)
        if nuls & equal_in_block(buffer, last - 2 * BLOCK, 0) & equal_in_block(buffer, last - 3 * BLOCK, 0) != all_nul:
            break
        size -= 4 * BLOCK
    while size >= BLOCK:
        others = equal_in_block(buffer, base + size - BLOCK, 0) ^ all_nul
        if others != 0:
            return size - zeros_above(others) + BLOCK
        size -= BLOCK
    others = (equal_in_block(buffer, base, 0) ^ all_nul) & ((u64(1) << u64(size)) - u64(1))
    return 64 - zeros_above(others)


@inlined
def holds(
    steps: Any, step: int, op: int, pool: Any, literals: Any, buffer: Any, base: int, value: int, value_end: int
) -> Any:
    """Whether a field has one of the values by which the layout is selected."""
    guard, count = item(steps, step + _GUARD), item(steps, step + _GUARDS)
    if op <= _DIGITS:
        for index in range(guard, guard + count):  # noqa: SIM110 - numba has no generators
            if item(pool, index) == value:
                return True
        return False
    for index in range(guard, guard + 2 * count, 2):
        size = item(pool, index + 1)
        if size == value_end - value and same(buffer, base + value, literals, item(pool, index), size):
            return True
    return False


@inlined
def is_allowed(steps: Any, step: int, pool: Any, value: int) -> Any:
    """Whether the dialect knows this number."""
    if 0 <= value < 64:
        return bool(item(steps, step + _ALLOWED_MASK) >> value & 1)
    first = item(steps, step + _ALLOWED)
    for index in range(first, first + item(steps, step + _ALLOWEDS)):  # noqa: SIM110
        if item(pool, index) == value:
            return True
    return False

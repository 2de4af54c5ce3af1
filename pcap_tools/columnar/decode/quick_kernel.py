"""The quick reading of usual datagrams by plans (see ``plans``): the same result as the walk, or none."""

from __future__ import annotations

from typing import Any

from pcap_tools.columnar.decode.marks import PLACE_BITS
from pcap_tools.columnar.decode.plans import PlanColumn, Shape
from pcap_tools.columnar.decode.tables import Flag, Op, StepColumn
from pcap_tools.columnar.decode.text_kernel import first_bad_byte
from pcap_tools.columnar.decode.walk_kernel import (
    find,
    holds,
    is_allowed,
    read_number,
    read_prefixed,
    run_end,
    without_nuls,
)
from pcap_tools.dialect.program import Counts
from pcap_tools.kernels.jit import i64, inlined, u64
from pcap_tools.kernels.words import equal_in_block, high_in_block, item, load64, put, zeros_below

MATCH, NO_MATCH, UNSURE = 0, 1, 2

_SIZE, _NUL_PADDING = int(PlanColumn.SIZE), int(PlanColumn.NUL_PADDING)
_GUARD_MASK, _GUARD_MASK_HIGH, _GUARD, _GUARD_HIGH = (int(PlanColumn.GUARD_MASK) + index for index in range(4))
_VALID_MASK, _VALID = int(PlanColumn.VALID_MASK), int(PlanColumn.VALID)
_LOOKS, _LOOKS_END, _TAIL, _TAIL_END = (int(PlanColumn.LOOKS) + index for index in range(4))
_STEP = len(StepColumn)
_OP, _FLAGS, _STEP_SIZE = int(StepColumn.OP), int(StepColumn.FLAGS), int(StepColumn.SIZE)
_CHARSET, _COUNTS = int(StepColumn.CHARSET), int(StepColumn.COUNTS)
_LITERAL, _LITERAL_SIZE = int(StepColumn.LITERAL), int(StepColumn.LITERAL_SIZE)
_DIGITS, _UNTIL, _REST = int(Op.DIGITS), int(Op.UNTIL), int(Op.REST)
_HAS_GUARD, _HAS_ALLOWED, _IS_TEXT, _HAS_COUNTS = (
    int(flag) for flag in (Flag.GUARD, Flag.ALLOWED, Flag.TEXT, Flag.COUNTS)
)
_COUNTS_REST = int(Counts.REST)
_SHAPE, _HEAD_MASK, _HEAD, _DELIMITER, _ASCII = (int(PlanColumn.SHAPE) + index for index in range(5))
_FLAG_MASK, _FLAG_ZERO, _FLAG_NONE = (int(PlanColumn.FLAG_MASK) + index for index in range(3))
_OTHER, _NOTHING, _UNTIL_AND_REST = int(Shape.OTHER), int(Shape.NOTHING), int(Shape.UNTIL_AND_REST)
_NO_CHARSET = -1  # in which every byte from 80 on is bad


@inlined
def by_shape(plans: Any, plan: int, buffer: Any, base: int, size: int) -> tuple[bool, int, int, int, int]:
    """Whether the datagram is surely a valid one of this layout, its padding, retain, and marks of the texts behind the
    head.

    What ``quick`` says in more words, for plans that have a shape; texts must be ASCII, and a delimiter come early.
    """
    shape, at = item(plans, plan + _SHAPE), item(plans, plan + _SIZE)
    word = i64(load64(buffer, base))
    if shape == _OTHER or word & item(plans, plan + _HEAD_MASK) != item(plans, plan + _HEAD) or at > size:
        return False, 0, 0, 0, 0
    flag = (word ^ item(plans, plan + _FLAG_ZERO)) & item(plans, plan + _FLAG_MASK)
    retain = item(plans, plan + _FLAG_NONE) + i64(flag != 0)
    content, checked = size, item(plans, plan + _ASCII)
    if item(plans, plan + _NUL_PADDING):
        content = without_nuls(buffer, base, size)
    if shape == _NOTHING:
        return content <= at, size - at, retain, 0, 0
    first = i64(0)
    if shape == _UNTIL_AND_REST:
        found = equal_in_block(buffer, base + at, item(plans, plan + _DELIMITER))
        before = (found & (u64(0) - found)) - u64(1)
        place = at + zeros_below(found)
        if found == 0 or place >= size or (checked & 1 and high_in_block(buffer, base + at) & before):
            return False, 0, 0, 0, 0
        first = (place - at) << PLACE_BITS | at
        at = place + 1
        checked >>= 1
    end = max(at, content)
    if checked and first_bad_byte(buffer, base + at, base + end, _NO_CHARSET) >= 0:
        return False, 0, 0, 0, 0
    rest = (end - at) << PLACE_BITS | at
    if shape == _UNTIL_AND_REST:
        return True, size - end, retain, first, rest
    return True, size - end, retain, rest, 0


@inlined
def quick(
    plans: Any,
    plan: int,
    looks: Any,
    steps: Any,
    pool: Any,
    literals: Any,
    buffer: Any,
    base: int,
    size: int,
    tails: Any,
) -> tuple[int, int]:
    """Whether the datagram is a valid one of this layout, and its padding; marks of the texts go to ``tails``.

    NO_MATCH: the layout is not selected. UNSURE: it takes the walk to tell.
    """
    at = item(plans, plan + _SIZE)
    word = i64(load64(buffer, base))
    if at >= 0:
        if word & item(plans, plan + _GUARD_MASK) != item(plans, plan + _GUARD):
            return NO_MATCH, 0
        high = item(plans, plan + _GUARD_MASK_HIGH)
        if high != 0 and i64(load64(buffer, base + 8)) & high != item(plans, plan + _GUARD_HIGH):
            return NO_MATCH, 0
    if at < 0 or at > size or word & item(plans, plan + _VALID_MASK) != item(plans, plan + _VALID):
        return UNSURE, 0
    end = size
    told = False
    look, looks_end = item(plans, plan + _LOOKS), item(plans, plan + _LOOKS_END)
    while look < looks_end:  # a range with a step would begin with a division
        step, offset = item(looks, look), item(looks, look + 1)
        look += 2
        here = _look(steps, step, offset, pool, literals, buffer, base, end)
        if here < 0 or (told and here != end):
            return UNSURE, 0
        if item(steps, step + _FLAGS) & _HAS_COUNTS:
            end, told = here, True
    content = end
    if item(plans, plan + _NUL_PADDING) and (not told or end < size):
        content = without_nuls(buffer, base, size)
        if told:
            if content > end:
                return UNSURE, 0
            content = end
    elif end < size:
        return UNSURE, 0
    if at > end:
        return UNSURE, 0
    tail = 0
    step, steps_end = item(plans, plan + _TAIL), item(plans, plan + _TAIL_END)
    while step < steps_end:
        op = item(steps, step + _OP)
        value = at
        if op == _REST:
            value_end = at = max(at, content)
        elif op == _UNTIL:
            length = item(steps, step + _LITERAL_SIZE)
            value_end = find(buffer, base, at, end, literals, item(steps, step + _LITERAL), length)
            at = value_end + length
            if value_end < 0:
                return UNSURE, 0
        else:
            stop, value, at = read_prefixed(steps, step, buffer, base, at, end)
            value_end = at
            if stop:
                return UNSURE, 0
        if item(steps, step + _FLAGS) & _IS_TEXT:
            bad = first_bad_byte(buffer, base + value, base + value_end, item(steps, step + _CHARSET))
            if bad >= 0:
                return UNSURE, 0
        put(tails, tail, (value_end - value) << PLACE_BITS | value)
        tail += 1
        step += _STEP
    if at < content:
        return UNSURE, 0
    return MATCH, size - at


@inlined
def _look(steps: Any, step: int, offset: int, pool: Any, literals: Any, buffer: Any, base: int, end: int) -> Any:
    """Where the message ends as this field of the head has it; -1 if anything is wrong with the field."""
    op, flags = item(steps, step + _OP), item(steps, step + _FLAGS)
    value, value_end = offset, offset + item(steps, step + _STEP_SIZE)
    if op <= _DIGITS:
        value = read_number(steps, step, op, buffer, base + offset)
        if op == _DIGITS and value < 0:
            return -1
    if flags & _HAS_GUARD and not holds(steps, step, op, pool, literals, buffer, base, value, value_end):
        return -1
    if flags & _HAS_ALLOWED and not is_allowed(steps, step, pool, value):
        return -1
    if flags & _IS_TEXT and first_bad_byte(buffer, base + value, base + value_end, item(steps, step + _CHARSET)) >= 0:
        return -1
    if flags & _HAS_COUNTS:
        return run_end(value_end if item(steps, step + _COUNTS) == _COUNTS_REST else 0, value, value_end, end)
    return end

"""The quick reading of usual datagrams by plans (see ``plans``): the same result as the walk, or none."""

from __future__ import annotations

from typing import Any

from pcap_tools.dialect.program import Counts

from .jit import i64, inlined
from .marks import PLACE_BITS
from .plans import PlanColumn
from .tables import Flag, Op, StepColumn
from .text_kernel import first_bad_byte
from .walk_kernel import find, holds, is_allowed, read_number, read_prefixed, run_end, without_nuls
from .words import item, load64, put

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

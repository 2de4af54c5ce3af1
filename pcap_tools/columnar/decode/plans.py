"""Plans: how a datagram of a usual layout is read quickly if nothing is wrong with it.

A plan compares the first 16 bytes with all single-valued guards and constants at once, and with those sets of allowed
values that a mask can tell (0 and 1, most often). Then it checks those fields of the fixed head that take
more than that, and the texts that follow. It matches, or leaves the datagram to the walk, as everything unusual is.
Layouts with optional fields or counted runs have no plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from pcap_tools.columnar.decode.text_refs import ABSENT, number_ref, tail_ref, text_ref
from pcap_tools.dialect.kinds import NUMBERS
from pcap_tools.dialect.program import Charset, Counts, Extent, Form, Kind, Layout, Step, Value

HEAD = 16
MOST_TAILS = 8


class PlanColumn(IntEnum):
    """One row for each layout."""

    SIZE = 0  # of the head; -1 for a layout without a plan
    GUARD_MASK = 1  # of the first 8 bytes, then of the second: what selects the layout
    GUARD_MASK_HIGH = 2
    GUARD = 3
    GUARD_HIGH = 4
    VALID_MASK = 5  # of the first 8 bytes: what else must hold
    VALID = 6
    HEAD_CHECKS = 7  # (step, offset) of fields to check
    HEAD_CHECKS_END = 8
    TAIL = 9  # steps behind the head
    TAIL_END = 10
    NUL_PADDING = 11
    TOPIC = 12  # text references, as if the datagram began at 0
    FILTER = 13
    PAYLOAD = 14
    RETAIN = 15  # offset of the word that holds it, -1 for none
    RETAIN_MASK = 16  # of that word
    RETAIN_ZERO = 17  # what these bits are where it is 0


class Head:
    """What 16 bytes are compared with."""

    def __init__(self) -> None:
        self.mask, self.wanted = bytearray(HEAD), bytearray(HEAD)

    def add(self, offset: int, mask: bytes, wanted: bytes) -> None:
        for index, (bits, value) in enumerate(zip(mask, wanted, strict=True), offset):
            self.mask[index] |= bits
            self.wanted[index] |= value

    def words(self, half: int) -> tuple[int, int]:
        """Mask and wanted bits of one half, as the kernel loads it."""
        at = slice(8 * half, 8 * half + 8)
        return word_of(self.mask[at]), word_of(self.wanted[at])


def word_of(raw: bytes | bytearray) -> int:
    """Bytes as the int64 that a load of them gives."""
    return int.from_bytes(raw.ljust(8, b"\0"), "little", signed=True)


def plan_of(form: Form, layout: Layout, first_step: int, step_size: int) -> tuple[dict[PlanColumn, int], list[int]]:
    """The plan of a layout and the fields of its head to check; nothing if the layout is not of the usual kind."""
    fixed = [step.extent is Extent.FIXED for step in layout.steps]
    tail = fixed.index(False) if False in fixed else len(fixed)
    if not _is_usual(layout, tail):
        return {}, []
    guard, valid, head_checks = Head(), Head(), []
    offsets = list(offsets_of(layout.steps[:tail]))
    for index, (step, offset) in enumerate(zip(layout.steps[:tail], offsets, strict=False)):
        settled = _compare(step, offset, guard) or (offset + step.size <= 8 and _compare_allowed(step, offset, valid))
        if step.kind is Kind.MAGIC and not settled:
            return {}, []
        if (not settled and _is_checked(step)) or step.counts is not Counts.NOTHING:
            head_checks += [first_step + index * step_size, offset]
    plan = {PlanColumn.SIZE: offsets[tail], PlanColumn.NUL_PADDING: int(form.nul_padding)}
    plan[PlanColumn.GUARD_MASK], plan[PlanColumn.GUARD] = guard.words(0)
    plan[PlanColumn.GUARD_MASK_HIGH], plan[PlanColumn.GUARD_HIGH] = guard.words(1)
    plan[PlanColumn.VALID_MASK], plan[PlanColumn.VALID] = valid.words(0)
    plan[PlanColumn.TAIL] = first_step + tail * step_size
    plan[PlanColumn.TAIL_END] = first_step + len(layout.steps) * step_size
    names = {PlanColumn.TOPIC: layout.topic, PlanColumn.FILTER: layout.filter, PlanColumn.PAYLOAD: layout.payload}
    where = {step.name: index for index, step in enumerate(layout.steps)}
    for column, name in names.items():
        plan[column] = ABSENT if name is None else _ref(layout, where[name], tail, offsets, first_step, step_size)
    plan |= _retain(layout, tail, offsets)
    return plan, head_checks


_TAILS = (Extent.UNTIL, Extent.PREFIX, Extent.REST)


def _is_usual(layout: Layout, tail: int) -> bool:
    if any(step.optional or step.span_length >= 0 or step.counts is Counts.SPAN for step in layout.steps):
        return False
    tails = layout.steps[tail:]
    retain = layout.step(layout.retain) if layout.retain else None
    return (
        len(tails) <= MOST_TAILS
        and all(step.extent in _TAILS and step.guard is None and not step.or_end for step in tails)
        and (retain is None or (retain.extent is Extent.FIXED and retain.kind in NUMBERS and retain.size <= 8))
    )


def offsets_of(steps: Iterable[Step]) -> Iterable[int]:
    """Where each step of a head begins, and where the head ends."""
    offset = 0
    for step in steps:
        yield offset
        if step.kind is not Kind.BITS or step.closes_group:
            offset += step.size
    yield offset


def _is_checked(step: Step) -> bool:
    """Whether anything can be wrong with a field that is there."""
    return (
        step.guard is not None
        or step.allowed is not None
        or step.charset is not Charset.ANY
        or step.kind is Kind.DIGITS
    )


def _compare(step: Step, offset: int, head: Head) -> bool:
    """Add a constant, or a guard of one value, to the comparison; False if it cannot be put that way."""
    if offset + step.size > HEAD or not (step.kind is Kind.MAGIC or (step.guard and len(step.guard) == 1)):
        return False
    value = step.literal if step.kind is Kind.MAGIC else (step.guard or (b"",))[0]
    head.add(offset, _bits_of(step), _written(step, value))
    return not isinstance(value, bytes) or step.charset is Charset.ANY or value.isascii()


def _compare_allowed(step: Step, offset: int, head: Head) -> bool:
    """The same for a set of allowed values that has all numbers which agree in some bits."""
    if step.allowed is None or step.guard is not None or step.kind not in (Kind.UINT, Kind.BITS):
        return False
    free = 0
    for number in step.allowed:
        free |= number ^ step.allowed[0]
    if len(step.allowed) != 1 << free.bit_count():
        return False
    mask, fixed = _bits_of(step), _written(step, free)
    head.add(offset, bytes(a & ~b for a, b in zip(mask, fixed, strict=True)), _written(step, step.allowed[0] & ~free))
    return True


def _bits_of(step: Step) -> bytes:
    """Which bits of its bytes belong to a step."""
    return _written(step, (1 << step.bits) - 1) if step.kind is Kind.BITS else bytes([255]) * step.size


def _written(step: Step, value: Value) -> bytes:
    """A value as it stands on the wire."""
    if isinstance(value, bytes):
        return value
    if step.kind is Kind.BITS:
        return (value << step.shift).to_bytes(step.size, "big")
    if step.kind is Kind.DIGITS:
        text = f"{value:0{step.size}d}".encode()
        return bytes(byte - 0x30 for byte in text) if step.binary_digits else text
    return value.to_bytes(step.size, "little" if step.little else "big", signed=step.kind is Kind.INT)


def _ref(layout: Layout, index: int, tail: int, offsets: list[int], first_step: int, step_size: int) -> int:
    step = layout.steps[index]
    if index >= tail:
        return tail_ref(index - tail)
    if step.kind in NUMBERS:
        return number_ref(offsets[index], first_step + index * step_size)
    return text_ref(offsets[index], step.size)


def _retain(layout: Layout, tail: int, offsets: list[int]) -> dict[PlanColumn, int]:
    for step, offset in zip(layout.steps[:tail], offsets, strict=False):
        if step.name == layout.retain:
            zero = _written(step, 0)
            return {
                PlanColumn.RETAIN: offset,
                PlanColumn.RETAIN_MASK: word_of(_bits_of(step)),
                PlanColumn.RETAIN_ZERO: word_of(zero),
            }
    return {PlanColumn.RETAIN: -1, PlanColumn.RETAIN_MASK: 0, PlanColumn.RETAIN_ZERO: 0}

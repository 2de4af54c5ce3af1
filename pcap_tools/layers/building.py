"""Which form and layout a half-said message means, and its bytes. Nothing here refuses a wrong value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from scapy.fields import RawVal

from pcap_tools.codec import builder
from pcap_tools.codec.message import Message
from pcap_tools.dialect.program import Counts, Dialect, Form, Kind, Layout, Step, Value
from pcap_tools.errors import UsageError

Choice = tuple[Form, Layout]


def choose(dialect: Dialect, message: str | None, form: str | None, given: Mapping[str, Any]) -> Choice:
    """The layout that has the given fields and whose guards like them; of several, the first that holds all.

    ``message`` None allows the layouts of every message.
    """
    candidates = [
        (candidate, layout)
        for candidate in dialect.forms
        if form in (None, candidate.name)
        for layout in candidate.layouts
        if message in (None, layout.message)
    ]
    if not candidates:
        raise UsageError(f"{message} does not stand in the form {form!r} of {dialect.name}")
    misfits = [_misfits(layout, given) for _, layout in candidates]
    best = [choice for choice, misfit in zip(candidates, misfits, strict=True) if misfit == min(misfits)]
    if len(best) == 1:
        return best[0]
    return next((choice for choice in best if _can_hold(dialect, choice, given)), best[0])


def _misfits(layout: Layout, given: Mapping[str, Any]) -> tuple[int, int]:
    steps = {step.name: step for step in layout.steps}
    strangers = sum(name not in steps for name in given)
    refused = sum(
        value not in (steps[name].guard or ())
        for name, value in given.items()
        if name in steps and steps[name].guard is not None
    )
    return strangers, refused


def _can_hold(dialect: Dialect, choice: Choice, given: Mapping[str, Any]) -> bool:
    try:
        builder.build(dialect, to_message(dialect, choice, given), check=True)
    except UsageError:
        return False
    return True


def to_message(dialect: Dialect, choice: Choice, given: Mapping[str, Any], partial: bool = False) -> Message:
    """A message to build unchecked. ``partial`` ends it after the last field that is given."""
    form, layout = choice
    steps: list[Step] = []
    fields: dict[str, Value] = {}
    for index, step in enumerate(layout.steps):
        if is_absent(layout.steps, index, given) or (partial and index > _last_given(layout.steps, given)):
            break
        if step.name in given:
            fields[step.name] = _plain(given[step.name])
        elif step.counts is Counts.NOTHING:
            fields[step.name] = builder.default_value(step)
        steps.append(_as_given(step, given.get(step.name)))
    layout = replace(layout, steps=tuple(steps))
    return Message(dialect.name, form.name, layout.message, layout.meaning, fields, layout=layout)


def is_absent(steps: tuple[Step, ...], index: int, given: Mapping[str, Any]) -> bool:
    """Does the message end before this step, since it is optional and nobody gave it or a later one?"""
    return steps[index].optional and not any(step.name in given for step in steps[index:])


def _last_given(steps: tuple[Step, ...], given: Mapping[str, Any]) -> int:
    """The last step that is given, or that shares bytes with it."""
    last = max((index for index, step in enumerate(steps) if step.name in given), default=-1)
    while last >= 0 and steps[last].kind is Kind.BITS and not steps[last].closes_group:
        last += 1
    return last


def _as_given(step: Step, value: Any) -> Step:
    """Raw bytes stand alone, with no delimiter after and no length in front; what is there is not optional."""
    if isinstance(value, RawVal) and step.kind is not Kind.BITS:
        return Step(step.name, Kind.BYTES)
    return replace(step, optional=False)


def _plain(value: Any) -> Any:
    """What the builder takes; it refuses what is neither number nor bytes."""
    if isinstance(value, RawVal | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    return value

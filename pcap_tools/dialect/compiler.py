"""From a checked spec to the tables that decoders walk. Backends interpret these; no code is generated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .kinds import KINDS, number_range
from .program import Counts, Dialect, Form, Kind, Layout, Step, Value
from .spec import DialectSpec, FieldSpec, FormSpec, MessageSpec

DEFAULT_FORM = "documented"

_TOPICAL = {"publish", "deliver", "create"}
_LOADED = {"publish", "deliver", "status"}
_FILTERED = {"subscribe", "unsubscribe"}
_ANSWERS = {"ack", "status"}


def compile_dialect(spec: DialectSpec) -> Dialect:
    """The tables of a spec that ``check_structure`` found sound."""
    return Dialect(spec, tuple(_form(spec, name, form) for name, form in forms_of(spec).items()))


def forms_of(spec: DialectSpec) -> dict[str, FormSpec]:
    """The forms of a dialect; one that names none has one."""
    return spec.forms or {DEFAULT_FORM: FormSpec()}


def fields_of(spec: DialectSpec, form: FormSpec) -> dict[str, FieldSpec]:
    """The fields as this form writes them: its keys go over the common ones, a new kind replaces all."""
    return spec.fields | {name: field_of(spec, name, changes) for name, changes in form.fields.items()}


def field_of(spec: DialectSpec, name: str, changes: dict[str, Any]) -> FieldSpec:
    """One field as a form writes it."""
    base: dict[str, Any] = {}
    if name in spec.fields and changes.get("kind", spec.fields[name].kind) == spec.fields[name].kind:
        base = spec.fields[name].model_dump(exclude_unset=True)
    return FieldSpec.model_validate(base | changes)


def layout_names(spec: DialectSpec, message: MessageSpec, fields: dict[str, FieldSpec]) -> list[str]:
    """The fields of a message in order: header and groups written out, ``name?`` only where this form has it."""
    names: list[str] = []
    for entry in [*(spec.header if message.header else []), *message.layout]:
        optional, name = entry.endswith("?"), entry.removesuffix("?")
        if name in spec.groups:
            names += spec.groups[name]
        elif name in fields or not optional:
            names.append(name)
    return names


def meaning_of(variants: list[MessageSpec], variant: MessageSpec) -> str:
    """A variant that says nothing means what the first one means."""
    return variant.means or variants[0].means or "other"


def _form(spec: DialectSpec, name: str, form: FormSpec) -> Form:
    fields = fields_of(spec, form)
    layouts = [
        _layout(spec, message, variant, meaning_of(variants, variant), fields)
        for message, variants in spec.messages.items()
        for variant in variants
        if not variant.forms or name in variant.forms
    ]
    padding = form.padding or spec.padding
    return Form(name, tuple(layouts), padding == "nul", form.pad_to or spec.pad_to or 0)


def _layout(
    spec: DialectSpec, message: str, variant: MessageSpec, meaning: str, fields: dict[str, FieldSpec]
) -> Layout:
    names = layout_names(spec, variant, fields)
    steps: list[Step] = []
    first_optional = _first_optional(spec, variant, names)
    for index, name in enumerate(names):
        steps += [replace(step, optional=index >= first_optional) for step in _steps(name, fields[name], variant)]
    steps = _place_spans(_place_bits(steps), {name: fields[name].counts for name in names})
    guards = [index for index, step in enumerate(steps) if step.guard is not None or step.kind is Kind.MAGIC]
    fill = tuple((name, value.encode() if isinstance(value, str) else value) for name, value in variant.fill.items())
    columns = columns_of(variant, meaning, {name: fields[name] for name in names})
    return Layout(message, meaning, tuple(steps), max(guards, default=-1), **columns, fill=fill)


def _first_optional(spec: DialectSpec, variant: MessageSpec, names: list[str]) -> int:
    """The place from which on a datagram may end before the next field."""
    if variant.optional_from is None:
        return len(names)
    return names.index(spec.groups.get(variant.optional_from, [variant.optional_from])[0])


def columns_of(variant: MessageSpec, meaning: str, layout: dict[str, FieldSpec]) -> dict[str, str | None]:
    """Which field fills which column: as the message says, else the field of that name where it makes sense."""

    def named(name: str, sensible: bool) -> str | None:
        return name if sensible and name in layout else None

    def number(name: str, sensible: bool = True) -> str | None:
        return named(name, sensible and name in layout and number_range(layout[name]) is not None)

    filter_field = named("filter", True) or named("topic", meaning in _FILTERED)
    return {
        "topic": variant.topic or named("topic", meaning in _TOPICAL),
        "filter": variant.filter or (filter_field if meaning in _FILTERED else None),
        "payload": variant.payload or named("payload", meaning in _LOADED),
        "retain": variant.retain or named("retain", True),
        "code": variant.code or number("code", meaning in _ANSWERS),
        "qos": variant.qos or number("qos"),
        "dup": variant.dup or number("dup"),
    }


def _steps(name: str, field: FieldSpec, variant: MessageSpec) -> list[Step]:
    step = KINDS[field.kind].step(field)
    if step["kind"] is Kind.MAGIC:
        length = Step(f"{name}_length", Kind.UINT, size=1, counts=Counts.REST)
        return [Step(name, **step), *([length] if field.kind == "java-block" else [])]
    return [Step(name, guard=_guard(variant.when.get(name)), **step)]


def _guard(values: list[int | str] | None) -> tuple[Value, ...] | None:
    if values is None:
        return None
    return tuple(value.encode() if isinstance(value, str) else value for value in values)


def _place_bits(steps: list[Step]) -> list[Step]:
    """Give each run of bit fields its shifts: first field in the highest bits, a run fills whole bytes."""
    placed: list[Step] = []
    for index, step in enumerate(steps):
        if step.kind is not Kind.BITS:
            placed.append(step)
            continue
        first = index
        while first and steps[first - 1].kind is Kind.BITS:
            first -= 1
        last = index
        while last + 1 < len(steps) and steps[last + 1].kind is Kind.BITS:
            last += 1
        after = sum(other.bits for other in steps[index + 1 : last + 1])
        size = sum(other.bits for other in steps[first : last + 1]) // 8
        opens, closes = index == first, index == last
        placed.append(replace(step, size=size, shift=after, opens_group=opens, closes_group=closes))
    return placed


def _place_spans(steps: list[Step], counts: dict[str, Any]) -> list[Step]:
    """Tie each length that counts named fields to the steps of those fields."""
    steps = list(steps)
    where = {step.name: index for index, step in enumerate(steps)}
    for name, counted in counts.items():
        if not isinstance(counted, list):
            continue
        inside = [where[field] for field in counted if field in where]
        if inside:
            first, last, length = min(inside), max(inside), where[name]
            steps[length] = replace(steps[length], counts=Counts.SPAN, span=(first, last))
            steps[first] = replace(steps[first], span_length=length)
            steps[last] = replace(steps[last], closes_run=True)
    steps[-1] = replace(steps[-1], closes_run=True)
    return steps

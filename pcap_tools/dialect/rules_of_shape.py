"""Checks of a dialect that look across its tables: do the names exist, can every layout be read and built?

Backends may rely on all that stands here; none of them has to doubt a dialect again.
"""

from __future__ import annotations

import re
from collections.abc import Container

from pydantic import ValidationError

from .compiler import columns_of, field_of, fields_of, forms_of, layout_names, meaning_of
from .layout_check import LayoutCheck, all_field_names, number_range
from .positions import Path
from .problems import Findings
from .spec import DialectSpec, FieldSpec, FormSpec, MessageSpec
from .wording import problems_of

_FIELD_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_MESSAGE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}")


def check_shape(spec: DialectSpec, findings: Findings) -> None:
    """Note everything that keeps this dialect from being decoded, built or followed."""
    _check_names(spec, findings)
    _check_references(spec, findings)
    for form_name, form in forms_of(spec).items():
        if not any(_stands_in(variant, form_name) for variants in spec.messages.values() for variant in variants):
            findings.add(("forms", form_name), "no message stands in this form")
        if not _form_fields_are_sound(spec, form_name, form, findings):
            continue
        fields = fields_of(spec, form)
        for name, field in fields.items():
            _check_field(name, field, fields, findings)
        for message, variants in spec.messages.items():
            for index, variant in enumerate(variants):
                path: Path = ("messages", message) if len(variants) == 1 else ("messages", message, index)
                if _stands_in(variant, form_name):
                    LayoutCheck(spec, fields, variant, path, findings, (form.padding or spec.padding) == "nul").run()
    if not findings.problems:
        _check_reachable(spec, findings)
        _check_codes(spec, findings)


def _stands_in(variant: MessageSpec, form_name: str) -> bool:
    return not variant.forms or form_name in variant.forms


def _form_fields_are_sound(spec: DialectSpec, form_name: str, form: FormSpec, findings: Findings) -> bool:
    sound = True
    for name, changes in form.fields.items():
        try:
            field_of(spec, name, changes)
        except ValidationError as error:
            sound = False
            for problem in problems_of(error, changes, ("fields", name)):
                findings.add(("forms", form_name, *problem.path), problem.text)
    return sound


def _check_names(spec: DialectSpec, findings: Findings) -> None:
    for table, names, pattern in (
        ("fields", spec.fields, _FIELD_NAME),
        ("groups", spec.groups, _FIELD_NAME),
        ("forms", spec.forms, _FIELD_NAME),
        ("messages", spec.messages, _MESSAGE_NAME),
    ):
        for name in names:
            if not pattern.fullmatch(name):
                findings.add((table, name), f"expected a name like {pattern.pattern}")
    for form_name, form in spec.forms.items():
        for name in form.fields:
            if not _FIELD_NAME.fullmatch(name):
                findings.add(("forms", form_name, "fields", name), f"expected a name like {_FIELD_NAME.pattern}")
    if spec.pad_to and spec.padding != "nul":
        findings.add(("pad_to",), 'goes with padding = "nul"')
    for group in set(spec.groups) & set(all_field_names(spec)):
        findings.add(("groups", group), "there is a field of this name")


def _check_field(name: str, field: FieldSpec, fields: Container[str], findings: Findings) -> None:
    if field.kind == "java-block" and f"{name}_length" in fields:
        findings.add(("fields", f"{name}_length"), f"the Java block {name!r} has a field of this name already")
    numbers = list((field.values or {}).values())
    if len(numbers) != len(set(numbers)):
        findings.add(("fields", name, "values"), "two names for one number")
    for number in field.accepted:
        _check_accepted(("fields", name, "accepted"), number, field, findings)
    if field.values:
        low, high = number_range(field)
        for word, number in field.values.items():
            if not low <= number <= high:
                findings.add(
                    ("fields", name, "values", word), f"{number} does not fit: the field holds {low} to {high}"
                )


def _check_accepted(path: Path, number: int, field: FieldSpec, findings: Findings) -> None:
    low, high = number_range(field)
    if not low <= number <= high:
        findings.add(path, f"{number} does not fit: the field holds {low} to {high}")
    elif field.values and not field.open and number not in field.values.values():
        known = ", ".join(map(str, sorted(field.values.values())))
        findings.add(path, f"{number} is not one of the field's values: {known}")


def _check_codes(spec: DialectSpec, findings: Findings) -> None:
    """What accepts a request must be the code of some message."""
    forms = {name: fields_of(spec, form) for name, form in forms_of(spec).items()}
    codes = {
        columns_of(variant, meaning_of(variants, variant), {name: fields[name] for name in names})["code"]
        for form, fields in forms.items()
        for variants in spec.messages.values()
        for variant in variants
        if _stands_in(variant, form) and (names := layout_names(spec, variant, fields))
    }
    for name, field in ((name, field) for fields in forms.values() for name, field in fields.items()):
        if field.accepted and name not in codes:
            findings.add(("fields", name, "accepted"), f"no message has this code; give one the key code = {name!r}")


def _check_references(spec: DialectSpec, findings: Findings) -> None:
    """Names of messages, fields and roles in the policies."""
    messages, fields, roles = list(spec.messages), all_field_names(spec), list(spec.ports)
    for group, members in spec.groups.items():
        if not members:
            findings.add(("groups", group), "expected at least one field")
        for index, name in enumerate(members):
            findings.known(("groups", group, index), name, fields, "field")
    for message, variants in spec.messages.items():
        if not variants:
            findings.add(("messages", message), "expected a table, or a list of one or more")
        for variant in variants:
            if variant.sender is not None:
                findings.known(("messages", message, "from"), variant.sender, roles, "role among the ports")
            for index, form in enumerate(variant.forms):
                findings.known(("messages", message, "forms", index), form, list(spec.forms), "form")
            for acked in variant.acks:
                findings.known(("messages", message, "acks"), acked, [*messages, "any"], "message")
            if variant.acks and meaning_of(variants, variant) != "ack":
                findings.add(("messages", message, "acks"), 'goes with means = "ack"')
    for message, forward in spec.broker.forward.items():
        findings.known(("broker", "forward", message), message, messages, "message")
        if not isinstance(forward, str):
            findings.known(("broker", "forward", message, "as"), forward.becomes, messages, "message")
            for name in [*forward.set, *forward.fresh]:
                findings.known(("broker", "forward", message), name, fields, "field")
    for message, answer in spec.broker.status.items():
        findings.known(("broker", "status", message), message, messages, "message")
        findings.known(("broker", "status", message), answer, messages, "message")
    for index, message in enumerate(spec.client.acks):
        findings.known(("client", "acks", index), message, messages, "message")
    if spec.client.resend:
        for name in [*spec.client.resend.may_change, *spec.client.resend.marks]:
            findings.known(("client", "resend"), name, fields, "field")
    if spec.topics.number:
        findings.known(("topics", "number"), spec.topics.number, fields, "field")
    if spec.topics.named_by:
        findings.known(("topics", "named_by"), spec.topics.named_by, messages, "message")
    if spec.broker.nak:
        findings.known(("broker", "nak"), spec.broker.nak, messages, "message")
    if spec.broker.subscriber_port:
        findings.known(("broker", "subscriber_port"), spec.broker.subscriber_port, fields, "field")


def _check_reachable(spec: DialectSpec, findings: Findings) -> None:
    """No message may stand in the shadow of an earlier one."""
    seen: list[tuple[str, dict[str, set[int | str]], tuple[str, ...]]] = []
    for message, variants in spec.messages.items():
        for variant in variants:
            when = {name: set(values) for name, values in variant.when.items()}
            magic = tuple(
                name.removesuffix("?")
                for name in [*(spec.header if variant.header else []), *variant.layout]
                if (field := spec.fields.get(name)) is not None and field.kind == "magic"
            )
            for earlier, taken, earlier_magic in seen:
                covers = all(name in when and when[name] <= values for name, values in taken.items())
                if covers and set(earlier_magic) <= set(magic):
                    findings.add(("messages", message, "when"), f"never selected: {earlier} takes it first")
                    break
            seen.append((message, when, magic))

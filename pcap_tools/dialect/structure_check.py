"""Checks of a dialect that look across its tables: do the names exist, can every layout be read and built?

Backends rely on all of these checks; none of them has to doubt a dialect again. `LayoutCheck` looks at one layout in
one form: can it be read and built, and is there only one way to do so?
"""

from __future__ import annotations

import re
from collections.abc import Container

from pydantic import ValidationError

from .compiler import columns_of, field_of, fields_of, forms_of, layout_names, meaning_of
from .kinds import number_range
from .positions import Path
from .problems import Findings
from .spec import DialectSpec, FieldSpec, FormSpec, LoopSpec, MessageSpec
from .wording import problems_of

_FIELD_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_MESSAGE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}")


def check_structure(spec: DialectSpec, findings: Findings) -> None:
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
    holds = number_range(field)
    if field.values and holds:
        low, high = holds
        for word, number in field.values.items():
            if not low <= number <= high:
                findings.add(
                    ("fields", name, "values", word), f"{number} does not fit: the field holds {low} to {high}"
                )


def _check_accepted(path: Path, number: int, field: FieldSpec, findings: Findings) -> None:
    low, high = number_range(field) or (0, 0)
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
    if spec.application.loop:
        _check_loop(spec, spec.application.loop, findings)
    if spec.broker.nak:
        findings.known(("broker", "nak"), spec.broker.nak, messages, "message")
    if spec.broker.subscriber_port:
        findings.known(("broker", "subscriber_port"), spec.broker.subscriber_port, fields, "field")


def _check_loop(spec: DialectSpec, loop: LoopSpec, findings: Findings) -> None:
    """The messages of a loop are publishes of a role each, and every reading has one reply."""
    path: Path = ("application", "loop")
    for key, message in (("reading", loop.reading), ("reply", loop.reply), ("report", loop.report)):
        if not findings.known((*path, key), message, list(spec.messages), "message"):
            continue
        variants = spec.messages[message]
        if variants and (meaning_of(variants, variants[0]) != "publish" or variants[0].sender is None):
            findings.add((*path, key), f"expected a publish that one role sends, which {message} is not")
    before, last = loop.replies[:-1], loop.replies[-1:]
    if not last or last[0].above is not None or last[0].below is not None:
        findings.add((*path, "replies"), "expected a last entry without above and below, for all other readings")
    for index, entry in enumerate(before):
        if (entry.above is None) == (entry.below is None):
            findings.add((*path, "replies", index), "expected either above or below")


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


CONSTANT = ("magic", "java-block")


class LayoutCheck:
    """The checks of one layout in one form."""

    def __init__(
        self,
        spec: DialectSpec,
        fields: dict[str, FieldSpec],
        message: MessageSpec,
        path: Path,
        findings: Findings,
        nul_padding: bool,
    ) -> None:
        self.spec, self.fields, self.message, self.path, self.findings = spec, fields, message, path, findings
        self.nul_padding = nul_padding
        self.names = layout_names(spec, message, fields)

    def add(self, key: str, text: str) -> None:
        problem_path = (*self.path, key)
        if not any(problem.path == problem_path for problem in self.findings.problems):
            self.findings.add(problem_path, text)

    def run(self) -> None:
        if not self._names_exist():
            return
        self._guards()
        self._bits()
        self._optional_from()
        self._open_ended_last()
        self._spans()
        self._columns()

    def _names_exist(self) -> bool:
        choices = [*all_field_names(self.spec), *self.spec.groups]
        entries = [*(self.spec.header if self.message.header else []), *self.message.layout]
        sound = True
        for entry in entries:
            sound &= self.findings.known((*self.path, "layout"), entry.removesuffix("?"), choices, "field")
        missing = [name for name in self.names if sound and name not in self.fields]
        for name in missing:
            self.add("layout", f"a form lacks the field {name!r}; write {name + '?'!r} where a form may do without")
        if not self.names:
            self.add("layout", "expected at least one field")
        doubled = {name for name in self.names if self.names.count(name) > 1}
        if doubled:
            self.add("layout", f"the field {min(doubled)!r} stands in it twice")
        return sound and bool(self.names) and not doubled and not missing

    def _guards(self) -> None:
        for name, values in self.message.when.items():
            path = (*self.path, "when", name)
            if not self.findings.known(path, name, self.names, "field in this layout"):
                continue
            wanted = int if number_range(self.fields[name]) else str
            if self.fields[name].kind in CONSTANT:
                self.findings.add(path, "constant bytes select a message by themselves")
            elif any(not isinstance(value, wanted) or isinstance(value, bool) for value in values):
                kind = "a number" if wanted is int else "a text"
                self.findings.add(path, f"expected {kind}, since the field is {self.fields[name].kind}")
            else:
                self._guard_can_hold(path, self.fields[name], values)

    def _guard_can_hold(self, path: Path, field: FieldSpec, values: list[int | str]) -> None:
        for value in values:
            if isinstance(value, int):
                low, high = number_range(field) or (0, 0)
                if not low <= value <= high:
                    self.findings.add(path, f"{value} does not fit the field, which holds {low} to {high}")
                elif field.values and not field.open and value not in field.values.values():
                    self.findings.add(path, f"{value} is not one of the field's values")
            elif field.until and field.until in value:
                self.findings.add(path, f"the text {value!r} holds the delimiter that ends the field")
            elif field.size and len(value.encode()) != field.size:
                self.findings.add(path, f"the text {value!r} has not the {field.size} bytes of the field")

    def _bits(self) -> None:
        run = 0
        for name in [*self.names, ""]:
            bits = self.fields[name].bits if name else None
            if bits:
                run += bits
            elif run:
                if run % 8 or run > 64:
                    self.add("layout", f"bit fields in a row must fill 1 to 8 whole bytes; these have {run} bits")
                run = 0

    def _optional_from(self) -> None:
        name = self.message.optional_from
        if name is None:
            return
        first = (self.spec.groups.get(name) or [name])[0]
        if not self.findings.known((*self.path, "optional_from"), first, self.names, "field in this layout"):
            return
        at = self.names.index(first)
        if at and self.fields[first].bits and self.fields[self.names[at - 1]].bits:
            self.findings.add((*self.path, "optional_from"), "a datagram cannot end between two bit fields of a byte")
        guarded = [
            other for other in self.names[at:] if other in self.message.when or self.fields[other].kind in CONSTANT
        ]
        if guarded:
            self.findings.add((*self.path, "optional_from"), f"{guarded[0]!r} selects the message, so it must be there")
        if self._could_be_padding(at):
            self.add("optional_from", "with NUL padding it takes a length, or or_end before, to tell an absent field")

    def _could_be_padding(self, at: int) -> bool:
        """Whether NULs in the place of an optional field might as well be padding."""
        fields = [self.fields[name] for name in self.names]
        first = fields[at]
        told = any(
            field.kind == "java-block" or isinstance(field.counts, str) or self.names[at] in (field.counts or ())
            for field in fields[:at]
        )
        is_open = first.kind in ("text", "bytes") and not (first.size or first.until or first.prefix)
        return self.nul_padding and not told and not is_open and not (at and fields[at - 1].or_end)

    def _open_ended_last(self) -> None:
        closing = {span[-1] for span in self._counted_spans()}
        for name in self.names[:-1]:
            field = self.fields[name]
            is_open = field.kind in ("text", "bytes") and not (field.size or field.until or field.prefix)
            if is_open and name not in closing:
                self.add("layout", f"the field {name!r} reaches to the end, so nothing can follow it")

    def _counted_spans(self) -> list[list[str]]:
        spans = []
        for name in self.names:
            counted = self.fields[name].counts
            if isinstance(counted, list):
                spans.append([other for other in self.names if other in counted])
        return [span for span in spans if span]

    def _spans(self) -> None:
        for name in self.names:
            counted = self.fields[name].counts
            if isinstance(counted, list):
                for other in counted:
                    self.findings.known(("fields", name, "counts"), other, all_field_names(self.spec), "field")
        taken: set[str] = set()
        for span in self._counted_spans():
            first, last = self.names.index(span[0]), self.names.index(span[-1])
            between = self.names[first : last + 1]
            if between != span:
                self.add("layout", f"counted fields must stand in a row: {', '.join(span)}")
            if taken & set(span):
                self.add("layout", f"two lengths count the field {min(taken & set(span))!r}")
            if any(self.fields[name].bits or self.fields[name].kind == "java-block" for name in (span[0], span[-1])):
                self.add("layout", "a length counts whole fields; it cannot begin or end at bits or a Java block")
            taken |= set(span)
        for name in self.names:
            counted = self.fields[name].counts
            if isinstance(counted, list) and not any(other in self.names for other in counted):
                self.add("layout", f"{name!r} counts fields that this layout does not have")
            if (
                isinstance(counted, list)
                and any(other in self.names and self.names.index(other) < self.names.index(name) for other in counted)
                and name not in counted
            ):
                self.add("layout", f"{name!r} must come before the fields it counts, or count itself too")

    def _columns(self) -> None:
        for column in ("topic", "filter", "payload", "retain", "code", "qos", "dup"):
            name = getattr(self.message, column)
            if name is None or not self.findings.known((*self.path, column), name, self.names, "field in this layout"):
                continue
            if column in ("code", "qos", "dup") and number_range(self.fields[name]) is None:
                self.add(column, f"expected a number, but the field {name!r} is {self.fields[name].kind}")
        for name in self.message.fill:
            self.findings.known((*self.path, "fill", name), name, self.names, "field in this layout")
        if self.message.acks_by not in ("order", "echo", "copy"):
            words = [*self.names, "order", "echo", "copy"]
            self.findings.known((*self.path, "acks_by"), self.message.acks_by, words, "field or way of matching")


def all_field_names(spec: DialectSpec) -> list[str]:
    """The fields of all forms."""
    names = dict.fromkeys(spec.fields)
    for form in spec.forms.values():
        names |= dict.fromkeys(form.fields)
    return list(names)

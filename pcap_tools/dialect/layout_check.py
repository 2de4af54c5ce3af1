"""Checks of one layout in one form: can it be read and built, and is there one way only to do so?"""

from __future__ import annotations

from .compiler import NUMERIC, layout_names
from .positions import Path
from .problems import Findings
from .spec import DialectSpec, FieldSpec, MessageSpec

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
            wanted = int if self.fields[name].kind in NUMERIC else str
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
                low, high = number_range(field)
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
            if column in ("code", "qos", "dup") and self.fields[name].kind not in NUMERIC:
                self.add(column, f"expected a number, but the field {name!r} is {self.fields[name].kind}")
        for name in self.message.fill:
            self.findings.known((*self.path, "fill", name), name, self.names, "field in this layout")
        if self.message.acks_by not in ("order", "echo", "copy"):
            words = [*self.names, "order", "echo", "copy"]
            self.findings.known((*self.path, "acks_by"), self.message.acks_by, words, "field or way of matching")


def number_range(field: FieldSpec) -> tuple[int, int]:
    """The smallest and the largest number that a field can hold."""
    if field.kind == "digits":
        return 0, 10 ** (field.size or 1) - 1
    bits = field.bits or 8 * (field.size or 1)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if field.kind == "int" else (0, (1 << bits) - 1)


def all_field_names(spec: DialectSpec) -> list[str]:
    """The fields of all forms."""
    names = dict.fromkeys(spec.fields)
    for form in spec.forms.values():
        names |= dict.fromkeys(form.fields)
    return list(names)

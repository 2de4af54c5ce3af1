"""From a message to bytes. ``Codec.build`` is the way in; it also reads the result back and compares."""

from __future__ import annotations

from collections.abc import Container, Mapping

from pcap_tools.codec.message import Message
from pcap_tools.codec.numbers import WRITERS, fits
from pcap_tools.dialect.problems import suggestion
from pcap_tools.dialect.program import Counts, Dialect, Extent, Form, Kind, Layout, Prefix, Step, Value
from pcap_tools.errors import UsageError


def complete(dialect: Dialect, name: str, form: str | None, given: Mapping[str, Value | str]) -> Message:
    """A message with all its fields, in the first form that can hold it."""
    problem: UsageError | None = None
    for candidate in _forms(dialect, form):
        for layout in candidate.layouts_of(name):
            try:
                return _complete(dialect, candidate, layout, given)
            except UsageError as error:
                problem = error
    raise problem or UsageError(f"{dialect.name} has no message {name!r}{suggestion(name, dialect.messages)}")


def build(dialect: Dialect, message: Message, check: bool) -> bytes:
    """The bytes of a message that has all its fields."""
    layout = message.layout
    if layout is None:
        if message.message is None:
            raise UsageError("a datagram of no known message cannot be built again from its fields")
        filled = complete(dialect, message.message, message.form, message.fields)
        layout, message.fields = _layout_of(filled), filled.fields
    body = _encode(layout, message.fields, check)
    return body + bytes(message.padding)


def _forms(dialect: Dialect, name: str | None) -> list[Form]:
    if name is None:
        return list(dialect.forms)
    form = dialect.form(name)
    if form is None:
        raise UsageError(f"{dialect.name} has no form {name!r}{suggestion(name, [f.name for f in dialect.forms])}")
    return [form]


def _layout_of(message: Message) -> Layout:
    if message.layout is None:
        raise UsageError("a completed message knows its layout")
    return message.layout


def _complete(dialect: Dialect, form: Form, layout: Layout, given: Mapping[str, Value | str]) -> Message:
    names = [step.name for step in layout.steps]
    for name in given:
        if name not in names:
            raise UsageError(f"{layout.message} has no field {name!r}{suggestion(name, names)}")
    fields: dict[str, Value] = {}
    for step in _present(layout, given):
        if step.name in given:
            fields[step.name] = _plain(given[step.name])
            if step.guard is not None and fields[step.name] not in step.guard:
                raise UsageError(f"{layout.message} wants {step.name!r} as {step.guard}")
        elif step.counts is Counts.NOTHING:
            fields[step.name] = dict(layout.fill).get(step.name, default_value(step))
    chunks = _chunks(layout, fields, check=True)
    length = sum(map(len, chunks))
    ordered = {step.name: fields[step.name] for step in layout.steps if step.name in fields}
    padding = max(0, form.pad_to - length) if form.nul_padding else 0
    return Message(
        dialect.name,
        form.name,
        layout.message,
        layout.meaning,
        ordered,
        padding,
        length + padding,
        layout=layout,
    )


def _present(layout: Layout, names: Container[str]) -> list[Step]:
    """The steps that are there: all that must be, and the optional ones up to the last that is named."""
    there = (at for at, step in enumerate(layout.steps) if step.name in names or not step.optional)
    last = max(there, default=-1)
    return list(layout.steps[: last + 1])


def _plain(value: Value | str) -> Value:
    return value.encode() if isinstance(value, str) else value


def default_value(step: Step) -> Value:
    """What stands in a field about which nothing was said."""
    if step.guard is not None:
        return step.guard[0]
    if step.kind is Kind.MAGIC:
        return step.literal
    if step.kind in (Kind.TEXT, Kind.BYTES):
        return bytes(step.size) if step.extent is Extent.FIXED else b""
    return step.allowed[0] if step.allowed else 0


def _encode(layout: Layout, fields: dict[str, Value], check: bool) -> bytes:
    return b"".join(_chunks(layout, dict(fields), check))


def _chunks(layout: Layout, fields: dict[str, Value], check: bool) -> list[bytes]:
    """The bytes of each step; lengths that are not in ``fields`` are worked out and put there."""
    steps = _present(layout, fields)
    chunks: list[bytes] = []
    group = 0
    for index, step in enumerate(steps):
        if step.kind is Kind.BITS:
            group = group << step.bits | _bits(step, fields, check)
            chunks.append(group.to_bytes(step.size, "big") if step.closes_group else b"")
            group = 0 if step.closes_group else group
        elif step.counts is not Counts.NOTHING and step.name not in fields:
            chunks.append(bytes(step.size))
        else:
            chunks.append(_chunk(step, fields, check, is_last=index == len(steps) - 1))
    counting = [index for index, step in enumerate(steps) if step.counts is not Counts.NOTHING]
    open_ = [index for index in counting if steps[index].name not in fields]
    while True:
        sizes = [len(chunk) for chunk in chunks]
        for index in open_:
            fields[steps[index].name] = _count(steps[index], index, chunks)
            chunks[index] = _chunk(steps[index], fields, check, is_last=False)
        if sizes == [len(chunk) for chunk in chunks]:  # else a length has grown by what it counts
            return chunks


def _count(step: Step, index: int, chunks: list[bytes]) -> int:
    if step.counts is Counts.DATAGRAM:
        return sum(map(len, chunks))
    if step.counts is Counts.REST:
        return sum(map(len, chunks[index + 1 :]))
    return sum(map(len, chunks[step.span[0] : step.span[1] + 1]))


def _chunk(step: Step, fields: dict[str, Value], check: bool, is_last: bool) -> bytes:
    if step.name not in fields:
        raise UsageError(f"the field {step.name!r} is missing")
    value = fields[step.name]
    if step.kind in WRITERS:
        if isinstance(value, bytes) and not check:
            return value
        if not isinstance(value, int):
            raise UsageError(f"the field {step.name!r} takes a number, not {value!r}")
        return WRITERS[step.kind](step, value, check)
    if not isinstance(value, bytes):
        raise UsageError(f"the field {step.name!r} takes bytes, not {value!r}")
    if step.extent is Extent.UNTIL:
        return value if step.or_end and (is_last or step.closes_run) else value + step.literal
    if step.extent is Extent.PREFIX:
        return _prefix(step, len(value), check) + value
    if step.extent is Extent.FIXED and check and len(value) != step.size:
        raise UsageError(f"the field {step.name!r} takes {step.size} bytes, not {len(value)}")
    return value


def _bits(step: Step, fields: dict[str, Value], check: bool) -> int:
    value = fields.get(step.name)
    if not isinstance(value, int):
        raise UsageError(f"the field {step.name!r} takes a number, not {value!r}")
    if check and not fits(step, value):
        raise UsageError(f"{value} does not fit the {step.bits} bits of {step.name!r}")
    return value & (1 << step.bits) - 1


def _prefix(step: Step, length: int, check: bool) -> bytes:
    if step.prefix is Prefix.ASCII:
        most = 10**step.size - 1
    elif step.prefix is Prefix.SIGNED:
        most = (1 << step.size * 8 - 1) - 1
    else:
        most = (1 << step.size * 8) - 1
    if length > most:
        if check:
            raise UsageError(f"{length} bytes are too long for {step.name!r}, which takes at most {most}")
        length %= most + 1
    if step.prefix is Prefix.ASCII:
        return str(length).zfill(step.size).encode()
    return length.to_bytes(step.size, "little" if step.prefix is Prefix.UNSIGNED_LITTLE else "big")

"""Datagrams and messages of a dialect, drawn from its tables and from its vectors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from hypothesis import strategies as st

from pcap_tools.codec import Codec
from pcap_tools.codec.message import Message
from pcap_tools.dialect import Form, Layout, Step, builtin_names
from pcap_tools.dialect.kinds import NUMBERS
from pcap_tools.dialect.program import Charset, Counts, Extent, Kind, Value
from tests.vectors import dialect_of, load_vectors, own_dialect_names

NAMES = [*builtin_names(), *own_dialect_names()]
LONGEST_TEXT = 12  # so that every length of one byte can count every layout

_JAVA_CHARACTERS = st.one_of(
    st.integers(0, 0x7F).map(lambda byte: bytes([byte])),
    st.tuples(st.integers(0xC0, 0xDF), st.integers(0x80, 0xBF)).map(bytes),
    st.tuples(st.integers(0xE0, 0xEF), st.integers(0x80, 0xBF), st.integers(0x80, 0xBF)).map(bytes),
)
_TEXTS = {
    Charset.ANY: st.binary(max_size=LONGEST_TEXT),
    Charset.ASCII: st.text(st.characters(max_codepoint=127), max_size=LONGEST_TEXT).map(str.encode),
    Charset.UTF8: st.text(max_size=LONGEST_TEXT // 4).map(str.encode),
    Charset.JAVA: st.lists(_JAVA_CHARACTERS, max_size=LONGEST_TEXT // 3).map(b"".join),
}


@cache
def codec_of(name: str) -> Codec:
    return Codec(dialect_of(name))


# -- messages from the tables -------------------------------------------------------------------------------------


@st.composite
def messages(draw: st.DrawFn, name: str) -> Message:
    """A valid message of the dialect, completed by the builder, with some more padding where it is allowed."""
    codec = codec_of(name)
    form, layout = draw(st.sampled_from(list(_own_layouts(codec))))
    fields = draw(_fields(codec, form, layout).filter(lambda drawn: not _shadowed(form, layout, drawn)))
    message = codec.message(layout.message, form=form.name, **fields)
    if form.nul_padding:
        more = draw(st.integers(0, 3))
        message.padding += more
        message.length += more
    return message


def _own_layouts(codec: Codec) -> Iterator[tuple[Form, Layout]]:
    """Every layout that no earlier form has just so: that form would take its datagrams."""
    seen: list[Layout] = []
    for form in codec.dialect.forms:
        yield from ((form, layout) for layout in form.layouts if layout not in seen)
        seen += form.layouts


def _shadowed(form: Form, layout: Layout, fields: dict[str, Value]) -> bool:
    """Whether an earlier variant of the message takes these values for itself."""
    for earlier in form.layouts[: form.layouts.index(layout)]:
        guards = [step for step in earlier.steps if step.guard is not None]
        if earlier.message == layout.message and all(fields.get(step.name) in (step.guard or ()) for step in guards):
            return True
    return False


@st.composite
def _fields(draw: st.DrawFn, codec: Codec, form: Form, layout: Layout) -> dict[str, Value]:
    """Values for all fields but constants and lengths; a tail that may be absent sometimes is."""
    ends = [index for index in range(1, len(layout.steps) + 1) if _may_end_before(layout, index)]
    steps = layout.steps[: draw(st.sampled_from(ends))]
    return {
        step.name: draw(_values(codec, form, layout, step))
        for step in steps
        if step.kind is not Kind.MAGIC and step.counts is Counts.NOTHING
    }


def _may_end_before(layout: Layout, index: int) -> bool:
    """Whether a datagram may end before the step at this place, as docs/decoding.md has it."""
    if index == len(layout.steps):
        return True
    step, before = layout.steps[index], layout.steps[index - 1]
    if not step.optional or (step.kind is Kind.BITS and not step.opens_group):
        return False
    if before.extent is Extent.UNTIL:
        return before.or_end
    return step.extent is not Extent.REST


def _values(codec: Codec, form: Form, layout: Layout, step: Step) -> st.SearchStrategy[Value]:
    if step.guard is not None:
        return st.sampled_from(step.guard)
    if step.kind not in (Kind.TEXT, Kind.BYTES):
        return st.sampled_from(step.allowed) if step.allowed else _numbers(step)
    if step.extent is Extent.FIXED:
        if step.charset is Charset.ANY:
            return st.binary(min_size=step.size, max_size=step.size)
        letters = st.characters(max_codepoint=127)
        return st.text(letters, min_size=step.size, max_size=step.size).map(str.encode)
    texts = _TEXTS[step.charset]
    if step.extent is Extent.UNTIL:
        delimiters = _delimiters(codec, form, layout, step)
        texts = texts.filter(lambda text: all(_first_at_end(text, step.literal, other) for other in delimiters))
    if form.nul_padding and not _length_told(layout, step):
        texts = texts.map(lambda text: text.rstrip(b"\0"))
    return texts


def _numbers(step: Step) -> st.SearchStrategy[int]:
    return st.integers(*NUMBERS[step.kind](step.size, step.bits))


def _delimiters(codec: Codec, form: Form, layout: Layout, step: Step) -> list[bytes]:
    """This field's delimiter here, and those of the forms that are tried before."""
    found = [step.literal]
    for earlier in codec.dialect.forms[: codec.dialect.forms.index(form)]:
        for other in earlier.layouts_of(layout.message):
            same = other.step(step.name)
            found += [same.literal] if same and same.extent is Extent.UNTIL else []
    return found


def _first_at_end(text: bytes, delimiter: bytes, other: bytes) -> bool:
    """Whether ``other`` stands nowhere in the text as it is written, but at its end as the delimiter itself."""
    found = (text + delimiter).find(other)
    return found < 0 or (other == delimiter and found == len(text))


def _length_told(layout: Layout, step: Step) -> bool:
    """Whether a length before the step, or around it, says which NULs belong to the message."""
    at = layout.steps.index(step)
    before = any(other.counts in (Counts.REST, Counts.DATAGRAM) for other in layout.steps[:at])
    around = any(other.counts is Counts.SPAN and other.span[0] <= at <= other.span[1] for other in layout.steps)
    return before or around


# -- datagrams: near misses --------------------------------------------------------------------------------------


@cache
def _seeds(name: str) -> list[bytes]:
    """The vectors of the dialect, those of a few bytes."""
    return [vector.datagram for vector in load_vectors() if vector.dialect == name and len(vector.datagram) <= 300]


@st.composite
def datagrams(draw: st.DrawFn, name: str) -> bytes:
    """A vector with a few bytes changed, put in, taken out, cut off or padded; sometimes any bytes at all."""
    data = draw(st.one_of(st.sampled_from(_seeds(name)), st.binary(max_size=40)))
    for _ in range(draw(st.integers(0, 3))):
        data = draw(_mutations(data, _seeds(name)))
    return data


@st.composite
def _mutations(draw: st.DrawFn, data: bytes, others: list[bytes]) -> bytes:
    first, second = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
    how = draw(st.sampled_from(["change", "insert", "remove", "cut", "pad", "repeat", "splice"]))
    if how == "change" and first < len(data):
        near = st.sampled_from([data[first] ^ 1, (data[first] + 1) % 256, (data[first] - 1) % 256, 0, 255])
        return data[:first] + bytes([draw(near | st.integers(0, 255))]) + data[first + 1 :]
    if how == "insert":
        return data[:first] + draw(st.binary(min_size=1, max_size=4)) + data[first:]
    if how == "remove":
        return data[:first] + data[second:]
    if how == "cut":
        return data[:second]
    if how == "pad":
        return data + bytes(draw(st.integers(1, 40)))
    if how == "repeat":
        return data[:second] + data[first:]
    return data[:first] + draw(st.sampled_from(others))[first:]

"""What a decoder says about one datagram, in a shape that all of them can be brought to, and where two differ."""

from __future__ import annotations

from typing import NamedTuple

from pcap_tools.codec.message import Message
from pcap_tools.dialect.program import Value
from pcap_tools.escaping import escape


class Item(NamedTuple):
    """A datagram to decode; ``length`` is its true length, more than there are bytes where a capture cut it."""

    dialect: str
    payload: bytes
    length: int


class Outcome(NamedTuple):
    """None stands for nothing; in the ranges, and in columns that a decoder does not show, for "not said"."""

    form: str
    message: str | None
    meaning: str | None
    topic: bytes | None
    filter: bytes | None
    payload: bytes | None
    retain: bool | None
    padding: int
    error: str | None
    error_offset: int | None
    fields: dict[str, Value]
    ranges: dict[str, tuple[int, int]] | None
    code: int | None = None
    accepted: bool | None = None
    qos: int | None = None
    dup: bool | None = None


class Failure(NamedTuple):
    """A decoder that gave no answer: an exception, or the end of its process."""

    text: str


Answer = Outcome | Failure


# Columns that only the columnar decoder has.
CODES = ("code", "accepted", "qos", "dup")


def full_outcome(message: Message) -> Outcome:
    """All that the codec says."""
    return outcome_of(message)._replace(**{name: getattr(message, name) for name in CODES})


def outcome_of(message: Message) -> Outcome:
    """All that the codec says, but for `CODES`."""
    return Outcome(
        message.form,
        message.message,
        message.meaning,
        message.topic,
        message.filter,
        message.payload,
        message.retain,
        message.padding,
        None if message.error is None else message.error.value,
        message.error_offset,
        message.fields,
        message.ranges,
    )


def differing(expected: Answer, seen: Answer) -> str | None:
    """The first part in which two answers differ, or None."""
    if expected == seen and _order(expected) == _order(seen):
        return None
    if isinstance(expected, Failure) or isinstance(seen, Failure):
        return "failure"
    parts = zip(Outcome._fields, expected, seen, strict=True)
    return next((name for name, one, other in parts if one != other), "order of fields")


def _order(answer: Answer) -> list[str]:
    return [] if isinstance(answer, Failure) else list(answer.fields)


def described(answer: Answer, part: str) -> str:
    """One part of an answer, for people."""
    if isinstance(answer, Failure):
        return answer.text
    return repr(list(answer.fields) if part == "order of fields" else getattr(answer, part, answer))


def vector_text(item: Item, outcome: Outcome, what: str) -> str:
    """The datagram and what the codec says of it, ready for ``tests/vectors``; its author checks it by hand."""
    columns = [("form", outcome.form), ("message", outcome.message), ("meaning", outcome.meaning)]
    texts = [(name, getattr(outcome, name)) for name in ("topic", "filter", "payload")]
    lines = ["[[vector]]", f"what = {_quoted(what)}", f'hex = "{item.payload.hex()}"']
    lines += [f'{name} = "{word}"' for name, word in columns if word is not None]
    if outcome.fields:
        shown = (f"{name} = {_value(value)}" for name, value in outcome.fields.items())
        lines.append(f"fields = {{ {', '.join(shown)} }}")
    lines += [f"{name} = {_value(text)}" for name, text in texts if text is not None]
    said = [(name, getattr(outcome, name)) for name in ("retain", *CODES)]
    lines += [f"{name} = {str(value).lower()}" for name, value in said if value is not None]
    if outcome.padding:
        lines.append(f"padding = {outcome.padding}")
    if outcome.error is not None:
        lines += [f'error = "{outcome.error}"', f"error_offset = {outcome.error_offset}"]
    return "\n".join(lines)


def _value(value: Value) -> str:
    return str(value) if isinstance(value, int) else _quoted(escape(value).replace("'", "\\x27"))


def _quoted(text: str) -> str:
    """TOML's literal string: vectors have their own notation for bytes."""
    return f"'{text}'"

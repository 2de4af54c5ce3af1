"""One telling line about a message, safe for a terminal."""

from __future__ import annotations

from pcap_tools.codec.message import Message
from pcap_tools.dialect.program import Counts, Kind, Step, Value
from pcap_tools.escaping import escape, escape_text, shorten

WIDTH = 40  # of one value


def summarize(title: str, name: str | None, message: Message) -> str:
    r"""``colon PUBLISH home/fan "ON" retained``, with what is wrong in brackets.

    ``name`` is the message that was meant; only a datagram that says the same has anything to tell.
    """
    parts = [title]
    if message.message == name and message.layout is not None:
        parts += _columns(message) or _fields(message)
    if message.padding:
        parts.append(f"+{message.padding} NULs")
    if message.error is not None:
        parts.append(f"[{message.error} at {message.error_offset}]")
    return " ".join(parts)


def _columns(message: Message) -> list[str]:
    parts = [_text(column) for column in (message.topic, message.filter) if column is not None]
    if message.payload is not None:
        parts.append(f'"{_text(message.payload)}"')
    return [*parts, "retained"] if parts and message.retain else parts


def _fields(message: Message) -> list[str]:
    steps = message.layout.steps if message.layout else ()
    return [
        f"{step.name}={_value(step, message.fields[step.name])}"
        for step in steps
        if step.name in message.fields and _is_telling(step)
    ]


def _is_telling(step: Step) -> bool:
    return step.guard is None and step.kind is not Kind.MAGIC and step.counts is Counts.NOTHING


def _value(step: Step, value: Value) -> str:
    if isinstance(value, bytes):
        return f'"{_text(value)}"'
    return escape_text(step.name_of(value) or str(value))


def _text(data: bytes) -> str:
    return shorten(escape(data[: WIDTH * 4]), WIDTH)

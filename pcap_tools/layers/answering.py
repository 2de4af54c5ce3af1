"""Does this message acknowledge that one? What ``sr1`` asks; ``acks`` and ``acks_by`` tell."""

from __future__ import annotations

from pcap_tools.codec.message import Message
from pcap_tools.dialect.program import Dialect, Form, Kind, Step


def acknowledges(dialect: Dialect, reply: tuple[Message, bytes], request: tuple[Message, bytes]) -> bool:
    """Each side is a message and its datagram."""
    answer, asked = reply[0], request[0]
    return any(
        _matches(dialect, variant.acks_by, reply, request)
        for variant in dialect.spec.messages.get(answer.message or "", [])
        if "any" in variant.acks or asked.message in variant.acks
    )


def _matches(dialect: Dialect, by: str, reply: tuple[Message, bytes], request: tuple[Message, bytes]) -> bool:
    (answer, answer_bytes), (asked, asked_bytes) = reply, request
    if by == "order":
        return True
    form = dialect.form(answer.form)
    if by == "echo":
        return _echo(answer, answer_bytes, form) == _echo(answer, asked_bytes, form)
    if by == "copy":
        copied = asked_bytes[: len(asked_bytes) - asked.padding]
        return bool(copied) and copied in answer_bytes
    return by in answer.fields and answer.fields[by] == asked.fields.get(by)


def _echo(answer: Message, datagram: bytes, form: Form | None) -> bytes:
    """A datagram without what makes ``answer`` an ACK, and without padding."""
    blanked = bytearray(datagram)
    for step in answer.layout.steps if answer.layout else ():
        if step.guard is not None and step.name in answer.ranges:
            start, end = answer.ranges[step.name]
            for at, mask in enumerate(_mask(step, end - start), start):
                if at < len(blanked):
                    blanked[at] &= ~mask & 0xFF
    return bytes(blanked).rstrip(b"\0") if form and form.nul_padding else bytes(blanked)


def _mask(step: Step, size: int) -> bytes:
    if step.kind is Kind.BITS:
        return ((1 << step.bits) - 1 << step.shift).to_bytes(size, "big")
    return b"\xff" * size

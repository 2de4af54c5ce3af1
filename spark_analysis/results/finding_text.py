"""Findings in words: one sentence from a rule and its detail, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from pcap_tools.escaping import escape_text

from ..checker.findings.reasons import duration


class Told(Protocol):
    """What a sentence is made from: a row of ``schemas.FINDINGS``."""

    @property
    def rule(self) -> str: ...

    @property
    def client(self) -> str | None: ...

    @property
    def topic(self) -> str | None: ...

    @property
    def detail(self) -> Any: ...


def finding_text(finding: Told) -> str:
    """What is wrong, in one sentence."""
    said = _SENTENCES.get(finding.rule, _wire)(finding)
    return said if said.isprintable() else escape_text(said)  # topics in it are escaped once already


def quote(text: object) -> str:
    return f'"{text}"' if text is not None else "a topic that is not told"


_WHY = {
    "W-EMPTY": "is empty",
    "W-UNKNOWN-TYPE": "has a type that the dialect does not know",
    "W-INCOMPLETE": "ends before the message does",
    "W-NO-DELIMITER": "lacks a delimiter",
    "W-BAD-MAGIC": "does not begin with the dialect's constant",
    "W-BAD-LENGTH": "has a length that does not fit",
    "W-BAD-VALUE": "has a value that the dialect does not allow",
    "W-BAD-TEXT": "has a text that is not in the charset",
    "W-TRAILING-BYTES": "goes on behind the end of the message",
}


def _wire(one: Told) -> str:
    name, offset = one.detail.get("message"), one.detail.get("offset")
    where = f" (at byte {offset})" if offset is not None else ""
    why = _WHY.get(one.rule, f"cannot be read: {one.rule.removeprefix('W-').lower()}")
    return f"the datagram{f', a {name},' if name else ''} {why}{where}"


def _ack_missing(one: Told) -> str:
    message, count = one.detail["message"], one.detail["count"]
    if one.detail.get("case") == "in the end":
        return f"{message} is sent {count} times before an ACK comes"
    return f"{message} is never acknowledged{'' if count == 1 else f', though it is sent {count} times'}"


def _ack_late(one: Told) -> str:
    detail = one.detail
    delay = f"{duration(detail['after_ns'])}; it is sent again after {duration(detail['limit_ns'])}"
    return f"the ACK of {detail['message']} comes after {delay}"


def _ack_of_ack(one: Told) -> str:
    return f"{'the broker' if one.detail['case'] == 'broker' else one.client} acknowledges an ACK"


def _unsolicited(one: Told) -> str:
    if one.detail["case"] == "broker":
        return f"{one.detail['message']} answers nothing that {one.client} sent"
    return f"{one.detail['message']} of {one.client} answers nothing that the broker sent"


def _order(one: Told) -> str:
    message, case = one.detail["message"], one.detail["case"]
    if case == "status":
        return f"the ACK of {message} comes after the status message"
    return f"the ACK of {message} comes {case} the {'forwards' if one.rule == 'A-ORDER' else 'retained message'}"


def _speaker(one: Told) -> str:
    who = "only the broker says this, here a client does"
    return (
        f"{one.detail['message']}: {who if one.detail['case'] == 'client' else 'the broker says what only clients say'}"
    )


def _missing(one: Told) -> str:
    count, text, reading = one.detail["count"], one.detail["filter"], one.detail.get("reading")
    said = f"{quote(one.topic)} is not passed on to {one.client}{f', {count} copies' if count > 1 else ''}"
    if reading:
        return f"{said}; {quote(text)} asks for it, but not if {reading}"
    return f"{said}, which subscribed to {quote(text)}"


def _duplicate(one: Told) -> str:
    if one.detail.get("case") == "retained":
        return f"the retained message of {quote(one.topic)} comes to {one.client} once more"
    count = one.detail["count"]
    often = "once" if count <= 1 else f"{count} times"
    return f"{quote(one.detail.get('seen'))} comes to {one.client} more than {often}"


def _unexpected(one: Told) -> str:
    if one.detail.get("case") == "invented":
        return f"{quote(one.topic)} comes to {one.client}, and nobody published it"
    said = f"{quote(one.detail.get('seen'))} comes to {one.client}, and no subscription asks for it"
    reading = one.detail.get("reading")
    return f"{said}; {quote(one.detail.get('filter'))} would if {reading}" if reading else said


def _kept(one: Told) -> str:
    said = f"{one.client} does not get the retained message of {quote(one.topic)}"
    return f"{said}; one that was not to be retained came since" if one.rule == "T-CLEARED" else said


def _same_number(one: Told) -> str:
    number = one.detail.get("number")
    said = f"{quote(one.topic)} gets the number {number}, which is that of {quote(one.detail.get('seen'))}"
    return f"{said}: the number is probably never written" if number == 0 else said


def _wrong_instruction(one: Told) -> str:
    detail = one.detail
    right = quote(detail["expected"])
    return f"the instruction to the reading {detail['number']} is {quote(detail['seen'])} and should be {right}"


_SENTENCES: dict[str, Callable[[Told], str]] = {
    "W-WILDCARD-TOPIC": lambda one: f"a message is published to {quote(one.topic)}, which is a filter, not a topic",
    "P-SPEAKER": _speaker,
    "P-CLIENT-TO-CLIENT": lambda one: f"{one.detail['message']} goes from one client to another, past the broker",
    "A-MISSING": _ack_missing,
    "A-LATE": _ack_late,
    "A-DUPLICATE": lambda one: f"{one.detail['message']} is acknowledged once more than it was sent",
    "A-MISDIRECTED": lambda one: (
        f"the ACK of {one.detail['message']} goes to {one.client}; {one.detail['other']} asked"
    ),
    "A-ACK-OF-ACK": _ack_of_ack,
    "A-UNSOLICITED": _unsolicited,
    "A-ORDER": _order,
    "T-ORDER": _order,
    "A-STATUS-MISSING": lambda one: (
        f"{one.detail['message']} is acknowledged, but no {one.detail['expected']} says how it went"
    ),
    "A-CLIENT-MISSING": lambda one: f"{one.client} does not acknowledge {one.detail['message']}",
    "R-MISSING": lambda one: (
        f"{one.detail['message']} is not sent again after {duration(one.detail['limit_ns'])}, though no ACK comes"
    ),
    "R-EARLY": lambda one: (
        f"{one.detail['message']} is sent again after {duration(one.detail['after_ns'])}, long before its ACK is late"
    ),
    "R-AFTER-ACK": lambda one: f"{one.detail['message']} is sent again although it was acknowledged",
    "R-ALTERED": lambda one: (
        f"{one.detail['message']} is sent again after {duration(one.detail['after_ns'])} with another payload"
    ),
    "R-ALTERED-RETAIN": lambda one: f"{one.detail['message']} is sent again with another retain flag",
    "D-MISSING": _missing,
    "D-LATE": lambda one: (
        f"{quote(one.detail.get('seen'))} comes to {one.client} "
        f"{duration(one.detail['after_ns'])} after it was published"
    ),
    "D-REORDERED": lambda one: (
        f"a later message of {quote(one.detail.get('seen'))} comes to {one.client} before this one"
    ),
    "D-DUPLICATE": _duplicate,
    "D-AFTER-UNSUBSCRIBE": lambda one: (
        f"{quote(one.detail.get('seen'))} comes to {one.client}, whose subscription has ended"
    ),
    "D-MISDIRECTED": lambda one: (
        f"{quote(one.detail.get('seen'))} goes to {one.client} in place of {one.detail['other']}"
    ),
    "D-UNEXPECTED": _unexpected,
    "D-ALTERED": lambda one: (
        f"{quote(one.detail.get('expected'))} was published, {quote(one.detail.get('seen'))} comes to {one.client}"
    ),
    "T-MISSING": _kept,
    "T-CLEARED": _kept,
    "T-STALE": lambda one: (
        f"{quote(one.detail.get('seen'))} comes as the retained message of {quote(one.topic)}, "
        "but a newer one is retained"
    ),
    "N-ZERO": _same_number,
    "N-UNKNOWN-PUBLISH": lambda one: (
        f"number {one.detail['number']} is published to, and {one.client} has created no topic with it"
    ),
    "N-UNKNOWN-SUBSCRIBE": lambda one: f"{quote(one.detail.get('filter'))} is subscribed to, and nobody has created it",
    "N-COLLISION": lambda one: (
        f"number {one.detail['number']} of {one.client} is taken for {quote(one.detail['seen'])}, "
        "which is another publisher's"
    ),
    "X-LOOP": lambda one: (
        f"the dashboard gives no instruction to the reading {one.detail['number']}; "
        f"{quote(one.detail['expected'])} is due"
    ),
    "X-WRONG-INSTRUCTION": _wrong_instruction,
    "X-COMPLETION": lambda one: (
        f"{one.client} does not report the instruction {quote(one.detail.get('seen'))} as completed"
    ),
}

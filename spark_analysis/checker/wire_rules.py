"""W and P rules: what one datagram shows by itself, and who said it to whom."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from .deliveries import Deliveries
from .events import ELSEWHERE, FROM_BROKER, Col, Events
from .findings import Findings, numbers, quoted
from .rules import RULES

WHY = {
    "empty": "is empty",
    "unknown-type": "has a type that the dialect does not know",
    "incomplete": "ends before the message does",
    "no-delimiter": "lacks a delimiter",
    "bad-magic": "does not begin with the dialect's constant",
    "bad-length": "has a length that does not fit",
    "bad-value": "has a value that the dialect does not allow",
    "bad-text": "has a text that is not in the charset",
    "trailing-bytes": "goes on behind the end of the message",
}


def wire_findings(events: Events, deliveries: Deliveries, findings: Findings) -> None:
    every = np.arange(len(events))
    errors = events.table.column("error")
    for code in pc.unique(errors).drop_null().to_pylist():
        rule = f"W-{code.upper()}"
        if rule not in RULES:  # cut by the capture: nobody's fault
            continue
        for row in numbers(np.flatnonzero(pc.equal(errors, code).fill_null(False).to_numpy())):
            findings.add(rule, row, _told(events, row, code))
    for rule in RULES:
        if rule.startswith("W-") and rule != "W-WILDCARD-TOPIC":
            findings.check(rule, every)
    findings.check("W-WILDCARD-TOPIC", np.concatenate([deliveries.publishes, deliveries.wild]))
    for row in numbers(deliveries.wild):
        topic = events.text("topic", row)
        findings.add(
            "W-WILDCARD-TOPIC", row, f"a message is published to {quoted(topic)}, which is a filter, not a topic"
        )


def _told(events: Events, row: int, code: str) -> str:
    name = events.text("message", row)
    offset = events.table.column("error_offset")[row].as_py() if "error_offset" in events.table.column_names else None
    where = f" (at byte {offset})" if offset is not None else ""
    return f"the datagram{f', a {name},' if name else ''} {WHY.get(code, 'cannot be read: ' + code)}{where}"


def party_findings(events: Events, findings: Findings) -> None:
    message, side = events[Col.MESSAGE], events[Col.SIDE]
    speaker = np.append(events.policy.speakers, -1)[message]
    findings.check("P-SPEAKER", np.flatnonzero((speaker >= 0) & (side >= 0)))
    passed_on = np.append(events.policy.forwards, False)[message]
    forged = (speaker == 1) & (side != FROM_BROKER) & bool(findings.context.brokers.endpoints)
    wrong = forged | ((speaker == 0) & (side == FROM_BROKER) & ~passed_on)
    for row in np.flatnonzero(wrong):
        said = events.policy.messages[message[row]]
        who = (
            "only the broker says this, here a client does"
            if side[row] != FROM_BROKER
            else "the broker says what only clients say"
        )
        findings.add("P-SPEAKER", int(row), f"{said}: {who}")
    findings.check("P-CLIENT-TO-CLIENT", np.flatnonzero(message >= 0))
    if findings.context.brokers.endpoints:
        for row in np.flatnonzero((side == ELSEWHERE) & (message >= 0)):
            text = f"{events.policy.messages[message[row]]} goes from one client to another, past the broker"
            findings.add("P-CLIENT-TO-CLIENT", int(row), text, client=events.source(int(row)))

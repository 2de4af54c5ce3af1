"""W and P rules: what one datagram shows by itself, and who said it to whom."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from ..findings.findings import Candidates, as_list
from ..matching.deliveries import Publishes
from ..rulebook.catalogue import RULES
from ..session.events import ELSEWHERE, FROM_BROKER, Col, Events


def wire_findings(events: Events, publishes: Publishes, candidates: Candidates) -> None:
    """What is wrong with single datagrams."""
    errors = events.table.column("error")
    for code in pc.unique(errors).drop_null().to_pylist():
        rule = f"W-{code.upper()}"
        if rule not in RULES:  # cut by the capture: nobody's fault
            continue
        for row in as_list(np.flatnonzero(pc.equal(errors, code).fill_null(False).to_numpy())):
            candidates.add(rule, row, _detail(events, row))
    for rule in RULES:
        if rule.startswith("W-") and rule != "W-WILDCARD-TOPIC":
            candidates.check(rule, len(events))
    candidates.check("W-WILDCARD-TOPIC", np.concatenate([publishes.plain, publishes.wild]))
    for row in as_list(publishes.wild):
        candidates.add("W-WILDCARD-TOPIC", row)


def _detail(events: Events, row: int) -> dict[str, object]:
    offset = events.table.column("error_offset")[row].as_py() if "error_offset" in events.table.column_names else None
    return {"message": events.text("message", row), "offset": offset}


def party_findings(events: Events, candidates: Candidates) -> None:
    """Who speaks to whom."""
    message, side = events[Col.MESSAGE], events[Col.SIDE]
    speaker = np.append(events.policy.speakers, -1)[message]
    candidates.check("P-SPEAKER", np.flatnonzero((speaker >= 0) & (side >= 0)))
    forwards = np.append(events.policy.forwards, False)[message]
    known = bool(candidates.facts.brokers.endpoints)
    forged = (speaker == 1) & (side != FROM_BROKER) & known
    wrong = forged | ((speaker == 0) & (side == FROM_BROKER) & ~forwards)
    for row in as_list(np.flatnonzero(wrong)):
        case = "client" if side[row] != FROM_BROKER else "broker"
        candidates.add("P-SPEAKER", row, {"case": case, "message": events.policy.messages[message[row]]})
    candidates.check("P-CLIENT-TO-CLIENT", np.flatnonzero(message >= 0))
    if known:
        for row in as_list(np.flatnonzero((side == ELSEWHERE) & (message >= 0))):
            detail = {"message": events.policy.messages[message[row]]}
            candidates.add("P-CLIENT-TO-CLIENT", row, detail, client=events.source(row))

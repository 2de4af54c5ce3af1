"""N rules: topic numbers that stand for two topics of one publisher, or for none."""

from __future__ import annotations

import numpy as np

from .context import Context
from .control import Bindings
from .events import NOTHING, TO_BROKER, Col, Events
from .findings import Findings, numbers, quoted
from .policy import SUBSCRIBE


def number_findings(events: Events, context: Context, findings: Findings) -> None:
    """All but N-COLLISION, which is told where forwards are explained."""
    policy = events.policy
    if policy.dialect.spec.topics.kind == "number" and not policy.has_sessions:
        _twice_zero(events, context.bindings, findings)
        _unknown_publishes(events, context.bindings, findings)
        _unknown_subscriptions(events, context.bindings, findings)


def _twice_zero(events: Events, bindings: Bindings, findings: Findings) -> None:
    """A publisher that creates a second topic under the number 0 has never written the number."""
    client, name, number = events[Col.CLIENT], events[Col.NAME], events[Col.NUMBER]
    named_by = np.array([name == events.policy.dialect.spec.topics.named_by for name in events.policy.messages])
    is_creation = np.append(named_by, False)[events[Col.MESSAGE]] & (events[Col.SIDE] == TO_BROKER)
    rows = np.flatnonzero(is_creation & (number != NOTHING))
    findings.check("N-ZERO", rows)
    bound = bindings.resolve(client[rows], number[rows], events[Col.TIME][rows])
    wrong = (bound != 0) & (bound != name[rows]) & (number[rows] == 0)
    for row, before in zip(numbers(rows[wrong]), numbers(bound[wrong]), strict=True):
        first = rows[(name[rows] == before) & (client[rows] == client[row])]
        new, old = quoted(events.text("topic", row)), quoted(bindings.texts.get(before))
        text = f"{new} gets the number 0, which is that of {old}: the number is never written"
        findings.add("N-ZERO", row, text, numbers(first[:1]))


def _unknown_publishes(events: Events, bindings: Bindings, findings: Findings) -> None:
    is_publish = np.append(events.policy.publishes, False)[events[Col.MESSAGE]]
    rows = np.flatnonzero(is_publish & (events[Col.SIDE] == TO_BROKER))
    for rule in ("N-COLLISION", "N-UNKNOWN-PUBLISH"):
        findings.check(rule, rows)
    for row in numbers(rows[events[Col.NAME][rows] == 0]):
        number = events[Col.NUMBER][row]
        text = f"number {number} is published to, and {events.client(row)} has created no topic with it"
        findings.add("N-UNKNOWN-PUBLISH", row, text, sure=len(bindings.keys) > 0)


def _unknown_subscriptions(events: Events, bindings: Bindings, findings: Findings) -> None:
    is_subscription = np.append(events.policy.meaning == SUBSCRIBE, False)[events[Col.MESSAGE]]
    rows = np.flatnonzero(is_subscription & (events[Col.SIDE] == TO_BROKER))
    findings.check("N-UNKNOWN-SUBSCRIBE", rows)
    since: dict[int, int] = {}
    for name, time in zip(numbers(bindings.names), numbers(bindings.times), strict=True):
        since[name] = min(time, since.get(name, time))
    for row in numbers(rows):
        if since.get(int(events[Col.FILTER][row]), 1 << 62) > events[Col.TIME][row]:
            text = f"{quoted(events.text('filter', row))} is subscribed to, and nobody has created it"
            findings.add("N-UNKNOWN-SUBSCRIBE", row, text, sure=len(bindings.keys) > 0)

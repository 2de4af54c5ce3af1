"""N rules: topic numbers that stand for two topics of one publisher, or for none."""

from __future__ import annotations

import numpy as np

from ..findings.evidence import UNNUMBERED
from ..findings.findings import Candidates, as_list
from ..session.control import Bindings
from ..session.events import NOTHING, TO_BROKER, Col, Events
from ..session.policy import SUBSCRIBE


def number_findings(events: Events, bindings: Bindings, candidates: Candidates) -> None:
    """All but N-COLLISION, which is told where forwards are explained."""
    policy = events.policy
    if policy.dialect.spec.topics.kind == "number" and not policy.has_sessions:
        _twice(events, bindings, candidates)
        _unknown_publishes(events, candidates)
        _unknown_subscriptions(events, bindings, candidates)


def _twice(events: Events, bindings: Bindings, candidates: Candidates) -> None:
    """A publisher creates a second topic under the same number; if that is 0, it has probably never written it."""
    client, name, number = events[Col.CLIENT], events[Col.NAME], events[Col.NUMBER]
    named_by = np.array([name == events.policy.dialect.spec.topics.named_by for name in events.policy.messages])
    is_creation = np.append(named_by, False)[events[Col.MESSAGE]] & (events[Col.SIDE] == TO_BROKER)
    rows = np.flatnonzero(is_creation & (number != NOTHING))
    candidates.check("N-ZERO", rows)
    bound = bindings.resolve(client[rows], number[rows], events[Col.TIME][rows] - 1)
    wrong = (bound != 0) & (bound != name[rows])
    for row, before in zip(as_list(rows[wrong]), as_list(bound[wrong]), strict=True):
        first = rows[(name[rows] == before) & (client[rows] == client[row])]
        detail = {"seen": bindings.texts.get(before), "number": int(number[row])}
        candidates.add("N-ZERO", row, detail, candidates.ids(first[:1]))


def _unknown_publishes(events: Events, candidates: Candidates) -> None:
    is_publish = np.append(events.policy.publishes, False)[events[Col.MESSAGE]]
    rows = np.flatnonzero(is_publish & (events[Col.SIDE] == TO_BROKER))
    for rule in ("N-COLLISION", "N-UNKNOWN-PUBLISH"):
        candidates.check(rule, rows)
    for row in as_list(rows[events[Col.NAME][rows] == 0]):
        candidates.add("N-UNKNOWN-PUBLISH", row, {"number": int(events[Col.NUMBER][row])}, unless=UNNUMBERED)


def _unknown_subscriptions(events: Events, bindings: Bindings, candidates: Candidates) -> None:
    is_subscription = np.append(events.policy.meaning == SUBSCRIBE, False)[events[Col.MESSAGE]]
    rows = np.flatnonzero(is_subscription & (events[Col.SIDE] == TO_BROKER))
    candidates.check("N-UNKNOWN-SUBSCRIBE", rows)
    since: dict[int, int] = {}
    for name, time in zip(as_list(bindings.names), as_list(bindings.times), strict=True):
        since[name] = min(time, since.get(name, time))
    for row in as_list(rows):
        if since.get(int(events[Col.FILTER][row]), 1 << 62) > events[Col.TIME][row]:
            candidates.add("N-UNKNOWN-SUBSCRIBE", row, {"filter": events.text("filter", row)}, unless=UNNUMBERED)

"""T rules: the retained messages that a new subscriber is owed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..findings.evidence import DOUBLES, LOSS, UNSETTLED
from ..findings.reasons import NOT_KEPT, ONE_CLIENT, ends_soon
from ..kernels.expecting import PUBLISH
from ..session.endpoints import Point
from ..session.events import Col
from ..session.policy import SECOND
from .topic_view import Shortage, TopicView

Integers = NDArray[np.int64]


def retained_findings(view: TopicView) -> None:
    """T-MISSING and T-CLEARED; T-STALE is told where forwards are explained, T-ORDER where ACKs are judged."""
    asking = view.due[PUBLISH][view.deliveries.retained >= 0]
    for rule in ("T-MISSING", "T-CLEARED", "T-STALE"):
        view.candidates.check(rule, asking)
    for short in view.unkept:
        if short.lacking > 0:
            _lacking(view, short)


def _lacking(view: TopicView, short: Shortage) -> None:
    kept, time = view.deliveries.kept, view.events[Col.TIME]
    subscribe, which = int(view.due[PUBLISH, short.due]), int(view.deliveries.retained[short.due])
    message = {name: kept.column(name)[which].as_py() for name in ("time", "id", "text", "name")}
    plain = _published_between(view, message["name"], message["time"], int(time[subscribe]))
    doubt, unless = _doubt(view, short, which)
    view.lacks[short.due] = "missing" if view.is_certain(doubt, unless) else "inconclusive"
    rule, related = "T-MISSING", [message["id"]]
    if len(plain):
        rule, related = "T-CLEARED", [message["id"], *view.ids(plain[:1])]
    view.candidates.add(rule, subscribe, {}, related, doubt, unless, topic=message["text"])


def _doubt(view: TopicView, short: Shortage, which: int) -> tuple[str | None, int]:
    """Why nothing may be missing; None: it is, unless there is this evidence."""
    point, sends = view.facts.point, view.sends(short.first)
    if point is Point.CLIENT:
        return ONE_CLIENT, 0
    waited = view.facts.end - int(view.events[Col.TIME][sends[-1]])
    if waited <= SECOND:
        return ends_soon(waited, SECOND), 0
    unheard, unless = view.reactions.unheard(sends, point)
    kept, more = may_not_be_kept(view, which)
    return unheard or kept, unless | more | UNSETTLED


def may_not_be_kept(view: TopicView, which: int) -> tuple[str | None, int]:
    """A reason if the broker may not have got a message that was to be retained; else None, and unless which
    evidence."""
    row = int(view.events.rows_of(np.array([view.deliveries.kept.column("id")[which].as_py()]))[0])
    if view.reactions.forwarded[row]:
        return None, 0
    more = 0 if view.facts.point is Point.BROKER else LOSS | DOUBLES
    return None if view.reactions.reacted[row] else NOT_KEPT, more


def _published_between(view: TopicView, name: int, begin: int, end: int) -> Integers:
    events, rows = view.events, view.deliveries.publishes
    time = events[Col.TIME][rows]
    during = (events[Col.NAME][rows] == name) & (time > begin) & (time < end)
    between: Integers = rows[during & (events[Col.RETAIN][rows] != 1)]
    return between

"""T rules: the retained messages that a new subscriber is owed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .endpoints import Point
from .events import Col
from .evidence import DOUBLES, LOSS, UNSETTLED
from .kernels.expecting import PUBLISH
from .policy import SECOND
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
    sure, unless = _is_sure(view, short, which)
    view.lacks[short.due] = "missing" if view.is_certain(sure, unless) else "inconclusive"
    rule, related = "T-MISSING", [message["id"]]
    if len(plain):
        rule, related = "T-CLEARED", [message["id"], *view.ids(plain[:1])]
    view.candidates.add(rule, subscribe, {}, related, sure, unless, topic=message["text"])


def _is_sure(view: TopicView, short: Shortage, which: int) -> tuple[bool, int]:
    point, sends = view.facts.point, view.sends(short.first)
    if point is Point.CLIENT or view.facts.end - int(view.events[Col.TIME][sends[-1]]) <= SECOND:
        return False, 0
    unheard, unless = view.reactions.unheard(sends, point)
    kept, doubt = was_kept(view, which)
    return kept and not unheard, unless | doubt | UNSETTLED


def was_kept(view: TopicView, which: int) -> tuple[bool, int]:
    """Whether the broker surely got a message that was to be retained, and unless which evidence."""
    row = int(view.events.rows_of(np.array([view.deliveries.kept.column("id")[which].as_py()]))[0])
    if view.reactions.forwarded[row]:
        return True, 0
    return bool(view.reactions.reacted[row]), 0 if view.facts.point is Point.BROKER else LOSS | DOUBLES


def _published_between(view: TopicView, name: int, begin: int, end: int) -> Integers:
    events, rows = view.events, view.deliveries.publishes
    time = events[Col.TIME][rows]
    during = (events[Col.NAME][rows] == name) & (time > begin) & (time < end)
    between: Integers = rows[during & (events[Col.RETAIN][rows] != 1)]
    return between

"""T rules: the retained messages that a new subscriber is owed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .context import Point
from .delivery_view import DeliveryView, Shortage
from .events import Col
from .findings import quoted
from .kernels.expecting import PUBLISH
from .policy import SECOND

Integers = NDArray[np.int64]


def retained_findings(view: DeliveryView) -> None:
    """T-MISSING and T-CLEARED; T-STALE is told where forwards are explained, T-ORDER where ACKs are judged."""
    asking = view.due[PUBLISH][view.deliveries.retained >= 0]
    for rule in ("T-MISSING", "T-CLEARED", "T-STALE"):
        view.findings.check(rule, asking)
    for short in view.unkept:
        if short.lacking > 0:
            _tell(view, short)


def _tell(view: DeliveryView, short: Shortage) -> None:
    kept, time = view.deliveries.kept, view.events[Col.TIME]
    subscribe, which = int(view.due[PUBLISH, short.due]), int(view.deliveries.retained[short.due])
    message = {name: kept.column(name)[which].as_py() for name in ("time", "frame", "text", "name")}
    plain = _published_between(view, message["name"], message["time"], int(time[subscribe]))
    sure = _is_sure(view, short, which)
    view.lacks[short.due] = "missing" if sure else "inconclusive"
    text = f"{view.events.client(subscribe)} does not get the retained message of {quoted(message['text'])}"
    rule, related = "T-MISSING", [-message["frame"]]
    if len(plain):
        rule, related = "T-CLEARED", [-message["frame"], int(plain[0])]
        text += "; one that was not to be retained came since"
    view.findings.add(rule, subscribe, text, related, sure=sure, topic=message["text"])


def _is_sure(view: DeliveryView, short: Shortage, which: int) -> bool:
    point, sends = view.context.point, view.sends(short.first)
    if point is Point.CLIENT or view.context.end - int(view.events[Col.TIME][sends[-1]]) <= SECOND:
        return False
    return not view.signs.unheard(sends, point) and not view.signs.unsettled and was_kept(view, which)


def was_kept(view: DeliveryView, which: int) -> bool:
    """Whether the broker surely got a message that was to be retained; those of earlier parts are believed."""
    events, kept, rows = view.events, view.deliveries.kept, view.deliveries.publishes
    frame, capture = kept.column("frame")[which].as_py(), kept.column("capture")[which].as_py()
    found = rows[(events[Col.FRAME][rows] == frame) & (events[Col.CAPTURE][rows] == capture)]
    if not len(found) or view.signs.forwarded[found[0]]:
        return True
    shaky = view.context.point is not Point.BROKER and (view.signs.loss_seen or view.signs.doubles_seen)
    return bool(view.signs.reacted[found[0]]) and not shaky


def _published_between(view: DeliveryView, name: int, begin: int, end: int) -> Integers:
    events, rows = view.events, view.deliveries.publishes
    time = events[Col.TIME][rows]
    during = (events[Col.NAME][rows] == name) & (time > begin) & (time < end)
    between: Integers = rows[during & (events[Col.RETAIN][rows] != 1)]
    return between

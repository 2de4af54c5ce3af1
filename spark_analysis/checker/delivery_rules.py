"""D rules on what was due: missing, late, or overtaken by what was published later."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .context import Point
from .delivery_view import DeliveryView, Shortage
from .events import Col
from .findings import numbers, quoted, seconds
from .kernels.expecting import CLIENT, FILTER, LEAST, PUBLISH, SINCE
from .kernels.hashing import mix
from .policy import SECOND, SUBSCRIBE

Integers = NDArray[np.int64]
LATE_NS = 3 * SECOND
CERTAIN_NS = SECOND // 4  # so long before the end of the capture a forward would have come
JITTER_NS = 20_000_000  # what is sent closer together may arrive in the other order


class DeliveryRules:
    """Run it once forwards that were not due are explained (``unexplained``)."""

    def __init__(self, view: DeliveryView) -> None:
        self.view = view
        self.events, self.context, self.deliveries = view.events, view.context, view.deliveries
        self.signs, self.findings = view.signs, view.findings

    def run(self) -> None:
        self._missing()
        self._late()
        self._reordered()

    def _missing(self) -> None:
        due = self.view.due
        self.findings.check("D-MISSING", due[PUBLISH][(self.deliveries.retained < 0) & (due[LEAST] > 0)])
        served = self._served() if self.view.short else set()
        for short in self.view.short:
            if short.lacking <= 0:
                continue
            publish, client = int(self.view.due[PUBLISH, short.due]), int(self.view.due[CLIENT, short.due])
            text = f"{quoted(self.view.topic(publish))} is not passed on to {self.view.who(client)}"
            text += f", {short.lacking} copies" if short.lacking > 1 else ""
            text += self._reading(publish, short.due)
            sure = self._is_sure(short, (client, int(self.view.due[FILTER, short.due])) in served)
            since = -int(self.view.due[SINCE, short.due])
            self.view.lacks[short.due] = "missing" if sure else "inconclusive"
            self.findings.add(
                "D-MISSING",
                short.first,
                text,
                [since],
                sure=sure,
                topic=self.view.topic(publish),
                client=self.view.who(client),
            )

    def _served(self) -> set[tuple[int, int]]:
        """Subscriptions that got all of something: so the broker knows of them."""
        whole = (
            (self.deliveries.filled >= self.view.due[LEAST])
            & (self.view.due[LEAST] > 0)
            & (self.deliveries.retained < 0)
        )
        return set(zip(numbers(self.view.due[CLIENT][whole]), numbers(self.view.due[FILTER][whole]), strict=True))

    def _reading(self, publish: int, due: int) -> str:
        text = self.context.subscriptions.filters[int(self.view.due[FILTER, due])]
        reading = self.view.readings.explain(self.view.topic(publish) or "", text, delivered=False)
        return (
            f"; {quoted(text)} asks for it, but not if {reading}"
            if reading
            else f", which subscribed to {quoted(text)}"
        )

    def _is_sure(self, short: Shortage, is_served: bool) -> bool:
        point, policy = self.context.point, self.events.policy
        sends = self.view.sends(short.first)
        if self.context.end - int(self.events[Col.TIME][sends[-1]]) < CERTAIN_NS or point is Point.CLIENT:
            return False
        if self.signs.unheard(sends, point) or self.signs.unsettled:
            return False
        return is_served or bool(policy.broker_acks[policy.meaning == SUBSCRIBE].any())

    def _late(self) -> None:
        due, first, events = self.view.due, self.deliveries.first, self.events
        came = np.flatnonzero((first >= 0) & (self.deliveries.retained < 0))
        self.findings.check("D-LATE", first[came])
        after = events[Col.TIME][first[came]] - events[Col.TIME][due[PUBLISH][came]]
        for one, late in zip(numbers(came[after >= LATE_NS]), numbers(after[after >= LATE_NS]), strict=True):
            publish = int(due[PUBLISH, one])
            sure = not self.signs.unsettled
            where = events.client(int(first[one]))
            text = f"{quoted(self.view.topic(publish))} comes to {where} {seconds(late)} after it was published"
            self.findings.add("D-LATE", int(first[one]), text, [publish], sure=sure)

    def _reordered(self) -> None:
        """One publisher's messages under one topic come to a subscriber in the order in which they were published."""
        due, events = self.view.due, self.events
        came = np.flatnonzero((self.deliveries.first >= 0) & (self.deliveries.retained < 0))
        publish, forward = due[PUBLISH][came], self.deliveries.first[came]
        stream = mix(
            mix(events[Col.CLIENT][publish], events[Col.NAME][publish]),
            mix(due[CLIENT][came], events[Col.BROKER][publish]),
        )
        order = np.lexsort((publish, stream))
        publish, forward, stream = publish[order], forward[order], stream[order]
        self.findings.check("D-REORDERED", forward)
        overtaken = np.flatnonzero((stream[1:] == stream[:-1]) & (forward[1:] < forward[:-1]))
        told: set[int] = set()
        for at in numbers(overtaken):
            slow = at
            while slow >= 0 and stream[slow] == stream[at] and forward[slow] > forward[at + 1]:
                if slow not in told:
                    told.add(slow)
                    self._overtaken(slow, publish, forward, stream)
                slow -= 1

    def _overtaken(self, slow: int, publish: Integers, forward: Integers, stream: Integers) -> None:
        """Tell of a forward that came behind later messages of its stream, unless they are all the same."""
        events, time = self.events, self.events[Col.TIME]
        end = int(np.searchsorted(stream[slow:], stream[slow], "right")) + slow
        later = np.arange(slow + 1, end)
        other = events[Col.PAYLOAD][publish[later]] != events[Col.PAYLOAD][publish[slow]]
        quick = later[(forward[later] < forward[slow]) & other]
        if not len(quick):
            return
        apart = time[publish[quick[0]]] - time[publish[slow]]
        sure = self.context.point is Point.BROKER or (self.context.point is Point.BRIDGE and apart > JITTER_NS)
        sure = sure and not self.signs.unsettled
        topic = quoted(self.view.topic(int(publish[slow])))
        text = f"a later message of {topic} comes to {events.client(int(forward[slow]))} before this one"
        rows = [int(publish[slow]), *numbers(forward[quick]), *numbers(publish[quick])]
        self.findings.add("D-REORDERED", int(forward[slow]), text, rows, sure=bool(sure))

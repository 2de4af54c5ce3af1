"""D rules on what was due: missing, late, or overtaken by what was published later."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..findings.evidence import UNSETTLED
from ..findings.findings import as_list
from ..findings.reasons import ONE_CLIENT, REORDERED, ends_soon
from ..kernels.expecting import CLIENT, FILTER, LEAST, PUBLISH, SINCE
from ..kernels.grouping import order_by_key
from ..kernels.hashing import mix
from ..session.endpoints import Point
from ..session.events import Col
from ..session.policy import SECOND
from .topic_view import Shortage, TopicView

Integers = NDArray[np.int64]
LATE_NS = 3 * SECOND
CERTAIN_NS = SECOND // 4  # so long before the end of the capture a forward would have come
JITTER_NS = 20_000_000  # what is sent closer together may arrive in the other order


class DeliveryRules:
    """Run it once forwards that were not due are explained (``unexplained``)."""

    def __init__(self, view: TopicView) -> None:
        self.view = view
        self.events, self.facts, self.deliveries = view.events, view.facts, view.deliveries
        self.candidates = view.candidates

    def run(self) -> None:
        self._missing()
        self._late()
        self._reordered()

    def _missing(self) -> None:
        due = self.view.due
        self.candidates.check("D-MISSING", due[PUBLISH][(self.deliveries.retained < 0) & (due[LEAST] > 0)])
        for short in self.view.short:
            if short.lacking > 0:
                self._lacking(short)

    def _lacking(self, short: Shortage) -> None:
        due = self.view.due
        publish, client = int(due[PUBLISH, short.due]), int(due[CLIENT, short.due])
        topic, text = self.view.topic(publish), self.facts.subscriptions.filters[int(due[FILTER, short.due])]
        reading = self.view.reading_of_missing(short.due)
        key = self.view.subscription_key(client, text)
        doubt, unless = self._doubt(short)
        is_served = self.view.served is None or key in self.view.served
        certain = is_served and self.view.is_certain(doubt, unless)
        self.view.lacks[short.due] = "missing" if certain else "inconclusive"
        self.candidates.add(
            "D-MISSING",
            short.first,
            {"count": short.lacking, "filter": text, "reading": reading},
            [int(due[SINCE, short.due])],
            doubt,
            unless,
            key,
            topic=topic,
            client=self.view.who(client),
        )

    def _doubt(self, short: Shortage) -> tuple[str | None, int]:
        """Why the forward may not be missing; None: it is, unless there is this evidence."""
        point, sends = self.facts.point, self.view.sends(short.first)
        if point is Point.CLIENT:
            return ONE_CLIENT, 0
        waited = self.facts.end - int(self.events[Col.TIME][sends[-1]])
        if waited < CERTAIN_NS:
            return ends_soon(waited, CERTAIN_NS), 0
        unheard, unless = self.view.reactions.unheard(sends, point)
        return unheard, unless | UNSETTLED

    def _late(self) -> None:
        due, first, events = self.view.due, self.deliveries.first, self.events
        came = np.flatnonzero((first >= 0) & (self.deliveries.retained < 0))
        self.candidates.check("D-LATE", first[came])
        after = events[Col.TIME][first[came]] - events[Col.TIME][due[PUBLISH][came]]
        for one, late in zip(as_list(came[after >= LATE_NS]), as_list(after[after >= LATE_NS]), strict=True):
            publish = int(due[PUBLISH, one])
            detail = {"seen": self.view.topic(publish), "after_ns": late}
            self.candidates.add("D-LATE", int(first[one]), detail, self.view.ids([publish]), unless=UNSETTLED)

    def _reordered(self) -> None:
        """One publisher's messages under one topic come to a subscriber in the order in which they were published."""
        due, events = self.view.due, self.events
        came = np.flatnonzero((self.deliveries.first >= 0) & (self.deliveries.retained < 0))
        came = came[np.argsort(due[PUBLISH][came], kind="stable")]
        publish, forward = due[PUBLISH][came], self.deliveries.first[came]
        stream = mix(
            mix(events[Col.CLIENT][publish], events[Col.NAME][publish]),
            mix(due[CLIENT][came], events[Col.BROKER][publish]),
        )
        order = order_by_key(stream)
        publish, forward, stream = publish[order], forward[order], stream[order]
        self.candidates.check("D-REORDERED", forward)
        overtaken = np.flatnonzero((stream[1:] == stream[:-1]) & (forward[1:] < forward[:-1]))
        ends = np.append(np.flatnonzero(stream[1:] != stream[:-1]) + 1, len(stream))
        told: set[int] = set()
        for at in as_list(overtaken):
            slow = at
            while slow >= 0 and stream[slow] == stream[at] and forward[slow] > forward[at + 1]:
                if slow not in told:
                    told.add(slow)
                    self._overtaken(slow, publish, forward, ends)
                slow -= 1

    def _overtaken(self, slow: int, publish: Integers, forward: Integers, ends: Integers) -> None:
        """Tell of a forward that came behind later messages of its stream, unless they are all the same. ``ends`` are
        those of the streams."""
        events, time = self.events, self.events[Col.TIME]
        later = np.arange(slow + 1, int(ends[np.searchsorted(ends, slow, "right")]))
        other = events[Col.PAYLOAD][publish[later]] != events[Col.PAYLOAD][publish[slow]]
        quick = later[(forward[later] < forward[slow]) & other]
        if not len(quick):
            return
        apart = time[publish[quick[0]]] - time[publish[slow]]
        is_sure = self.facts.point is Point.BROKER or (self.facts.point is Point.BRIDGE and apart > JITTER_NS)
        rows = [int(publish[slow]), *as_list(forward[quick]), *as_list(publish[quick])]
        detail = {"seen": self.view.topic(int(publish[slow]))}
        doubt = None if is_sure else REORDERED
        self.candidates.add("D-REORDERED", int(forward[slow]), detail, self.view.ids(rows), doubt, UNSETTLED)

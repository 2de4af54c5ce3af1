"""What the rules of acknowledgement look at together, on one part of a session."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .events import Col
from .grouped import Grouped
from .kernels.pairing import REQUEST
from .part_view import PartView
from .policy import ACK

Integers = NDArray[np.int64]
MILLISECOND = 1_000_000
AT_ONCE_NS = 5 * MILLISECOND  # an ACK of an ACK leaves as soon as any
AT_START_NS = 50 * MILLISECOND  # an ACK that early may answer what was sent before the capture


class AckView(PartView):
    """Requests by their sends, and rows by client."""

    @property
    def resend_ns(self) -> int:
        return self.events.policy.resend_ns

    @cached_property
    def _by_group(self) -> Grouped:
        sent = np.flatnonzero((self.asked.role == REQUEST) & (self.asked.group >= 0))
        return Grouped(self.asked.group[sent], sent)

    @cached_property
    def _talks(self) -> Grouped:
        return Grouped(self.events[Col.CLIENT], np.arange(len(self.events)))

    def name(self, row: int) -> str:
        """Of a row's message."""
        return self.events.policy.messages[int(self.events[Col.MESSAGE][row])]

    def sends(self, first: int) -> Integers:
        """All sends of a client's request."""
        return self._by_group.of(first)

    def talk(self, row: int) -> Integers:
        """All rows of one client."""
        return self._talks.of(int(self.events[Col.CLIENT][row]))

    def answers_an_ack(self, row: int, side: int) -> bool:
        """Whether the last thing that the other side said in this talk is an ACK, just before."""
        events = self.events
        before = self.talk(row)
        before = before[: np.searchsorted(before, row)]
        before = before[events[Col.SIDE][before] == side]
        before = before[events[Col.TIME][row] - events[Col.TIME][before] < AT_ONCE_NS]
        is_ack = np.append(events.policy.meaning == ACK, False)[events[Col.MESSAGE][before]]
        if events.policy.is_keyed[events[Col.MESSAGE][row]]:
            return bool((is_ack & (events[Col.KEY][before] == events[Col.KEY][row])).any())
        return bool(is_ack[-1:].any())

    def may_precede(self, row: int) -> bool:
        """Whether what an ACK answers may have been sent before the capture began."""
        since = self.events[Col.TIME][row] - self.context.begin
        return bool(since < (1.5 * self.resend_ns if self.starts_late else AT_START_NS))

"""R rules, and A rules on clients: what they send again, and what they acknowledge."""

from __future__ import annotations

import numpy as np

from .ack_view import MILLISECOND, AckView
from .events import FROM_BROKER, Col
from .findings import numbers, seconds
from .kernels.pairing import ACK_LOST, AFTER_ACK, ALTERED, DUPLICATE, EARLY, REPLY, REQUEST, RESEND, STRAY


class ClientRules:
    """What clients owe."""

    def __init__(self, view: AckView) -> None:
        self.view = view
        self.events, self.context, self.told = view.events, view.context, view.told
        self.asked, self.signs, self.findings = view.asked, view.signs, view.findings

    def run(self) -> None:
        if self.events.policy.has_resends:
            self._resends()
        self._of_clients()

    def _resends(self) -> None:
        asked, events, time = self.asked, self.events, self.events[Col.TIME]
        again = asked.of_kind(REQUEST, RESEND, EARLY, ACK_LOST, AFTER_ACK, ALTERED)
        again = again[asked.owed[again]]
        for rule in ("R-ALTERED", "R-ALTERED-RETAIN", "R-AFTER-ACK", "R-EARLY"):
            self.findings.check(rule, again)
        for row in numbers(again):
            first, kind = int(asked.group[row]), int(asked.kind[row])
            name = self.view.name(row)
            after = seconds(int(time[row] - time[first]))
            sure = not self.signs.doubles_seen  # else it may be the network's copy of an older one
            if kind == EARLY:
                text = f"{name} is sent again after {after}, long before its ACK is late"
                self.findings.add("R-EARLY", row, text, [first], sure=sure)
            elif kind == AFTER_ACK:
                text = f"{name} is sent again although it was acknowledged"
                self.findings.add("R-AFTER-ACK", row, text, [first, int(asked.ack[first])], sure=sure)
            elif kind == ALTERED:
                self.findings.add("R-ALTERED", row, f"{name} is sent again after {after} with another payload", [first])
            flags = events[Col.RETAIN][[first, row]]
            if kind in (RESEND, EARLY, ACK_LOST) and flags.min() >= 0 and flags[0] != flags[1]:
                self.findings.add("R-ALTERED-RETAIN", row, f"{name} is sent again with another retain flag", [first])

    def _of_clients(self) -> None:
        told, events, time = self.told, self.events, self.events[Col.TIME]
        firsts = told.firsts()
        firsts = firsts[told.owed[firsts]]
        self.findings.check("A-CLIENT-MISSING", firsts)
        for first in numbers(firsts[told.ack[firsts] < 0]):
            waited = self.context.end - int(time[told.last[first]])
            enough = waited > 1.02 * self.view.resend_ns or told.sends[first] > 1
            sure = enough and not self.signs.loss_seen
            text = f"{events.client(first)} does not acknowledge {self.view.name(first)}"
            self.findings.add("A-CLIENT-MISSING", first, text, sure=bool(sure))
        speaker = np.append(events.policy.speakers, -1)[events[Col.MESSAGE]]
        acks = told.of_kind(REPLY, STRAY, DUPLICATE)
        self.findings.check("A-ACK-OF-ACK", np.flatnonzero(told.role == REPLY))
        for row in numbers(acks[speaker[acks] != 1]):
            self._stray_of_client(row)

    def _may_answer_again(self, row: int) -> bool:
        """Whether something to be acknowledged came just before: the network may have doubled it behind the capture."""
        events = self.events
        if events.policy.is_keyed[events[Col.MESSAGE][row]]:
            return False
        before = self.view.talk(row)
        before = before[: np.searchsorted(before, row)]
        near = before[events[Col.TIME][row] - events[Col.TIME][before] < 10 * MILLISECOND]
        return bool(self.told.owed[near].any())

    def _stray_of_client(self, row: int) -> None:
        told = self.told
        if self.view.answers_an_ack(row, FROM_BROKER):
            sure = not (self.signs.doubles_seen or self.signs.loss_seen or self._may_answer_again(row))
            self.findings.add("A-ACK-OF-ACK", row, f"{self.events.client(row)} acknowledges an ACK", sure=sure)
        elif told.kind[row] == STRAY:
            may_precede = self.view.may_precede(row)
            text = f"{self.view.name(row)} of {self.events.client(row)} answers nothing that the broker sent"
            self.findings.add("A-UNSOLICITED", row, text, sure=not may_precede)

"""R rules, and A rules on clients: what they send again, and what they acknowledge."""

from __future__ import annotations

import numpy as np

from ..findings.evidence import BESIDE_NS, DOUBLES, LOSS
from ..findings.findings import as_list
from ..findings.reasons import DOUBLED_BEHIND, ends_soon
from ..kernels.pairing import ACK_LOST, AFTER_ACK, ALTERED, DUPLICATE, EARLY, QUEUED, REPLY, REQUEST, RESEND, STRAY
from ..session.events import FROM_BROKER, Col
from .talk_view import MILLISECOND, TalkView


class ClientRules:
    """What clients owe."""

    def __init__(self, view: TalkView) -> None:
        self.view = view
        self.events, self.facts, self.candidates = view.events, view.facts, view.candidates
        self.asked, self.told = view.client_exchanges, view.broker_exchanges

    def run(self) -> None:
        if self.events.policy.has_resends:
            self._resends()
        self._of_clients()

    def _resends(self) -> None:
        asked, events, time = self.asked, self.events, self.events[Col.TIME]
        again = asked.of_kind(REQUEST, RESEND, EARLY, ACK_LOST, AFTER_ACK, ALTERED)
        again = again[asked.owed[again]]
        for rule in ("R-ALTERED", "R-ALTERED-RETAIN", "R-AFTER-ACK", "R-EARLY"):
            self.candidates.check(rule, again)
        for row in as_list(again):
            first, kind = int(asked.group[row]), int(asked.kind[row])
            detail = {"message": self.view.name(row), "after_ns": int(time[row] - time[first])}
            related = self.candidates.ids([first])
            # Where the network doubles datagrams it may be the network's copy of an older one.
            if kind == EARLY:
                self.candidates.add("R-EARLY", row, detail, related, unless=DOUBLES)
            elif kind == AFTER_ACK:
                related += self.candidates.ids([int(asked.ack[first])])
                self.candidates.add("R-AFTER-ACK", row, detail, related, unless=DOUBLES)
            elif kind == ALTERED:
                self.candidates.add("R-ALTERED", row, detail, related, key=self._awaits(row))
            flags = events[Col.RETAIN][[first, row]]
            if kind in (RESEND, EARLY, ACK_LOST) and flags.min() >= 0 and flags[0] != flags[1]:
                self.candidates.add("R-ALTERED-RETAIN", row, detail, related, key=self._awaits(row))

    def _of_clients(self) -> None:
        told, events, time = self.told, self.events, self.events[Col.TIME]
        firsts = told.firsts()
        firsts = firsts[told.owed[firsts]]
        self.candidates.check("A-CLIENT-MISSING", firsts)
        for first in as_list(firsts[told.ack[firsts] < 0]):
            waited, limit = self.facts.end - int(time[told.last[first]]), self.view.patience(told, first)
            doubt = None if waited > limit or told.sends[first] > 1 else ends_soon(waited, limit)
            detail = {"message": self.view.name(first)}
            self.candidates.add("A-CLIENT-MISSING", first, detail, self._as_likely(first), doubt, LOSS)
        speaker = np.append(events.policy.speakers, -1)[events[Col.MESSAGE]]
        acks = told.of_kind(REPLY, STRAY, DUPLICATE)
        self.candidates.check("A-ACK-OF-ACK", np.flatnonzero(told.role == REPLY))
        for row in as_list(acks[speaker[acks] != 1]):
            self._stray_of_client(row)

    def _as_likely(self, first: int) -> list[int]:
        """Ids of messages that waited with this one, and got an ACK that may as well have been for this one."""
        told, time = self.told, self.events[Col.TIME]
        others = self.view.talk(first)
        others = others[(told.group[others] == others) & (told.quality[others] == QUEUED)]
        together = (time[others] <= time[first] + BESIDE_NS) & (time[told.ack[others]] > time[first])
        return self.candidates.ids(as_list(others[together]))

    def _awaits(self, row: int) -> int:
        """The id of the request that is sent again here because its ACK has not come in time; 0: not for that."""
        asked, time = self.asked, self.events[Col.TIME]
        if asked.kind[row] not in (RESEND, ALTERED):
            return 0
        sends = self.view.sends(int(asked.group[row]))
        before = int(sends[np.searchsorted(sends, row) - 1])
        has_waited = 2 * (time[row] - time[before]) >= self.view.resend_ns
        return int(self.events[Col.ID][sends[0]]) if has_waited else 0

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
        detail = {"case": "client", "message": self.view.name(row)}
        if self.view.answers_an_ack(row, FROM_BROKER):
            doubt = DOUBLED_BEHIND if self._may_answer_again(row) else None
            self.candidates.add("A-ACK-OF-ACK", row, detail, doubt=doubt, unless=DOUBLES | LOSS)
        elif self.told.kind[row] == STRAY:
            self.candidates.add("A-UNSOLICITED", row, detail, doubt=self.view.may_precede(row))

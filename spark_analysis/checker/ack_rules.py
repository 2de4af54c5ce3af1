"""A rules on the broker: ACKs and status messages that are missing, late, twice, astray or out of order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .ack_view import MILLISECOND, AckView
from .context import Point
from .control import DISCONNECTS
from .events import FROM_BROKER, TO_BROKER, Col
from .findings import numbers, seconds
from .kernels.hashing import mix
from .kernels.pairing import ANSWER, DUPLICATE, REPLY, REQUEST, STRAY
from .kernels.statuses import follow
from .policy import ACK, ACK_FIRST, ACK_LAST, SECOND, STATUS

Integers = NDArray[np.int64]
ASTRAY_NS = 20 * MILLISECOND  # an ACK that goes astray leaves as soon as any
BESIDE_NS = 50 * MILLISECOND  # forwards later than that say nothing about order
ENOUGH_SENDS = 3  # that all of them are lost is no longer likely
ENOUGH_ELSEWHERE = 4  # where not all that is seen has come to the broker


class AckRules:
    """What the broker owes whoever asks; and with it R-MISSING, which is about the same requests."""

    def __init__(self, view: AckView) -> None:
        self.view = view
        self.events, self.context, self.deliveries = view.events, view.context, view.deliveries
        self.asked, self.signs, self.findings = view.asked, view.signs, view.findings
        self._astray: set[int] = set()
        self._told: set[int] = set()

    def run(self) -> None:
        if self.events.policy.broker_acks.any():
            self._strays()
            self._missing()
            self._late()
            self._duplicates()
            self._order()
            self._statuses()

    def _firsts(self) -> Integers:
        firsts = self.asked.firsts()
        owed = firsts[self.asked.owed[firsts]]
        return owed[~np.isin(owed, self.deliveries.wild)]

    def _missing(self) -> None:
        firsts, asked, time = self._firsts(), self.asked, self.events[Col.TIME]
        self.findings.check("A-MISSING", firsts)
        if self.events.policy.has_resends:
            self.findings.check("R-MISSING", firsts)
        for first in numbers(firsts[(asked.ack[firsts] < 0) | (asked.sends[firsts] > ENOUGH_SENDS)]):
            if first in self._astray or self._is_turned_away(first):
                continue
            if asked.ack[first] >= 0:
                self._missing_for_long(first)
                continue
            last, sends = int(asked.last[first]), int(asked.sends[first])
            waited = self.context.end - int(time[last])
            enough = 2 if self.context.point is Point.BROKER else ENOUGH_SENDS
            sure = self._is_sure(first, sends) and (waited > 1.02 * self.view.resend_ns or sends >= enough)
            often = "" if sends == 1 else f", though it is sent {sends} times"
            text = f"{self.view.name(first)} is never acknowledged{often}"
            rows = numbers(self.view.sends(first)) if sends > 1 else []
            self.findings.add("A-MISSING", first, text, rows, sure=sure)
            if self.events.policy.has_resends and sends == 1:
                after = seconds(self.view.resend_ns)
                text = f"{self.view.name(first)} is not sent again after {after}, though no ACK comes"
                long_enough = waited > 1.5 * self.view.resend_ns
                self.findings.add("R-MISSING", first, text, sure=sure and long_enough)

    def _is_turned_away(self, first: int) -> bool:
        """Whether the broker ended the session when the request came: it then answers nothing else."""
        if not self.events.policy.has_sessions:
            return False
        events, last = self.events, int(self.asked.last[first])
        after = self.view.talk(first)
        after = after[np.searchsorted(after, first) :]
        ended = np.array([name == DISCONNECTS for name in events.policy.messages] + [False])
        gone = after[ended[events[Col.MESSAGE][after]]]
        return bool((events[Col.TIME][gone] - events[Col.TIME][last] < self.view.resend_ns).any())

    def _missing_for_long(self, first: int) -> None:
        """What is acknowledged in the end may be another request of the same content: what came before has no ACK."""
        sends = self.view.sends(first)
        answered = np.flatnonzero(self.asked.answered[sends])
        run = sends[: int(answered[0])] if len(answered) else sends
        enough = ENOUGH_SENDS if self.context.point is Point.BROKER else ENOUGH_ELSEWHERE
        if len(run) > enough:
            text = f"{self.view.name(first)} is sent {len(run)} times before an ACK comes"
            self.findings.add("A-MISSING", first, text, numbers(run))

    def _is_sure(self, first: int, sends: int) -> bool:
        """Whether the broker got the request and was there."""
        if sends >= ENOUGH_SENDS:
            return True
        if self.context.point is Point.CLIENT or (sends == 1 and self.signs.loss_seen):
            return False
        rows = np.array([first]) if sends == 1 else self.view.sends(first)
        return bool(self.signs.reacted[rows].any()) or not bool(self.signs.silent[rows].all())

    def _late(self) -> None:
        firsts, asked, time = self._firsts(), self.asked, self.events[Col.TIME]
        self.findings.check("A-LATE", firsts)
        acked = firsts[asked.ack[firsts] >= 0]
        since_first = time[asked.ack[acked]] - time[acked]
        since_last = time[asked.ack[acked]] - time[asked.send_of[asked.ack[acked]]]
        late = (since_first > 1.02 * self.view.resend_ns) & (since_last > 0.1 * self.view.resend_ns)
        for first, after in zip(numbers(acked[late]), numbers(since_first[late]), strict=True):
            delay = f"{seconds(after)}; it is sent again after {seconds(self.view.resend_ns)}"
            text = f"the ACK of {self.view.name(first)} comes after {delay}"
            related = [first, *numbers(self.view.sends(first))]
            self.findings.add("A-LATE", int(asked.ack[first]), text, related)

    def _acks(self) -> Integers:
        message, side = self.events[Col.MESSAGE], self.events[Col.SIDE]
        return np.flatnonzero(np.append(self.events.policy.meaning == ACK, False)[message] & (side == FROM_BROKER))

    def _duplicates(self) -> None:
        acks, asked = self._acks(), self.asked
        for rule in ("A-DUPLICATE", "A-UNSOLICITED", "A-MISDIRECTED"):
            self.findings.check(rule, acks)
        for row in numbers(asked.of_kind(REPLY, DUPLICATE)):
            if row in self._told:
                continue
            first = int(asked.group[row])
            bridged = self.context.point is Point.BRIDGE and self.events[Col.IP_ID][row] > 0
            sure = self.context.point is Point.BROKER or bridged
            text = f"{self.view.name(first)} is acknowledged once more than it was sent"
            self.findings.add("A-DUPLICATE", row, text, [first, int(asked.ack[first])], sure=bool(sure))

    def _strays(self) -> None:
        """ACKs that answer nothing: meant for another client, for an ACK, or for nobody."""
        events = self.events
        strays = self.asked.of_kind(REPLY, STRAY, DUPLICATE)
        if not len(strays):
            return
        waiting = self._unanswered()
        for row in numbers(strays):
            other = self._meant_for(row, waiting)
            may_precede = self.view.may_precede(row)
            if other >= 0:
                waiting = waiting[waiting != other]
                self._astray.add(int(self.asked.group[other]))
                text = f"the ACK of {self.view.name(other)} goes to {events.client(row)}; {events.client(other)} asked"
                self.findings.add("A-MISDIRECTED", row, text, [other])
                self._told.add(row)
            elif self.asked.kind[row] == DUPLICATE:
                continue  # the next rule's
            elif self.view.answers_an_ack(row, TO_BROKER):
                self.findings.add("A-ACK-OF-ACK", row, "the broker acknowledges an ACK")
            else:
                text = f"{self.view.name(row)} answers nothing that {events.client(row)} sent"
                self.findings.add("A-UNSOLICITED", row, text, sure=not may_precede)

    def _unanswered(self) -> Integers:
        """Sends for which no ACK came before the next."""
        sends = (self.asked.role == REQUEST) & self.asked.owed & ~self.asked.answered
        return np.flatnonzero(sends)

    def _meant_for(self, row: int, waiting: Integers) -> int:
        events, policy = self.events, self.events.policy
        time = events[Col.TIME]
        ack = events[Col.MESSAGE][row]
        end = np.searchsorted(waiting, row)
        for other in numbers(waiting[:end][::-1][:64]):
            if time[row] - time[other] > ASTRAY_NS:
                break
            fits = (
                policy.answers[ack, events[Col.MESSAGE][other]] and events[Col.BROKER][row] == events[Col.BROKER][other]
            )
            fits = fits and events[Col.CLIENT][row] != events[Col.CLIENT][other]
            if fits and (not policy.is_keyed[ack] or events[Col.KEY][row] == events[Col.KEY][other]):
                return other
        return -1

    def _order(self) -> None:
        """ACK and forwards of one publish: which comes first."""
        place = self.events.policy.ack_place
        acks = self.asked.of_kind(REPLY, ANSWER)
        sends = self.asked.send_of[acks]
        meaning = self.events.policy.meaning[self.events[Col.MESSAGE][sends]]
        wanted = place[meaning] > 0
        wanted &= self.events[Col.TIME][acks] - self.events[Col.TIME][sends] < BESIDE_NS
        acks, sends, meaning = acks[wanted], sends[wanted], meaning[wanted]
        first, last = self._forwards_beside()
        if self.context.point is Point.CLIENT:
            return  # what comes to a client from two sides says nothing of the order in which it left
        self.findings.check("A-ORDER", sends[first[sends] >= 0])
        wrong = np.where(place[meaning] == ACK_LAST, last[sends] > acks, (first[sends] >= 0) & (first[sends] < acks))
        for ack, send in zip(numbers(acks[wrong]), numbers(sends[wrong]), strict=True):
            after = place[self.events.policy.meaning[self.events[Col.MESSAGE][send]]] == ACK_LAST
            rule = "A-ORDER" if self.events.policy.publishes[self.events[Col.MESSAGE][send]] else "T-ORDER"
            what = "forwards" if rule == "A-ORDER" else "retained message"
            text = f"the ACK of {self.view.name(send)} comes {'before' if after else 'after'} the {what}"
            self.findings.add(
                rule, ack if rule == "A-ORDER" else send, text, [send, ack, int(first[send]), int(last[send])]
            )
        if self.events.policy.dialect.spec.broker.retained != "none":
            self.findings.check(
                "T-ORDER", sends[~self.events.policy.publishes[self.events[Col.MESSAGE][sends]] & (first[sends] >= 0)]
            )

    def _forwards_beside(self) -> tuple[Integers, Integers]:
        """By row of a request: the first and the last of the messages that it brought about at once; -1 for none."""
        events, deliveries = self.events, self.deliveries
        first, last = (np.full(len(events), -1, np.int64) for _ in range(2))
        causes, seen = deliveries.publish_of(), deliveries.seen
        near = (causes >= 0) & (events[Col.TIME][seen] - events[Col.TIME][causes] < BESIDE_NS)
        found = deliveries.answers[near]
        # Of one expectation only the first: a second copy may come later than its place.
        near_seen = seen[near][deliveries.first[found] == seen[near]]
        near_cause = causes[near][deliveries.first[found] == seen[near]]
        first[near_cause[::-1]] = near_seen[::-1]
        last[near_cause] = near_seen
        return first, last

    def _statuses(self) -> None:
        """Status messages: one follows each request that has one."""
        events, asked, policy = self.events, self.asked, self.events.policy
        if (policy.statuses < 0).all():
            return
        message = events[Col.MESSAGE]
        wants = np.where((asked.role == REQUEST) & (np.append(policy.statuses, -1)[message] >= 0), asked.group, -1)
        acked = np.where((asked.role == REPLY) & (asked.kind == ANSWER), asked.group, -1)
        status = (np.append(policy.meaning == STATUS, False)[message] & (events[Col.SIDE] == FROM_BROKER)).astype(
            np.int64
        )
        talk = mix(events[Col.BROKER], events[Col.CLIENT])
        found = np.full(len(events), -1, np.int64)
        follow(np.lexsort((np.arange(len(events)), talk)), talk, wants, acked, status, found)
        firsts = np.unique(wants[wants >= 0])
        firsts = firsts[~np.isin(firsts, self.deliveries.wild)]
        self.findings.check("A-STATUS-MISSING", firsts)
        self._status_order(firsts[(found[firsts] >= 0) & (asked.ack[firsts] >= 0)], found)
        for first in numbers(firsts[(found[firsts] < 0) & (asked.ack[firsts] >= 0)]):
            ack = int(asked.ack[first])
            sure = self.context.end - events[Col.TIME][ack] > SECOND and self.context.point is not Point.CLIENT
            missing = policy.messages[policy.statuses[message[first]]]
            text = f"{self.view.name(first)} is acknowledged, but no {missing} says how it went"
            self.findings.add("A-STATUS-MISSING", first, text, [ack], sure=bool(sure))

    def _status_order(self, firsts: Integers, found: Integers) -> None:
        if self.context.point is Point.CLIENT:
            return
        place = self.events.policy.ack_place[self.events.policy.meaning[self.events[Col.MESSAGE][firsts]]]
        early = firsts[
            (place == ACK_FIRST) & (found[firsts] < self.asked.ack[firsts]) & (self.asked.sends[firsts] == 1)
        ]
        for first in numbers(early):
            text = f"the ACK of {self.view.name(first)} comes after the status message"
            self.findings.add("A-ORDER", int(self.asked.ack[first]), text, [first, int(found[first])])

"""A and R rules: ACKs and status messages that are missing, late, twice, astray or out of order, and resends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .context import Context, Point
from .control import DISCONNECTS
from .deliveries import Deliveries
from .events import FROM_BROKER, TO_BROKER, Col, Events
from .exchanges import Exchanges
from .findings import Findings, numbers, seconds
from .grouped import Grouped
from .kernels.hashing import mix
from .kernels.pairing import (
    ACK_LOST,
    AFTER_ACK,
    ALTERED,
    ANSWER,
    DUPLICATE,
    EARLY,
    REPLY,
    REQUEST,
    RESEND,
    STRAY,
)
from .kernels.statuses import follow
from .policy import ACK, ACK_FIRST, ACK_LAST, SECOND, STATUS
from .signs import Signs

Integers = NDArray[np.int64]
MILLISECOND = 1_000_000
ASTRAY_NS = 20 * MILLISECOND  # an ACK that goes astray leaves as soon as any
AT_START_NS = 50 * MILLISECOND  # an ACK that early may answer what was sent before the capture
BESIDE_NS = 50 * MILLISECOND  # forwards later than that say nothing about order
ENOUGH_SENDS = 3  # that all of them are lost is no longer likely
ENOUGH_ELSEWHERE = 4  # where not all that is seen has come to the broker


@dataclass
class AckRules:
    """The rules on one part of a session. ``asked``: clients ask; ``told``: the broker does."""

    events: Events
    context: Context
    deliveries: Deliveries
    asked: Exchanges
    told: Exchanges
    signs: Signs
    findings: Findings
    starts_late: bool = False

    def run(self) -> None:
        policy = self.events.policy
        self._resend_ns = policy.resend_ns
        sent = np.flatnonzero((self.asked.role == REQUEST) & (self.asked.group >= 0))
        self._by_group = Grouped(self.asked.group[sent], sent)
        self._talks: Grouped | None = None
        self._astray: set[int] = set()
        self._told: set[int] = set()
        if policy.broker_acks.any():
            self._strays()
            self._missing()
            self._late()
            self._duplicates()
            self._order()
            self._statuses()
        if policy.has_resends:
            self._resends()
        self._of_clients()

    # -- what the broker owes -----------------------------------------------------------------------------------

    def _name(self, row: int) -> str:
        return self.events.policy.messages[int(self.events[Col.MESSAGE][row])]

    def _firsts(self) -> Integers:
        firsts = self.asked.firsts()
        owed = firsts[self.asked.owed[firsts]]
        return owed[~np.isin(owed, self.deliveries.wild)]

    def _sends(self, first: int) -> Integers:
        return self._by_group.of(first)

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
            sure = self._is_sure(first, sends) and (waited > 1.02 * self._resend_ns or sends >= enough)
            often = "" if sends == 1 else f", though it is sent {sends} times"
            text = f"{self._name(first)} is never acknowledged{often}"
            rows = numbers(self._sends(first)) if sends > 1 else []
            self.findings.add("A-MISSING", first, text, rows, sure=sure)
            if self.events.policy.has_resends and sends == 1:
                after = seconds(self._resend_ns)
                text = f"{self._name(first)} is not sent again after {after}, though no ACK comes"
                long_enough = waited > 1.5 * self._resend_ns
                self.findings.add("R-MISSING", first, text, sure=sure and long_enough)

    def _is_turned_away(self, first: int) -> bool:
        """Whether the broker ended the session when the request came: it then answers nothing else."""
        if not self.events.policy.has_sessions:
            return False
        events, last = self.events, int(self.asked.last[first])
        after = self._talk(first)
        after = after[np.searchsorted(after, first) :]
        ended = np.array([name == DISCONNECTS for name in events.policy.messages] + [False])
        gone = after[ended[events[Col.MESSAGE][after]]]
        return bool((events[Col.TIME][gone] - events[Col.TIME][last] < self._resend_ns).any())

    def _talk(self, row: int) -> Integers:
        """All rows of one client."""
        if self._talks is None:
            self._talks = Grouped(self.events[Col.CLIENT], np.arange(len(self.events)))
        return self._talks.of(int(self.events[Col.CLIENT][row]))

    def _missing_for_long(self, first: int) -> None:
        """What is acknowledged in the end may be another request of the same content: what came before has no ACK."""
        sends = self._sends(first)
        answered = np.flatnonzero(self.asked.answered[sends])
        run = sends[: int(answered[0])] if len(answered) else sends
        enough = ENOUGH_SENDS if self.context.point is Point.BROKER else ENOUGH_ELSEWHERE
        if len(run) > enough:
            text = f"{self._name(first)} is sent {len(run)} times before an ACK comes"
            self.findings.add("A-MISSING", first, text, numbers(run))

    def _is_sure(self, first: int, sends: int) -> bool:
        """Whether the broker got the request and was there."""
        if sends >= ENOUGH_SENDS:
            return True
        if self.context.point is Point.CLIENT or (sends == 1 and self.signs.loss_seen):
            return False
        rows = np.array([first]) if sends == 1 else self._sends(first)
        return bool(self.signs.reacted[rows].any()) or not bool(self.signs.silent[rows].all())

    def _late(self) -> None:
        firsts, asked, time = self._firsts(), self.asked, self.events[Col.TIME]
        self.findings.check("A-LATE", firsts)
        acked = firsts[asked.ack[firsts] >= 0]
        since_first = time[asked.ack[acked]] - time[acked]
        since_last = time[asked.ack[acked]] - time[asked.send_of[asked.ack[acked]]]
        late = (since_first > 1.02 * self._resend_ns) & (since_last > 0.1 * self._resend_ns)
        for first, after in zip(numbers(acked[late]), numbers(since_first[late]), strict=True):
            delay = f"{seconds(after)}; it is sent again after {seconds(self._resend_ns)}"
            text = f"the ACK of {self._name(first)} comes after {delay}"
            related = [first, *numbers(self._sends(first))]
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
            text = f"{self._name(first)} is acknowledged once more than it was sent"
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
            may_precede = self._may_precede(row)
            if other >= 0:
                waiting = waiting[waiting != other]
                self._astray.add(int(self.asked.group[other]))
                text = f"the ACK of {self._name(other)} goes to {events.client(row)}; {events.client(other)} asked"
                self.findings.add("A-MISDIRECTED", row, text, [other])
                self._told.add(row)
            elif self.asked.kind[row] == DUPLICATE:
                continue  # the next rule's
            elif self._answers_an_ack(row, TO_BROKER):
                self.findings.add("A-ACK-OF-ACK", row, "the broker acknowledges an ACK")
            else:
                text = f"{self._name(row)} answers nothing that {events.client(row)} sent"
                self.findings.add("A-UNSOLICITED", row, text, sure=not may_precede)

    def _may_precede(self, row: int) -> bool:
        """Whether what an ACK answers may have been sent before the capture began."""
        since = self.events[Col.TIME][row] - self.context.begin
        return bool(since < (1.5 * self._resend_ns if self.starts_late else AT_START_NS))

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

    def _answers_an_ack(self, row: int, side: int) -> bool:
        """Whether the last thing that the other side said in this talk is an ACK, just before."""
        events = self.events
        before = self._talk(row)
        before = before[: np.searchsorted(before, row)]
        before = before[events[Col.SIDE][before] == side]
        before = before[events[Col.TIME][row] - events[Col.TIME][before] < ASTRAY_NS // 4]
        is_ack = np.append(events.policy.meaning == ACK, False)[events[Col.MESSAGE][before]]
        if events.policy.is_keyed[events[Col.MESSAGE][row]]:
            return bool((is_ack & (events[Col.KEY][before] == events[Col.KEY][row])).any())
        return bool(is_ack[-1:].any())

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
            text = f"the ACK of {self._name(send)} comes {'before' if after else 'after'} the {what}"
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
            text = f"{self._name(first)} is acknowledged, but no {missing} says how it went"
            self.findings.add("A-STATUS-MISSING", first, text, [ack], sure=bool(sure))

    def _status_order(self, firsts: Integers, found: Integers) -> None:
        if self.context.point is Point.CLIENT:
            return
        place = self.events.policy.ack_place[self.events.policy.meaning[self.events[Col.MESSAGE][firsts]]]
        early = firsts[
            (place == ACK_FIRST) & (found[firsts] < self.asked.ack[firsts]) & (self.asked.sends[firsts] == 1)
        ]
        for first in numbers(early):
            text = f"the ACK of {self._name(first)} comes after the status message"
            self.findings.add("A-ORDER", int(self.asked.ack[first]), text, [first, int(found[first])])

    # -- what clients owe -----------------------------------------------------------------------------------------

    def _resends(self) -> None:
        asked, events, time = self.asked, self.events, self.events[Col.TIME]
        again = asked.of_kind(REQUEST, RESEND, EARLY, ACK_LOST, AFTER_ACK, ALTERED)
        again = again[asked.owed[again]]
        for rule in ("R-ALTERED", "R-ALTERED-RETAIN", "R-AFTER-ACK", "R-EARLY"):
            self.findings.check(rule, again)
        for row in numbers(again):
            first, kind = int(asked.group[row]), int(asked.kind[row])
            name = self._name(row)
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
            enough = waited > 1.02 * self._resend_ns or told.sends[first] > 1
            sure = enough and not self.signs.loss_seen
            text = f"{events.client(first)} does not acknowledge {self._name(first)}"
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
        before = self._talk(row)
        before = before[: np.searchsorted(before, row)]
        near = before[events[Col.TIME][row] - events[Col.TIME][before] < 10 * MILLISECOND]
        return bool(self.told.owed[near].any())

    def _stray_of_client(self, row: int) -> None:
        told = self.told
        if self._answers_an_ack(row, FROM_BROKER):
            sure = not (self.signs.doubles_seen or self.signs.loss_seen or self._may_answer_again(row))
            self.findings.add("A-ACK-OF-ACK", row, f"{self.events.client(row)} acknowledges an ACK", sure=sure)
        elif told.kind[row] == STRAY:
            may_precede = self._may_precede(row)
            text = f"{self._name(row)} of {self.events.client(row)} answers nothing that the broker sent"
            self.findings.add("A-UNSOLICITED", row, text, sure=not may_precede)

"""A rules on the broker: ACKs and status messages that are missing, late, twice, astray or out of order."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..findings.evidence import BESIDE_NS, CAPTURE_LOST, CUT, LOSS
from ..findings.findings import CANDIDATES, as_list
from ..findings.reasons import BROKER_AWAY, DOUBLED, NEVER_HEARD, ONE_CLIENT, ends_soon
from ..kernels.hashing import mix
from ..kernels.pairing import ANSWER, DUPLICATE, REPLY, REQUEST, STRAY
from ..kernels.statuses import follow
from ..session.endpoints import Point
from ..session.events import FROM_BROKER, TO_BROKER, Col
from ..session.facts import SessionFacts
from ..session.policy import ACK, ACK_FIRST, ACK_LAST, DISCONNECTS, SECOND, STATUS
from .talk_view import MILLISECOND, TalkView

Integers = NDArray[np.int64]
ASTRAY_NS = 20 * MILLISECOND  # an ACK that goes astray leaves as soon as any
ENOUGH_SENDS = 3  # that all of them are lost is no longer likely
ENOUGH_ELSEWHERE = 4  # where not all that is seen has come to the broker
MOST_WAITING = 64  # unanswered requests that an ACK may have been meant for

# ACKs that answer nothing and requests without an ACK: what went to one client may have been meant for another.
ASTRAY = pa.schema(
    [(name, pa.int64()) for name in ("id", "time", "broker", "client", "message", "key", "group")]
    + [("is_stray", pa.bool_()), ("topic", pa.string()), ("client_text", pa.string())]
)


class AckRules:
    """What the broker owes clients that ask; and with it R-MISSING, which is about the same requests."""

    def __init__(self, view: TalkView) -> None:
        self.view = view
        self.events, self.facts, self.asked = view.events, view.facts, view.client_exchanges
        self.candidates, self.reactions = view.candidates, view.reactions

    def run(self) -> None:
        if self.events.policy.broker_acks.any():
            self._strays()
            self._missing()
            if self.events.policy.has_resends:
                self._late()
            self._duplicates()
            self._order()
            self._statuses()

    def _ids(self, *rows: int) -> list[int]:
        return self.candidates.ids(rows)

    def _firsts(self) -> Integers:
        firsts = self.asked.firsts()
        owed = firsts[self.asked.owed[firsts]]
        return owed[~np.isin(owed, self.view.publishes.wild)]

    def _missing(self) -> None:
        firsts, asked, time = self._firsts(), self.asked, self.events[Col.TIME]
        self.candidates.check("A-MISSING", firsts)
        if self.events.policy.has_resends:
            self.candidates.check("R-MISSING", firsts)
        for first in as_list(firsts[(asked.ack[firsts] < 0) | (asked.sends[firsts] > ENOUGH_SENDS)]):
            if self._is_turned_away(first):
                continue
            own = int(self.events[Col.ID][first])
            if asked.ack[first] >= 0:
                self._missing_for_long(first, own)
                continue
            last, sends = int(asked.last[first]), int(asked.sends[first])
            waited, limit = self.facts.end - int(time[last]), self.view.patience(asked, first)
            enough = 2 if self.facts.point is Point.BROKER else ENOUGH_SENDS
            unheard, unless = self._may_be_unheard(first, sends)
            doubt = unheard or (None if waited > limit or sends >= enough else ends_soon(waited, limit))
            rows = self._ids(*as_list(self.view.sends(first))) if sends > 1 else []
            detail = {"message": self.view.name(first), "count": sends}
            self.candidates.add("A-MISSING", first, detail, rows, doubt, unless, key=own)
            if self.events.policy.has_resends and sends == 1:
                detail = {"message": self.view.name(first), "limit_ns": self.view.resend_ns}
                limit = int(1.5 * self.view.resend_ns)
                doubt = doubt or (None if waited > limit else ends_soon(waited, limit))
                self.candidates.add("R-MISSING", first, detail, (), doubt, unless, key=own)

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

    def _missing_for_long(self, first: int, own: int) -> None:
        """What is acknowledged in the end may be another request of the same content: what came before has no ACK."""
        sends = self.view.sends(first)
        answered = np.flatnonzero(self.asked.answered[sends])
        run = sends[: int(answered[0])] if len(answered) else sends
        enough = ENOUGH_SENDS if self.facts.point is Point.BROKER else ENOUGH_ELSEWHERE
        if len(run) > enough:
            detail = {"case": "in the end", "message": self.view.name(first), "count": len(run)}
            self.candidates.add("A-MISSING", first, detail, self._ids(*as_list(run)), key=own)

    def _may_be_unheard(self, first: int, sends: int) -> tuple[str | None, int]:
        """A reason if the request may not have come to a broker that was there; and unless which evidence it has."""
        if not self.facts.activity.runs:
            return NEVER_HEARD, 0
        if sends >= ENOUGH_SENDS:
            return None, 0
        if self.facts.point is Point.CLIENT:
            return ONE_CLIENT, 0
        rows = np.array([first]) if sends == 1 else self.view.sends(first)
        heard = bool(self.reactions.reacted[rows].any()) or not bool(self.reactions.silent[rows].all())
        return None if heard else BROKER_AWAY, LOSS if sends == 1 else 0

    def _late(self) -> None:
        firsts, asked, time = self._firsts(), self.asked, self.events[Col.TIME]
        self.candidates.check("A-LATE", firsts)
        acked = firsts[asked.ack[firsts] >= 0]
        since_first = time[asked.ack[acked]] - time[acked]
        since_last = time[asked.ack[acked]] - time[asked.send_of[asked.ack[acked]]]
        late = (since_first > 1.02 * self.view.resend_ns) & (since_last > 0.1 * self.view.resend_ns)
        for first, after in zip(as_list(acked[late]), as_list(since_first[late]), strict=True):
            detail = {"message": self.view.name(first), "after_ns": after, "limit_ns": self.view.resend_ns}
            related = self._ids(first, *as_list(self.view.sends(first)))
            self.candidates.add("A-LATE", int(asked.ack[first]), detail, related, key=related[0])

    def _acks(self) -> Integers:
        message, side = self.events[Col.MESSAGE], self.events[Col.SIDE]
        return np.flatnonzero(np.append(self.events.policy.meaning == ACK, False)[message] & (side == FROM_BROKER))

    def _duplicates(self) -> None:
        acks, asked = self._acks(), self.asked
        for rule in ("A-DUPLICATE", "A-UNSOLICITED", "A-MISDIRECTED"):
            self.candidates.check(rule, acks)
        for row in as_list(asked.of_kind(REPLY, DUPLICATE)):
            if row in self.view.acks_of_malformed:
                continue
            first = int(asked.group[row])
            bridged = self.facts.point is Point.BRIDGE and self.events[Col.IP_ID][row] > 0
            doubt = None if self.facts.point is Point.BROKER or bridged else DOUBLED
            related = self._ids(first, int(asked.ack[first]))
            own = int(self.events[Col.ID][row])
            self.candidates.add("A-DUPLICATE", row, {"message": self.view.name(first)}, related, doubt, key=own)

    def _strays(self) -> None:
        """ACKs that answer nothing. Some were meant for another client: `misdirected` finds out."""
        for row in as_list(self.view.strays):
            own, detail = int(self.events[Col.ID][row]), {"case": "broker", "message": self.view.name(row)}
            if self.view.answers_an_ack(row, TO_BROKER):
                self.candidates.add("A-ACK-OF-ACK", row, detail, key=own)
            else:
                self.candidates.add("A-UNSOLICITED", row, detail, doubt=self.view.may_precede(row), key=own)

    def _order(self) -> None:
        """ACK and forwards of one publish: which comes first."""
        place = self.events.policy.ack_place
        acks = self.asked.of_kind(REPLY, ANSWER)
        sends = self.asked.send_of[acks]
        meaning = self.events.policy.meaning[self.events[Col.MESSAGE][sends]]
        wanted = place[meaning] > 0
        wanted &= self.events[Col.TIME][acks] - self.events[Col.TIME][sends] < BESIDE_NS
        acks, sends, meaning = acks[wanted], sends[wanted], meaning[wanted]
        if self.facts.point is Point.CLIENT:
            return  # what comes to a client from two sides says nothing of the order in which it left
        first, first_time, last, last_time = self._forwards_beside()
        has = first[sends] >= 0
        of_publish = self.events.policy.publishes[self.events[Col.MESSAGE][sends]]
        self.candidates.check("A-ORDER", sends[has & of_publish])
        wrong = has & np.where(
            place[meaning] == ACK_LAST,
            self.events.is_after(last_time[sends], last[sends], acks),
            ~self.events.is_after(first_time[sends], first[sends], acks),
        )
        for ack, send in zip(as_list(acks[wrong]), as_list(sends[wrong]), strict=True):
            after = place[self.events.policy.meaning[self.events[Col.MESSAGE][send]]] == ACK_LAST
            rule = "A-ORDER" if self.events.policy.publishes[self.events[Col.MESSAGE][send]] else "T-ORDER"
            detail = {"case": "before" if after else "after", "message": self.view.name(send)}
            related = [*self._ids(send, ack), int(first[send]), int(last[send])]
            self.candidates.add(rule, ack if rule == "A-ORDER" else send, detail, related)
        if self.events.policy.dialect.spec.broker.retained != "none":
            self.candidates.check("T-ORDER", sends[has & ~of_publish])

    def _forwards_beside(self) -> tuple[Integers, Integers, Integers, Integers]:
        """By row of a request: the first and the last of the messages that it brought about at once, as ids and times;
        -1 for none. Of one expectation only the first counts: a second copy may come later than its place."""
        events, forwards = self.events, self.view.forwards
        made = tuple(np.full(len(events), -1, np.int64) for _ in range(4))
        cause = forwards.rows()
        near = np.flatnonzero((cause >= 0) & forwards.is_first)
        near = near[forwards.time[near] - events[Col.TIME][cause[near]] < BESIDE_NS]
        if events.is_merged:
            near = near[np.lexsort((forwards.forward[near], forwards.time[near]))]
        back = near[::-1]
        made[0][cause[back]], made[1][cause[back]] = forwards.forward[back], forwards.time[back]
        made[2][cause[near]], made[3][cause[near]] = forwards.forward[near], forwards.time[near]
        return made  # type: ignore[return-value]

    def _statuses(self) -> None:
        """Status messages: one follows each request that has one."""
        events, asked, policy = self.events, self.asked, self.events.policy
        if (policy.statuses < 0).all():
            return
        message = events[Col.MESSAGE]
        wants = np.where((asked.role == REQUEST) & (np.append(policy.statuses, -1)[message] >= 0), asked.group, -1)
        acked = np.where((asked.role == REPLY) & (asked.kind == ANSWER), asked.group, -1)
        status = np.append(policy.meaning == STATUS, False)[message] & (events[Col.SIDE] == FROM_BROKER)
        talk = mix(events[Col.BROKER], events[Col.CLIENT])
        found = np.full(len(events), -1, np.int64)
        follow(np.lexsort((np.arange(len(events)), talk)), talk, wants, acked, status.astype(np.int64), found)
        firsts = np.unique(wants[wants >= 0])
        firsts = firsts[~np.isin(firsts, self.view.publishes.wild)]
        self.candidates.check("A-STATUS-MISSING", firsts)
        self._status_order(firsts[(found[firsts] >= 0) & (asked.ack[firsts] >= 0)], found)
        for first in as_list(firsts[(found[firsts] < 0) & (asked.ack[firsts] >= 0)]):
            ack = int(asked.ack[first])
            waited = self.facts.end - int(events[Col.TIME][ack])
            doubt = ONE_CLIENT if self.facts.point is Point.CLIENT else None
            doubt = doubt or (None if waited > SECOND else ends_soon(waited, SECOND))
            missing = policy.messages[policy.statuses[message[first]]]
            detail = {"message": self.view.name(first), "expected": missing}
            self.candidates.add("A-STATUS-MISSING", first, detail, self._ids(ack), doubt)

    def _status_order(self, firsts: Integers, found: Integers) -> None:
        if self.facts.point is Point.CLIENT:
            return
        place = self.events.policy.ack_place[self.events.policy.meaning[self.events[Col.MESSAGE][firsts]]]
        early = firsts[
            (place == ACK_FIRST) & (found[firsts] < self.asked.ack[firsts]) & (self.asked.sends[firsts] == 1)
        ]
        self.candidates.check("A-ORDER", firsts)
        for first in as_list(early):
            detail = {"case": "status", "message": self.view.name(first)}
            related = self._ids(first, int(found[first]))
            self.candidates.add("A-ORDER", int(self.asked.ack[first]), detail, related)


# -- across clients: ACKs that went to the wrong one --------------------------------------------------------------


def astray_rows(view: TalkView) -> pa.Table:
    """``ASTRAY`` of some clients."""
    events, asked = view.events, view.client_exchanges
    if not events.policy.broker_acks.any():
        return ASTRAY.empty_table()
    strays = asked.of_kind(REPLY, STRAY, DUPLICATE)
    strays = strays[~np.isin(strays, list(view.acks_of_malformed))]
    waiting = np.flatnonzero((asked.role == REQUEST) & asked.owed & ~asked.answered)
    rows = np.concatenate([strays, waiting])
    group = np.where(asked.group[rows] >= 0, events[Col.ID][asked.group[rows]], -1)
    columns = [events[column][rows] for column in (Col.ID, Col.TIME, Col.BROKER, Col.CLIENT, Col.MESSAGE, Col.KEY)]
    is_stray = np.arange(len(rows)) < len(strays)
    topics = events.table.column("topic").take(pa.array(rows)).cast(pa.string()).combine_chunks()
    texts = pa.array([events.client(int(row)) for row in rows], pa.string())
    return pa.table([*(pa.array(one) for one in (*columns, group, is_stray)), topics, texts], schema=ASTRAY)


@dataclass(frozen=True)
class Misdirected:
    """``candidates`` of A-MISDIRECTED; ids of the ACKs, and of the requests that they were meant for."""

    candidates: pa.Table
    acks: frozenset[int]
    requests: frozenset[int]


def misdirected(rows: pa.Table, facts: SessionFacts) -> Misdirected:
    """A fold by broker over `astray_rows` of all clients."""
    waiting: dict[int, list[dict[str, Any]]] = defaultdict(list)
    found: list[dict[str, Any]] = []
    requests: set[int] = set()
    for row in _near_strays(rows, len(facts.captures) > 1).to_pylist():
        if not row["is_stray"]:
            waiting[row["broker"]].append(row)
            continue
        other = _meant_for(row, waiting[row["broker"]], facts)
        if other is None:
            continue
        waiting[row["broker"]].remove(other)
        requests.add(other["group"])
        detail = {"message": facts.policy.messages[other["message"]], "other": other["client_text"]}
        found.append(
            {"rule": "A-MISDIRECTED", "doubt": None, "unless": CUT | CAPTURE_LOST, "key": other["group"]}
            | {"id": row["id"], "time": row["time"], "related": [other["id"]], "detail": detail}
            | {"client": row["client_text"], "topic": row["topic"]}
        )
    acks = frozenset(int(one["id"]) for one in found)
    return Misdirected(pa.Table.from_pylist(found, CANDIDATES), acks, frozenset(requests))


def _near_strays(rows: pa.Table, is_merged: bool) -> pa.Table:
    """Strays, and what was asked just before one of them, in the order of the capture."""
    time, is_stray = rows.column("time").to_numpy(), rows.column("is_stray").to_numpy()
    strays = np.sort(time[is_stray])
    if not len(strays):
        return rows.slice(0, 0)
    place = np.searchsorted(strays, time)
    near = is_stray | ((place < len(strays)) & (strays[np.minimum(place, len(strays) - 1)] - time <= ASTRAY_NS))
    kept = rows.filter(pa.array(near))
    return kept.sort_by([("time", "ascending"), ("id", "ascending")] if is_merged else "id")


def _meant_for(stray: dict[str, Any], waiting: list[dict[str, Any]], facts: SessionFacts) -> dict[str, Any] | None:
    policy = facts.policy
    for other in waiting[: -MOST_WAITING - 1 : -1]:
        if stray["time"] - other["time"] > ASTRAY_NS:
            break
        fits = policy.answers[stray["message"], other["message"]] and stray["client"] != other["client"]
        if fits and (not policy.is_keyed[stray["message"]] or stray["key"] == other["key"]):
            return other
    return None

"""Requests and their ACKs, in both directions: clients ask and the broker answers, and the other way round.

A fold by client: it needs all that a client and its broker said, and of the deliveries only which forward belongs to
which request (`Forwards`), since forwards to other clients tell whose an ACK is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..kernels import pairing
from ..kernels.grouping import order_by_key
from ..kernels.hashing import mix
from ..kernels.pairing import DONE, OPEN, PAIRED, REPLY, REQUEST, is_remembered, pair, remember, sort_out
from ..kernels.searching import places_of
from ..session.events import NOTHING, TO_BROKER, Col, Events
from ..session.policy import ACK, PUBLISH, Policy

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
# What is known of rows that may still change, as `kernels.pairing` has it; rows are places among those kept.
KEPT = ("turn", "usual", "latest", "group", "kind", "last", "sends", "ack", "acks", "quality")
_PLACES = ("latest", "group", "last", "ack")

FORWARDS = pa.schema([(name, pa.int64()) for name in ("cause", "forward", "time")] + [("is_first", pa.bool_())])


@dataclass(frozen=True)
class Forwards:
    """Forwards and the request that each belongs to: a publish, or a subscription that asks for what is retained.

    ``cause`` and ``forward`` are ids, ``time`` is the forward's. ``is_first``: of the copies that one subscriber got
    it is the first. Where ``forward`` is below 0, the cause is a subscription without ACK, and the forward of that
    complement shows that the broker knows of it. ``row``: of the request among some events, -1 for none of them; see
    `among`.
    """

    cause: Integers
    forward: Integers
    time: Integers
    is_first: Flags
    row: Integers | None = None

    @classmethod
    def of(cls, table: pa.Table) -> Forwards:
        """From rows of ``FORWARDS``, in any order."""
        found = table.take(pa.array(np.argsort(table.column("forward").to_numpy(), kind="stable")))
        return cls(*(found.column(name).to_numpy() for name in FORWARDS.names))

    def proving(self, causes: Integers, forwards: Integers, times: Integers) -> Forwards:
        """With subscriptions that are proven to have come to the broker."""
        forward = np.concatenate([~forwards, self.forward])
        order = np.argsort(forward, kind="stable")
        cause, time = np.concatenate([causes, self.cause]), np.concatenate([times, self.time])
        is_first = np.concatenate([np.zeros(len(causes), np.bool_), self.is_first])
        return Forwards(cause[order], forward[order], time[order], is_first[order])

    def among(self, events: Events) -> Forwards:
        """With the rows of the requests among these events."""
        return replace(self, row=events.rows_of(self.cause))

    def seen(self) -> Forwards:
        """Without subscriptions that are only proven."""
        kept = self.forward >= 0
        rows = None if self.row is None else self.row[kept]
        return Forwards(self.cause[kept], self.forward[kept], self.time[kept], self.is_first[kept], rows)

    def rows(self) -> Integers:
        """Of the requests."""
        if self.row is None:
            raise TypeError("forwards without events; call `among` first")
        return self.row

    def table(self) -> pa.Table:
        columns = (self.cause, self.forward, self.time, self.is_first)
        return pa.table([pa.array(one) for one in columns], schema=FORWARDS)


@dataclass
class Exchanges:
    """One direction. All arrays are as long as the events; rows that take no part have ``group`` -1 and ``role`` -1.

    group    of a request the row of its first send, of an ACK that of the request it answers (-1: none)
    kind     what it is to that: see ``kernels.pairing``
    For first sends: ``last`` send, ``sends``, first ``ack`` (-1: none), ``acks``, ``quality``.
    ``owed``: an ACK is due for this request. ``send_of``: for an ACK the very send that it followed.
    """

    asking: int
    role: Integers
    group: Integers
    kind: Integers
    last: Integers
    sends: Integers
    ack: Integers
    acks: Integers
    quality: Integers
    owed: Flags
    send_of: Integers

    @property
    def answered(self) -> Flags:
        """Sends that an ACK came for."""
        flags = np.zeros(len(self.role), np.bool_)
        flags[self.send_of[self.send_of >= 0]] = True
        return flags

    def firsts(self) -> Integers:
        """Rows of first sends."""
        rows = np.flatnonzero(self.role == REQUEST)
        firsts: Integers = rows[self.group[rows] == rows]
        return firsts

    def of_kind(self, role: int, *kinds: int) -> Integers:
        return np.flatnonzero((self.role == role) & np.isin(self.kind, kinds))


@dataclass
class Pairing:
    """One direction, and what it takes to go on with it when more has come."""

    exchanges: Exchanges
    _rows: Integers
    _table: Integers
    _order: Integers
    _slots: Integers
    _results: dict[str, Integers]
    _requests_keyed: bool
    _resend_ns: int

    def sort_out(self, now: int) -> tuple[Integers, Integers, pa.Table]:
        """If more is to come from this time on: first sends that nothing changes any more; events that may change, or
        change others; and what is known of these: columns ``KEPT``, and ``remembered``."""
        group, last, ack = (self._results[name] for name in ("group", "last", "ack"))
        state = np.empty(len(self._rows), np.int64)
        sort_out(self._order, self._table, now, self._requests_keyed, self._resend_ns, group, last, ack, state)
        chosen, is_open = np.flatnonzero(state != DONE), state == OPEN
        place = np.full(len(self._rows) + 1, -1, np.int64)
        place[chosen] = np.where(is_open[chosen], np.arange(len(chosen)), -1)
        columns = {name: values[chosen] for name, values in self._results.items()}
        columns |= {name: place[columns[name]] for name in _PLACES}
        requests = np.flatnonzero(self._table[pairing.ROLE][chosen] == REQUEST)
        remembered = np.zeros(len(requests), np.bool_)
        is_remembered(chosen[requests], self._table, self._slots, remembered)
        columns["remembered"] = np.zeros(len(chosen), np.bool_)
        columns["remembered"][requests] = remembered
        firsts = self.exchanges.firsts()
        places = np.searchsorted(self._rows, firsts)
        return firsts[~is_open[places]], self._rows[chosen], pa.table(columns)


def exchange(events: Events, forwards: Forwards, asking: int, kept: pa.Table | None = None) -> Pairing:
    """Pair what the asking side sent with what the other side answered. The first events may be those that an earlier
    call has kept, in front of what has come since; what that call knew of them is ``kept``."""
    policy, side, message = events.policy, events[Col.SIDE], events[Col.MESSAGE]
    may_be_answered = np.append(policy.answers.any(axis=0), False)[message]
    is_ack = np.append(policy.meaning == ACK, False)[message]
    owes = policy.broker_acks if asking == TO_BROKER else policy.client_acks
    owed = np.append(owes, False)[message] & (side == asking) & asks_for_ack(events)
    role = np.full(len(events), -1, np.int64)
    is_request = (side == asking) & may_be_answered
    if asking == TO_BROKER:
        is_request |= (side == asking) & np.append(policy.publishes, False)[message]
    elif not policy.client_acks.any():
        is_request[:] = False  # clients answer nothing
    role[is_request] = REQUEST
    role[(side == 1 - asking) & is_ack] = REPLY
    rows = np.flatnonzero(role >= 0)
    anchors = _anchors(events, forwards) if asking == TO_BROKER else None
    keyed = bool(policy.is_keyed[policy.meaning == ACK].any()) and _keys_tell_requests_apart(policy)
    table = _paired(events, rows, role, owed, anchors, forwards, keyed)
    order = order_by_key(table[pairing.TALK])
    known = len(kept) if kept is not None else 0
    results = {name: np.full(len(rows), -1, np.int64) for name in KEPT}
    slots = np.full(1 << (2 * len(rows)).bit_length(), -1, np.int64)
    if kept is not None:
        for name, values in results.items():
            values[:known] = kept.column(name).to_numpy()
        remember(np.flatnonzero(kept.column("remembered").to_numpy(zero_copy_only=False)), table, slots)
    again = anchors is not None or policy.has_sessions  # plain brokers do not send again
    how = policy.answers, policy.is_keyed, keyed, policy.resend_ns, policy.has_resends, again
    pair(order, table, known, *how, slots, *results.values())
    spread = {name: _spread(results[name], rows, len(events), name in _PLACES) for name in KEPT[3:]}
    send_of = _send_of(spread["group"], role, rows, len(events))
    found = Exchanges(asking, role, **spread, owed=owed, send_of=send_of)
    return Pairing(found, rows, table, order, slots, results, keyed, policy.resend_ns)


def asks_for_ack(events: Events) -> Flags:
    """Where the ACK names an id, a publish without one (0) asks for none."""
    policy = events.policy
    if not policy.has_sessions:
        return np.ones(len(events), np.bool_)
    plain = np.append(policy.meaning == PUBLISH, False)[events[Col.MESSAGE]]
    return ~plain | ~np.isin(events[Col.KEY], (0, NOTHING))


def _anchors(events: Events, forwards: Forwards) -> Integers:
    """For each ACK of the broker the row of the publish whose forward stands beside it, -1 for none."""
    out = np.full(len(events), -1, np.int64)
    acks = np.flatnonzero(events[Col.BESIDE] >= 0)
    if not len(acks) or not len(forwards.forward):
        return out
    beside = events[Col.BESIDE][acks]
    place = places_of(beside, forwards.forward)
    known = place >= 0
    out[acks[known]] = forwards.rows()[place[known]]
    return out


def _paired(
    events: Events,
    rows: Integers,
    role: Integers,
    owed: Flags,
    anchors: Integers | None,
    forwards: Forwards,
    keyed: bool,
) -> Integers:
    """What the kernel pairs."""
    table = np.empty((PAIRED, len(rows)), np.int64)
    table[pairing.TALK] = mix(events[Col.BROKER][rows], events[Col.CLIENT][rows])
    for column, source in _SAME.items():
        table[column] = events[source][rows]
    if keyed:
        table[pairing.CONTENT] = mix(table[pairing.CONTENT], table[pairing.KEY])
    table[pairing.ROLE], table[pairing.OWED] = role[rows], owed[rows]
    place = np.full(len(events) + 1, -1, np.int64)
    place[rows] = np.arange(len(rows))
    table[pairing.ANCHOR] = -1 if anchors is None else place[anchors[rows]]
    forwarded = forwarded_rows(events, forwards.seen())
    table[pairing.FORWARDED] = forwarded[rows] & (anchors is not None and events.policy.ack_place[PUBLISH] > 0)
    return table


def forwarded_rows(events: Events, forwards: Forwards) -> Flags:
    """Rows that led to a forward."""
    flags = np.zeros(len(events), np.bool_)
    rows = forwards.rows()
    flags[rows[rows >= 0]] = True
    return flags


_SAME = {
    pairing.TIME: Col.TIME,
    pairing.MESSAGE: Col.MESSAGE,
    pairing.CONTENT: Col.CONTENT,
    pairing.KEY: Col.KEY,
    pairing.TOPIC: Col.TOPIC,
    pairing.IP_ID: Col.IP_ID,
    pairing.PAYLOAD: Col.PAYLOAD,
}


def _keys_tell_requests_apart(policy: Policy) -> bool:
    """An id does; what an echo or a copy repeats is the content itself."""
    acks = [spec for variants in policy.dialect.spec.messages.values() for spec in variants if spec.means == "ack"]
    return any(spec.acks_by not in ("order", "echo", "copy") for spec in acks)


def _spread(values: Integers, rows: Integers, length: int, are_rows: bool) -> Integers:
    """From places among the paired to rows of the events."""
    if not len(rows):
        return np.broadcast_to(np.int64(-1), length)
    if are_rows:
        values = np.where(values >= 0, rows[values], -1)
    whole = np.full(length, -1, np.int64)
    whole[rows] = values
    return whole


def _send_of(group: Integers, role: Integers, rows: Integers, length: int) -> Integers:
    """For each ACK the send that it came for: the last of its group before it; -1 elsewhere."""
    found = np.full(length, -1, np.int64)
    among = rows[group[rows] >= 0]
    order = among[order_by_key(group[among])]
    is_reply = role[order] == REPLY
    last_send = np.maximum.accumulate(np.where(is_reply, -1, np.arange(len(order))))
    found[order[is_reply]] = order[last_send[is_reply]]
    return found

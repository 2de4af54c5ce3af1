"""What a broker sent, in its order: when it was silent, and which forward stands beside which ACK.

A broker sends the forwards and the ACK of one publish in the dialect's order, so the forward beside an ACK tells whose
ACK it is. Both are properties of the capture's order, made unit by unit; `join_units` mends the edges between units.
Nothing is beside anything of another capture.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .events import FROM_BROKER, Col, Events
from .policy import ACK, ACK_FIRST, PUBLISH

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
AWAY_NS = 400_000_000  # a broker that sends nothing for so long may have been away

# Of one unit: for each broker and capture the first and the last thing it sent.
EDGES = pa.schema(
    [(name, pa.int64()) for name in ("broker", "capture", "first", "last")]
    + [("first_forwards", pa.bool_()), ("last_forwards", pa.bool_())]
)
# Runs of a broker's datagrams without a silence in between.
RUNS = pa.schema([(name, pa.int64()) for name in ("broker", "begin", "end")])


@dataclass(frozen=True)
class Activity:
    """``runs`` by broker: begins and ends, in order. ``beside``: by ACK at the edge of a unit the forward behind it."""

    runs: dict[int, tuple[Integers, Integers]] = field(default_factory=dict)
    beside: dict[int, int] = field(default_factory=dict)

    def is_silent(self, events: Events, rows: Integers) -> Flags:
        """Whether the broker's last datagram before each row and the first behind it lie far apart."""
        silent = np.ones(len(rows), np.bool_)
        broker, time = events[Col.BROKER][rows], events[Col.TIME][rows]
        for one in np.unique(broker):
            if int(one) not in self.runs:
                continue
            begins, ends = self.runs[int(one)]
            mine = np.flatnonzero(broker == one)
            at = np.searchsorted(begins, time[mine], "right") - 1
            inside = (at >= 0) & (time[mine] < ends[np.maximum(at, 0)])
            soon = (at < 0) & (begins[0] - time[mine] < AWAY_NS)
            silent[mine] = ~inside & ~soon
        return silent


def _sent(events: Events) -> tuple[Integers, Flags]:
    """Rows of ACKs and forwards that brokers sent, by broker and capture; and which are forwards."""
    policy, message = events.policy, events[Col.MESSAGE]
    is_ack = np.append(policy.meaning == ACK, False)[message]
    is_forward = np.append(policy.forwards, False)[message] & ~is_ack
    rows = np.flatnonzero((is_ack | is_forward) & (events[Col.SIDE] == FROM_BROKER))
    broker = events[Col.BROKER][rows]
    if events.is_merged:
        rows = rows[np.lexsort((events[Col.ID][rows], events[Col.CAPTURE][rows], broker))]
    elif len(rows) and (broker != broker[0]).any():
        rows = rows[np.argsort(broker, kind="stable")]
    return rows, is_forward[rows]


def set_beside(events: Events) -> None:
    """Fill the column ``BESIDE``, from what is among the events."""
    beside = np.full(len(events), -1, np.int64)
    place = int(events.policy.ack_place[PUBLISH])
    if place:
        rows, forwards = _sent(events)
        together = ~_begins(events, rows)[1:]  # each with the one before it
        if place == ACK_FIRST:
            found = together & ~forwards[:-1] & forwards[1:]
            acks, near = rows[:-1][found], rows[1:][found]
        else:
            found = together & forwards[:-1] & ~forwards[1:]
            acks, near = rows[1:][found], rows[:-1][found]
        beside[acks] = events[Col.ID][near]
    events.columns[Col.BESIDE] = beside


def last_sent(events: Events, among: Flags) -> Integers:
    """Of these events the last that each broker sent in each capture, as far as it may stand beside what comes next."""
    rows, _ = _sent(events)
    rows = rows[among[rows]]
    return rows[np.append(_begins(events, rows)[1:], True)] if len(rows) else rows


def mend_beside(events: Events, activity: Activity) -> None:
    """Fill in what lies on the other side of the edge of a unit."""
    if activity.beside:
        acks, forwards = (np.array(list(some), np.int64) for some in (activity.beside, activity.beside.values()))
        rows = events.rows_of(acks)
        beside = events[Col.BESIDE].copy()
        beside[rows[rows >= 0]] = forwards[rows >= 0]
        events.columns[Col.BESIDE] = beside


def _begins(events: Events, rows: Integers) -> Flags:
    """By place in ``rows`` (see `_sent`): whether another broker or capture begins there."""
    begins = np.zeros(len(rows), np.bool_)
    begins[:1] = True
    for column in (Col.BROKER, Col.CAPTURE):
        values = events[column][rows]
        begins[1:] |= values[1:] != values[:-1]
    return begins


def edges_of(events: Events) -> pa.Table:
    """``EDGES`` of one unit."""
    rows, forwards = _sent(events)
    if not len(rows):
        return EDGES.empty_table()
    begins = np.flatnonzero(_begins(events, rows))
    ends = np.append(begins[1:], len(rows)) - 1
    first, last = rows[begins], rows[ends]
    columns = [events[Col.BROKER][first], events[Col.CAPTURE][first], events[Col.ID][first], events[Col.ID][last]]
    columns += [forwards[begins], forwards[ends]]
    return pa.table([pa.array(one) for one in columns], schema=EDGES)


def runs_of(events: Events) -> pa.Table:
    """``RUNS`` of one unit."""
    rows = np.flatnonzero(events[Col.SIDE] == FROM_BROKER)
    broker, time = events[Col.BROKER][rows], events[Col.TIME][rows]
    return _runs(broker, time, time)


def _runs(broker: Integers, begin: Integers, end: Integers) -> pa.Table:
    """Stretches that lie less than ``AWAY_NS`` apart become one."""
    if not len(broker):
        return RUNS.empty_table()
    if (broker[1:] != broker[:-1]).any() or (begin[1:] < begin[:-1]).any():
        order = np.lexsort((begin, broker))
        broker, begin, end = broker[order], begin[order], end[order]
    edges = np.flatnonzero(np.append(True, broker[1:] != broker[:-1]))
    reached = end.copy()
    for one, two in zip(edges, np.append(edges[1:], len(broker)), strict=True):
        np.maximum.accumulate(end[one:two], out=reached[one:two])
    starts = np.zeros(len(broker), np.bool_)
    starts[edges] = True
    starts[1:] |= begin[1:] - reached[:-1] >= AWAY_NS
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(broker)) - 1
    return pa.table([pa.array(broker[first]), pa.array(begin[first]), pa.array(reached[last])], schema=RUNS)


def join_runs(several: Iterable[pa.Table]) -> pa.Table:
    """``RUNS`` of several units as those of all."""
    both = pa.concat_tables([RUNS.empty_table(), *several])
    return _runs(*(both.column(name).to_numpy() for name in RUNS.names))


def join_units(policy_place: int, edges: Iterable[pa.Table], runs: Iterable[pa.Table]) -> Activity:
    """Put the units of a session together; ``policy_place``: see `Policy.ack_place`, of publishes."""
    whole = join_runs(runs)
    broker, begin, end = (whole.column(name).to_numpy() for name in RUNS.names)
    by_broker = {int(one): (begin[broker == one], end[broker == one]) for one in np.unique(broker)}
    return Activity(by_broker, _beside(policy_place, edges))


def _beside(place: int, edges: Iterable[pa.Table]) -> dict[int, int]:
    """ACKs at the edge of a unit, and the forward on the other side of it."""
    if not place:
        return {}
    rows = pa.concat_tables([EDGES.empty_table(), *edges]).to_pylist()
    rows.sort(key=lambda row: (row["broker"], row["capture"], row["first"]))
    found: dict[int, int] = {}
    for one, two in pairwise(rows):
        if (one["broker"], one["capture"]) != (two["broker"], two["capture"]):
            continue
        if place == ACK_FIRST:
            if two["first_forwards"] and not one["last_forwards"]:
                found[one["last"]] = two["first"]
        elif one["last_forwards"] and not two["first_forwards"]:
            found[two["first"]] = one["last"]
    return found

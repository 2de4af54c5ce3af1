"""What limits a verdict: signs that something was lost, that the broker was away, or that a datagram never came."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .context import Context, Point
from .deliveries import Deliveries
from .events import FROM_BROKER, TO_BROKER, Col, Events
from .exchanges import Exchanges
from .kernels.expecting import PUBLISH
from .kernels.pairing import ACK_LOST, DOUBLE, DOUBLED, REPLY, REQUEST, RESEND, STRAY

Flags = NDArray[np.bool_]
BESIDE_NS = 50_000_000
AWAY_NS = 400_000_000  # a broker that sends nothing for so long may have been away


@dataclass(frozen=True)
class Signs:
    """
    loss_seen   something was sent again although it had been answered, or had led to nothing at all
    unsettled     in a session, where the broker sends again what got lost: forwards may come late, or not at all
    doubles_seen  the network made two of one
    reacted     rows to which the broker visibly did something; `forwarded` those that it passed on
    silent      rows to which it did nothing, at a time when it sent nothing to anybody
    """

    loss_seen: bool
    doubles_seen: bool
    unsettled: bool
    reacted: Flags
    forwarded: Flags
    silent: Flags

    def unheard(self, rows: NDArray[np.int64], point: Point) -> bool:
        """Whether none of these sends may have come to a broker that was there."""
        if self.forwarded[rows].any():
            return False
        if self.reacted[rows].any():
            # An ACK alone may answer an earlier request that the network doubled.
            return point is not Point.BROKER and (self.loss_seen or self.doubles_seen)
        return point is not Point.BROKER or bool(self.silent[rows].all())


def read_signs(events: Events, context: Context, deliveries: Deliveries, asked: Exchanges, told: Exchanges) -> Signs:
    causes = deliveries.publish_of()
    forwarded = np.zeros(len(events), np.bool_)
    forwarded[causes[causes >= 0]] = True
    reacted = asked.answered | forwarded
    waiting = np.zeros(len(events), np.bool_)
    waiting[deliveries.due[PUBLISH]] = True
    demands = (asked.owed | waiting) & (events[Col.SIDE] == TO_BROKER)
    silent = demands & ~reacted & _nothing_sent_around(events)
    doubles = len(asked.of_kind(REQUEST, DOUBLE)) > 0 or len(asked.of_kind(REPLY, DOUBLED)) > 0
    lost = _loss(context, asked, reacted)
    unsettled = events.policy.has_sessions and (lost or len(told.of_kind(REQUEST, RESEND)) > 0)
    return Signs(lost, doubles, unsettled, reacted, forwarded, silent)


def _loss(context: Context, asked: Exchanges, reacted: Flags) -> bool:
    if len(asked.of_kind(REQUEST, ACK_LOST)):
        return True
    if context.point is Point.BROKER:
        return False
    again = asked.of_kind(REQUEST, RESEND)
    return bool((~reacted[asked.group[again]]).any())


def _nothing_sent_around(events: Events) -> Flags:
    """By row: whether the broker's last word before it and the first behind it lie far apart."""
    time, side, broker = events[Col.TIME], events[Col.SIDE], events[Col.BROKER]
    said = side == FROM_BROKER
    order = np.lexsort((np.arange(len(events)), broker))
    apart = np.ones(len(events), np.bool_)
    if not len(order):
        return apart
    begins = np.flatnonzero(np.append(True, broker[order][1:] != broker[order][:-1]))
    for begin, end in zip(begins, [*begins[1:], len(order)], strict=True):
        rows = order[begin:end]
        times = time[rows][said[rows]]
        if not len(times):
            continue
        after = np.searchsorted(times, time[rows], "right")
        before = np.where(after > 0, times[np.maximum(after - 1, 0)], time[rows])
        behind = times[np.minimum(after, len(times) - 1)]
        apart[rows] = (after == len(times)) | (behind - before >= AWAY_NS)
    return apart


def capture_has_lost(events: Events, asked: Exchanges, invented: list[int]) -> bool:
    """Whether a publish is missing that must have been: something is passed on and acknowledged that is not there."""
    strays = asked.of_kind(REPLY, STRAY)
    if not invented or not len(strays):
        return False
    times = events[Col.TIME][strays]
    place = np.searchsorted(times, events[Col.TIME][np.array(invented)])
    near = np.minimum(
        np.abs(times[np.minimum(place, len(times) - 1)] - events[Col.TIME][np.array(invented)]),
        np.abs(times[np.maximum(place - 1, 0)] - events[Col.TIME][np.array(invented)]),
    )
    return bool((near < BESIDE_NS).any())

"""What the exchanges of clients tell the steps that work by topic: which sends are one request, and what was answered.

Only what differs from the usual is handed over (`REQUESTS`): a request is sent once, and answered if it has to be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..kernels.pairing import ACK_LOST, DOUBLE, RESEND
from ..session.events import TO_BROKER, Col, Events
from ..session.policy import SUBSCRIBE
from .exchanges import Exchanges, Forwards, asks_for_ack, forwarded_rows

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
REQUESTS = pa.schema(
    [("id", pa.int64()), ("first", pa.int64())]
    + [(name, pa.bool_()) for name in ("answered", "forwarded", "repeated", "refused")]
)


@dataclass(frozen=True)
class Requests:
    """By row of the events.

    group      the first send of a request, -1 for what is none
    answered   an ACK came for this send
    forwarded  it led to a forward, perhaps of another topic
    repeated   a forward that the broker sent again for want of an ACK, or that the network doubled
    refused    its ACK says no
    owed       the broker has to acknowledge it
    """

    group: Integers
    answered: Flags
    forwarded: Flags
    repeated: Flags
    refused: Flags
    owed: Flags


def _is_request(events: Events) -> Flags:
    """Publishes and subscriptions, which the steps by topic look at."""
    policy = events.policy
    wanted = np.append(policy.publishes | (policy.meaning == SUBSCRIBE), False)
    asked: Flags = wanted[events[Col.MESSAGE]] & (events[Col.SIDE] == TO_BROKER)
    return asked


def _is_owed(events: Events) -> Flags:
    owed: Flags = np.append(events.policy.broker_acks, False)[events[Col.MESSAGE]]
    owed &= (events[Col.SIDE] == TO_BROKER) & asks_for_ack(events)
    return owed


def request_rows(
    events: Events, client_exchanges: Exchanges, broker_exchanges: Exchanges, forwards: Forwards
) -> pa.Table:
    """``REQUESTS`` of some clients."""
    group = client_exchanges.group
    answered, is_request = client_exchanges.answered, _is_request(events)
    subscribes = np.append(events.policy.meaning == SUBSCRIBE, False)[events[Col.MESSAGE]]
    forwarded = forwarded_rows(events, forwards) & subscribes
    refused = _refused(events, client_exchanges)
    differs = (answered != _is_owed(events)) | forwarded | refused | (group != np.arange(len(events)))
    rows = np.flatnonzero(is_request & differs)
    first = np.where(group[rows] >= 0, group[rows], rows)
    repeated = np.zeros(0, np.int64)
    if events.policy.has_sessions:
        again = np.isin(broker_exchanges.kind, (RESEND, ACK_LOST, DOUBLE))
        repeated = np.flatnonzero(
            again & (broker_exchanges.group >= 0) & (broker_exchanges.group != np.arange(len(events)))
        )
    ids = events[Col.ID]
    nothing = np.zeros(len(repeated), np.bool_)
    columns = [
        np.concatenate([ids[rows], ids[repeated]]),
        np.concatenate([ids[first], ids[repeated]]),
        np.concatenate([answered[rows], nothing]),
        np.concatenate([forwarded[rows], nothing]),
        np.concatenate([np.zeros(len(rows), np.bool_), ~nothing]),
        np.concatenate([refused[rows], nothing]),
    ]
    return pa.table([pa.array(one) for one in columns], schema=REQUESTS)


def _refused(events: Events, exchanges: Exchanges) -> Flags:
    """Sends of requests whose ACK has a code that refuses them."""
    refused = np.zeros(len(events), np.bool_)
    said_no = np.flatnonzero((events[Col.ACCEPTED] == 0) & (exchanges.send_of >= 0))
    refused[exchanges.send_of[said_no]] = True
    return refused


def requests_of(events: Events, table: pa.Table) -> Requests:
    """From rows of ``REQUESTS``, of which some may be about other topics."""
    is_request = _is_request(events)
    group = np.where(is_request, np.arange(len(events)), -1)
    owed = _is_owed(events)
    answered = owed.copy()
    forwarded, repeated, refused = (np.zeros(len(events), np.bool_) for _ in range(3))
    rows = events.rows_of(table.column("id").to_numpy())
    known = rows >= 0
    firsts = events.rows_of(table.column("first").to_numpy())
    for name, flags in (("forwarded", forwarded), ("repeated", repeated), ("refused", refused)):
        flags[rows[known]] = table.column(name).to_numpy()[known]
    asked = known & ~table.column("repeated").to_numpy()
    group[rows[asked]] = np.where(firsts[asked] >= 0, firsts[asked], rows[asked])
    answered[rows[asked]] = table.column("answered").to_numpy()[asked]
    return Requests(group, answered, forwarded, repeated, refused, owed)

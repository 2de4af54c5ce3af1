"""Rows of the tables that the steps give: exchanges, deliveries, publishes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..tables.schemas import DELIVERIES, EXCHANGES, PUBLISHES
from .kernels.expecting import CLIENT, FILTER, PUBLISH
from .kernels.hashing import mix
from .kernels.pairing import RESENT
from .matching.deliveries import Deliveries, Publishes
from .matching.exchanges import Exchanges
from .rules.delivery_rules import LATE_NS
from .rules.topic_view import TopicView
from .session.events import TO_BROKER, Col, Events, endpoint_text
from .session.facts import SessionFacts

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
QUALITIES = ("none", "exact", "anchored", "resent", "queued")


def publish_rows(events: Events, publishes: Publishes, exchanges: Exchanges) -> pa.Table:
    """``PUBLISHES``: what was sent again counts once."""
    rows = publishes.plain
    firsts = rows[exchanges.group[rows] == rows]
    found, counts = np.unique(events[Col.NAME][firsts], return_counts=True)
    return pa.table([[publishes.names[int(one)] for one in found], counts], schema=PUBLISHES)


def exchange_rows(events: Events, session: str, pairs: Exchanges, firsts: Integers) -> pa.Table:
    """``EXCHANGES`` of one direction, for these first sends."""
    firsts = firsts[pairs.owed[firsts] | (pairs.ack[firsts] >= 0)]
    time, ack = events[Col.TIME], pairs.ack[firsts]
    acked, once = ack >= 0, pairs.sends[firsts] == 1
    since_first = np.where(acked, time[ack] - time[firsts], 0)
    since_last = np.where(acked, time[ack] - time[np.where(acked, pairs.send_of[ack], 0)], 0)
    quality = np.where(acked, pairs.quality[firsts], 0)
    asks = pairs.asking == TO_BROKER
    columns = [
        pa.repeat(session, len(firsts)),
        _captures(events, firsts),
        pa.array(events[Col.FRAME][firsts]),
        pa.array(time[firsts]),
        _endpoints(events, firsts, asks),
        events.table.column("message").take(pa.array(firsts)).cast(pa.string()).combine_chunks(),
        pa.repeat("client" if asks else "broker", len(firsts)),
        pa.array(pairs.sends[firsts].astype(np.int32)),
        _places(events, pairs.last[firsts]),
        _places(events, ack),
        pa.array(time[ack], mask=~acked),
        pa.array(since_first, mask=~acked | ~once | (quality == RESENT)),
        pa.array(since_last, mask=~acked),
        pa.array(since_first, mask=~acked),
        pa.array(np.array(QUALITIES)[quality]).cast(pa.string()),
        pa.array(pairs.owed[firsts]),
    ]
    return pa.table(columns, schema=EXCHANGES)


def _captures(events: Events, rows: Integers) -> pa.Array:
    names = pa.array(events.captures, pa.string())
    return names.take(pa.array(events[Col.CAPTURE][rows]))


def _places(events: Events, rows: Integers) -> pa.StructArray:
    """Rows as datagrams (``schemas.PLACE``), null for -1."""
    there = rows >= 0
    known = np.where(there, rows, 0)
    if not len(events):
        known = rows  # then there are none
    fields = [_captures(events, known), pa.array(events[Col.FRAME][known])]
    return pa.StructArray.from_arrays(fields, ["capture", "frame"], mask=pa.array(~there))


def _endpoints(events: Events, rows: Integers, sources: bool) -> pa.Array:
    """One end of each row as text: each distinct one is written once."""
    host, port = ("src", "sport") if sources else ("dst", "dport")
    column = events[Col.SRC if sources else Col.DST]
    _, first, where = np.unique(column[rows], return_index=True, return_inverse=True)
    hosts = events.table.column(host).take(pa.array(rows[first])).to_pylist()
    ports = events.table.column(port).take(pa.array(rows[first])).to_pylist()
    texts = [endpoint_text(one, at) for one, at in zip(hosts, ports, strict=True)]
    return pa.array(texts, pa.string()).take(pa.array(where)) if len(rows) else pa.array([], pa.string())


def delivery_rows(view: TopicView) -> pa.Table:
    """``DELIVERIES``: one row per copy that was due, with the filter that asked for it, then what was not due."""
    copies = _copies(view.deliveries, view.events.policy.dialect.spec.broker.copies)
    rows = _copy_rows(view.events, view.facts, view.deliveries, copies)
    which, forward, _ = copies
    outcomes = rows.column("outcome").to_numpy(zero_copy_only=False)
    lacks = np.array(sorted(view.lacks), np.int64)
    for at in np.flatnonzero((forward < 0) & np.isin(which, lacks)):
        outcomes[at] = view.lacks[int(which[at])]
    rows = rows.set_column(len(DELIVERIES) - 1, DELIVERIES.field("outcome"), pa.array(outcomes, pa.string()))
    return pa.concat_tables([rows, _unexplained(view)])


def delivered_rows(events: Events, facts: SessionFacts, deliveries: Deliveries, done: Flags) -> pa.Table:
    """``DELIVERIES`` of the copies that came of these expectations."""
    copies = _copies(deliveries, events.policy.dialect.spec.broker.copies)
    wanted = done[copies[0]] & (copies[1] >= 0)
    return _copy_rows(events, facts, deliveries, tuple(one[wanted] for one in copies))


def _copy_rows(events: Events, facts: SessionFacts, deliveries: Deliveries, copies: tuple[Integers, ...]) -> pa.Table:
    """``DELIVERIES`` of `_copies`; the outcome of those that did not come is not looked into."""
    which, forward, filters = copies
    cause = deliveries.due[PUBLISH][which]
    retained, came, time = deliveries.retained[which], forward >= 0, events[Col.TIME]
    latency = np.where(came, time[forward] - time[cause], 0)
    late = (latency >= LATE_NS) & (retained < 0)
    texts = pa.array([*facts.subscriptions.filters, None], pa.string())
    columns = [
        pa.repeat(facts.session, len(which)),
        _places(events, cause),
        pa.array(time[cause]),
        _endpoints(events, cause, True),
        _topics(events, deliveries, cause, retained),
        _texts_of(deliveries.due[CLIENT][which], facts.subscriptions.clients),
        texts.take(pa.array(filters % len(texts))),
        _places(events, forward),
        pa.array(time[forward], mask=~came),
        pa.array(latency, mask=~came),
        pa.array(retained >= 0),
        pa.array(np.array(["optional", "delivered", "late"])[came * (1 + late)]).cast(pa.string()),
    ]
    return pa.table(columns, schema=DELIVERIES)


def _copies(deliveries: Deliveries, mode: str) -> tuple[Integers, Integers, Integers]:
    """For each copy its expectation, the forward that brought it (-1: none), and the filter."""
    if mode == "per-subscriber":
        which, filters = np.arange(deliveries.due.shape[1]), deliveries.due[FILTER]
    else:
        which, filters = deliveries.part_of, deliveries.asked_for[FILTER]
    order = np.lexsort((np.arange(len(which)), which))
    rank = np.empty(len(which), np.int64)
    rank[order] = _ranks(which[order])
    came = np.flatnonzero(deliveries.answers >= 0)
    came = came[np.lexsort((came, deliveries.answers[came]))]
    keys = mix(deliveries.answers[came], _ranks(deliveries.answers[came]))
    by_key = np.argsort(keys, kind="stable")
    wanted = mix(which, rank)
    place = np.searchsorted(keys[by_key], wanted)
    found = place < len(keys)
    found[found] = keys[by_key][place[found]] == wanted[found]
    forward = np.full(len(which), -1, np.int64)
    forward[found] = deliveries.seen[came[by_key[place[found]]]]
    return which, forward, filters


def _ranks(keys: Integers) -> Integers:
    """Of sorted keys: how many equal ones came before."""
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.zeros(0, np.int64)
    return np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))


def _texts_of(hashes: Integers, texts: Mapping[int, str]) -> pa.Array:
    found, where = np.unique(hashes, return_inverse=True)
    return pa.array([texts.get(int(one)) for one in found], pa.string()).take(pa.array(where))


def _topics(events: Events, deliveries: Deliveries, rows: Integers, retained: Integers) -> pa.Array:
    names = events[Col.NAME][rows].copy()
    texts = dict(deliveries.names)
    kept = retained >= 0
    if kept.any():
        names[kept] = deliveries.kept.column("name").to_numpy()[retained[kept]]
        texts |= dict(
            zip(deliveries.kept.column("name").to_pylist(), deliveries.kept.column("text").to_pylist(), strict=True)
        )
    return _texts_of(names, texts)


def _names(view: TopicView, rows: Integers) -> pa.Array:
    """The topics of forwards, by name if they have numbers."""
    events, names = view.events, view.facts.bindings.texts
    told = events.table.column("topic").take(pa.array(rows)).cast(pa.string()).to_pylist()
    known = (names.get(int(name)) for name in events[Col.NAME][rows])
    return pa.array([text if name is None else name for name, text in zip(known, told, strict=True)], pa.string())


def _unexplained(view: TopicView) -> pa.Table:
    """Forwards that were not due; the network's repetitions are left out."""
    events = view.events
    rows = np.array([row for row, outcome in view.outcomes.items() if outcome != "delivered"], np.int64)
    nothing = pa.nulls(len(rows), pa.int64())
    columns = [
        pa.repeat(view.facts.session, len(rows)),
        _places(events, np.full(len(rows), -1, np.int64)),
        nothing,
        pa.nulls(len(rows), pa.string()),
        _names(view, rows),
        _endpoints(events, rows, False),
        pa.nulls(len(rows), pa.string()),
        _places(events, rows),
        pa.array(events[Col.TIME][rows]),
        nothing,
        pa.array(np.zeros(len(rows), np.bool_)),
        pa.array([view.outcomes[int(row)] for row in rows], pa.string()),
    ]
    return pa.table(columns, schema=DELIVERIES)

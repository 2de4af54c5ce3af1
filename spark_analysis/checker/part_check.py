"""The checker on one part of a session: expectations, observations, pairs, rules. A pure function of two tables.

Both engines run it, so both say the same.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..schemas import DELIVERIES, EXCHANGES, PUBLISHES
from .ack_rules import AckRules
from .ack_view import AckView
from .client_rules import ClientRules
from .context import Context
from .deliveries import Deliveries, deliver
from .delivery_rules import LATE_NS, DeliveryRules
from .delivery_view import DeliveryView
from .events import FROM_BROKER, TO_BROKER, Col, Events, with_parties
from .exchanges import Exchanges, exchange
from .findings import Findings
from .gathering import resolve_names
from .kernels.expecting import CLIENT, FILTER, PUBLISH
from .kernels.hashing import mix
from .kernels.pairing import RESENT
from .loop_rules import loop_findings
from .number_rules import number_findings
from .retained_rules import retained_findings
from .signs import capture_has_lost, read_signs
from .unexplained import Unexplained
from .wire_rules import party_findings, wire_findings

Integers = NDArray[np.int64]
QUALITIES = ("none", "exact", "anchored", "resent", "queued")


@dataclass(frozen=True)
class PartResult:
    """``counts`` by rule: checked, failed, inconclusive."""

    findings: pa.Table
    counts: dict[str, tuple[int, int, int]]
    loss_seen: bool
    exchanges: pa.Table
    deliveries: pa.Table
    published: pa.Table

    def without_rows(self, limit: int) -> PartResult:
        """As a task sends it home: some findings of each rule, no tables of the size of the traffic."""
        rules = self.findings.column("rule").to_pylist()
        seen: Counter[str] = Counter()
        kept = [seen.update((rule,)) or seen[rule] <= limit for rule in rules]
        findings = self.findings.filter(pa.array(kept, pa.bool_()))
        none = EXCHANGES.empty_table(), DELIVERIES.empty_table(), PUBLISHES.empty_table()
        return PartResult(findings, self.counts, self.loss_seen, *none)


def check_part(events: Events, context: Context, session: str, starts_late: bool, with_rows: bool = True) -> PartResult:
    """``with_rows``: exchanges and deliveries too, not only what is wrong."""
    with_parties(events, context.brokers.endpoints, context.brokers.hosts)
    resolve_names(events, context)
    findings = Findings(events, context, session)
    deliveries = deliver(events, context)
    asked = exchange(events, deliveries, TO_BROKER)
    told = exchange(events, deliveries, FROM_BROKER)
    signs = read_signs(events, context, deliveries, asked, told)
    wire_findings(events, deliveries, findings)
    party_findings(events, findings)
    acks = AckView(events, context, deliveries, asked, told, signs, findings, starts_late)
    AckRules(acks).run()
    ClientRules(acks).run()
    view = DeliveryView(events, context, deliveries, asked, told, signs, findings, starts_late)
    Unexplained(view).run()
    DeliveryRules(view).run()
    retained_findings(view)
    number_findings(events, context, findings)
    loop_findings(events, context, findings, asked)
    if capture_has_lost(events, asked, view.invented):
        findings.doubt()
    found = findings.table(), findings.counts(), signs.loss_seen
    if not with_rows:
        return PartResult(*found, EXCHANGES.empty_table(), DELIVERIES.empty_table(), PUBLISHES.empty_table())
    return PartResult(
        *found,
        _exchange_rows(events, findings, session, asked, told),
        _delivery_rows(events, findings, session, view),
        _published(events, findings, deliveries, asked),
    )


def _published(events: Events, findings: Findings, deliveries: Deliveries, asked: Exchanges) -> pa.Table:
    """How often each topic was published; what was sent again counts once."""
    rows = deliveries.publishes
    firsts = rows[(asked.group[rows] == rows) & findings.owned[rows]]
    found, counts = np.unique(events[Col.NAME][firsts], return_counts=True)
    return pa.table([[deliveries.names[int(one)] for one in found], counts], schema=PUBLISHES)


def _exchange_rows(events: Events, findings: Findings, session: str, asked: Exchanges, told: Exchanges) -> pa.Table:
    return pa.concat_tables([_exchanges(events, findings, session, one) for one in (asked, told)])


def _exchanges(events: Events, findings: Findings, session: str, pairs: Exchanges) -> pa.Table:
    firsts = pairs.firsts()
    firsts = firsts[findings.owned[firsts] & (pairs.owed[firsts] | (pairs.ack[firsts] >= 0))]
    time, ack = events[Col.TIME], pairs.ack[firsts]
    acked, once = ack >= 0, pairs.sends[firsts] == 1
    since_first = np.where(acked, time[ack] - time[firsts], 0)
    since_last = np.where(acked, time[ack] - time[np.where(acked, pairs.send_of[ack], 0)], 0)
    quality = np.where(acked, pairs.quality[firsts], 0)
    resent = quality == RESENT
    columns = [
        pa.repeat(session, len(firsts)),
        _captures(events, firsts),
        _endpoints(events, firsts, pairs.asking == TO_BROKER),
        events.table.column("message").take(pa.array(firsts)).cast(pa.string()).combine_chunks(),
        pa.repeat("client" if pairs.asking == TO_BROKER else "broker", len(firsts)),
        pa.array(events[Col.FRAME][firsts]),
        pa.array(time[firsts]),
        pa.array(pairs.sends[firsts].astype(np.int32)),
        pa.array(events[Col.FRAME][pairs.last[firsts]]),
        pa.array(events[Col.FRAME][ack], mask=~acked),
        pa.array(time[ack], mask=~acked),
        pa.array(since_first, mask=~acked | ~once | resent),
        pa.array(since_last, mask=~acked),
        pa.array(since_first, mask=~acked),
        pa.array(np.array(QUALITIES)[quality]).cast(pa.string()),
        pa.array(pairs.owed[firsts]),
    ]
    return pa.table(columns, schema=EXCHANGES)


def _captures(events: Events, rows: Integers) -> pa.Array:
    names = pa.array(events.captures, pa.string())
    return names.take(pa.array(events[Col.CAPTURE][rows]))


def _endpoints(events: Events, rows: Integers, sources: bool) -> pa.Array:
    """The client's end of each row, as text: each distinct one is written once."""
    host, port = ("src", "sport") if sources else ("dst", "dport")
    found, first, where = np.unique(
        events[Col.SRC if sources else Col.DST][rows], return_index=True, return_inverse=True
    )
    told = rows[first]
    hosts = events.table.column(host).take(pa.array(told)).to_pylist()
    ports = events.table.column(port).take(pa.array(told)).to_pylist()
    texts = [f"[{one}]:{at}" if ":" in one else f"{one}:{at}" for one, at in zip(hosts, ports, strict=True)]
    del found
    return pa.array(texts, pa.string()).take(pa.array(where)) if len(rows) else pa.array([], pa.string())


def _delivery_rows(events: Events, findings: Findings, session: str, view: DeliveryView) -> pa.Table:
    """One row for each copy that was due, with the filter that asked for it."""
    deliveries = view.deliveries
    which, forward, filters = _copies(deliveries, events.policy.dialect.spec.broker.copies)
    cause = deliveries.due[PUBLISH][which]
    mine = findings.owned[cause]
    which, forward, filters, cause = which[mine], forward[mine], filters[mine], cause[mine]
    retained, came, time = deliveries.retained[which], forward >= 0, events[Col.TIME]
    latency = np.where(came, time[forward] - time[cause], 0)
    texts = pa.array([*view.context.subscriptions.filters, None], pa.string())
    columns = [
        pa.repeat(session, len(which)),
        _captures(events, cause),
        pa.array(events[Col.FRAME][cause]),
        pa.array(time[cause]),
        _endpoints(events, cause, True),
        _topics(events, deliveries, cause, retained),
        _clients(deliveries.due[CLIENT][which], view.subscribers),
        texts.take(pa.array(filters % len(texts))),
        pa.array(events[Col.FRAME][forward], mask=~came),
        pa.array(time[forward], mask=~came),
        pa.array(latency, mask=~came),
        pa.array(retained >= 0),
        pa.array(_outcomes(view, which, came, latency, retained >= 0), pa.string()),
    ]
    return pa.concat_tables([pa.table(columns, schema=DELIVERIES), _unexplained(events, findings, session, view)])


def _copies(deliveries: Deliveries, mode: str) -> tuple[Integers, Integers, Integers]:
    """For each copy its expectation, the forward that brought it (-1: none), and the filter."""
    if mode == "per-subscriber":
        which, filters = np.arange(deliveries.due.shape[1]), deliveries.due[FILTER]
    else:
        which, filters = deliveries.part_of, deliveries.asked_for[2]
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


def _outcomes(
    view: DeliveryView, which: Integers, came: NDArray[np.bool_], latency: Integers, retained: NDArray[np.bool_]
) -> NDArray[np.object_]:
    late = (latency >= LATE_NS) & ~retained
    outcome = np.where(came, np.where(late, "late", "delivered"), "optional").astype(object)
    lacks = np.array(sorted(view.lacks), np.int64)
    for at in np.flatnonzero(~came & np.isin(which, lacks)):
        outcome[at] = view.lacks[int(which[at])]
    return outcome


def _clients(clients: Integers, texts: dict[int, str]) -> pa.Array:
    found, where = np.unique(clients, return_inverse=True)
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
    found, where = np.unique(names, return_inverse=True)
    return pa.array([texts.get(int(one)) for one in found], pa.string()).take(pa.array(where))


def _unexplained(events: Events, findings: Findings, session: str, view: DeliveryView) -> pa.Table:
    """Forwards that were not due, one row each; the network's repetitions are left out."""
    rows = np.array([row for row, outcome in view.outcomes.items() if outcome != "delivered"], np.int64)
    rows = rows[findings.owned[rows]] if len(rows) else rows
    nothing = pa.nulls(len(rows), pa.int64())
    columns = [
        pa.repeat(session, len(rows)),
        _captures(events, rows),
        nothing,
        nothing,
        pa.nulls(len(rows), pa.string()),
        pc.cast(events.table.column("topic").take(pa.array(rows)), pa.string()).combine_chunks(),
        _endpoints(events, rows, False),
        pa.nulls(len(rows), pa.string()),
        pa.array(events[Col.FRAME][rows]),
        pa.array(events[Col.TIME][rows]),
        nothing,
        pa.array(np.zeros(len(rows), np.bool_)),
        pa.array([view.outcomes[int(row)] for row in rows], pa.string()),
    ]
    return pa.table(columns, schema=DELIVERIES)

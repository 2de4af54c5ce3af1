"""Steps over time: rows of some keys come in the order of the capture, a batch at a time, and results go out when
nothing that is still to come can change them.

>>> fold = ExchangeFold(facts, TO_BROKER)                            # doctest: +SKIP
>>> rows = fold.feed(events, forwards)                               # doctest: +SKIP
>>> fold = ExchangeFold(facts, TO_BROKER, fold.state)                # doctest: +SKIP
>>> rows = fold.advance(time_ns), fold.finish()                      # doctest: +SKIP

`feed` takes rows in; it and `advance` give out what is final when nothing earlier than the latest row, or than the
time given, is to come; `finish` gives out the rest. However the rows are divided, the results are those of a batch,
which is all rows at once. ``state`` is plain data: Arrow tables, as large as what may still change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..tables.schemas import DELIVERIES, EXCHANGES
from .kernels.expecting import PUBLISH
from .matching.deliveries import KeptDeliveries, deliver, nothing_kept
from .matching.exchanges import FORWARDS, Forwards, exchange
from .session.events import Col, Events, in_front, kept_rows, read_kept
from .session.facts import SessionFacts
from .table_rows import delivered_rows, exchange_rows

State = Mapping[str, pa.Table]
FOR_EVER = 1 << 62


class Delivered(NamedTuple):
    """``rows`` of ``DELIVERIES``, and which forward belongs to which of these publishes (``FORWARDS``)."""

    rows: pa.Table
    forwards: pa.Table


class DeliveryFold:
    """Publishes and their forwards, and what is retained. `feed` is given all publishes, forwards and subscriptions
    of some topics; the facts have all that changes what is due, up to the latest of these. It gives the copies that
    came; what did not come, and what nobody asked for, is judged when the session has ended."""

    def __init__(self, facts: SessionFacts, state: State | None = None) -> None:
        self._facts = facts
        self.state: State = dict(state or {})

    def feed(self, events: Events, until: int | None = None) -> Delivered:
        return self._run(events, int(events[Col.TIME].max(initial=0)) if until is None else until)

    def advance(self, time_ns: int) -> Delivered:
        return self._run(None, time_ns)

    def finish(self) -> Delivered:
        return self._run(None, FOR_EVER)

    def _run(self, events: Events | None, now: int) -> Delivered:
        kept, facts = nothing_kept(), self._facts
        if self.state:
            kept = KeptDeliveries(**self.state)
            facts = kept.named(facts)
            before = read_kept(kept.events, facts.policy, facts.captures)
            events = in_front(before, events) if events is not None else before
        if events is None:
            return Delivered(DELIVERIES.empty_table(), FORWARDS.empty_table())
        deliveries = deliver(events, facts, kept)
        over, kept = deliveries.sort_out(events, facts, now)
        self.state = vars(kept)
        forwards = deliveries.forwards(events).seen()
        final = np.isin(forwards.cause, events[Col.ID][deliveries.due[PUBLISH, over]])
        rows = delivered_rows(events, facts, deliveries, over)
        return Delivered(rows, forwards.table().filter(pa.array(final)))


class ExchangeFold:
    """Requests and their ACKs in one direction. `feed` is given all that some clients and their broker said
    (`steps.client_rows`), and all forwards that belong to the requests among it; it gives ``EXCHANGES``."""

    def __init__(self, facts: SessionFacts, asking: int, state: State | None = None) -> None:
        self._facts, self._asking = facts, asking
        self.state: State = dict(state or {})

    def feed(self, events: Events, forwards: Forwards, until: int | None = None) -> pa.Table:
        return self._run(events, forwards, int(events[Col.TIME].max(initial=0)) if until is None else until)

    def advance(self, time_ns: int) -> pa.Table:
        return self._run(None, None, time_ns)

    def finish(self) -> pa.Table:
        return self._run(None, None, FOR_EVER)

    def _run(self, events: Events | None, forwards: Forwards | None, now: int) -> pa.Table:
        known = [forwards.table()] if forwards is not None else []
        if self.state:
            kept = read_kept(self.state["events"], self._facts.policy, self._facts.captures)
            events = in_front(kept, events) if events is not None else kept
            known.append(self.state["forwards"])
        if events is None:
            return EXCHANGES.empty_table()
        forwards = Forwards.of(pa.concat_tables(known)).among(events)
        pairing = exchange(events, forwards, self._asking, self.state.get("pairing"))
        done, rows, told = pairing.sort_out(now)
        wanted = np.isin(forwards.rows(), rows)
        self.state = {
            "events": kept_rows(events, rows),
            "pairing": told,
            "forwards": forwards.table().filter(pa.array(wanted)),
        }
        return exchange_rows(events, self._facts.session, pairing.exchanges, done)

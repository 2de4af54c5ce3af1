"""Steps over time: rows of some keys come in the order of the capture, a batch at a time, and results go out when
nothing that is still to come can change them.

>>> fold = ExchangeFold(session, policy, captures, TO_BROKER)                    # doctest: +SKIP
>>> rows = fold.feed(events, forwards)                                           # doctest: +SKIP
>>> fold = ExchangeFold(session, policy, captures, TO_BROKER, fold.state)        # doctest: +SKIP
>>> rows = fold.advance(time_ns), fold.finish()                                  # doctest: +SKIP

`feed` takes rows in; it and `advance` give out what is final when nothing earlier than the latest row, or than a time,
is to come; `finish` gives out the rest. However the rows are divided, the results are those of a batch, which is all
rows at once. ``state`` is plain data: Arrow tables, as large as what may still change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from ..schemas import EXCHANGES
from .events import Col, Events, in_front, kept_rows, read_kept
from .exchanges import Forwards, exchange
from .policy import Policy
from .table_rows import exchange_rows

State = Mapping[str, pa.Table]
FOR_EVER = 1 << 62


class ExchangeFold:
    """Requests and their ACKs in one direction. `feed` is given all that some clients and their broker said
    (`steps.client_rows`), and all forwards that belong to the requests among it; it gives ``EXCHANGES``."""

    def __init__(
        self, session: str, policy: Policy, captures: Sequence[str], asking: int, state: State | None = None
    ) -> None:
        self._session, self._policy, self._captures, self._asking = session, policy, captures, asking
        self.state: State = dict(state or {})

    def feed(self, events: Events, forwards: Forwards) -> pa.Table:
        return self._run(events, forwards, int(events[Col.TIME].max(initial=0)))

    def advance(self, time_ns: int) -> pa.Table:
        return self._run(None, None, time_ns)

    def finish(self) -> pa.Table:
        return self._run(None, None, FOR_EVER)

    def _run(self, events: Events | None, forwards: Forwards | None, now: int) -> pa.Table:
        known = [forwards.table()] if forwards is not None else []
        if self.state:
            kept = read_kept(self.state["events"], self._policy, self._captures)
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
        return exchange_rows(events, self._session, pairing.exchanges, done)

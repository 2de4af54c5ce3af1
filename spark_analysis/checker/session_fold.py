"""What is final of a session that goes on: exchanges, deliveries and findings that nothing to come can change.

>>> fold = SessionFold("run", dialect, brokers=())                       # doctest: +SKIP
>>> rows = fold.feed(messages)                                           # doctest: +SKIP
>>> fold = SessionFold("run", dialect, brokers=(), state=fold.state)     # doctest: +SKIP
>>> rows = fold.finish()                                                 # doctest: +SKIP

Messages pass three stages, each some seconds of capture time behind the one before it:

    wait   until it is known whether subscriptions up to here were acknowledged
    then   they go to the `DeliveryFold`: which forward belongs to which publish
    then   with these forwards to the `ExchangeFold` of each direction: which ACK belongs to which request

So a row comes out once it is final. Which end is the broker follows from all that was seen so far; if later messages
show other brokers, what has passed is not looked at again (`SessionFold.is_revised`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pcap_tools.dialect import Dialect

from ..tables.packing import pack_tables, together, unpack_tables
from ..tables.schemas import DELIVERIES, EXCHANGES, FINDINGS
from .findings.findings import Settled
from .folds import FOR_EVER, DeliveryFold, ExchangeFold, State
from .matching.deliveries import AT_ONCE_NS, DOUBLE_NS, HORIZON_NS
from .matching.exchanges import FORWARDS, Forwards
from .session.broker_activity import last_sent, set_beside
from .session.control import CONTROL, GOODBYE_NS, control_rows, in_force, latest_answer_ns, subscriptions_of
from .session.endpoints import add_pairs, pairs_of
from .session.events import FROM_BROKER, TO_BROKER, Col, Events, events_of, rows_of, with_parties
from .session.facts import SessionFacts, facts_of, needs_control
from .session.policy import SECOND, Policy
from .steps import client_rows, judge_datagrams, prepare

Integers = NDArray[np.int64]
LEARN_NS = 60 * SECOND  # of a session, before anything is given out: by then its brokers are known
CERTAIN = "W-"  # rules whose findings depend on no evidence about the session
WAITS, DELIVERED, PASSED = range(3)  # how far a message has come
_DIRECTIONS = {"asked": TO_BROKER, "told": FROM_BROKER}


class Final(NamedTuple):
    """Rows of ``EXCHANGES``, ``DELIVERIES`` and ``FINDINGS``."""

    exchanges: pa.Table
    deliveries: pa.Table
    findings: pa.Table


NOTHING = Final(EXCHANGES.empty_table(), DELIVERIES.empty_table(), FINDINGS.empty_table())


class SessionFold:
    """One dialect of a session. ``state`` is plain data: what is open, what is in force, and nothing else."""

    def __init__(self, session: str, dialect: Dialect, brokers: Sequence[str] = (), state: State | None = None) -> None:
        self._session, self._policy, self._brokers = session, Policy(dialect), brokers
        self.state: dict[str, pa.Table] = dict(state or {})
        self._settles_ns = max(latest_answer_ns(self._policy), GOODBYE_NS) + AT_ONCE_NS

    @property
    def messages(self) -> int:
        """How many are kept, because something about them is open."""
        return len(self.state["messages"]) if "messages" in self.state else 0

    @property
    def final_ns(self) -> int:
        """Exchanges and deliveries that began before this time have been given out; 0: none."""
        return int(self._about("final_ns", 0))

    @property
    def is_revised(self) -> bool:
        """Whether other endpoints turned out to be the brokers after rows had been given out."""
        return bool(self._about("is_revised", False))

    def feed(self, batch: pa.Table) -> Final:
        """Messages of the session, in any order within a batch."""
        rows = rows_of(batch, self._policy.dialect.name)
        if not len(rows):
            return NOTHING
        copies = len(batch) - batch.column("copy_of").null_count
        pairs = [pairs_of(rows, self._policy, copies)]
        self.state["pairs"] = add_pairs([*pairs, self.state["pairs"]] if "pairs" in self.state else pairs)
        rows = rows.append_column("stage", pa.array(np.full(len(rows), WAITS, np.int64)))
        before = [self.state["messages"]] if "messages" in self.state else []
        self.state["messages"] = together([*before, rows])
        end = pc.max(self.state["pairs"].column("last")).as_py()
        if end - pc.min(self.state["pairs"].column("first")).as_py() < LEARN_NS:
            return NOTHING
        return self._run(end - self._settles_ns)

    def finish(self) -> Final:
        """The session has ended."""
        if "pairs" not in self.state:
            return NOTHING
        return self._run(FOR_EVER)

    def _about(self, name: str, absent: Any) -> Any:
        return self.state["about"].column(name)[0].as_py() if "about" in self.state else absent

    def _run(self, until: int) -> Final:
        """Take as many steps as can be taken when subscriptions are known up to a time."""
        messages = self.state["messages"]
        captures = list(dict.fromkeys([*self._about("captures", ()), *messages.column("capture").unique().to_pylist()]))
        facts = facts_of(self._session, captures, self._policy, self.state["pairs"], self._brokers)
        events = events_of(messages, self._policy, captures)
        stage = events.table.column("stage").to_numpy().copy()
        with_parties(events, facts.brokers.endpoints, facts.brokers.hosts, facts.brokers.same)
        set_beside(events)
        control = self._control(events, stage)
        facts = facts.with_control(control).with_subscriptions(subscriptions_of(control, self._policy))
        prepare(events, facts)
        final = until - HORIZON_NS - DOUBLE_NS
        findings = self._certain(events, facts, stage, until)
        deliveries, forwards = self._deliver(events, facts, stage, until)
        exchanges = self._exchange(events, facts, stage, final, forwards)
        keep = stage < PASSED
        keep[last_sent(events, ~keep)] = True
        gone = pc.is_in(control.column("id"), pa.array(events[Col.ID][stage < PASSED]))
        control = control.filter(pc.invert(gone))
        if not needs_control(self._policy):
            control = in_force(control, self._policy, final - self._settles_ns)
        brokers = sorted(facts.brokers.texts)
        is_revised = self.is_revised or self._about("brokers", brokers) != brokers
        about = {"captures": captures, "brokers": brokers, "is_revised": is_revised, "final_ns": final}
        kept = events.table.filter(pa.array(keep)).drop_columns(["stage"]).append_column("stage", pa.array(stage[keep]))
        self.state |= {"messages": kept, "control": control, "about": pa.Table.from_pylist([about])}
        return Final(exchanges, deliveries, findings)

    def _control(self, events: Events, stage: Integers) -> pa.Table:
        """All control rows that count. Those of messages that have passed are remembered."""
        waiting = events.chosen(np.flatnonzero(stage < PASSED))
        known = [self.state["control"]] if "control" in self.state else []
        return pa.concat_tables([CONTROL.empty_table(), *known, control_rows(waiting)]).combine_chunks()

    def _certain(self, events: Events, facts: SessionFacts, stage: Integers, until: int) -> pa.Table:
        """Findings that depend on nothing but a datagram: those of the wire format."""
        rows = _before(events, until)
        candidates = judge_datagrams(events.chosen(rows[stage[rows] == WAITS]), facts).candidates
        return Settled(0).rows(candidates.filter(pc.starts_with(candidates.column("rule"), CERTAIN)), facts)

    def _deliver(self, events: Events, facts: SessionFacts, stage: Integers, until: int) -> tuple[pa.Table, pa.Table]:
        rows = _before(events, until)
        rows = rows[stage[rows] == WAITS]
        fold = DeliveryFold(facts, self._part("deliveries"))
        found = fold.finish() if until == FOR_EVER and not len(rows) else fold.feed(events.chosen(rows), until)
        stage[rows] = DELIVERED
        self._keep_part("deliveries", fold.state)
        known = [self.state["forwards"]] if "forwards" in self.state else []
        return found.rows, pa.concat_tables([FORWARDS.empty_table(), *known, found.forwards])

    def _exchange(
        self, events: Events, facts: SessionFacts, stage: Integers, final: int, forwards: pa.Table
    ) -> pa.Table:
        rows = _before(events, final)
        rows = rows[stage[rows] == DELIVERED]
        part = events.chosen(rows)
        part = part.chosen(np.flatnonzero(client_rows(part)))
        mine = pa.array(np.isin(forwards.column("cause").to_numpy(), events[Col.ID][rows]))
        self.state["forwards"] = forwards.filter(pc.invert(mine))
        found = []
        for name, asking in _DIRECTIONS.items():
            fold = ExchangeFold(facts, asking, self._part(name))
            found.append(fold.feed(part, Forwards.of(forwards.filter(mine)), final))
            self._keep_part(name, fold.state)
        stage[rows] = PASSED
        return pa.concat_tables(found)

    def _part(self, name: str) -> State:
        return unpack_tables(self.state[name].column("data")[0].as_py()) if name in self.state else {}

    def _keep_part(self, name: str, state: State) -> None:
        self.state[name] = pa.table({"data": pa.array([pack_tables(state)], pa.binary())})


def _before(events: Events, time_ns: int) -> Integers:
    """The first events, up to one that is not before this time."""
    late = np.flatnonzero(events[Col.TIME] >= time_ns)
    return np.arange(late[0] if len(late) else len(events))

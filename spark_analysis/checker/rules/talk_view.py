"""What the rules about one client and its broker look at together: requests, ACKs, and what the broker did."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..findings.evidence import Reactions
from ..findings.findings import Candidates
from ..findings.reasons import BEFORE_CAPTURE
from ..kernels.hashing import mix
from ..kernels.pairing import DUPLICATE, REPLY, REQUEST, STRAY
from ..matching.deliveries import Publishes
from ..matching.exchanges import Exchanges, Forwards
from ..session.events import NOTHING, TO_BROKER, Col, Events
from ..session.facts import SessionFacts
from ..session.grouped import Grouped
from ..session.policy import ACK

Integers = NDArray[np.int64]
MILLISECOND = 1_000_000
AT_ONCE_NS = 5 * MILLISECOND  # an ACK of an ACK leaves as soon as any
AT_START_NS = 50 * MILLISECOND  # an ACK that early may answer what was sent before the capture


@dataclass
class TalkView:
    """Some clients of a session with all that they and their brokers said.

    ``client_exchanges``: clients ask and the broker acknowledges; ``broker_exchanges``: the other way round.
    """

    events: Events
    facts: SessionFacts
    publishes: Publishes
    client_exchanges: Exchanges
    broker_exchanges: Exchanges
    forwards: Forwards
    reactions: Reactions
    candidates: Candidates

    @property
    def resend_ns(self) -> int:
        return self.events.policy.resend_ns

    @cached_property
    def _by_group(self) -> Grouped:
        exchanges = self.client_exchanges
        sent = np.flatnonzero((exchanges.role == REQUEST) & (exchanges.group >= 0))
        return Grouped(exchanges.group[sent], sent)

    @cached_property
    def _talks(self) -> Grouped:
        return Grouped(self.events[Col.CLIENT], np.arange(len(self.events)))

    def name(self, row: int) -> str:
        """Of a row's message."""
        return self.events.policy.messages[int(self.events[Col.MESSAGE][row])]

    def sends(self, first: int) -> Integers:
        """All sends of a client's request."""
        return self._by_group.of(first)

    def talk(self, row: int) -> Integers:
        """All rows of one client."""
        return self._talks.of(int(self.events[Col.CLIENT][row]))

    def answers_an_ack(self, row: int, side: int) -> bool:
        """Whether the last thing that the other side said in this talk is an ACK, just before."""
        events = self.events
        before = self.talk(row)
        before = before[: np.searchsorted(before, row)]
        before = before[events[Col.SIDE][before] == side]
        before = before[events[Col.TIME][row] - events[Col.TIME][before] < AT_ONCE_NS]
        is_ack = np.append(events.policy.meaning == ACK, False)[events[Col.MESSAGE][before]]
        if events.policy.is_keyed[events[Col.MESSAGE][row]]:
            return bool((is_ack & (events[Col.KEY][before] == events[Col.KEY][row])).any())
        return bool(is_ack[-1:].any())

    def patience(self, exchanges: Exchanges, first: int) -> int:
        """How long an ACK may take. Where nothing says when to send again, twice as long as others took in this talk,
        but not less than a second."""
        limit = int(1.02 * self.resend_ns)
        if self.events.policy.has_resends:
            return limit
        time, others = self.events[Col.TIME], self.talk(first)
        acked = others[(exchanges.group[others] == others) & (exchanges.ack[others] >= 0)]
        return max(limit, 2 * int((time[exchanges.ack[acked]] - time[acked]).max(initial=0)))

    @cached_property
    def acks_of_malformed(self) -> frozenset[int]:
        """ACKs that answer no request but a datagram that cannot be read: malformed, or cut by the capture. Each such
        datagram takes one."""
        events, asked = self.events, self.client_exchanges
        malformed = (events[Col.MESSAGE] < 0) & (events[Col.SIDE] == TO_BROKER)
        if not malformed.any():
            return frozenset()
        found: dict[int, int] = {}
        for row in asked.of_kind(REPLY, STRAY, DUPLICATE).tolist():
            before = self.talk(row)
            before = before[: np.searchsorted(before, row)]
            before = before[malformed[before] & (events[Col.TIME][row] - events[Col.TIME][before] < 2 * self.resend_ns)]
            open_ones = [one for one in before.tolist() if one not in found]
            if open_ones:
                found[open_ones[-1]] = row
        return frozenset(found.values())

    @cached_property
    def strays(self) -> Integers:
        """ACKs of the broker that answer nothing at all."""
        rows = self.client_exchanges.of_kind(REPLY, STRAY)
        return rows[~np.isin(rows, list(self.acks_of_malformed))]

    def has_unseen_requests(self) -> bool:
        """Whether clients acknowledge by name what the broker is never seen to send."""
        events, told = self.events, self.broker_exchanges
        strays = told.of_kind(REPLY, STRAY)
        strays = strays[events.policy.is_keyed[events[Col.MESSAGE][strays]] & (events[Col.KEY][strays] != NOTHING)]
        if not len(strays):
            return False
        strays = strays[[self.may_precede(int(row)) is None and not self._may_be_wrong(int(row)) for row in strays]]
        named = np.flatnonzero(np.isin(events[Col.CLIENT], events[Col.CLIENT][strays]))
        named = named[~np.isin(named, strays)]
        unseen, known = (mix(events[Col.CLIENT][rows], events[Col.KEY][rows]) for rows in (strays, named))
        return bool((~np.isin(unseen, known)).any())

    def _may_be_wrong(self, row: int) -> bool:
        """Whether a client's ACK may be a wrong one: something of the broker's waits for the right one."""
        told, time = self.broker_exchanges, self.events[Col.TIME]
        before = self.talk(row)
        before = before[: np.searchsorted(before, row)]
        waits = (told.group[before] == before) & (told.ack[before] < 0) & told.owed[before]
        return bool((time[row] - time[before[waits]] < self.resend_ns).any())

    def may_precede(self, row: int) -> str | None:
        """A reason if what an ACK answers may have been sent before the capture began."""
        since = self.events[Col.TIME][row] - self.facts.begin
        is_early = since < (1.5 * self.resend_ns if self.facts.starts_late else AT_START_NS)
        return BEFORE_CAPTURE if is_early else None

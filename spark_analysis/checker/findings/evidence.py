"""Evidence about a session that limits its verdicts: loss, doubled datagrams, a broker that was away.

Each step sees some keys of a session and adds what it sees as bits; together they hold for the whole session, and
decide about findings that depend on them (`findings.settle`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...tables.schemas import EVIDENCE
from ..kernels.pairing import ACK_LOST, DOUBLE, DOUBLED, REPLY, REQUEST, RESEND
from ..matching.exchanges import Exchanges
from ..session.endpoints import Point
from ..session.events import TO_BROKER, Col, Events
from ..session.facts import SessionFacts
from .reasons import BROKER_AWAY, NOT_ARRIVED

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

# What a verdict may depend on. Each has a name, a sentence, and the capture that would settle it.
LOSS = 1  # something was sent again although it had been answered, or had led to nothing at all
DOUBLES = 2  # the network made two of one
UNSETTLED = 4  # in a session, where the broker sends again what got lost: forwards may come late, or not at all
CAPTURE_LOST = 8  # something is forwarded and acknowledged that is not in the capture
CUT = 16  # the capture has cut datagrams short
CLIENTS_LOSE = 32  # what clients were sent and their ACKs do not go together in numbers
UNNUMBERED = 64  # nobody is seen to create a topic
PARTIAL = 128  # most of what is forwarded is published where the capture does not look
REASONS = {
    LOSS: ("loss", "datagrams were lost on the way", "a capture at the broker, or without loss,"),
    DOUBLES: ("doubles", "the network doubles datagrams", "a capture at the receiver"),
    UNSETTLED: ("unsettled", "the broker sends again what got lost", "a capture without loss"),
    CAPTURE_LOST: ("capture-lost", "the capture has lost datagrams", "a capture without gaps"),
    CUT: ("cut", "the capture has cut datagrams short", "a capture of whole frames (`tcpdump -s 0`)"),
    CLIENTS_LOSE: ("clients-lose", "datagrams to clients, or their ACKs, were lost", "a capture without loss"),
    UNNUMBERED: ("unnumbered", "the capture shows no topic being created", "a capture that begins earlier"),
    PARTIAL: (
        "partial",
        "most forwards are of messages whose publish is not in the capture, so it does not show all of the broker",
        "a capture on all interfaces of the broker",
    ),
}

UNHEARD = ("unheard", "the broker sends nothing in this capture")


def reason_of(bits: int) -> str:
    """The first that applies, in words."""
    return next((f"{text}; {remedy} would tell" for bit, (_, text, remedy) in REASONS.items() if bits & bit), "")


def evidence_rows(facts: SessionFacts, bits: int) -> pa.Table:
    """``EVIDENCE`` of one dialect of a session."""
    dialect = facts.policy.dialect.name
    if facts.policy.dialect.spec.topics.kind != "number":
        bits &= ~UNNUMBERED  # nothing depends on it
    rows = [(facts.session, dialect, kind, text) for bit, (kind, text, _) in REASONS.items() if bits & bit]
    if facts.brokers.ends and not facts.activity.runs:
        rows.append((facts.session, dialect, *UNHEARD))
    return pa.Table.from_pylist([dict(zip(EVIDENCE.names, row, strict=True)) for row in rows], EVIDENCE)


@dataclass(frozen=True)
class Reactions:
    """Of rows to the broker: what it visibly did.

    reacted    it answered or forwarded
    forwarded  it forwarded
    silent     it did nothing, at a time when it sent nothing to anybody
    """

    reacted: Flags
    forwarded: Flags
    silent: Flags

    def unheard(self, rows: Integers, point: Point) -> tuple[str | None, int]:
        """A reason if none of these sends may have come to a broker that was there; else None, and unless which
        evidence."""
        if self.forwarded[rows].any():
            return None, 0
        if self.reacted[rows].any():
            # An ACK alone may answer an earlier request that the network doubled.
            return None, 0 if point is Point.BROKER else LOSS | DOUBLES
        if point is not Point.BROKER:
            return NOT_ARRIVED, 0
        return BROKER_AWAY if self.silent[rows].all() else None, 0


def reactions(events: Events, facts: SessionFacts, answered: Flags, forwarded: Flags, demands: Flags) -> Reactions:
    """``demands``: rows to which a broker has to react."""
    reacted = answered | forwarded
    silent = np.zeros(len(events), np.bool_)
    asked = np.flatnonzero(demands & ~reacted & (events[Col.SIDE] == TO_BROKER))
    silent[asked] = facts.activity.is_silent(events, asked)
    return Reactions(reacted, forwarded, silent)


def seen_in_exchanges(
    facts: SessionFacts, client_exchanges: Exchanges, broker_exchanges: Exchanges, reacted: Flags
) -> int:
    """Bits that the exchanges of some clients show."""
    bits = 0
    if len(client_exchanges.of_kind(REQUEST, DOUBLE)) or len(client_exchanges.of_kind(REPLY, DOUBLED)):
        bits |= DOUBLES
    if _loss(facts, client_exchanges, reacted):
        bits |= LOSS
    if facts.policy.has_sessions and (bits & LOSS or len(broker_exchanges.of_kind(REQUEST, RESEND))):
        bits |= UNSETTLED
    if facts.is_cut:
        bits |= CUT
    if not len(facts.bindings.keys):
        bits |= UNNUMBERED
    return bits


def _loss(facts: SessionFacts, exchanges: Exchanges, reacted: Flags) -> bool:
    if len(exchanges.of_kind(REQUEST, ACK_LOST)):
        return True
    if facts.point is Point.BROKER:
        return False
    again = exchanges.of_kind(REQUEST, RESEND)
    return bool((~reacted[exchanges.group[again]]).any())


BESIDE_NS = 50_000_000
# Two findings about one client that one lost frame explains: the rules, the second with its case, and whether the first
# may come any time after the second, or stands beside it.
_ONE_FRAME = (
    ("D-UNEXPECTED", "A-UNSOLICITED", "broker", True),  # a subscription
    ("D-MISSING", "A-UNSOLICITED", "client", False),  # a forward
    ("A-STATUS-MISSING", "A-UNSOLICITED", "client", False),  # a status message
    ("N-UNKNOWN-PUBLISH", "A-UNSOLICITED", "broker", True),  # a creation
)
ENOUGH_INVENTED = 3


def shows_lost_frame(candidates: pa.Table) -> bool:
    """Whether two candidates for findings have their reason in one frame that the capture does not have."""
    wanted = sorted({rule for pair in _ONE_FRAME for rule in pair[:2]})
    rows = candidates.filter(pc.is_in(candidates.column("rule"), pa.array(wanted)))
    if len(rows.column("rule").unique()) < 2:
        return False
    times: dict[tuple[str, str, str], list[int]] = {}
    for row in rows.select(["rule", "client", "time", "detail"]).to_pylist():
        for case in ("", row["detail"]["case"] or ""):
            times.setdefault((row["rule"], row["client"], case), []).append(row["time"])
    for rule, other, case, after in _ONE_FRAME:
        for (name, client, any_case), found in times.items():
            if (name, any_case) == (rule, ""):
                near = times.get((other, client, case), ())
                if any(two < one if after else abs(one - two) < BESIDE_NS for one in found for two in near):
                    return True
    return False


def is_partial(invented: int, forwards: int) -> bool:
    """Whether the publishes of most forwards are not in the capture."""
    return invented >= ENOUGH_INVENTED and 2 * invented >= forwards


def capture_has_lost(strays: Integers, invented: Integers) -> bool:
    """Whether a publish is missing that must have been: something is forwarded and acknowledged that is not there.
    Given are times of ACKs that answer nothing, and of forwards that nobody published."""
    if not len(strays) or not len(invented):
        return False
    times = np.sort(strays)
    place = np.searchsorted(times, invented)
    near = np.minimum(
        np.abs(times[np.minimum(place, len(times) - 1)] - invented), np.abs(times[np.maximum(place - 1, 0)] - invented)
    )
    return bool((near < BESIDE_NS).any())

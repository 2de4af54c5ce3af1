"""The steps of the analysis on some keys of a session: by topic, by client, and about the session as a whole.

    deliveries (by topic) ─► exchanges (by client) ─► delivery findings (by topic) ─► settled findings (by session)

Each is a function of the events of its keys, what is known of the session, and what the steps before have found out
about these keys. So the result does not depend on how keys are put together: all in one process, or in many tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..tables.schemas import DELIVERIES, EXCHANGES, PUBLISHES
from .findings.evidence import (
    CAPTURE_LOST,
    PARTIAL,
    capture_has_lost,
    is_partial,
    reactions,
    seen_in_exchanges,
    shows_lost_frame,
)
from .findings.findings import CANDIDATES, COUNTS, Candidates, Settled
from .kernels.expecting import PUBLISH
from .matching.deliveries import Deliveries, deliver, find_publishes
from .matching.exchanges import Forwards, exchange, forwarded_rows
from .matching.requests import request_rows, requests_of
from .rules.ack_rules import ASTRAY, AckRules, astray_rows, misdirected
from .rules.client_rules import ClientRules
from .rules.delivery_rules import DeliveryRules
from .rules.loop_rules import judges_payloads, loop_findings
from .rules.number_rules import number_findings
from .rules.retained_rules import retained_findings
from .rules.talk_view import TalkView
from .rules.topic_view import TopicView, served_by
from .rules.unexplained import Unexplained
from .rules.wire_rules import party_findings, wire_findings
from .session.broker_activity import set_beside
from .session.events import FROM_BROKER, TO_BROKER, Col, Events, with_parties
from .session.facts import SessionFacts, resolve_names
from .table_rows import delivery_rows, exchange_rows, publish_rows

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
_NO_TIMES = np.zeros(0, np.int64)


@dataclass(frozen=True)
class StepFindings:
    """What a step found: candidates for findings, how often each rule was checked, times that are evidence."""

    candidates: pa.Table
    counts: pa.Table
    strays: Integers  # times of ACKs that answer nothing
    invented: Integers  # times of forwards that nobody published


def join_findings(found: Sequence[StepFindings]) -> StepFindings:
    """Of several calls of a step as of one."""
    counts = pa.concat_tables([one.counts for one in found]).group_by("rule").aggregate([("checked", "sum")])
    return StepFindings(
        pa.concat_tables([one.candidates for one in found]),
        counts.rename_columns(COUNTS.names).cast(COUNTS),
        np.concatenate([one.strays for one in found]),
        np.concatenate([one.invented for one in found]),
    )


@dataclass(frozen=True)
class ByClient:
    """What the step by client gives. ``requests`` goes to the topics, ``evidence`` and ``astray`` to the session."""

    findings: StepFindings
    evidence: int
    astray: pa.Table
    requests: pa.Table
    exchanges: pa.Table
    publishes: pa.Table


@dataclass(frozen=True)
class ByTopic:
    """What the second step by topic gives."""

    findings: StepFindings
    deliveries: pa.Table


def prepare(events: Events, facts: SessionFacts) -> Events:
    """Fill in the names behind numbers; the parties are there."""
    resolve_names(events, facts.bindings)
    return events


def match_deliveries(events: Events, facts: SessionFacts) -> tuple[Deliveries, frozenset[int] | None]:
    """By topic: what was due and what came; and subscriptions that were served."""
    deliveries = deliver(events, facts)
    return deliveries, served_by(facts, deliveries)


def judge_datagrams(events: Events, facts: SessionFacts) -> StepFindings:
    """By datagram, in any number: the rules about wire format and parties."""
    candidates = Candidates(events, facts)
    wire_findings(events, find_publishes(events, facts), candidates)
    party_findings(events, candidates)
    return StepFindings(candidates.table(), candidates.counts(), _NO_TIMES, _NO_TIMES)


def client_rows(events: Events) -> Flags:
    """What the step by client needs: all that clients and brokers said, but for forwards that nobody acknowledges."""
    policy, side = events.policy, events[Col.SIDE]
    wanted: Flags = side >= 0
    if not policy.client_acks.any() and not judges_payloads(policy):
        forwards = np.append(policy.forwards, False)[events[Col.MESSAGE]]
        wanted &= ~(forwards & (side == FROM_BROKER))
    return wanted


def judge_clients(events: Events, facts: SessionFacts, forwards: Forwards, with_rows: bool = True) -> ByClient:
    """By client, on `client_rows`: exchanges and their rules. ``with_rows``: exchanges too."""
    candidates = Candidates(events, facts)
    publishes = find_publishes(events, facts)
    forwards = forwards.among(events)
    asked = exchange(events, forwards, TO_BROKER).exchanges
    told = exchange(events, forwards, FROM_BROKER).exchanges
    forwarded = forwarded_rows(events, forwards)
    reacted = reactions(events, facts, asked.answered, forwarded, asked.owed)
    view = TalkView(events, facts, publishes, asked, told, forwards, reacted, candidates)
    AckRules(view).run()
    ClientRules(view).run()
    number_findings(events, facts.bindings, candidates)
    evidence = seen_in_exchanges(facts, asked, told, reacted.reacted)
    if view.has_unseen_requests():
        evidence |= CAPTURE_LOST
    evidence |= loop_findings(events, facts, candidates, asked)
    rows = (
        [exchange_rows(events, facts.session, one, one.firsts()) for one in (asked, told)]
        if with_rows
        else [EXCHANGES.empty_table()]
    )
    return ByClient(
        StepFindings(candidates.table(), candidates.counts(), events[Col.TIME][view.strays], _NO_TIMES),
        evidence,
        astray_rows(view),
        request_rows(events, asked, told, forwards),
        pa.concat_tables(rows),
        publish_rows(events, publishes, asked) if with_rows else PUBLISHES.empty_table(),
    )


def judge_topics(
    events: Events,
    facts: SessionFacts,
    deliveries: Deliveries,
    requests: pa.Table,
    evidence: int,
    served: frozenset[int] | None,
    with_rows: bool = True,
) -> ByTopic:
    """By topic again, when the exchanges are known: the rules of delivery."""
    candidates = Candidates(events, facts)
    asked = requests_of(events, requests)
    causes = deliveries.publish_of()
    forwarded = asked.forwarded.copy()
    forwarded[causes[causes >= 0]] = True
    demands = asked.owed.copy()
    demands[deliveries.due[PUBLISH]] = True
    reacted = reactions(events, facts, asked.answered, forwarded, demands)
    view = TopicView(events, facts, deliveries, asked, reacted, candidates, evidence, served)
    Unexplained(view).run()
    DeliveryRules(view).run()
    retained_findings(view)
    invented = events[Col.TIME][np.array(view.invented, np.int64)]
    found = StepFindings(candidates.table(), candidates.counts(), _NO_TIMES, invented)
    return ByTopic(found, delivery_rows(view) if with_rows else DELIVERIES.empty_table())


def settle(
    facts: SessionFacts,
    found: Sequence[StepFindings],
    evidence: int,
    astray: Sequence[pa.Table],
    served: frozenset[int] | None,
) -> tuple[pa.Table, int]:
    """By session: ``FINDINGS`` from all candidates, and the evidence in the end."""
    if capture_has_lost(
        *(
            np.concatenate([_NO_TIMES, *times])
            for times in zip(*((one.strays, one.invented) for one in found), strict=True)
        )
    ):
        evidence |= CAPTURE_LOST
    if not facts.policy.broker_acks[facts.policy.publishes].any() and any(len(one.invented) for one in found):
        evidence |= CAPTURE_LOST  # no ACK would show a publish that is not there
    invented = sum(len(one.invented) for one in found)
    counts = join_findings(found).counts if found else COUNTS.empty_table()
    forwards = dict(zip(counts.column("rule").to_pylist(), counts.column("checked").to_pylist(), strict=True))
    if is_partial(invented, forwards.get("D-UNEXPECTED", 0)):
        evidence |= PARTIAL
    lost = misdirected(pa.concat_tables([ASTRAY.empty_table(), *astray]), facts)
    candidates = pa.concat_tables([CANDIDATES.empty_table(), lost.candidates, *(one.candidates for one in found)])
    if shows_lost_frame(candidates):
        evidence |= CAPTURE_LOST
    return Settled(evidence, served, lost.acks | lost.requests).rows(candidates, facts), evidence


@dataclass(frozen=True)
class SessionTables:
    """All that one dialect of a session gives."""

    findings: pa.Table
    counts: pa.Table
    evidence: int
    exchanges: pa.Table
    deliveries: pa.Table
    publishes: pa.Table


def judge_session(events: Events, facts: SessionFacts, with_rows: bool = True) -> SessionTables:
    """All steps on all keys at once; the events are prepared."""
    set_beside(events)
    deliveries, served = match_deliveries(events, facts)
    of_clients, wanted = events, client_rows(events)
    if not wanted.all():
        of_clients = with_parties(events.some(wanted), facts.brokers.endpoints, facts.brokers.hosts, facts.brokers.same)
        of_clients.columns[Col.BESIDE] = events[Col.BESIDE][wanted]
        prepare(of_clients, facts)
    by_client = judge_clients(of_clients, facts, deliveries.forwards(events), with_rows)
    by_topic = judge_topics(events, facts, deliveries, by_client.requests, by_client.evidence, served, with_rows)
    found = (judge_datagrams(events, facts), by_client.findings, by_topic.findings)
    findings, evidence = settle(facts, found, by_client.evidence, [by_client.astray], served)
    counts = pa.concat_tables([one.counts for one in found])
    return SessionTables(findings, counts, evidence, by_client.exchanges, by_topic.deliveries, by_client.publishes)

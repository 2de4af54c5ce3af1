"""What is known of a session as a whole while some of its keys are judged: small, made once, handed to every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .broker_activity import Activity
from .control import (
    Bindings,
    Connections,
    Subscriptions,
    binding_rows,
    connection_rows,
    no_bindings,
    no_connections,
    no_subscriptions,
)
from .endpoints import Brokers, Point, capture_point, choose_brokers, shows_start, starts_late
from .events import NOTHING, Col, Events
from .policy import Policy

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class SessionFacts:
    """One dialect in one session.

    begin, end     the first and the last time
    starts_late    clients get messages that they asked for before the capture began
    shows_start    see `endpoints.shows_start`
    is_cut         the capture has cut datagrams short
    activity       of its brokers
    bindings, connected   of dialects with topic numbers, and with sessions
    subscriptions  of the filters that a step needs; see `with_subscriptions`
    expecting      those of them that make publishes due here
    due            what is due for others: `deliveries.DUE`
    """

    session: str
    captures: tuple[str, ...]
    policy: Policy
    brokers: Brokers
    point: Point
    begin: int
    end: int
    starts_late: bool
    shows_start: bool
    is_cut: bool
    datagrams: int
    activity: Activity = field(default_factory=Activity)
    bindings: Bindings = field(default_factory=no_bindings)
    connected: Connections = field(default_factory=no_connections)
    subscriptions: Subscriptions = field(default_factory=no_subscriptions)
    expecting: Subscriptions = field(default_factory=no_subscriptions)
    due: pa.Table | None = None

    def with_activity(self, activity: Activity) -> SessionFacts:
        return replace(self, activity=activity)

    def with_control(self, control: pa.Table) -> SessionFacts:
        """What numbers mean and who is connected; nothing where the dialect has neither."""
        if not needs_control(self.policy):
            return self
        return self.with_numbers(binding_rows(control, self.policy), connection_rows(control, self.policy))

    def with_numbers(self, bindings: pa.Table, connections: pa.Table) -> SessionFacts:
        """The same from rows of ``BINDINGS`` and ``CONNECTIONS``."""
        return replace(self, bindings=Bindings.of(bindings), connected=Connections.of(connections))

    def with_subscriptions(
        self, subscriptions: Subscriptions, expecting: Subscriptions | None = None, due: pa.Table | None = None
    ) -> SessionFacts:
        return replace(self, subscriptions=subscriptions, expecting=expecting or subscriptions, due=due)


def needs_control(policy: Policy) -> bool:
    """Whether every step must know all control rows: topics are numbers, or clients have sessions."""
    return policy.dialect.spec.topics.kind == "number" or policy.has_sessions


def facts_of(
    session: str, captures: Sequence[str], policy: Policy, pairs: pa.Table, brokers: Sequence[str]
) -> SessionFacts:
    """From the session's ``PAIRS``; ``brokers`` are those that the user names."""
    chosen = choose_brokers(pairs, policy, brokers)
    return SessionFacts(
        session,
        tuple(captures),
        policy,
        chosen,
        capture_point(pairs, chosen),
        pc.min(pairs.column("first")).as_py(),
        pc.max(pairs.column("last")).as_py(),
        starts_late(pairs, policy, chosen),
        shows_start(pairs, policy),
        bool(pc.sum(pairs.column("cut")).as_py()),
        pc.sum(pairs.column("count")).as_py(),
    )


def resolve_names(events: Events, bindings: Bindings) -> None:
    """Topics that stand as numbers in messages get the names that subscriptions know them by."""
    policy, columns = events.policy, events.columns
    if policy.dialect.spec.topics.kind != "number":
        return
    message = columns[Col.MESSAGE]
    numbered = columns[Col.NUMBER] != NOTHING
    wanted = np.append(policy.publishes, False)[message] & numbered
    names = bindings.resolve(columns[Col.CLIENT], columns[Col.NUMBER], columns[Col.TIME])
    if policy.topics_are_renamed:
        wanted |= np.append(policy.forwards, False)[message] & numbered
        columns[Col.TOPIC] = np.where(wanted, names, columns[Col.TOPIC])
    columns[Col.NAME] = np.where(wanted, names, columns[Col.NAME])

"""First look at a part of a session: what has to be known of the whole before any part can be judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .brokers import Brokers, choose_brokers, evidence
from .context import RETAINED, Context, Point
from .control import bindings_of, connected_of, control_rows, subscriptions_of
from .events import FROM_BROKER, NOTHING, TO_BROKER, Col, Events, with_parties
from .policy import ACK, PUBLISH, Policy

FEW_HOSTS = 3


@dataclass(frozen=True)
class Seen:
    """Of one part, before it is known who the broker is."""

    evidence: pa.Table
    datagrams: int
    copies: int
    times: tuple[int, int] | None


@dataclass(frozen=True)
class Gathered:
    """Of one part, once it is known. ``hosts``: a few of the clients' hosts, to tell one from many; ``unprompted``: how many
    clients got something before they had said anything."""

    control: pa.Table
    retained: pa.Table
    hosts: frozenset[int]
    on_one_host: bool
    unprompted: int
    stray_start: bool


def look(events: Events, copies: int) -> Seen:
    time = events[Col.TIME]
    times = (int(time.min()), int(time.max())) if len(time) else None
    return Seen(evidence(events), len(events), copies, times)


def gather(events: Events, brokers: Brokers, own: tuple[int, int]) -> Gathered:
    """What this part adds: the events it owns, with those behind them to see answers."""
    with_parties(events, brokers.endpoints, brokers.hosts)
    time = events[Col.TIME]
    owned = (time >= own[0]) & (time < own[1])
    control = control_rows(events)
    mine = pc.and_(
        pc.greater_equal(control.column("time"), own[0]), pc.less(control.column("time"), own[1])
    )
    side = events[Col.SIDE]
    hosts = np.where(side == TO_BROKER, events[Col.SRC_HOST], events[Col.DST_HOST])[owned & (side >= 0)]
    same = (events[Col.SRC_HOST] == events[Col.DST_HOST])[owned]
    return Gathered(
        control.filter(mine),
        _retained(events, owned),
        frozenset(int(one) for one in np.unique(hosts)[:FEW_HOSTS]),
        bool(same.all()) and len(same) > 0,
        *_unprompted(events),
    )


def _retained(events: Events, owned: np.ndarray) -> pa.Table:  # type: ignore[type-arg]
    """The last message of each topic that was to be retained."""
    policy = events.policy
    if policy.dialect.spec.broker.retained == "none" or policy.has_sessions:
        return RETAINED.empty_table()
    is_publish = np.append(policy.meaning == PUBLISH, False)[events[Col.MESSAGE]]
    rows = np.flatnonzero(owned & is_publish & (events[Col.RETAIN] == 1) & (events[Col.SIDE] == TO_BROKER))
    _, last = np.unique(events[Col.NAME][rows][::-1], return_index=True)
    chosen = np.sort(rows[::-1][last])
    columns = (Col.NAME, Col.TOPIC, Col.PAYLOAD, Col.TIME, Col.FRAME, Col.CAPTURE, Col.BROKER)
    texts = events.table.column("topic").take(pa.array(chosen)).cast(pa.string())
    return pa.table([*(pa.array(events[column][chosen]) for column in columns), texts], schema=RETAINED)


def _unprompted(events: Events) -> tuple[int, bool]:
    """Clients whose first datagram here is one of the broker's, and whether the first of all is an ACK."""
    side, message = events[Col.SIDE], events[Col.MESSAGE]
    rows = np.flatnonzero((side >= 0) & (message >= 0))
    who = events[Col.CLIENT]
    if events.policy.dialect.spec.broker.subscriber_port is not None:  # they listen elsewhere than they speak
        who = np.where(side == TO_BROKER, events[Col.SRC_HOST], events[Col.DST_HOST])
    _, first = np.unique(who[rows], return_index=True)
    firsts = rows[first]
    told = firsts[(side[firsts] == FROM_BROKER) & events.policy.forwards[message[firsts]]]
    starts = len(rows) > 0 and side[rows[0]] == FROM_BROKER
    is_ack = bool(starts and events.policy.meaning[message[rows[0]]] == ACK)
    return len(told), is_ack


def session_context(
    policy: Policy, brokers: Brokers, seen: Sequence[Seen], parts: Sequence[Gathered], own: tuple[int, int]
) -> tuple[Context, bool]:
    """Everything put together, for the part from ``own[0]`` to ``own[1]``; and whether the capture starts late."""
    control = pa.concat_tables([part.control for part in parts]).sort_by("time")
    times = [time for part in seen for time in part.times or ()]
    kept = pa.concat_tables([part.retained for part in parts])
    before = kept.filter(pc.less(kept.column("time"), own[0]))
    context = Context(
        policy,
        brokers,
        _point(seen, parts),
        min(times),
        max(times),
        own,
        subscriptions_of(control, policy),
        bindings_of(control, policy),
        connected_of(control, policy),
        before,
    )
    first = parts[0]
    return context, first.unprompted >= 2 or first.stray_start


def _point(seen: Sequence[Seen], parts: Sequence[Gathered]) -> Point:
    """Many hosts talk with the broker: at the broker, or, if frames are there more than once, on a bridge."""
    if all(part.on_one_host for part in parts):
        return Point.BROKER
    hosts = frozenset().union(*(part.hosts for part in parts))
    if len(hosts) < 2:
        return Point.CLIENT
    return Point.BRIDGE if any(part.copies for part in seen) else Point.BROKER


def resolve_names(events: Events, context: Context) -> None:
    """Topics that stand as numbers in messages get the names that subscriptions know them by."""
    policy, rows = events.policy, events.rows
    if policy.dialect.spec.topics.kind != "number":
        return
    message = rows[Col.MESSAGE]
    numbered = rows[Col.NUMBER] != NOTHING
    published = np.append(policy.publishes, False)[message] & numbered
    names = context.bindings.resolve(rows[Col.CLIENT], rows[Col.NUMBER], rows[Col.TIME])
    if policy.topics_are_renamed:
        passed_on = np.append(policy.forwards, False)[message] & numbered
        wanted = published | passed_on
        rows[Col.TOPIC] = np.where(wanted, names, rows[Col.TOPIC])
        rows[Col.NAME] = np.where(wanted, names, rows[Col.NAME])
    else:
        rows[Col.NAME] = np.where(published, names, rows[Col.NAME])


__all__ = ["Gathered", "Seen", "choose_brokers", "gather", "look", "resolve_names", "session_context"]

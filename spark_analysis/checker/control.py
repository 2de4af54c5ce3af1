"""Control data of a session: who subscribed to what and for how long, what numbers mean, who is connected.

Small beside the traffic: it is gathered part by part, put together once, and handed to every part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..schemas import SUBSCRIPTIONS
from .events import FROM_BROKER, NOTHING, TO_BROKER, Col, Events
from .kernels.answering import first_answers
from .kernels.hashing import hash_of, mix
from .policy import ACK, CREATE, SUBSCRIBE, UNSUBSCRIBE, Policy

Integers = NDArray[np.int64]
UNANSWERED = -1
SETTLES_NS = 10_000_000  # without ACKs: a subscription counts so long after it came
DOUBLE_NS = 10_000_000  # the same again within this time is the network's doing
LATEST_ANSWER = 1.5  # of the resend time
GOODBYE_NS = 1_000_000_000  # within which a broker answers the end of a session
CONNECTS, DISCONNECTS = "CONNECT", "DISCONNECT"

CONTROL = pa.schema(
    [(name, pa.int64()) for name in ("time", "frame", "capture", "broker", "client", "message", "side")]
    + [(name, pa.int64()) for name in ("filter", "name", "number", "key", "answered", "ip_id")]
    + [(name, pa.string()) for name in ("filter_text", "topic_text", "client_text")]
)


def control_rows(events: Events) -> pa.Table:
    """Everything that changes what is due later. `answered` is the time of the first ACK that it may have got."""
    rows = np.flatnonzero(_is_control(events))
    answered = _answer_times(events, rows)
    columns = (Col.TIME, Col.FRAME, Col.CAPTURE, Col.BROKER)
    numbers: list[Integers] = [events[column][rows] for column in columns]
    numbers += [_subscribers(events, rows), events[Col.MESSAGE][rows], events[Col.SIDE][rows]]
    numbers += [events[column][rows] for column in (Col.FILTER, Col.NAME, Col.NUMBER, Col.KEY)]
    numbers += [answered, events[Col.IP_ID][rows]]
    where = pa.array(rows)
    texts = [events.table.column(name).take(where).cast(pa.string()) for name in ("filter", "topic")]
    ends = pa.array([_subscriber_text(events, int(row)) for row in rows], pa.string())
    return pa.table([*(pa.array(one) for one in numbers), *texts, ends], schema=CONTROL)


def _is_control(events: Events) -> NDArray[np.bool_]:
    wanted = np.append(control_messages(events.policy), False)  # for those in error
    return wanted[events[Col.MESSAGE]] & (events[Col.SIDE] >= 0)


def control_messages(policy: Policy) -> NDArray[np.bool_]:
    """Which messages change what is due later."""
    wanted: NDArray[np.bool_] = np.isin(policy.meaning, (SUBSCRIBE, UNSUBSCRIBE, CREATE))
    if policy.has_sessions:
        named = np.array([name in (CONNECTS, DISCONNECTS) for name in policy.messages])
        binding = policy.answers[:, wanted].any(axis=1)  # the ACKs of what is wanted hold numbers
        wanted = wanted | named | binding
    return wanted


def _answer_times(events: Events, rows: Integers) -> Integers:
    """For each of the rows, when it was answered first."""
    policy, message, side = events.policy, events[Col.MESSAGE], events[Col.SIDE]
    is_ack = np.append(policy.meaning == ACK, False)[message] & (side == FROM_BROKER)
    asking = np.zeros(len(events), np.bool_)
    asking[rows] = side[rows] == TO_BROKER
    among = np.flatnonzero(is_ack | asking)
    talk = mix(events[Col.BROKER][among], events[Col.CLIENT][among])
    order = np.lexsort((np.arange(len(among)), talk))
    time = np.ascontiguousarray(events[Col.TIME][among])
    found = np.empty(len(among), np.int64)
    columns = [np.ascontiguousarray(events[column][among]) for column in (Col.MESSAGE, Col.KEY, Col.CONTENT)]
    within = int(policy.resend_ns * LATEST_ANSWER)
    message_of, key, content = columns
    first_answers(order, talk, time, message_of, key, content, policy.answers, policy.is_keyed, within, found)
    times = np.full(len(events), UNANSWERED, np.int64)
    times[among] = np.where(found >= 0, time[found], UNANSWERED)
    owed = np.append(policy.broker_acks, False)[message[rows]]
    return np.where(owed, times[rows], events[Col.TIME][rows] + SETTLES_NS)


def _subscribers(events: Events, rows: Integers) -> Integers:
    """Where forwards will go: to the client, or to the port that it names."""
    client, port = events[Col.CLIENT][rows], events[Col.PORT][rows]
    if events.policy.dialect.spec.broker.subscriber_port is None:
        return client
    return np.where(port == NOTHING, client, mix(events[Col.SRC_HOST][rows], port))


def _subscriber_text(events: Events, row: int) -> str:
    if events.policy.dialect.spec.broker.subscriber_port is None or events[Col.PORT][row] == NOTHING:
        return events.client(row)
    return f"{events.text('src', row)}:{events[Col.PORT][row]}"


@dataclass(frozen=True)
class Subscriptions:
    """How many copies each subscriber of each filter is owed, from when on: at least and at most.

    ``subscribers``: one row for each (broker, client, filter), in the order of filters: columns broker, client, filter
    (a number into ``filters``). Its changes are those from ``first[i]`` to ``first[i + 1]``.
    """

    filters: tuple[str, ...]
    subscribers: Integers  # (3, n)
    texts: tuple[str, ...]  # the client of each
    by_filter: Integers  # offsets into subscribers
    first: Integers
    changes: Integers  # (TIME, LEAST, MOST, FRAME, ENDED), sorted by time within a subscriber


def subscription_rows(subscriptions: Subscriptions, session: str) -> pa.Table:
    """From when to when each stood, as far as the capture tells."""
    rows = []
    for who, client in enumerate(subscriptions.texts):
        text = subscriptions.filters[int(subscriptions.subscribers[2, who])]
        since: tuple[int, int] | None = None
        for time, _, most, frame, ended in subscriptions.changes[
            :, subscriptions.first[who] : subscriptions.first[who + 1]
        ].T.tolist():
            if since is None and most:
                since = frame, time
            elif since is not None and ended:
                rows.append((session, client, text, *since, frame, time))
                since = None
        if since is not None:
            rows.append((session, client, text, *since, None, None))
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SUBSCRIPTIONS)
    return pa.table(
        [pa.array(list(one), kind.type) for one, kind in zip(columns, SUBSCRIPTIONS, strict=True)], SUBSCRIPTIONS
    )


@dataclass
class _Standing:
    """One subscription as its history is followed."""

    changes: list[tuple[int, int, int, int, int]]
    least: int = 0
    most: int = 0
    last: int = -(1 << 62)


def subscriptions_of(control: pa.Table, policy: Policy) -> Subscriptions:
    """From all control rows of a session, in the order of time."""
    standing: dict[tuple[str, int, int], _Standing] = defaultdict(lambda: _Standing([]))
    texts: dict[int, str] = {}
    created = _creations(control, policy)
    for row in _requests(control, policy, (SUBSCRIBE, UNSUBSCRIBE)):
        text = row["filter_text"]
        if text is None:
            continue
        texts[row["client"]] = row["client_text"]
        one = standing[text, row["broker"], row["client"]]
        if policy.meaning[row["message"]] == SUBSCRIBE:
            _subscribe(one, row, policy, created is None or created.get(text, 1 << 62) <= row["time"])
        else:
            _unsubscribe(one, row)
    return _as_arrays(standing, texts)


def _requests(control: pa.Table, policy: Policy, meanings: Iterable[int]) -> Iterable[dict[str, Any]]:
    codes = np.flatnonzero(np.isin(policy.meaning, list(meanings)))
    chosen = np.isin(control.column("message").to_numpy(), codes) & (control.column("side").to_numpy() == TO_BROKER)
    rows: list[dict[str, Any]] = control.filter(pa.array(chosen)).to_pylist()
    return rows


def _creations(control: pa.Table, policy: Policy) -> dict[str, int] | None:
    """When each topic was created first, where topics must be; None elsewhere."""
    if policy.dialect.spec.topics.kind != "number" or policy.has_sessions:
        return None
    created: dict[str, int] = {}
    bound: dict[tuple[int, int], str] = {}
    for row in _requests(control, policy, (CREATE,)):
        name = str(row["topic_text"])
        if row["answered"] == UNANSWERED:
            continue  # it may never have come
        if bound.setdefault((row["client"], row["number"]), name) == name:  # a number keeps its first name
            created.setdefault(name, row["time"])
    return created


def _subscribe(one: _Standing, row: dict[str, Any], policy: Policy, is_valid: bool) -> None:
    time, answered = row["time"], row["answered"]
    counts = policy.dialect.spec.broker.copies == "per-subscription"
    doubled = time - one.last < DOUBLE_NS
    one.most = one.most + 1 if counts else 1
    one.changes.append((time, one.least, one.most, row["frame"], 0))
    if answered != UNANSWERED and is_valid:
        if not counts:
            one.least = 1
        elif not doubled:
            one.least += 1
        one.changes.append((answered, one.least, one.most, row["frame"], 0))
    one.last = time


def _unsubscribe(one: _Standing, row: dict[str, Any]) -> None:
    one.least = 0
    one.changes.append((row["time"], 0, one.most, row["frame"], 0))
    if row["answered"] != UNANSWERED:
        one.most = 0
        one.changes.append((row["answered"], 0, 0, row["frame"], 1))
    one.last = -(1 << 62)


def _as_arrays(standing: dict[tuple[str, int, int], _Standing], texts: dict[int, str]) -> Subscriptions:
    keys = sorted(standing)
    filters = tuple(sorted({text for text, _, _ in keys}))
    number = {text: at for at, text in enumerate(filters)}
    subscribers = np.array([[broker, client, number[text]] for text, broker, client in keys], np.int64).reshape(-1, 3).T
    counts = np.array([len(standing[key].changes) for key in keys], np.int64)
    changes = [change for key in keys for change in sorted(standing[key].changes, key=lambda one: one[0])]
    return Subscriptions(
        filters,
        np.ascontiguousarray(subscribers),
        tuple(texts[client] for _, _, client in keys),
        np.searchsorted(subscribers[2], np.arange(len(filters) + 1)).astype(np.int64),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.ascontiguousarray(np.array(changes, np.int64).reshape(-1, 5).T),
    )


@dataclass(frozen=True)
class Bindings:
    """Which topic a number stands for: sorted by who uses it and the number as one key, then by time."""

    keys: Integers
    times: Integers
    names: Integers
    texts: dict[int, str]

    def resolve(self, owners: Integers, numbers: Integers, times: Integers) -> Integers:
        """The names behind numbers, 0 where none is known."""
        if not len(self.keys):
            return np.zeros(len(owners), np.int64)
        wanted = mix(owners, numbers)
        found = np.zeros(len(owners), np.int64)
        begin, end = np.searchsorted(self.keys, wanted, "left"), np.searchsorted(self.keys, wanted, "right")
        for step in range(int((end - begin).max(initial=0))):
            at = np.minimum(begin + step, len(self.keys) - 1)
            holds = (begin + step < end) & (self.times[at] <= times)
            found = np.where(holds, self.names[at], found)
        return found


def bindings_of(control: pa.Table, policy: Policy) -> Bindings:
    """Numbers are bound by creations; in sessions by what the broker answers, too."""
    made: list[tuple[int, int, int, str]] = []  # owner, number, time, name
    asked: dict[tuple[int, int], str] = {}
    bound: set[tuple[int, int]] = set()
    for row in control.to_pylist() if policy.dialect.spec.topics.kind == "number" else ():
        meaning, owner, number = policy.meaning[row["message"]], row["client"], row["number"]
        name = row["topic_text"] if meaning == CREATE else row["filter_text"]
        if meaning == ACK:
            name = asked.pop((owner, row["key"]), None) if row["side"] == FROM_BROKER else None
        elif policy.has_sessions and row["side"] == TO_BROKER:
            asked[owner, row["key"]] = name
            continue
        if name is None or number in (NOTHING, None) or (policy.has_sessions and number == 0):
            continue
        if not policy.has_sessions and ((owner, number) in bound or meaning != CREATE):
            continue  # a number keeps its first name
        bound.add((owner, number))
        made.append((owner, number, row["time"], name))
    return _as_bindings(made)


def _as_bindings(made: list[tuple[int, int, int, str]]) -> Bindings:
    owners = np.array([one[0] for one in made], np.int64)
    numbers = np.array([one[1] for one in made], np.int64)
    times = np.array([one[2] for one in made], np.int64)
    texts = {hash_of(text): text for text in {one[3] for one in made}}
    by_text = {text: number for number, text in texts.items()}
    names = np.array([by_text[one[3]] for one in made], np.int64)
    keys = mix(owners, numbers)
    order = np.lexsort((times, keys))
    return Bindings(keys[order], times[order], names[order], texts)


def connected_of(control: pa.Table, policy: Policy) -> dict[int, tuple[Integers, NDArray[np.bool_]]]:
    """By client: times at which it connects (once that is answered) or disconnects. Empty without sessions."""
    if not policy.has_sessions:
        return {}
    changes: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    left: dict[int, int] = {}
    for row in control.to_pylist():
        name, client, time = policy.messages[row["message"]], row["client"], row["time"]
        if row["side"] == TO_BROKER and name == CONNECTS and row["answered"] != UNANSWERED:
            changes[client].append((row["answered"], True))
        elif row["side"] == TO_BROKER and name == DISCONNECTS:
            changes[client].append((time, False))
            left[client] = time
        elif name == DISCONNECTS and time - left.get(client, -GOODBYE_NS) >= GOODBYE_NS:
            # The broker turns away a client that did not leave: it has forgotten all sessions, as after a restart.
            for one in changes.values():
                one.append((time, False))
    return {
        client: (np.array([time for time, _ in found], np.int64), np.array([now for _, now in found], np.bool_))
        for client, found in changes.items()
    }

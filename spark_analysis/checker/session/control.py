"""Control data of a session: who subscribed to what and for how long, what numbers mean, who is connected.

`control_rows` is a fold by client: control messages and the ACKs that they may have got give one row a control message.
What is known of the whole session (`Subscriptions`, `Bindings`, `Connections`) is made from these rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...tables.schemas import SUBSCRIPTIONS
from ..kernels.answering import first_answers
from ..kernels.expecting import Lists
from ..kernels.hashing import hashes, mix
from ..kernels.subscribing import CHANGE_ENDED, CHANGE_ID, CHANGE_MOST, CHANGE_TIME, CHANGED, follow_subscriptions
from .events import FROM_BROKER, NOTHING, TO_BROKER, Col, Events, capture_and_frame, endpoint_text
from .grouped import Grouped
from .policy import ACK, CONNECTS, CREATE, DISCONNECTS, STATUS, SUBSCRIBE, UNSUBSCRIBE, Policy

Integers = NDArray[np.int64]
UNANSWERED = -1
NEVER = 1 << 62
SETTLES_NS = 10_000_000  # without ACKs: a subscription counts so long after it came
LATEST_ANSWER, LATEST_NAMED = 1.5, 6  # resend times; the second where ACKs name what they answer
GOODBYE_NS = 1_000_000_000  # within which a broker answers the end of a session
# A status message is a sentence of the broker's own: with one of these words in it, it says no.
REFUSAL = re.compile(
    r"\b(not|no such|cannot|can't|fail\w*|error|invalid|unknown|unable|refus\w*|reject\w*|denied)\b", re.I
)
OCCUPIED = re.compile(r"\b(exists?|already|taken|in use)\b", re.I)  # of a topic or its number


CONTROL = pa.schema(
    [(name, pa.int64()) for name in ("time", "id", "broker", "client", "message", "side")]
    + [(name, pa.int64()) for name in ("number", "key", "answered", "refused")]
    + [(name, pa.string()) for name in ("filter_text", "topic_text", "client_text")]
)

# What topic numbers mean, and who is connected: made by client, and needed for all topics.
BINDINGS = pa.schema([(name, pa.int64()) for name in ("owner", "number", "time")] + [("name", pa.string())])
# ``client`` is null where the broker restarts; ``asked`` and ``id`` are of the message that shows it.
CONNECTIONS = pa.schema(
    [("client", pa.int64()), ("time", pa.int64()), ("now", pa.bool_()), ("asked", pa.int64()), ("id", pa.int64())]
)


def control_rows(events: Events) -> pa.Table:
    """Everything that changes what is due later. `answered` is the time of the first ACK that it may have got;
    `refused` is 1 if that or what follows it says no, 0 if it says yes, -1 if nothing tells."""
    rows = np.flatnonzero(_is_control(events))
    numbers: list[Integers] = [events[column][rows] for column in (Col.TIME, Col.ID, Col.BROKER)]
    numbers += [_subscribers(events, rows), events[Col.MESSAGE][rows], events[Col.SIDE][rows]]
    numbers += [events[column][rows] for column in (Col.NUMBER, Col.KEY)]
    numbers += _answers(events, rows)
    where = pa.array(rows)
    texts = [events.table.column(name).take(where).cast(pa.string()).combine_chunks() for name in ("filter", "topic")]
    return pa.table([*(pa.array(one) for one in numbers), *texts, _subscriber_texts(events, rows)], schema=CONTROL)


def control_and_acks(events: Events) -> NDArray[np.bool_]:
    """Which events `control_rows` looks at: control messages, and ACKs that may answer one."""
    policy, message = events.policy, events[Col.MESSAGE]
    control = control_messages(policy)
    answers = policy.answers[:, control].any(axis=1) & (policy.meaning == ACK)
    answers |= (policy.meaning == STATUS) | _is_refusal(policy)
    wanted: NDArray[np.bool_] = np.append(control | answers, False)[message] & (events[Col.SIDE] >= 0)
    return wanted


def _is_refusal(policy: Policy) -> NDArray[np.bool_]:
    """Messages that stand in place of an ACK and say no."""
    return np.array([name == policy.dialect.spec.broker.nak for name in policy.messages])


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


def _answers(events: Events, rows: Integers) -> list[Integers]:
    """For each of the rows, when it was answered first, and whether it was refused."""
    found = _first_answers(events, rows)
    owed = np.append(events.policy.broker_acks, False)[events[Col.MESSAGE][rows]]
    time = events[Col.TIME]
    answered = np.where(owed, np.where(found >= 0, time[found], UNANSWERED), time[rows] + SETTLES_NS)
    code = np.where(found >= 0, events[Col.ACCEPTED][found], -1)
    refused = np.where(code >= 0, 1 - code, -1)
    told = _told_by_status(events, rows)
    return [answered, np.where(told >= 0, told, refused)]


def _told_by_status(events: Events, rows: Integers) -> Integers:
    """What status messages and NAKs say of the rows: the first behind a row, before its client asks for more, and not
    later than an ACK would come."""
    policy, message, side = events.policy, events[Col.MESSAGE], events[Col.SIDE]
    told = np.full(len(rows), -1, np.int64)
    status, nak, creates = policy.meaning == STATUS, _is_refusal(policy), policy.meaning == CREATE
    if not (status | nak).any():
        return told
    says = np.flatnonzero(np.append(status | nak, False)[message] & (side == FROM_BROKER))
    talk = mix(events[Col.BROKER], events[Col.CLIENT])
    asking = rows[side[rows] == TO_BROKER]
    by_talk = Grouped(talk[says], says)
    of_talk = Grouped(talk[asking], asking)
    texts, time, within = events.table.column("payload"), events[Col.TIME], latest_answer_ns(policy)
    for at, row in enumerate(rows.tolist()):
        behind = by_talk.of(int(talk[row]))
        behind = behind[np.searchsorted(behind, row) :][:1]
        later = of_talk.of(int(talk[row]))
        later = later[np.searchsorted(later, row, "right") :][:1]
        behind = behind[time[behind] - time[row] <= within]
        if side[row] == TO_BROKER and len(behind) and not (len(later) and later[0] < behind[0]):
            text = texts[int(behind[0])].as_py() or ""
            is_no = nak[message[behind[0]]] or REFUSAL.search(text) is not None
            told[at] = int(is_no or (creates[message[row]] and OCCUPIED.search(text) is not None))
    return told


def latest_answer_ns(policy: Policy) -> int:
    """How long after a request its answer may come."""
    is_named = policy.is_keyed[policy.meaning == ACK].all()
    return int(policy.resend_ns * (LATEST_NAMED if is_named else LATEST_ANSWER))


def _first_answers(events: Events, rows: Integers) -> Integers:
    """For each of the rows, the row of its first answer, -1 for none."""
    policy, message, side = events.policy, events[Col.MESSAGE], events[Col.SIDE]
    is_ack = np.append(policy.meaning == ACK, False)[message] & (side == FROM_BROKER)
    asking = np.zeros(len(events), np.bool_)
    asking[rows] = side[rows] == TO_BROKER
    among = np.flatnonzero(is_ack | asking)
    talk = mix(events[Col.BROKER][among], events[Col.CLIENT][among])
    order = np.argsort(talk, kind="stable")
    time = np.ascontiguousarray(events[Col.TIME][among])
    found = np.empty(len(among), np.int64)
    message_of, key = (np.ascontiguousarray(events[column][among]) for column in (Col.MESSAGE, Col.KEY))
    texts = mix(events[Col.TOPIC_TEXT][among], events[Col.FILTER][among])
    content = mix(mix(texts, message_of), np.ascontiguousarray(events[Col.NUMBER][among]))
    within = latest_answer_ns(policy)
    first_answers(order, talk, time, message_of, key, content, policy.answers, policy.is_keyed, within, found)
    answers = np.full(len(events), UNANSWERED, np.int64)
    answers[among] = np.where(found >= 0, among[found], UNANSWERED)
    return answers[rows]


def _subscribers(events: Events, rows: Integers) -> Integers:
    """Where forwards will go: to the client, or to the port that it names."""
    client, port = events[Col.CLIENT][rows], events[Col.PORT][rows]
    if events.policy.dialect.spec.broker.subscriber_port is None:
        return client
    return np.where(port == NOTHING, client, mix(events[Col.SRC_HOST][rows], port))


def _subscriber_texts(events: Events, rows: Integers) -> pa.Array:
    """`_subscribers` as text; each distinct one is written once."""
    found, first, where = np.unique(_subscribers(events, rows), return_index=True, return_inverse=True)
    texts = [_subscriber_text(events, int(row)) for row in rows[first]]
    return pa.array(texts, pa.string()).take(pa.array(where)) if len(found) else pa.array([], pa.string())


def _subscriber_text(events: Events, row: int) -> str:
    if events.policy.dialect.spec.broker.subscriber_port is None or events[Col.PORT][row] == NOTHING:
        return events.client(row)
    return endpoint_text(events.text("src", row) or "?", int(events[Col.PORT][row]))


@dataclass(frozen=True)
class Subscriptions:
    """How many copies each subscriber of each filter is owed, from when on: at least and at most.

    ``subscribers``: one row for each (broker, client, filter), in the order of filters: columns broker, client, filter
    (a number into ``filters``). Its changes are those from ``first[i]`` to ``first[i + 1]``.
    """

    filters: tuple[str, ...]
    subscribers: Integers  # (3, n)
    texts: tuple[str, ...]  # the client of each
    first: Integers
    changes: Integers  # (TIME, LEAST, MOST, ID, ENDED), sorted by time within a subscriber
    others: Mapping[int, str] = field(default_factory=dict)  # clients that are named elsewhere

    @cached_property
    def clients(self) -> dict[int, str]:
        """Texts of all clients."""
        return {**self.others, **dict(zip(self.subscribers[1].tolist(), self.texts, strict=True))}

    @cached_property
    def lists(self) -> Lists:
        """Who may be there at a time. A subscriber is, from its first change on; if the last one ends all of its copies
        for good, until then."""
        begins, last = self.changes[CHANGE_TIME, self.first[:-1]], self.first[1:] - 1
        over = self.changes[CHANGE_MOST, last] == 0
        ends = np.where(over, self.changes[CHANGE_TIME, last], self.changes[CHANGE_TIME].max(initial=0))
        return Lists.of(self.subscribers[2].copy(), begins, ends, len(self.filters))

    def naming(self, filters: Iterable[str], clients: Mapping[int, str]) -> Subscriptions:
        """The same, with filters and clients of which only the names are known."""
        more = tuple(sorted(set(filters) - set(self.filters)))
        return replace(self, filters=(*self.filters, *more), others=clients)


def no_subscriptions() -> Subscriptions:
    return Subscriptions((), np.zeros((3, 0), np.int64), (), np.zeros(1, np.int64), np.zeros((CHANGED, 0), np.int64))


def subscription_rows(subscriptions: Subscriptions, session: str, captures: Sequence[str]) -> pa.Table:
    """One row per subscription interval, as far as the capture tells."""
    rows = []
    for who, client in enumerate(subscriptions.texts):
        text = subscriptions.filters[int(subscriptions.subscribers[2, who])]
        since: tuple[int, int] | None = None
        begin, end = subscriptions.first[who], subscriptions.first[who + 1]
        for change in subscriptions.changes[:, begin:end].T.tolist():
            time, most, ended = change[CHANGE_TIME], change[CHANGE_MOST], change[CHANGE_ENDED]
            if since is None and most:
                since = change[CHANGE_ID], time
            elif since is not None and ended:
                rows.append((session, client, text, *since, change[CHANGE_ID], time))
                since = None
        if since is not None:
            rows.append((session, client, text, *since, None, None))
    made = [
        (session, client, text, _place(begin, captures), since, _place(end, captures), until)
        for session, client, text, begin, since, end, until in rows
    ]
    columns = list(zip(*made, strict=True)) if made else [()] * len(SUBSCRIPTIONS)
    return pa.table(
        [pa.array(list(one), kind.type) for one, kind in zip(columns, SUBSCRIPTIONS, strict=True)], SUBSCRIPTIONS
    )


def _place(datagram: int | None, captures: Sequence[str]) -> dict[str, object] | None:
    if datagram is None:
        return None
    capture, frame = capture_and_frame(datagram)
    return {"capture": captures[capture], "frame": frame}


def subscriptions_of(control: pa.Table, policy: Policy) -> Subscriptions:
    """From all control rows of a session, given in any order."""
    wanted = _requests(control, policy, (SUBSCRIBE, UNSUBSCRIBE))
    wanted = wanted.filter(pc.is_valid(wanted.column("filter_text")))
    wanted = wanted.filter(pc.not_equal(wanted.column("refused"), 1))  # nothing has changed then
    if not len(wanted):
        return no_subscriptions()
    texts = wanted.column("filter_text").combine_chunks().dictionary_encode()
    filters = sorted(texts.dictionary.to_pylist())
    number = {text: at for at, text in enumerate(filters)}
    of_text = np.array([number[text] for text in texts.dictionary.to_pylist()], np.int64)
    which = of_text[texts.indices.to_numpy()]
    time, ids, broker, client, answered, message = (
        wanted.column(name).to_numpy() for name in ("time", "id", "broker", "client", "answered", "message")
    )
    order = np.lexsort((ids, time, client, broker, which))
    which, time, ids, broker, client, answered = (one[order] for one in (which, time, ids, broker, client, answered))
    starts = np.append(True, (which[1:] != which[:-1]) | (broker[1:] != broker[:-1]) | (client[1:] != client[:-1]))
    group = np.cumsum(starts) - 1
    created = _creations(control, policy)
    valid = np.ones(len(time), np.bool_)
    if created is not None:
        since = np.array([created.get(text, NEVER) for text in filters], np.int64)
        valid = since[which] <= time
    is_subscribe = policy.meaning[message[order]] == SUBSCRIBE
    out = np.empty((CHANGED, 2 * len(time)), np.int64)
    owner = np.empty(2 * len(time), np.int64)
    counts = policy.dialect.spec.broker.copies == "per-subscription"
    made = follow_subscriptions(group, is_subscribe, time, ids, answered, valid, counts, out, owner)
    out, owner = out[:, :made], owner[:made]
    by_time = np.lexsort((np.arange(made), out[CHANGE_TIME], owner))
    first = np.flatnonzero(starts)
    ends = wanted.column("client_text").take(pa.array(order[first])).to_pylist()
    return Subscriptions(
        tuple(filters),
        np.ascontiguousarray(np.stack([broker[first], client[first], which[first]])),
        tuple(ends),
        np.searchsorted(owner[by_time], np.arange(len(first) + 1)).astype(np.int64),
        np.ascontiguousarray(out[:, by_time]),
    )


def in_force(control: pa.Table, policy: Policy, time_ns: int) -> pa.Table:
    """Without subscriptions that were over before this time, and what was settled anew before it; the rows are in order
    of a subscriber. What is due later stays the same."""
    rows = _requests(control, policy, (SUBSCRIBE, UNSUBSCRIBE))
    ids, time, answered = (rows.column(name).to_numpy() for name in ("id", "time", "answered"))
    counts = policy.dialect.spec.broker.copies == "per-subscription"
    is_subscribe = policy.meaning[rows.column("message").to_numpy()] == SUBSCRIBE
    settled = (answered != UNANSWERED) & (time < time_ns) & (~is_subscribe | (not counts))
    keys = zip(*(rows.column(name).to_pylist() for name in ("broker", "client", "filter_text")), strict=True)
    order, last = np.lexsort((ids, time)), {}
    keyed = list(keys)
    for row in order[settled[order]].tolist():
        last[keyed[row]] = row
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    over = np.zeros(len(order), np.bool_)
    for row, key in enumerate(keyed):
        if key in last:
            over[row] = place[row] < place[last[key]] or (row == last[key] and not is_subscribe[row])
    return control.filter(pc.invert(pc.is_in(control.column("id"), pa.array(ids[over]))))


def _requests(control: pa.Table, policy: Policy, meanings: Iterable[int]) -> pa.Table:
    codes = np.flatnonzero(np.isin(policy.meaning, list(meanings)))
    chosen = np.isin(control.column("message").to_numpy(), codes) & (control.column("side").to_numpy() == TO_BROKER)
    return control.filter(pa.array(chosen))


def in_order(control: pa.Table) -> pa.Table:
    """By time; what came at once in the order of the captures."""
    return control.take(pa.array(np.lexsort((control.column("id").to_numpy(), control.column("time").to_numpy()))))


def _creations(control: pa.Table, policy: Policy) -> dict[str, int] | None:
    """When each topic was created first, where topics must be; None elsewhere."""
    if policy.dialect.spec.topics.kind != "number" or policy.has_sessions:
        return None
    created: dict[str, int] = {}
    bound: dict[tuple[int, int], str] = {}
    for row in in_order(_requests(control, policy, (CREATE,))).to_pylist():
        name = str(row["topic_text"])
        if row["answered"] == UNANSWERED or row["refused"] == 1:
            continue  # it may never have come
        # A number keeps its first name, unless the broker says otherwise.
        if row["refused"] == 0 or bound.setdefault((row["client"], row["number"]), name) == name:
            created.setdefault(name, row["time"])
    return created


@dataclass(frozen=True)
class Bindings:
    """Which topic a number stands for: sorted by who uses it and the number as one key, then by time."""

    keys: Integers
    times: Integers
    names: Integers
    texts: dict[int, str]
    owners: Integers  # who uses each

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

    @classmethod
    def of(cls, rows: pa.Table) -> Bindings:
        """From rows of ``BINDINGS``; those of an owner in order."""
        texts = rows.column("name").combine_chunks()
        owners, numbers, times = (rows.column(name).to_numpy() for name in ("owner", "number", "time"))
        keys, names = mix(owners, numbers), hashes(texts)
        order = np.lexsort((times, keys))
        distinct = texts.unique()
        by_hash = dict(zip(hashes(distinct).tolist(), distinct.to_pylist(), strict=True))
        return cls(keys[order], times[order], names[order], by_hash, owners[order])


def no_bindings() -> Bindings:
    return Bindings.of(BINDINGS.empty_table())


def binding_rows(control: pa.Table, policy: Policy) -> pa.Table:
    """``BINDINGS`` of some clients. Numbers are bound by creations; in sessions by what the broker answers, too."""
    made: list[tuple[int, int, int, str]] = []
    asked: dict[tuple[int, int], str] = {}
    bound: set[tuple[int, int]] = set()
    for row in in_order(control).to_pylist() if policy.dialect.spec.topics.kind == "number" else ():
        meaning, owner, number = policy.meaning[row["message"]], row["client"], row["number"]
        name = row["topic_text"] if meaning == CREATE else row["filter_text"]
        if meaning == ACK:
            name = asked.pop((owner, row["key"]), None) if row["side"] == FROM_BROKER else None
        elif policy.has_sessions and row["side"] == TO_BROKER:
            asked[owner, row["key"]] = name
            continue
        if name is None or number in (NOTHING, None) or (policy.has_sessions and number == 0):
            continue
        is_first = (owner, number) not in bound
        if not policy.has_sessions and (meaning != CREATE or not (is_first or row["refused"] == 0)):
            continue  # a number keeps its first name, unless the broker says otherwise
        bound.add((owner, number))
        made.append((owner, number, row["time"], name))
    columns = list(zip(*made, strict=True)) if made else [()] * len(BINDINGS)
    return pa.table([pa.array(list(one), kind.type) for one, kind in zip(columns, BINDINGS, strict=True)], BINDINGS)


def connection_rows(control: pa.Table, policy: Policy) -> pa.Table:
    """``CONNECTIONS`` of some clients: they connect, once that is answered, or disconnect. None without sessions."""
    made: list[tuple[int | None, int, bool, int, int]] = []
    left: dict[int, int] = {}
    for row in in_order(control).to_pylist() if policy.has_sessions else ():
        name, client, time = policy.messages[row["message"]], row["client"], row["time"]
        if row["side"] == TO_BROKER and name == CONNECTS and row["answered"] != UNANSWERED and row["refused"] != 1:
            made.append((client, row["answered"], True, time, row["id"]))
        elif row["side"] == TO_BROKER and name == DISCONNECTS:
            made.append((client, time, False, time, row["id"]))
            left[client] = time
        elif name == DISCONNECTS and time - left.get(client, -GOODBYE_NS) >= GOODBYE_NS:
            # The broker turns away a client that did not leave: it has forgotten all sessions, as after a restart.
            made.append((None, time, False, time, row["id"]))
    columns = list(zip(*made, strict=True)) if made else [()] * len(CONNECTIONS)
    arrays = [pa.array(list(one), kind.type) for one, kind in zip(columns, CONNECTIONS, strict=True)]
    return pa.table(arrays, CONNECTIONS)


@dataclass(frozen=True)
class Connections:
    """By client (sorted) when it connects and disconnects: from ``first[i]`` to ``first[i + 1]``."""

    clients: Integers
    first: Integers
    times: Integers
    states: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: pa.Table) -> Connections:
        """From rows of ``CONNECTIONS``, in any order. After a restart of the broker nobody is connected who was."""
        restarts = rows.filter(pc.is_null(rows.column("client"))).to_pylist()
        own = rows.filter(pc.is_valid(rows.column("client")))
        client, time, asked, ids = (own.column(name).to_numpy() for name in ("client", "time", "asked", "id"))
        now = own.column("now").to_numpy(zero_copy_only=False)
        order = np.lexsort((ids, asked, client))
        starts = order[np.flatnonzero(np.append(True, client[order][1:] != client[order][:-1]))] if len(own) else order
        for one in restarts:
            before = starts[
                (asked[starts] < one["time"]) | ((asked[starts] == one["time"]) & (ids[starts] < one["id"]))
            ]
            count = len(before)
            client, time = np.append(client, client[before]), np.append(time, np.full(count, one["time"]))
            asked, ids = np.append(asked, np.full(count, one["time"])), np.append(ids, np.full(count, one["id"]))
            now = np.append(now, np.zeros(count, np.bool_))
        order = np.lexsort((ids, asked, client))
        clients, first = np.unique(client[order], return_index=True)
        return cls(clients, np.append(first, len(order)), time[order], now[order])

    def of_client(self, client: int) -> tuple[Integers, NDArray[np.bool_]]:
        place = int(np.searchsorted(self.clients, client))
        if place == len(self.clients) or self.clients[place] != client:
            return self.times[:0], self.states[:0]
        mine = slice(self.first[place], self.first[place + 1])
        return self.times[mine], self.states[mine]


def no_connections() -> Connections:
    return Connections.of(CONNECTIONS.empty_table())

"""First look at the pieces of a session: what has to be known of the whole before any part can be judged.

A piece tells who talked to whom, and hands over the few rows that matter later: subscriptions and the like, the ACKs
near them, and the last message of each topic that was to be retained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .brokers import Brokers
from .context import RETAINED, Context, Point
from .control import LATEST_ANSWER, bindings_of, connected_of, control_messages, control_rows, subscriptions_of
from .events import NOTHING, TO_BROKER, Col, Events, events_of, messages_of, rows_of, with_parties
from .pieces import Batches
from .policy import ACK, PUBLISH, Policy

NEAR_EDGE_NS = 200_000_000  # ACKs so soon behind the begin of a piece may answer what stands in the one before
# Who said what to whom, how often, and when first; -1 is a message in error.
PAIRS = pa.schema(
    [
        ("src", pa.string()),
        ("sport", pa.int64()),
        ("dst", pa.string()),
        ("dport", pa.int64()),
        ("message", pa.int64()),
        ("count", pa.int64()),
        ("first", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Seen:
    """Of one dialect in one piece."""

    pairs: pa.Table
    rows: pa.Table
    datagrams: int
    copies: int
    times: tuple[int, int] | None


def look(batches: Batches, policy: Policy) -> Seen:
    """Whole columns at once; the rows that are kept are few unless the traffic is all control."""
    table = rows_of(batches, policy.dialect.name)
    copies = sum(len(batch) - batch.column("copy_of").null_count for batch in batches)
    if not len(table):
        return Seen(PAIRS.empty_table(), table, 0, copies, None)
    message, time = messages_of(table, policy), table.column("time_ns").to_numpy()
    kept = _matters(policy, message, time) | _is_retained(policy, table, message)
    rows = table.filter(pa.array(kept))
    return Seen(_pairs(table, message), rows, len(table), copies, (int(time.min()), int(time.max())))


def _pairs(table: pa.Table, message: NDArray[np.int64]) -> pa.Table:
    src, dst = (_coded(table.column(name).combine_chunks()) for name in ("src", "dst"))
    grouped = (
        pa.table(
            {
                "src": src.indices,
                "sport": table.column("sport"),
                "dst": dst.indices,
                "dport": table.column("dport"),
                "message": message,
                "first": table.column("time_ns"),
            }
        )
        .group_by(["src", "sport", "dst", "dport", "message"], use_threads=False)
        .aggregate([("first", "min"), ("first", "count")])
    )
    columns = [
        src.dictionary.take(grouped.column("src").combine_chunks()),
        grouped.column("sport"),
        dst.dictionary.take(grouped.column("dst").combine_chunks()),
        grouped.column("dport"),
        grouped.column("message"),
        grouped.column("first_count"),
        grouped.column("first_min"),
    ]
    return pa.table([one.cast(kind.type) for one, kind in zip(columns, PAIRS, strict=True)], schema=PAIRS)


def _coded(column: pa.Array) -> pa.DictionaryArray:
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def _matters(policy: Policy, message: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Control messages, and the ACKs within the time in which they are answered."""
    control = np.append(control_messages(policy), False)[message]
    acks = np.append(policy.meaning == ACK, False)[message]
    asked = np.sort(time[control])
    near = time < time.min() + NEAR_EDGE_NS
    if len(asked):
        place = np.searchsorted(asked, time, "right") - 1
        near |= (place >= 0) & (time - asked[np.maximum(place, 0)] <= policy.resend_ns * LATEST_ANSWER)
    wanted: NDArray[np.bool_] = control | (acks & near)
    return wanted


def _is_retained(policy: Policy, table: pa.Table, message: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The last message of each topic and receiver that was to be retained."""
    last = np.zeros(len(table), np.bool_)
    if policy.dialect.spec.broker.retained == "none" or policy.has_sessions:
        return last
    flagged = table.column("retain").fill_null(False).to_numpy()
    rows = np.flatnonzero(flagged & np.append(policy.meaning == PUBLISH, False)[message])
    if len(rows):
        where = pa.array(rows)
        names = ("topic", "dst", "dport")
        keys = {name: table.column(name).take(where).combine_chunks() for name in names}
        keys["dst"] = _coded(keys["dst"]).indices
        grouped = pa.table({**keys, "row": where}).group_by(list(names), use_threads=False).aggregate([("row", "max")])
        last[grouped.column("row_max").to_numpy()] = True
    return last


@dataclass(frozen=True)
class Known:
    """What all pieces together say; a context for each part is cut from it."""

    context: Context
    retained: pa.Table
    starts_late: bool

    def part(self, own: tuple[int, int]) -> Context:
        before = self.retained.filter(pc.less(self.retained.column("time"), own[0]))
        return self.context.of_part(own, before)


def know(policy: Policy, brokers: Brokers, seen: Sequence[Seen], captures: Sequence[str]) -> Known:
    """Put the pieces' first looks together."""
    rows = pa.concat_tables([_plain(one.rows) for one in seen if len(one.rows)] or [_plain(seen[0].rows)])
    with_dialect = rows.append_column("dialect", pa.repeat(policy.dialect.name, len(rows)))
    whole = with_dialect.append_column("copy_of", pa.nulls(len(rows), pa.int64()))
    events = with_parties(events_of(whole.sort_by("time_ns"), policy, captures), brokers.endpoints, brokers.hosts)
    control = control_rows(events)
    times = [time for one in seen for time in one.times or ()]
    pairs = pa.concat_tables([one.pairs for one in seen])
    context = Context(
        policy,
        brokers,
        _point(pairs, brokers, any(one.copies for one in seen)),
        min(times),
        max(times),
        (-(1 << 62), 1 << 62),
        subscriptions_of(control, policy),
        bindings_of(control, policy),
        connected_of(control, policy),
    )
    return Known(context, _retained(events), _starts_late(pairs, policy, brokers))


def _plain(table: pa.Table) -> pa.Table:
    """Without dictionaries, so that those of several pieces go together."""
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _retained(events: Events) -> pa.Table:
    is_publish = np.append(events.policy.meaning == PUBLISH, False)[events[Col.MESSAGE]]
    rows = np.flatnonzero(is_publish & (events[Col.RETAIN] == 1) & (events[Col.SIDE] == TO_BROKER))
    columns = (Col.NAME, Col.TOPIC, Col.PAYLOAD, Col.TIME, Col.FRAME, Col.CAPTURE, Col.BROKER)
    texts = events.table.column("topic").take(pa.array(rows)).cast(pa.string())
    return pa.table([*(pa.array(events[column][rows]) for column in columns), texts], schema=RETAINED)


def _point(pairs: pa.Table, brokers: Brokers, has_copies: bool) -> Point:
    """Many hosts talk with the broker: at the broker, or, if frames are there more than once, on a bridge."""
    ends = {(row["src"], row["dst"]) for row in pairs.select(["src", "dst"]).to_pylist()}
    if all(src == dst for src, dst in ends):
        return Point.BROKER
    others = {host for pair in ends for host in pair} - {host for host, _ in brokers.ends}
    if len(others) < 2:
        return Point.CLIENT
    return Point.BRIDGE if has_copies else Point.BROKER


def _starts_late(pairs: pa.Table, policy: Policy, brokers: Brokers) -> bool:
    """Several clients get messages before they have said anything; or the first datagram of all is an ACK."""
    by_host = policy.dialect.spec.broker.subscriber_port is not None  # they listen elsewhere than they speak
    ends, hosts = set(brokers.ends), {host for host, _ in brokers.ends}
    spoke: dict[object, int] = {}
    heard: dict[object, int] = {}
    first: tuple[int, bool] = (1 << 62, False)
    for row in pairs.to_pylist():
        if row["message"] < 0:
            continue
        src, dst = (row["src"], row["sport"]), (row["dst"], row["dport"])
        from_broker = src in ends
        first = min(first, (row["first"], from_broker and policy.meaning[row["message"]] == ACK))
        if dst in ends:
            key = src[0] if by_host else src
            spoke[key] = min(spoke.get(key, 1 << 62), row["first"])
        elif policy.forwards[row["message"]] and (from_broker or src[0] in hosts):
            key = dst[0] if by_host else dst
            heard[key] = min(heard.get(key, 1 << 62), row["first"])
    unprompted = [client for client, time in heard.items() if time < spoke.get(client, 1 << 62)]
    return len(unprompted) >= 2 or first[1]


def resolve_names(events: Events, context: Context) -> None:
    """Topics that stand as numbers in messages get the names that subscriptions know them by."""
    policy, columns = events.policy, events.columns
    if policy.dialect.spec.topics.kind != "number":
        return
    message = columns[Col.MESSAGE]
    numbered = columns[Col.NUMBER] != NOTHING
    wanted = np.append(policy.publishes, False)[message] & numbered
    names = context.bindings.resolve(columns[Col.CLIENT], columns[Col.NUMBER], columns[Col.TIME])
    if policy.topics_are_renamed:
        wanted |= np.append(policy.forwards, False)[message] & numbered
        columns[Col.TOPIC] = np.where(wanted, names, columns[Col.TOPIC])
    columns[Col.NAME] = np.where(wanted, names, columns[Col.NAME])

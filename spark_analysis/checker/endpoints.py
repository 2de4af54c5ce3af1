"""Endpoints of a session: which is the broker, where the capture was taken, whether it starts late.

All of it follows from a small table, who said what to whom (`PAIRS`), which is made unit by unit and added up.

A subscription goes to the broker, broker-only messages come from it, and so do ACKs where clients acknowledge nothing.
Where no message tells, the dialect's broker port does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pcap_tools.errors import UsageError

from .events import endpoint_hash, endpoint_text, messages_of
from .kernels.hashing import hash_of
from .policy import ACK, CREATE, SUBSCRIBE, UNSUBSCRIBE, Policy

STRONG, WEAK = 100, 1
NEVER = 1 << 62
# Who said what to whom, how often, and when first; message -1 is a datagram in error. One more row has no endpoints:
# it tells in ``first`` and ``last`` the times of the unit, and how many datagrams the capture holds twice or cut short.
PAIRS = pa.schema(
    [("src", pa.string()), ("sport", pa.int64()), ("dst", pa.string()), ("dport", pa.int64())]
    + [(name, pa.int64()) for name in ("message", "count", "first", "last", "copies", "cut")]
)


class Point(StrEnum):
    """Where the capture was taken, as far as it shows."""

    BROKER = "broker"  # what is seen has arrived at the broker, and all that the broker sent is seen
    BRIDGE = "bridge"  # between all of them: what is seen was sent, but may be lost behind
    CLIENT = "client"  # at one client: what goes to the broker may be lost, others are not seen


def pairs_of(table: pa.Table, policy: Policy, copies: int) -> pa.Table:
    """``PAIRS`` of rows of one dialect (`events.rows_of`)."""
    message = messages_of(table, policy)
    src, dst = (_coded(table.column(name).combine_chunks()) for name in ("src", "dst"))
    keys = {"src": src.indices, "sport": table.column("sport"), "dst": dst.indices, "dport": table.column("dport")}
    rows = pa.table({**keys, "message": message, "time": table.column("time_ns")})
    found = rows.group_by([*keys, "message"], use_threads=False).aggregate(
        [("time", "count"), ("time", "min"), ("time", "max")]
    )
    ends = {
        "src": src.dictionary.take(found.column("src").combine_chunks()),
        "sport": found.column("sport"),
        "dst": dst.dictionary.take(found.column("dst").combine_chunks()),
        "dport": found.column("dport"),
        "message": found.column("message"),
        "count": found.column("time_count"),
        "first": found.column("time_min"),
        "last": found.column("time_max"),
    }
    cut = pc.sum(pc.equal(table.column("error"), "cut").cast(pa.int64())).as_py() or 0
    numbers = pa.array(np.zeros(len(found), np.int64))
    pairs = pa.table([*ends.values(), numbers, numbers], names=PAIRS.names).cast(PAIRS)
    about = dict.fromkeys(PAIRS.names) | {"message": -1, "count": 0, "copies": copies, "cut": cut}
    return pa.concat_tables([pairs, pa.Table.from_pylist([about], PAIRS)])


def add_pairs(tables: Sequence[pa.Table]) -> pa.Table:
    """``PAIRS`` of several units as those of all."""
    keys = ["src", "sport", "dst", "dport", "message"]
    sums = [("count", "sum"), ("first", "min"), ("last", "max"), ("copies", "sum"), ("cut", "sum")]
    added = pa.concat_tables(tables).group_by(keys, use_threads=False).aggregate(sums)
    return added.rename_columns([name.rsplit("_", 1)[0] for name in added.column_names]).select(PAIRS.names).cast(PAIRS)


def _coded(column: pa.Array) -> pa.DictionaryArray:
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


@dataclass(frozen=True)
class Brokers:
    """Those of a session, the busiest first; and endpoints and hosts as the numbers that stand for them."""

    ends: tuple[tuple[str, int], ...]
    endpoints: frozenset[int]
    hosts: frozenset[int]

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(endpoint_text(*end) for end in self.ends)

    def __str__(self) -> str:
        more = len(self.ends) - 1
        return (self.texts[0] if self.ends else "unknown") + (f" and {more} more" if more > 0 else "")


def scores(pairs: pa.Table, policy: Policy) -> dict[tuple[str, int], int]:
    """How much speaks for each endpoint being a broker (or, below 0, a client); ``pairs``: see ``PAIRS``."""
    towards = _directions(policy)
    ports = set(policy.dialect.spec.ports.get("broker", []))
    found: dict[tuple[str, int], int] = defaultdict(int)
    for row in _talks(pairs):
        src, dst = (row["src"], row["sport"]), (row["dst"], row["dport"])
        way = towards[row["message"]] if row["message"] >= 0 else -1
        if way >= 0:
            found[dst] += (STRONG if way else -STRONG) * row["count"]
            found[src] -= (STRONG if way else -STRONG) * row["count"]
        if (src[1] in ports) != (dst[1] in ports):
            found[src if src[1] in ports else dst] += WEAK
    return found


def _talks(pairs: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pairs.filter(pc.is_valid(pairs.column("src"))).to_pylist()
    return rows


def _directions(policy: Policy) -> NDArray[np.int64]:
    """By message: 1 it goes to the broker, 0 it comes from there, -1 it does not tell."""
    meaning = policy.meaning
    towards = np.full(len(meaning), -1, np.int64)
    towards[np.isin(meaning, (SUBSCRIBE, UNSUBSCRIBE))] = 1
    if not policy.has_sessions:
        towards[meaning == CREATE] = 1
    said = policy.speakers
    towards[(said == 0) & ~policy.forwards] = 1
    towards[said == 1] = 0
    if not policy.client_acks.any():
        towards[(meaning == ACK) & (said == -1)] = 0
    return towards


def choose_brokers(pairs: pa.Table, policy: Policy, named: Sequence[str] = ()) -> Brokers:
    """The endpoints for which more speaks than against; or those that the user names, as HOST or HOST:PORT."""
    found = scores(pairs, policy)
    if named:
        wanted = [_named(name) for name in named]
        there = {(row[end], row[f"{end[0]}port"]) for row in _talks(pairs) for end in ("src", "dst")}
        found = {end: found.get(end, 0) for end in there if any(_is(end, one) for one in wanted)}
        own = set(policy.dialect.spec.ports.get("broker", []))
        # Of a host that is named without a port: the ends that look like a broker's, if any does.
        found = {end: score for end, score in found.items() if score > 0 or end[1] in own} or found
        found |= {(host, port): 0 for host, port in wanted if port is not None and (host, port) not in found}
    else:
        believed = {end: score for end, score in found.items() if score > 0}
        found = {end: score for end, score in believed.items() if score >= STRONG} or believed
    return brokers_of(sorted(found, key=lambda end: (-found[end], end)))


def brokers_of(ends: Sequence[tuple[str, int]]) -> Brokers:
    """These endpoints, the busiest first."""
    return Brokers(
        tuple(ends),
        frozenset(endpoint_hash(*end) for end in ends),
        frozenset(hash_of(host) for host, _ in ends),
    )


def _named(text: str) -> tuple[str, int | None]:
    host, colon, port = text.rpartition(":")
    if not colon or (":" in host and not host.startswith("[")):
        return text.strip("[]"), None
    if not port.isdigit():
        raise UsageError(f"--broker takes HOST or HOST:PORT, not {text!r}")
    return host.strip("[]"), int(port)


def _is(end: tuple[str, int], named: tuple[str, int | None]) -> bool:
    return end[0] == named[0] and named[1] in (None, end[1])


def capture_point(pairs: pa.Table, brokers: Brokers) -> Point:
    """Many hosts talk with the broker: at the broker, or, if frames are there more than once, on a bridge."""
    ends = {(row["src"], row["dst"]) for row in _talks(pairs)}
    if all(src == dst for src, dst in ends):
        return Point.BROKER
    others = {host for pair in ends for host in pair} - {host for host, _ in brokers.ends}
    if len(others) < 2:
        return Point.CLIENT
    return Point.BRIDGE if (pc.sum(pairs.column("copies")).as_py() or 0) else Point.BROKER


def starts_late(pairs: pa.Table, policy: Policy, brokers: Brokers) -> bool:
    """Several clients get messages before they have said anything; or the first datagram of all is an ACK."""
    by_host = policy.dialect.spec.broker.subscriber_port is not None  # they listen elsewhere than they speak
    ends, hosts = set(brokers.ends), {host for host, _ in brokers.ends}
    spoke: dict[object, int] = {}
    heard: dict[object, int] = {}
    first: tuple[int, bool] = (NEVER, False)
    for row in _talks(pairs):
        if row["message"] < 0:
            continue
        src, dst = (row["src"], row["sport"]), (row["dst"], row["dport"])
        from_broker = src in ends
        first = min(first, (row["first"], bool(from_broker and policy.meaning[row["message"]] == ACK)))
        if dst in ends:
            key = src[0] if by_host else src
            spoke[key] = min(spoke.get(key, NEVER), row["first"])
        elif policy.forwards[row["message"]] and (from_broker or src[0] in hosts):
            key = dst[0] if by_host else dst
            heard[key] = min(heard.get(key, NEVER), row["first"])
    unprompted = [client for client, time in heard.items() if time < spoke.get(client, NEVER)]
    return len(unprompted) >= 2 or first[1]

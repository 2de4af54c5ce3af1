"""Endpoints of a session: which is the broker, where the capture was taken, whether it starts late.

All of it follows from a small table, who said what to whom (`PAIRS`), which is made unit by unit and added up.

A subscription goes to the broker, broker-only messages come from it, and so do ACKs where clients acknowledge nothing.
Where no message tells, the dialect's broker port does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pcap_tools.errors import UsageError

from ..kernels.hashing import hash_of
from .events import endpoint_hash, endpoint_text, messages_of
from .policy import ACK, CONNECTS, CREATE, SUBSCRIBE, UNSUBSCRIBE, Policy

STRONG, WEAK = 100, 1
NEVER = 1 << 62
Integers = NDArray[np.int64]
_PORT_BITS = 16
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
    """Those of a session, the busiest first; and endpoints and hosts as the numbers that stand for them.

    ``first_of``: by place in ``ends``, the place of the first end of the same broker, which may have several addresses.
    """

    ends: tuple[tuple[str, int], ...]
    first_of: tuple[int, ...]
    endpoints: frozenset[int]
    hosts: frozenset[int]

    @cached_property
    def same(self) -> dict[int, int]:
        """By endpoint and host, as numbers, the first of the same broker; only where that is another."""
        found: dict[int, int] = {}
        for (host, port), first in zip(self.ends, self.first_of, strict=True):
            other, at = self.ends[first]
            found[endpoint_hash(host, port)] = endpoint_hash(other, at)
            found.setdefault(hash_of(host), hash_of(other))
        return {one: first for one, first in found.items() if one != first}

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(endpoint_text(*end) for end in self.ends)

    def __str__(self) -> str:
        more = len(self.ends) - 1
        return (self.texts[0] if self.ends else "unknown") + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class _Talks:
    """`PAIRS` as columns, without the row that has no endpoints. ``hosts`` are texts, and the other columns of hosts
    numbers into them; ends are numbers, too: see `end`."""

    hosts: list[str]
    src: Integers
    dst: Integers
    sport: Integers
    dport: Integers
    message: Integers
    count: Integers
    first: Integers

    @classmethod
    def of(cls, pairs: pa.Table) -> _Talks:
        rows = pairs.filter(pc.is_valid(pairs.column("src"))).combine_chunks()
        both = pa.chunked_array([*rows.column("src").chunks, *rows.column("dst").chunks], pa.string())
        coded = both.combine_chunks().dictionary_encode()
        hosts = coded.indices.to_numpy().astype(np.int64)
        numbers = (rows.column(name).to_numpy() for name in ("sport", "dport", "message", "count", "first"))
        return cls(coded.dictionary.to_pylist(), hosts[: len(rows)], hosts[len(rows) :], *numbers)

    @property
    def source(self) -> Integers:
        return self.src << _PORT_BITS | self.sport

    @property
    def target(self) -> Integers:
        return self.dst << _PORT_BITS | self.dport

    def end(self, number: int) -> tuple[str, int]:
        """Host and port behind a number of `source` or `target`."""
        return self.hosts[number >> _PORT_BITS], number & ((1 << _PORT_BITS) - 1)

    def numbers_of(self, ends: Iterable[tuple[str, int]]) -> Integers:
        """The numbers of those ends that are there."""
        place = {host: at for at, host in enumerate(self.hosts)}
        return np.array([place[host] << _PORT_BITS | port for host, port in ends if host in place], np.int64)


def scores(talks: _Talks, policy: Policy) -> dict[tuple[str, int], int]:
    """How much speaks for each endpoint being a broker (or, below 0, a client); those for which nothing speaks are left
    out."""
    way = np.append(_directions(policy), -1)[talks.message]
    strong = STRONG * talks.count * np.where(way < 0, 0, np.where(way == 1, 1, -1))
    ports = np.array(sorted(policy.dialect.spec.ports.get("broker", [])), np.int64)
    from_port, to_port = np.isin(talks.sport, ports), np.isin(talks.dport, ports)
    one_only = from_port != to_port
    weights = np.concatenate([WEAK * (one_only & to_port) + strong, WEAK * (one_only & from_port) - strong])
    ends, where = np.unique(np.concatenate([talks.target, talks.source]), return_inverse=True)
    totals = np.zeros(len(ends), np.int64)
    np.add.at(totals, where, weights)
    return {talks.end(int(ends[at])): int(totals[at]) for at in np.flatnonzero(totals)}


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
    talks = _Talks.of(pairs)
    found = scores(talks, policy)
    if named:
        wanted = [_named(name) for name in named]
        there = [talks.end(int(one)) for one in np.unique(np.concatenate([talks.source, talks.target]))]
        found = {end: found.get(end, 0) for end in there if any(_is(end, one) for one in wanted)}
        own = set(policy.dialect.spec.ports.get("broker", []))
        # Of a host that is named without a port: the ends that look like a broker's, if any does.
        found = {end: score for end, score in found.items() if score > 0 or end[1] in own} or found
        found |= {(host, port): 0 for host, port in wanted if port is not None and (host, port) not in found}
    else:
        believed = {end: score for end, score in found.items() if score > 0}
        found = {end: score for end, score in believed.items() if score >= STRONG} or believed
        found |= dict.fromkeys(_on_loopback(talks, policy, found), 0)
    ends = sorted(found, key=lambda end: (-found[end], end))
    return brokers_of(ends, _first_of(talks, policy, ends))


def _on_loopback(talks: _Talks, policy: Policy, found: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
    """Ends on loopback that send what brokers send, at a port of one of the brokers: it has this address, too."""
    ports = {port for _, port in found}
    sends = np.append(policy.forwards | (policy.meaning == ACK), False)[talks.message]
    ends = (talks.end(int(one)) for one in np.unique(talks.source[sends]))
    return {(host, port) for host, port in ends if port in ports and _is_loopback(host)} - set(found)


def _is_loopback(host: str) -> bool:
    return host.startswith("127.") or host == "::1"


def _first_of(talks: _Talks, policy: Policy, ends: Sequence[tuple[str, int]]) -> list[int]:
    """By place, the first end of the same broker. An end that passes on more than it is asked to, and to which nothing
    is published, gets it at another end with its port."""
    first = list(range(len(ends)))
    numbers = [int(one) for one in talks.numbers_of(ends)] if len(ends) > 1 else []
    publishes, asks = (np.append(one, False)[talks.message] for one in (policy.publishes, policy.meaning == SUBSCRIBE))
    forwards = np.append(policy.forwards, False)[talks.message]
    if len(numbers) != len(ends):
        return first

    def count(rows: NDArray[np.bool_], ends_of: Integers, end: int) -> int:
        return int(talks.count[rows & (ends_of == end)].sum())

    published = [count(publishes, talks.target, end) for end in numbers]
    for place, end in enumerate(numbers):
        passed_on, asked = count(forwards, talks.source, end), count(asks, talks.target, end)
        others = [at for at, (_, port) in enumerate(ends) if published[at] and port == ends[place][1]]
        if not published[place] and passed_on > asked and others:
            first[place] = others[0]
    return first


def brokers_of(ends: Sequence[tuple[str, int]], first_of: Sequence[int] = ()) -> Brokers:
    """These endpoints, the busiest first; each a broker of its own unless ``first_of`` says otherwise."""
    return Brokers(
        tuple(ends),
        tuple(first_of or range(len(ends))),
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
    talks = _Talks.of(pairs)
    if (talks.src == talks.dst).all():
        return Point.BROKER
    hosts = {talks.hosts[one] for one in np.unique(np.concatenate([talks.src, talks.dst]))}
    if len(hosts - {host for host, _ in brokers.ends}) < 2:
        return Point.CLIENT
    return Point.BRIDGE if (pc.sum(pairs.column("copies")).as_py() or 0) else Point.BROKER


def shows_start(pairs: pa.Table, policy: Policy) -> bool:
    """Whether clients subscribe, connect or create topics before anything is published: the capture probably holds all
    that they ever said."""
    rows = pairs.filter(pc.and_(pc.is_valid(pairs.column("src")), pc.greater_equal(pairs.column("message"), 0)))
    message, first = (rows.column(name).to_numpy() for name in ("message", "first"))
    opens = np.isin(policy.meaning, (SUBSCRIBE, CREATE)) | np.array([name == CONNECTS for name in policy.messages])
    flows = policy.publishes | policy.forwards
    return bool(first[opens[message]].min(initial=NEVER) < first[flows[message]].min(initial=NEVER))


def starts_late(pairs: pa.Table, policy: Policy, brokers: Brokers) -> bool:
    """Several clients get messages before they have said anything; or the first datagram of all is an ACK."""
    talks = _Talks.of(pairs)
    ends = talks.numbers_of(brokers.ends)
    hosts = np.unique(ends >> _PORT_BITS)
    is_known = talks.message >= 0
    from_broker, to_broker = np.isin(talks.source, ends), np.isin(talks.target, ends)
    forwards = np.append(policy.forwards, False)[talks.message] & is_known
    heard = ~to_broker & forwards & (from_broker | np.isin(talks.src, hosts))
    by_host = policy.dialect.spec.broker.subscriber_port is not None  # they listen elsewhere than they speak
    speaker, listener = (talks.src, talks.dst) if by_host else (talks.source, talks.target)
    clients, where = np.unique(np.concatenate([speaker, listener]), return_inverse=True)
    spoke_at, heard_at = np.full(len(clients), NEVER, np.int64), np.full(len(clients), NEVER, np.int64)
    spoke = np.flatnonzero(to_broker & is_known)
    np.minimum.at(spoke_at, where[spoke], talks.first[spoke])
    heard_rows = np.flatnonzero(heard)
    np.minimum.at(heard_at, where[len(speaker) + heard_rows], talks.first[heard_rows])
    if (heard_at < spoke_at).sum() >= 2:
        return True
    earliest = is_known & (talks.first == talks.first[is_known].min(initial=NEVER))
    acks = from_broker & np.append(policy.meaning == ACK, False)[talks.message]
    return bool(earliest.any() and acks[earliest].all())

"""Which endpoint is the broker: evidence from messages that only go one way, gathered part by part and added up.

A subscription goes to the broker, what only brokers say comes from it, and so do ACKs where clients acknowledge
nothing. Where no message tells, the dialect's port of the broker does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcap_tools.errors import UsageError

from .events import endpoint_hash, endpoint_text
from .kernels.hashing import hash_of
from .policy import ACK, CREATE, SUBSCRIBE, UNSUBSCRIBE, Policy

STRONG, WEAK = 100, 1


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
    """How much speaks for each endpoint being a broker (or, below 0, a client); ``pairs``: see ``gathering.PAIRS``."""
    towards = _directions(policy)
    ports = set(policy.dialect.spec.ports.get("broker", []))
    found: dict[tuple[str, int], int] = defaultdict(int)
    for row in pairs.to_pylist():
        src, dst = (row["src"], row["sport"]), (row["dst"], row["dport"])
        way = towards[row["message"]] if row["message"] >= 0 else -1
        if way >= 0:
            found[dst] += (STRONG if way else -STRONG) * row["count"]
            found[src] -= (STRONG if way else -STRONG) * row["count"]
        if (src[1] in ports) != (dst[1] in ports):
            found[src if src[1] in ports else dst] += WEAK
    return found


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
        there = {(row[end], row[f"{end[0]}port"]) for row in pairs.to_pylist() for end in ("src", "dst")}
        found = {end: found.get(end, 0) for end in there if any(_is(end, one) for one in wanted)}
        own = set(policy.dialect.spec.ports.get("broker", []))
        # Of a host that is named without a port: the ends that look like a broker's, if any does.
        found = {end: score for end, score in found.items() if score > 0 or end[1] in own} or found
        found |= {(host, port): 0 for host, port in wanted if port is not None and (host, port) not in found}
    else:
        believed = {end: score for end, score in found.items() if score > 0}
        found = {end: score for end, score in believed.items() if score >= STRONG} or believed
    ends = sorted(found, key=lambda end: (-found[end], end))
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

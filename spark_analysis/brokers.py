"""Which endpoint is the broker: evidence from messages that only go one way, gathered part by part and added up.

A subscription goes to the broker, what only brokers say comes from it, and so do ACKs where clients acknowledge nothing.
Where no message tells, the dialect's port of the broker does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcap_tools.errors import UsageError

from .events import Col, Events, endpoint_hash, endpoint_text
from .kernels.hashing import hash_of
from .policy import ACK, CREATE, SUBSCRIBE, UNSUBSCRIBE, Policy

STRONG, WEAK = 100, 1
EVIDENCE = pa.schema([("endpoint", pa.int64()), ("score", pa.int64()), ("host", pa.string()), ("port", pa.int64())])


@dataclass(frozen=True)
class Brokers:
    """Those of a session: endpoints and their hosts as numbers, and as texts, the busiest first."""

    endpoints: frozenset[int]
    hosts: frozenset[int]
    texts: tuple[str, ...]

    def __str__(self) -> str:
        more = len(self.texts) - 1
        return (self.texts[0] if self.texts else "unknown") + (f" and {more} more" if more > 0 else "")


def evidence(events: Events) -> pa.Table:
    """How much speaks for each endpoint being a broker (or, below 0, a client)."""
    message = events[Col.MESSAGE]
    towards, weight = _directions(events.policy)
    told = (message >= 0) & (towards[message] >= 0)
    rows = np.flatnonzero(told)
    scores = [
        _sums(events, rows, Col.DST, "dst", "dport", np.where(towards[message[rows]] == 1, 1, -1) * weight[message[rows]]),
        _sums(events, rows, Col.SRC, "src", "sport", np.where(towards[message[rows]] == 1, -1, 1) * weight[message[rows]]),
        *_ports(events),
    ]
    return pa.concat_tables(scores)


def _directions(policy: Policy) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """By message: 1 it goes to the broker, 0 it comes from there, -1 it does not tell; and how much that weighs."""
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
    return towards, np.full(len(meaning), STRONG, np.int64)


def _ports(events: Events) -> list[pa.Table]:
    """The broker's port, where the other end does not have it too."""
    wanted = events.policy.dialect.spec.ports.get("broker", [])
    ports = [np.isin(events.table.column(name).to_numpy(), wanted) for name in ("sport", "dport")]
    tables = []
    for mine, other, column, host, port in (
        (1, 0, Col.DST, "dst", "dport"),
        (0, 1, Col.SRC, "src", "sport"),
    ):
        rows = np.flatnonzero(ports[mine] & ~ports[other])
        tables.append(_sums(events, rows, column, host, port, np.full(len(rows), WEAK, np.int64)))
    return tables


def _sums(
    events: Events, rows: NDArray[np.int64], column: Col, host: str, port: str, scores: NDArray[np.int64]
) -> pa.Table:
    grouped = (
        pa.table({"endpoint": events[column][rows], "score": scores, "row": rows})
        .group_by("endpoint")
        .aggregate([("score", "sum"), ("row", "min")])
    )
    first = grouped.column("row_min")
    return pa.table(
        [
            grouped.column("endpoint"),
            grouped.column("score_sum"),
            events.table.column(host).take(first).cast(pa.string()),
            events.table.column(port).take(first).cast(pa.int64()),
        ],
        schema=EVIDENCE,
    )


def choose_brokers(parts: Sequence[pa.Table], named: Sequence[str] = ()) -> Brokers:
    """The endpoints for which more speaks than against; or those that the user names, as HOST or HOST:PORT."""
    table = pa.concat_tables(parts) if parts else EVIDENCE.empty_table()
    sums = table.group_by(["endpoint", "host", "port"]).aggregate([("score", "sum")]).to_pylist()
    if named:
        wanted = [_named(name) for name in named]
        sums = [one for one in sums if any(_is(one, host, port) for host, port in wanted)]
        sums += [_made(host, port) for host, port in wanted if port is not None]
    else:
        sums = [one for one in sums if one["score_sum"] > 0]
        strong = [one for one in sums if one["score_sum"] >= STRONG]
        sums = strong or sums
    sums.sort(key=lambda one: (-one["score_sum"], one["host"], one["port"]))
    ends = {one["endpoint"]: one for one in reversed(sums)}
    return Brokers(
        frozenset(ends),
        frozenset(hash_of(one["host"]) for one in sums),
        tuple(dict.fromkeys(endpoint_text(one["host"], one["port"]) for one in sums)),
    )


def _named(text: str) -> tuple[str, int | None]:
    host, colon, port = text.rpartition(":")
    if not colon or (":" in host and not host.startswith("[")):
        return text.strip("[]"), None
    if not port.isdigit():
        raise UsageError(f"--broker takes HOST or HOST:PORT, not {text!r}")
    return host.strip("[]"), int(port)


def _is(one: dict[str, object], host: str, port: int | None) -> bool:
    return one["host"] == host and port in (None, one["port"])


def _made(host: str, port: int | None) -> dict[str, object]:
    return {"endpoint": endpoint_hash(host, port or 0), "host": host, "port": port, "score_sum": 0}

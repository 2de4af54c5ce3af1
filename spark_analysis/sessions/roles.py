"""Who is what in a capture, as host names: `broker`, `publisher-1`, `subscriber-2`, `client-3`.

>>> roles_of("run.pcap", wanted_dialects())  # doctest: +SKIP
{'10.0.0.1': 'broker', '10.0.0.11': 'publisher-1', '10.0.0.21': 'subscriber-1'}

A name is a host's, whatever its ports are, and sums up what it does in all dialects: a client both publishes and
subscribes, or does neither. A host that is broker and client, as on loopback, is a `broker-and-client`. Numbers
count by role in the order in which hosts first talk with a broker; who does not talk with one has no name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pcap_tools.codec.detect import Dialects

from ..checker.kernels.hashing import hashes, mix
from ..checker.session.endpoints import PAIRS, Brokers, choose_brokers, pairs_of
from ..checker.session.events import rows_of
from ..checker.session.policy import SUBSCRIBE, UNSUBSCRIBE, Policy
from ..sources.planning import plan_capture
from .unit_reading import read_unit

UNIT_BYTES = 96 << 20  # of a capture that are in memory at a time
MOST_NAMES = 10_000  # more would help nobody, and a forged capture could have millions
CLIENT, PUBLISHER, SUBSCRIBER, BROKER = 1, 2, 4, 8
# In which order hosts talk, and what they are: bits of the above.
_PARTIES = pa.schema([("host", pa.string()), ("first", pa.int64()), ("role", pa.int64())])


def roles_of(capture: str, dialects: Dialects, brokers: Sequence[str] = ()) -> dict[str, str]:
    """Names by address. ``brokers``: as `--broker` has them. Raises `TopicsharkError` if it is no capture."""
    parties = []
    for policy, pairs in _talks(capture, dialects):
        parties.append(parties_of(pairs, policy, choose_brokers(pairs, policy, brokers)))
    return names_of(parties)


def _talks(capture: str, dialects: Dialects) -> Iterator[tuple[Policy, pa.Table]]:
    """By dialect who said what to whom; units are read one after the other."""
    policies = [Policy(dialect) for dialect in dialects.wanted]
    found: list[list[pa.Table]] = [[] for _ in policies]
    for unit in plan_capture(capture, dialects, UNIT_BYTES).units:
        batches = read_unit(unit, dialects).batches
        for policy, tables in zip(policies, found, strict=True):
            if batches:
                tables.append(pairs_of(rows_of(batches, policy.dialect.name), policy, 0))
    for policy, tables in zip(policies, found, strict=True):
        pairs = pa.concat_tables([PAIRS.empty_table(), *tables])
        if len(pairs):
            yield policy, pairs


def parties_of(pairs: pa.Table, policy: Policy, brokers: Brokers) -> pa.Table:
    """Of one dialect; ``pairs``: see ``endpoints.PAIRS``. A host may have several rows."""
    pairs = pairs.filter(pc.is_valid(pairs.column("src")))
    (src, by), (dst, to) = (_side(pairs, end, brokers) for end in ("src", "dst"))
    if policy.dialect.spec.broker.forward_from == "ephemeral":
        hosts = np.array(sorted(brokers.hosts), np.int64)
        by |= np.isin(hashes(src), hosts) & ~to
    message, first = pairs.column("message").to_numpy(), pairs.column("first").to_numpy()
    asks = np.isin(policy.meaning, (SUBSCRIBE, UNSUBSCRIBE))
    said = np.append(np.where(policy.publishes, PUBLISHER, 0) | np.where(asks, SUBSCRIBER, 0) | CLIENT, CLIENT)
    heard = np.append(np.where(policy.forwards, SUBSCRIBER, 0) | CLIENT, CLIENT)
    up, down = to & ~by, by & ~to
    rows = [
        (src, up, said[message]),
        (dst, down, heard[message]),
        (dst, to, np.full(len(pairs), BROKER)),
        (src, by, np.full(len(pairs), BROKER)),
    ]
    return pa.concat_tables(
        pa.table([host.filter(pa.array(chosen)), first[chosen], role[chosen]], schema=_PARTIES)
        for host, chosen, role in rows
    )


def _side(pairs: pa.Table, end: str, brokers: Brokers) -> tuple[pa.Array, NDArray[np.bool_]]:
    """The hosts at one end, and whether it is a broker that stands there."""
    hosts = pairs.column(end).combine_chunks()
    ends = mix(hashes(hosts), pairs.column(f"{end[0]}port").to_numpy())
    return hosts, np.isin(ends, np.array(sorted(brokers.endpoints), np.int64))


def names_of(parties: Iterable[pa.Table]) -> dict[str, str]:
    """What hosts are in all dialects together, as names by address."""
    table = pa.concat_tables([_PARTIES.empty_table(), *parties])
    coded = table.column("host").combine_chunks().dictionary_encode()
    hosts, place = coded.dictionary.to_pylist(), coded.indices.to_numpy()
    roles, firsts = np.zeros(len(hosts), np.int64), np.full(len(hosts), 1 << 62, np.int64)
    np.bitwise_or.at(roles, place, table.column("role").to_numpy())
    np.minimum.at(firsts, place, table.column("first").to_numpy())
    order = [int(at) for at in np.argsort(firsts, kind="stable") if _is_one_host(hosts[at])][:MOST_NAMES]
    labels = {hosts[at]: _label(int(roles[at])) for at in order}
    total, count = Counter(labels.values()), Counter[str]()
    names = {}
    for host, label in labels.items():
        count[label] += 1
        is_only_broker = label.startswith("broker") and total[label] == 1
        names[host] = label if is_only_broker else f"{label}-{count[label]}"
    return names


def _label(role: int) -> str:
    if role & BROKER:
        return "broker" if role == BROKER else "broker-and-client"
    names = {PUBLISHER: "publisher", SUBSCRIBER: "subscriber"}
    return names.get(role & ~CLIENT, "client")


def _is_one_host(address: str) -> bool:
    """Not a group, nor all, nor nobody."""
    parsed = ip_address(address)
    return not (parsed.is_multicast or parsed.is_unspecified or address == "255.255.255.255")

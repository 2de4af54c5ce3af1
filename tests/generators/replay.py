"""A capture replayed to the reference broker, which tells whether the brokers in it have done what they should."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from pcap_tools.capture import read_datagrams
from pcap_tools.dialect import Dialect
from reference_broker import broker_for

# Datagrams of brokers: from which address, to which address and port, and the bytes.
Sent: TypeAlias = Counter[tuple[str, str, int, bytes]]


def replay(path: Path, dialect: Dialect, addresses: Iterable[str], port: int) -> tuple[Sent, Sent]:
    """Give the datagrams to each broker, in the capture's order, to a reference broker of its own; return the
    datagrams of the brokers in the capture and those of the reference brokers."""
    brokers = {address: broker_for(dialect) for address in addresses}
    shown: Sent = Counter()
    expected: Sent = Counter()
    for one in read_datagrams(path):
        if one.dst in brokers and one.dport == port:
            sends = brokers[one.dst].handle(one.payload, (one.src, one.sport), one.time_ns)
            expected.update((one.dst, *send.to, send.datagram) for send in sends)
        else:
            shown[one.src, one.dst, one.dport, one.payload] += 1
    return shown, expected

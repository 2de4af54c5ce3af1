"""What brokers and clients share: addresses, datagrams to send, and the unit of time. Sockets are elsewhere."""

from typing import NamedTuple

SECOND = 1_000_000_000  # times are integer nanoseconds
Endpoint = tuple[str, int]


class Send(NamedTuple):
    """One datagram to send; ``ephemeral`` asks for a port other than the broker's own."""

    datagram: bytes
    to: Endpoint
    ephemeral: bool = False

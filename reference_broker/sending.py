"""What a broker or a client wants sent, and where to. The socket is somebody else's business."""

from typing import NamedTuple

Endpoint = tuple[str, int]


class Send(NamedTuple):
    """One datagram to send; ``ephemeral`` asks for a port other than the broker's own."""

    datagram: bytes
    to: Endpoint
    ephemeral: bool = False

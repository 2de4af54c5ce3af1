"""One datagram on its way through the network: what the simulation hands to whoever captures it."""

from __future__ import annotations

from dataclasses import dataclass

from reference_broker import Endpoint


@dataclass(slots=True)
class Crossing:
    """``number`` counts the datagrams sent, from 0. ``arrived_ns`` is empty if it was lost on the way and has more
    than one time if the network doubled it. ``dialect`` names the scapy layer that its bytes are built with."""

    number: int
    dialect: str
    src: Endpoint
    dst: Endpoint
    datagram: bytes
    sent_ns: int
    arrived_ns: tuple[int, ...] = ()

"""One whole UDP datagram of a capture."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Datagram:
    """A UDP payload and where it was found. Not frozen, since that would triple the time to make one.

    frame        the frame that completed it, with that frame's time, as Wireshark shows it
    length       of the payload as the UDP header says; above len(payload) if bytes are missing
    frames       all frames whose fragments it was made of, else only `frame`
    ip_id        identification of IPv4, or of the IPv6 fragments; None for IPv6 without
    packet_type  of cooked captures: 0 to us, 1 broadcast, 2 multicast, 3 to others, 4 from us
    interface    the interface index where the link layer has one, else the file's interface number
    copy_of      the frame that this one repeats because the capture saw it on several interfaces
    """

    frame: int
    time_ns: int
    src: str
    sport: int
    dst: str
    dport: int
    payload: bytes
    length: int
    frames: tuple[int, ...]
    ip_id: int | None
    packet_type: int | None
    interface: int
    copy_of: int | None = None

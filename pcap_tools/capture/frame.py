"""One record of a capture file, whatever the format it came from."""

from __future__ import annotations

from typing import NamedTuple

# Wireshark's WTAP_MAX_PACKET_SIZE_STANDARD: a longer record is a sign that the length is not a length.
MAX_CAPTURED = 262144
# Times beyond it (the year 2116) only a damaged or hostile pcapng has. They are held here, so that the distance of any
# two times fits into 64 bits.
LATEST_NS = (1 << 62) - (1 << 40)


class Frame(NamedTuple):
    """A captured frame. A tuple and not a dataclass, since millions of them are made.

    number           1-based, as Wireshark counts: some blocks that are no packets count too
    time_ns          since the epoch; finer clocks are rounded down; 0 for simple blocks, which have no time;
                     between -LATEST_NS and LATEST_NS
    interface        unique over all sections of a pcapng file; the interface index for the "modified" pcap
    original_length  on the wire, as the file says; may be anything in a bad file, even less than len(data)
    comments         packet comments of pcapng
    packet_type      of the "modified" pcap only: 0 to us, 1 broadcast, 2 multicast, 3 to others, 4 from us
    """

    number: int
    time_ns: int
    link_type: int
    interface: int
    data: bytes
    original_length: int
    comments: tuple[str, ...] = ()
    packet_type: int | None = None

"""Messages longer than one packet, in sequence: Go-Back-N over a sequence byte. Off unless both ends use it.

A long text goes in packets with the sequence numbers 0, 1, 2 and so on, several on their way at once. When an ACK does
not come, all from the oldest unacknowledged packet on are sent again. A packet with no room left for one more character
is followed by another; the first with room is the last.

The broker in between passes packets on one by one. What is lost on its way to a subscriber it does not send again, so
there a long message is as safe as a short one, and no safer.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from pcap_tools.errors import UsageError

AckKey = tuple[str, object]
ROOM = 4  # bytes that a character of UTF-8 takes at most
MAX_PACKETS = 256  # so many numbers has a byte
MAX_UNFINISHED = 64


class Packet(NamedTuple):
    datagram: bytes
    key: AckKey | None  # how its ACK will be known


class Part(NamedTuple):
    text: bytes
    is_last: bool


@dataclass(slots=True)
class Window:
    """The sender's side: which packets of a request may go, and which must go again. Most requests are one packet."""

    packets: list[Packet] = field(default_factory=list)
    size: int = 1
    base: int = 0
    sent: int = 0
    acknowledged: set[int] = field(default_factory=set)

    @property
    def is_done(self) -> bool:
        return self.base == len(self.packets)

    @property
    def keys(self) -> frozenset[AckKey]:
        return frozenset(packet.key for packet in self.packets if packet.key is not None)

    def open(self) -> list[bytes]:
        """Packets that may go now and have not gone yet."""
        first, self.sent = self.sent, min(len(self.packets), self.base + self.size)
        return [packet.datagram for packet in self.packets[first : self.sent]]

    def again(self) -> list[bytes]:
        """Back to the oldest one without an ACK, and all from there on."""
        return [packet.datagram for packet in self.packets[self.base : self.sent]]

    def acknowledge(self, key: AckKey) -> bool:
        """Whether this answers a packet that is on its way."""
        for at in range(self.base, self.sent):
            if self.packets[at].key == key and at not in self.acknowledged:
                self.acknowledged.add(at)
                while self.base in self.acknowledged:
                    self.base += 1
                return True
        return False


def split(text: bytes, room: int) -> list[bytes]:
    """A text in packets of at most ``room`` bytes, cut between characters.

    >>> [len(part) for part in split(b"x" * 25, 10)], [len(part) for part in split(b"x" * 20, 10)]
    ([10, 10, 5], [10, 10, 0])
    """
    parts: list[bytes] = []
    while room - len(text) < ROOM:
        end = min(room, len(text))
        while 0 < end < len(text) and text[end] & 0xC0 == 0x80 and end > room - ROOM:
            end -= 1
        parts.append(text[:end])
        text = text[end:]
    parts.append(text)
    if len(parts) > MAX_PACKETS:
        raise UsageError(f"the message takes {len(parts)} packets; there are {MAX_PACKETS} sequence numbers")
    return parts


class Reassembly:
    """The receiver's side: packets in, whole texts out."""

    def __init__(self) -> None:
        self._unfinished: OrderedDict[object, dict[int, Part]] = OrderedDict()

    def take(self, stream: object, sequence: int, text: bytes, room_left: int) -> bytes | None:
        """The whole text, if this packet completes it. What comes early is kept: it may not be sent again, since the
        broker has acknowledged it. A first packet that is another begins another message."""
        parts = self._unfinished.setdefault(stream, {})
        self._unfinished.move_to_end(stream)
        if sequence == 0 and 0 in parts and parts[0].text != text:
            parts.clear()
        parts[sequence] = Part(text, is_last=room_left >= ROOM)
        if len(self._unfinished) > MAX_UNFINISHED:
            self._unfinished.popitem(last=False)
        last = next((number for number, part in sorted(parts.items()) if part.is_last), None)
        if last is None or any(number not in parts for number in range(last)):
            return None
        self._unfinished.pop(stream, None)
        return b"".join(parts[number].text for number in range(last + 1))

"""IP fragments put together to whole payloads, with Wireshark's result and with bounded memory.

Overlaps: fragments are laid down by offset, those of the same offset in the order of arrival, and a byte that
is there stays. The first last-fragment says how long the whole is. A train that is complete is forgotten at
once, so a later fragment with the same key begins a new train: that is how Wireshark tells the copies of an
`any` capture apart. Beyond Wireshark, which never forgets, a train is dropped after a time and when there are
too many.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from pcap_tools.capture.ip import Fragment

# What a fragment costs beside its bytes, so that millions of tiny ones hit the limit too.
_OVERHEAD = 256


class Whole(NamedTuple):
    """A reassembled IP payload and the frames its fragments came in, in the order of arrival."""

    data: bytes
    frames: tuple[int, ...]


@dataclass(slots=True)
class _Train:
    """The fragments of one datagram so far; `reach` is how far they cover it without a gap."""

    begun_ns: int
    pieces: list[tuple[int, int, bytes]] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)
    ahead: list[tuple[int, int]] = field(default_factory=list)
    reach: int = 0
    size: int | None = None
    cost: int = 0

    def add(self, fragment: Fragment, body: bytes, frame: int) -> bool:
        """True if the train is complete now."""
        end = fragment.offset + len(body)
        self.pieces.append((fragment.offset, len(self.pieces), body))
        self.frames.append(frame)
        if not fragment.more and self.size is None:
            self.size = end
        heapq.heappush(self.ahead, (fragment.offset, end))
        while self.ahead and self.ahead[0][0] <= self.reach:
            self.reach = max(self.reach, heapq.heappop(self.ahead)[1])
        return self.size is not None and self.reach >= self.size

    def join(self) -> bytes:
        size = self.size or 0
        whole = bytearray()
        for offset, _, body in sorted(self.pieces):
            covered = len(whole) - offset
            if offset < size and covered < len(body):
                whole += body[covered : size - offset]
        return bytes(whole)


class Reassembler:
    """All open trains of one capture.

    `timed_out` and `dropped` count the trains that were given up for their age and for want of room.
    """

    def __init__(
        self,
        timeout_ns: int = 30_000_000_000,
        max_bytes: int = 64 << 20,
        max_trains: int = 4096,
    ) -> None:
        self.timed_out = 0
        self.dropped = 0
        self._timeout_ns = timeout_ns
        self._max_bytes = max_bytes
        self._max_trains = max_trains
        self._trains: OrderedDict[tuple[object, ...], _Train] = OrderedDict()
        self._cost = 0

    def __len__(self) -> int:
        """The number of open trains."""
        return len(self._trains)

    def add(self, fragment: Fragment, body: bytes, frame: int, time_ns: int) -> Whole | None:
        """Take a fragment; the whole payload if this one completed it."""
        self._drop_old(time_ns)
        if not body:
            return None
        train = self._trains.get(fragment.key)
        if train is None:
            train = self._trains[fragment.key] = _Train(time_ns)
        cost = len(body) + _OVERHEAD
        train.cost += cost
        self._cost += cost
        if train.add(fragment, body, frame):
            del self._trains[fragment.key]
            self._cost -= train.cost
            return Whole(train.join(), tuple(train.frames))
        while self._cost > self._max_bytes or len(self._trains) > self._max_trains:
            self._drop_oldest()
            self.dropped += 1
        return None

    def _drop_old(self, now_ns: int) -> None:
        while self._trains:
            oldest = next(iter(self._trains.values()))
            if now_ns - oldest.begun_ns <= self._timeout_ns:
                return
            self._drop_oldest()
            self.timed_out += 1

    def _drop_oldest(self) -> None:
        _, train = self._trains.popitem(last=False)
        self._cost -= train.cost

"""IP fragments put together to whole payloads, with Wireshark's result and with bounded memory.

Overlaps: fragments are laid down by offset, those of the same offset in the order of arrival, and a byte that
is there stays. The first last-fragment says how long the whole is. A group that is complete is forgotten at
once, so a later fragment with the same key begins a new group: that is how Wireshark tells the copies of an
`any` capture apart. Beyond Wireshark, which never forgets, a group is dropped after a time and when there are
too many.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from pcap_tools.capture.ip import Fragment

# What a fragment costs beside its bytes, so that millions of tiny ones hit the limit too.
FRAGMENT_COST = 256


class Whole(NamedTuple):
    """A reassembled IP payload and the frames its fragments came in, in the order of arrival."""

    data: bytes
    frames: tuple[int, ...]


@dataclass(slots=True)
class _FragmentGroup:
    """The fragments of one datagram so far; `reach` is how far they cover it without a gap."""

    begun_ns: int
    pieces: list[tuple[int, int, bytes]] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)
    ahead: list[tuple[int, int]] = field(default_factory=list)
    reach: int = 0
    size: int | None = None
    cost: int = 0

    def add(self, fragment: Fragment, body: bytes, frame: int) -> bool:
        """True if the group is complete now."""
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
    """All open groups of one capture.

    `added` counts the fragments, `timed_out` and `dropped` the groups that were given up for their age and for want of
    room.
    """

    def __init__(
        self,
        timeout_ns: int = 30_000_000_000,
        max_bytes: int = 64 << 20,
        max_groups: int = 4096,
    ) -> None:
        self.timed_out = 0
        self.dropped = 0
        self.added = 0
        self.timeout_ns = timeout_ns
        self._max_bytes = max_bytes
        self._max_groups = max_groups
        self._groups: OrderedDict[tuple[object, ...], _FragmentGroup] = OrderedDict()
        self._cost = 0

    def __len__(self) -> int:
        """The number of open groups."""
        return len(self._groups)

    def add(self, fragment: Fragment, body: bytes, frame: int, time_ns: int) -> Whole | None:
        """Take a fragment; the whole payload if this one completed it."""
        self.added += 1
        self._drop_old(time_ns)
        if not body:
            return None
        group = self._groups.get(fragment.key)
        if group is None:
            group = self._groups[fragment.key] = _FragmentGroup(time_ns)
        cost = len(body) + FRAGMENT_COST
        group.cost += cost
        self._cost += cost
        if group.add(fragment, body, frame):
            del self._groups[fragment.key]
            self._cost -= group.cost
            return Whole(group.join(), tuple(group.frames))
        while self._cost > self._max_bytes or len(self._groups) > self._max_groups:
            self._drop_oldest()
            self.dropped += 1
        return None

    def pass_by(self, time_ns: int) -> None:
        """A fragment of this time was seen but need not be kept: old groups go."""
        self._drop_old(time_ns)

    def open_frames(self) -> set[int]:
        """The frames of all open groups."""
        return {frame for group in self._groups.values() for frame in group.frames}

    def open_keys(self) -> list[tuple[object, ...]]:
        """The keys of all open groups."""
        return list(self._groups)

    def has_room(self, groups: int, cost: int) -> bool:
        """This much more would drop no group, even if nothing were completed meanwhile."""
        return len(self) + groups <= self._max_groups and self._cost + cost <= self._max_bytes

    def _drop_old(self, now_ns: int) -> None:
        while self._groups:
            oldest = next(iter(self._groups.values()))
            if now_ns - oldest.begun_ns <= self.timeout_ns:
                return
            self._drop_oldest()
            self.timed_out += 1

    def _drop_oldest(self) -> None:
        _, group = self._groups.popitem(last=False)
        self._cost -= group.cost

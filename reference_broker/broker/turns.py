"""Work that is too long for one go, done in slices: the addresses that it is done for take turns.

A piece of work is an iterator of datagrams to send; None stands for a step that sends nothing. Pieces of one line are
done one after the other, which keeps their order. Addresses are served in turn, and so are the lines of an address:
the work for one address delays that for another by no more than a slice.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator

from reference_broker.messages.sending import Send

SLICE = 256
MAX_WAITING = 1_000  # pieces of work for one address

Work = Iterator[Send | None]


class Turns:
    """The work that waits, by address and line."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, OrderedDict[Hashable, deque[Work]]] = OrderedDict()

    def __len__(self) -> int:
        """The number of addresses for which work waits."""
        return len(self._waiting)

    def has(self, host: str, line: Hashable) -> bool:
        """Whether work waits in this line: then what comes later must wait as well."""
        return host in self._waiting and line in self._waiting[host]

    def is_full_for(self, host: str) -> bool:
        return host in self._waiting and sum(map(len, self._waiting[host].values())) >= MAX_WAITING

    def begin(self, host: str, line: Hashable, work: Work, steps: int = SLICE) -> list[Send]:
        """The first slice of some work; the rest waits, and all of it if its line has other work waiting."""
        sends: list[Send] = []
        if self.has(host, line):
            self._waiting[host][line].append(work)
        elif not _advance(work, steps, sends):
            self._waiting.setdefault(host, OrderedDict())[line] = deque([work])
        return sends

    def take(self, steps: int = SLICE) -> list[Send]:
        """One slice of the work whose turn it is."""
        sends: list[Send] = []
        if not self._waiting:
            return sends
        host, lines = self._waiting.popitem(last=False)
        line, queue = lines.popitem(last=False)
        if _advance(queue[0], steps, sends):
            queue.popleft()
        if queue:
            lines[line] = queue
        if lines:
            self._waiting[host] = lines
        return sends


def _advance(work: Work, steps: int, sends: list[Send]) -> bool:
    """Do some steps; whether that was the last of them."""
    for _ in range(steps):
        try:
            step = next(work)
        except StopIteration:
            return True
        if step is not None:
            sends.append(step)
    return False

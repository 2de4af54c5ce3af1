"""The datagrams that wait for the broker: at most 200 ms of work, shared fairly by the addresses that sent them.

What a datagram costs is measured as processor time, so a machine that is busy with something else drops nothing. Under
overload an address that sends more than others loses more, and each loss is counted when it happens.

    >>> inbox = Inbox()
    >>> inbox.put(b"hello", ("10.0.0.2", 50000)), inbox.take()
    (True, (b'hello', ('10.0.0.2', 50000)))
"""

from __future__ import annotations

from collections import deque

from reference_broker.broker.limits import Shares
from reference_broker.messages.sending import Endpoint

MOST_NS = 200_000_000
MOST, FEWEST = 20_000, 256  # datagrams
MAX_BYTES = 64 << 20
FIRST_GUESS_NS = 50_000
WEIGHT = 0.05  # of the last batch in the running mean


class Inbox:
    """Datagrams in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[bytes, Endpoint]] = deque()
        self._number, self._bytes = Shares(MOST), Shares(MAX_BYTES)
        self._cost_ns = float(FIRST_GUESS_NS)
        self._adapt()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def capacity(self) -> int:
        """The number of datagrams that take 200 ms."""
        return self._number.limit

    def put(self, datagram: bytes, source: Endpoint) -> bool:
        """Take a datagram; false if it is dropped."""
        host, size = source[0], len(datagram)
        if not self._number.fits(host) or not self._bytes.take(host, size):
            return False
        self._number.take(host)
        self._waiting.append((datagram, source))
        return True

    def take(self) -> tuple[bytes, Endpoint] | None:
        """The oldest datagram."""
        if not self._waiting:
            return None
        datagram, source = self._waiting.popleft()
        self._number.give_back(source[0])
        self._bytes.give_back(source[0], len(datagram))
        return datagram, source

    def note_cost(self, datagrams: int, spent_ns: int) -> None:
        """A batch was handled, and took so much processor time."""
        self._cost_ns += WEIGHT * (spent_ns / datagrams - self._cost_ns)
        self._adapt()

    def _adapt(self) -> None:
        self._number.limit = max(FEWEST, min(MOST, int(MOST_NS / max(self._cost_ns, 1.0))))

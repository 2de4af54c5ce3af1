"""What one simulated subscriber wants, and since when, by its own story.

A wish is *sure* from the moment its subscriber knows of it until it begins to leave, and *possible* from the moment it
asks until it knows that it has left. Between the two nobody can tell, and nothing is judged.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pcap_tools.codec.message import Message
from reference_broker.client.requests import Event, EventKind

FOREVER = 1 << 63
Span = tuple[int, int]


@dataclass(slots=True)
class Wish:
    """A filter. ``asked_ns``: when each request for it that was acknowledged had first been sent."""

    text: bytes
    sure: list[Span] = field(default_factory=list)
    possible: list[Span] = field(default_factory=list)
    asked_ns: list[int] = field(default_factory=list)
    asking_ns: int = FOREVER

    def is_sure(self, begin: int, end: int) -> bool:
        """All the time from begin to end."""
        return any(first < begin and end < last for first, last in self.sure)

    def is_possible(self, begin: int, end: int) -> bool:
        """At any time from begin to end."""
        return any(first <= end and begin <= last for first, last in self.possible)


class Wishes:
    """All of one node. ``created`` tells when topics were created where they must be: a subscription to one that is not
    there is acknowledged and yet in vain."""

    def __init__(self, created: dict[bytes, int] | None) -> None:
        self.by_filter: dict[bytes, Wish] = {}
        self.session_ends: list[int] = []
        self._created = created

    def asked(self, message: Message, now: int, reached: list[int] | None) -> None:
        """The node sent a request. ``reached``: when it came to the broker, for those that nobody acknowledges."""
        if message.message in ("CONNECT", "DISCONNECT"):
            self.lose_session(now)
        if message.filter is None:
            return
        wish = self._wish(message.filter)
        if message.meaning == "subscribe":
            _begin(wish.possible, now)
            wish.asking_ns = min(wish.asking_ns, now)
            if reached:
                _begin(wish.sure, reached[0])
        elif message.meaning == "unsubscribe":
            _end(wish.sure, now)
            if reached:
                _end(wish.possible, reached[0])

    def told(self, event: Event, now: int) -> None:
        """The node was told how a request of its own ended."""
        name, is_acknowledged = event.message.message, event.kind is EventKind.ACKNOWLEDGED
        if name == "PINGREQ" and event.kind is EventKind.GAVE_UP:
            self.lose_session(now)
        if name == "DISCONNECT" and is_acknowledged:
            for wish in self.by_filter.values():
                _end(wish.possible, now)
        if event.message.filter is None or event.kind is EventKind.RESENT:
            return
        wish = self._wish(event.message.filter)
        if is_acknowledged and event.message.meaning == "unsubscribe":
            _end(wish.possible, now)
        if event.message.meaning == "subscribe":
            if is_acknowledged and self._is_created(wish):
                _begin(wish.sure, now)
                wish.asked_ns.append(wish.asking_ns)
            wish.asking_ns = FOREVER

    def lose_session(self, now: int) -> None:
        """A session ends when its client connects anew or closes, or with its broker; subscriptions end with it."""
        self.session_ends.append(now)
        for wish in self.by_filter.values():
            _end(wish.sure, now)

    def _wish(self, text: bytes) -> Wish:
        return self.by_filter.setdefault(text, Wish(text))

    def _is_created(self, wish: Wish) -> bool:
        return self._created is None or self._created.get(wish.text, FOREVER) < wish.asking_ns


def _begin(spans: list[Span], now: int) -> None:
    if not spans or spans[-1][1] != FOREVER:
        spans.append((now, FOREVER))


def _end(spans: list[Span], now: int) -> None:
    if spans and spans[-1][1] == FOREVER:
        spans[-1] = spans[-1][0], max(now, spans[-1][0])

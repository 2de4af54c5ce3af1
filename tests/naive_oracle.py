"""A third opinion about generated traffic: what a broker owes, worked out from what its clients sent.

Written from the protocol descriptions alone, with dictionaries and a plain recursive match; it shares no code with the
reference broker, the checker or the decoders. `owed` takes the datagrams that came to one broker, in their order.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

End = tuple[str, int]


@dataclass
class Owed:
    """``live`` and ``kept``: copies by (frame of the publish, subscriber), live and retained; ``acks`` by client."""

    live: Counter[tuple[int, End]] = field(default_factory=Counter)
    kept: Counter[tuple[int, End]] = field(default_factory=Counter)
    acks: Counter[End] = field(default_factory=Counter)


def any_run(pattern: str, text: str) -> bool:
    """`*` is any run of characters."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any_run(pattern[1:], text) or (bool(text) and any_run(pattern, text[1:]))
    return bool(text) and pattern[0] == text[0] and any_run(pattern[1:], text[1:])


def levels(pattern: list[str], topic: list[str]) -> bool:
    """`+` is one level, `#` is this level and all below, and the level above."""
    if not pattern:
        return not topic
    if pattern[0] == "#":
        return True
    return bool(topic) and pattern[0] in ("+", topic[0]) and levels(pattern[1:], topic[1:])


def java(data: bytes) -> bytes:
    """What a Java block holds."""
    return data[6 : 6 + data[5]] if data[:5] == b"\xac\xed\x00\x05\x77" else data


@dataclass
class Broker:
    """Filters by subscriber, in order, each with the number of copies; retained messages by topic."""

    matches: Callable[[str, str], bool]
    copies: str  # "filter", "subscriber" or "subscription"
    owed: Owed = field(default_factory=Owed)
    filters: dict[End, Counter[str]] = field(default_factory=dict)
    retained: dict[str, int] = field(default_factory=dict)

    def subscribe(self, who: End, text: str) -> None:
        mine = self.filters.setdefault(who, Counter())
        mine[text] = mine[text] + 1 if self.copies == "subscription" else 1
        for topic, frame in self.retained.items():
            if self.matches(text, topic):
                self.owed.kept[frame, who] += 1

    def unsubscribe(self, who: End, text: str) -> None:
        self.filters.get(who, Counter()).pop(text, None)

    def publish(self, frame: int, topic: str, retain: bool = False) -> None:
        for who, mine in self.filters.items():
            count = sum(times for text, times in mine.items() if self.matches(text, topic))
            if count:
                self.owed.live[frame, who] += min(count, 1) if self.copies == "subscriber" else count
        if retain:
            self.retained[topic] = frame


def same(text: str, topic: str) -> bool:
    return text == topic


def colon(datagrams: Iterable[tuple[int, End, bytes]]) -> Owed:
    """Type, retain, then `topic:payload` or a filter; all requests are acknowledged."""
    broker = Broker(any_run, "filter")
    for frame, source, data in datagrams:
        kind, text = data[0], data[2:].rstrip(b"\0").decode("utf-8", "replace")
        if kind == 1:
            broker.publish(frame, text.partition(":")[0], data[1] == 1)
        elif kind == 3:
            broker.subscribe(source, text)
        elif kind == 5:
            if not broker.filters.get(source, Counter())[text]:
                continue  # the original never answers it
            broker.unsubscribe(source, text)
        broker.owed.acks[source] += kind in (1, 3, 5)
    return broker.owed


def topicbyte(datagrams: Iterable[tuple[int, End, bytes]]) -> Owed:
    """Type 2 subscribes to a number, type 3 publishes to one; every datagram but an ACK is acknowledged."""
    broker = Broker(same, "subscriber")
    for frame, source, data in datagrams:
        inner = java(data)
        kind, topic = inner[0], str(inner[1])
        if kind == 2:
            broker.subscribe(source, topic)
        elif kind == 3:
            broker.publish(frame, topic)
        broker.owed.acks[source] += kind != 1
    return broker.owed


def portdigits(datagrams: Iterable[tuple[int, End, bytes]]) -> Owed:
    """Five digits of a port, a role, two of a topic, as characters or as numbers; no ACKs."""
    broker = Broker(same, "subscriber")
    for frame, source, data in datagrams:
        digits = [one - 48 if data[0] >= 48 else one for one in data[:8]]
        port, topic = int("".join(map(str, digits[:5]))), f"{digits[6]}{digits[7]}"
        if digits[5] == 0:
            broker.subscribe((source[0], port), topic)
        else:
            broker.publish(frame, topic)
    return broker.owed


def topicnumber(datagrams: Iterable[tuple[int, End, bytes]]) -> Owed:
    """Numbers belong to the publisher that creates them; a subscription must name a topic that exists."""
    broker, names = Broker(same, "subscription"), dict[tuple[End, int], str]()
    for frame, source, data in datagrams:
        kind, _, number = struct.unpack(">BBI", data[:6])
        text = data[6:].rstrip(b"\0").decode("utf-8", "replace")
        if kind == 4:
            names.setdefault((source, number), text)
        elif kind == 5 and (source, number) in names:
            broker.publish(frame, names[source, number])
        elif kind == 6 and text in names.values():
            broker.subscribe(source, text)
        elif kind == 7:
            broker.unsubscribe(source, text)
        broker.owed.acks[source] += kind in (4, 5, 6, 7)
    return broker.owed


def rolebyte(datagrams: Iterable[tuple[int, End, bytes]]) -> Owed:
    """The type says who speaks; `topic value`; of an actuator's report the first `Instructions` is taken out."""
    broker = Broker(same, "subscriber")
    for frame, source, data in datagrams:
        kind, text = data[0], data[2 : 2 + data[1]].decode("utf-8", "replace")
        if kind in (1, 4):
            broker.subscribe(source, text)
        elif kind in (3, 5, 6):
            whole = text.replace("Instructions", "", 1) if kind == 5 else text
            broker.publish(frame, whole.partition(" ")[0])
        broker.owed.acks[source] += kind in (1, 3, 4, 5, 6)
    return broker.owed


ORACLES: dict[str, Callable[[Iterable[tuple[int, End, bytes]]], Owed]] = {
    "colon": colon,
    "topicbyte": topicbyte,
    "portdigits": portdigits,
    "topicnumber": topicnumber,
    "rolebyte": rolebyte,
}

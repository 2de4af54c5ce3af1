"""What the nodes of the reports do with what they receive: pure decisions, no sockets.

The control loop of a dialect (`[application.loop]`, as in ``rolebyte``): a dashboard answers the readings of a sensor,
and an actuator carries the replies out. Without a loop (``topicbyte``) a window opens when it is hot.
"""

from __future__ import annotations

from typing import NamedTuple

from pcap_tools.dialect import Dialect
from pcap_tools.dialect.spec import LoopSpec
from pcap_tools.errors import UsageError

WINDOW_AT = 50


class Publish(NamedTuple):
    topic: bytes
    payload: bytes


class Reaction(NamedTuple):
    """What a node says, and what it publishes if anything."""

    says: str
    publish: Publish | None = None


def loop_of(dialect: Dialect) -> LoopSpec:
    """The control loop of a dialect that has one."""
    loop = dialect.spec.application.loop
    if loop is None:
        raise UsageError(f"{dialect.name} has no control loop: its file has no [application.loop]")
    return loop


class Dashboard:
    """Answers each reading of a room with the reply that the loop has for it."""

    def __init__(self, loop: LoopSpec, topic: bytes = b"temperature/room1") -> None:
        self.filter, self._loop = topic, loop

    def on_message(self, topic: bytes, payload: bytes) -> Reaction:
        if payload == self._loop.completion.encode():
            return Reaction("the instruction was carried out")
        reading = _number(payload)
        if reading is None:
            return Reaction("not a reading")
        reply = self._reply_to(reading)
        return Reaction(f"instructing: {reply}", Publish(topic + self._loop.suffix.encode(), reply.encode()))

    def _reply_to(self, reading: int) -> str:
        for entry in self._loop.replies:
            is_above, is_below = entry.above is not None, entry.below is not None
            if (is_above and reading > (entry.above or 0)) or (is_below and reading < (entry.below or 0)):
                return entry.reply
        return self._loop.replies[-1].reply


class Actuator:
    """Carries out replies and reports it under the topic they came by."""

    def __init__(self, loop: LoopSpec, topic: bytes = b"temperature/room1") -> None:
        suffix = loop.suffix.encode()
        self.filter = topic if topic.endswith(suffix) else topic + suffix
        self._known = {entry.reply.encode() for entry in loop.replies}
        self._completion = loop.completion.encode()

    def on_message(self, topic: bytes, payload: bytes) -> Reaction:
        if payload not in self._known:
            return Reaction("not an instruction")
        return Reaction(f"carrying out: {payload.decode()}", Publish(topic, self._completion))


class Window:
    """Opens above 50 and closes below; at 50 it stays as it is."""

    def __init__(self, topic: bytes = b"temperature") -> None:
        self.filter = topic
        self.is_open = False

    def on_message(self, topic: bytes, payload: bytes) -> Reaction:
        reading = _number(payload.partition(b":")[2])
        if reading is None:
            return Reaction("not a reading")
        if reading > WINDOW_AT and not self.is_open:
            self.is_open = True
            return Reaction("opened the window")
        if reading < WINDOW_AT and self.is_open:
            self.is_open = False
            return Reaction("closed the window")
        return Reaction("left the window as it is")


def reading(dialect: Dialect, topic: bytes, value: int) -> bytes:
    """A sensor's payload: the number, behind the text that the dialect puts in front of it.

    >>> from pcap_tools import load_dialect
    >>> reading(load_dialect("topicbyte"), b"temperature", 61)
    b'Temperature:61'
    """
    return reading_prefix(dialect, topic) + str(value).encode()


def reading_prefix(dialect: Dialect, topic: bytes) -> bytes:
    """The text in front of a reading's number."""
    return dialect.spec.application.prefixes.get(topic.decode(errors="replace"), "").encode()


def _number(text: bytes) -> int | None:
    digits = text.removeprefix(b"-")
    return int(text) if digits.isdigit() and len(digits) < 19 else None

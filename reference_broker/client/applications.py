"""What the nodes of the reports do with what they receive: pure decisions, no sockets.

``rolebyte``: a sensor's reading makes the dashboard instruct an actuator, which says that it is done. ``topicbyte``: a
window opens when it is hot.
"""

from __future__ import annotations

from typing import NamedTuple

TOO_HOT, TOO_COLD = 30, 25
WINDOW_AT = 50
INSTRUCTIONS = b"Instructions"
DONE = b"Instructions_completed_as_per_request"
ACTIONS = {
    b"lower_temperature": "lowering the temperature",
    b"raise_temperature": "raising the temperature",
    b"good_job": "going on as before",
}
READING_PREFIXES = {b"temperature": b"Temperature:", b"humidity": b"Humidity:"}


class Publish(NamedTuple):
    topic: bytes
    payload: bytes


class Reaction(NamedTuple):
    """What a node says, and what it publishes if anything."""

    says: str
    publish: Publish | None = None


def instruction_for(reading: int) -> bytes:
    """
    >>> instruction_for(31), instruction_for(30), instruction_for(25), instruction_for(24)
    (b'lower_temperature', b'good_job', b'good_job', b'raise_temperature')
    """
    if reading > TOO_HOT:
        return b"lower_temperature"
    return b"raise_temperature" if reading < TOO_COLD else b"good_job"


class Dashboard:
    """Answers each reading of a room with an instruction to its actuator."""

    def __init__(self, topic: bytes = b"temperature/room1") -> None:
        self.filter = topic

    def on_message(self, topic: bytes, payload: bytes) -> Reaction:
        if payload == DONE:
            return Reaction("the instruction was carried out")
        reading = _number(payload)
        if reading is None:
            return Reaction("not a reading")
        instruction = instruction_for(reading)
        return Reaction(f"instructing: {instruction.decode()}", Publish(topic + INSTRUCTIONS, instruction))


class Actuator:
    """Carries out instructions and says so under the topic they came by."""

    def __init__(self, topic: bytes = b"temperature/room1") -> None:
        self.filter = topic if topic.endswith(INSTRUCTIONS) else topic + INSTRUCTIONS

    def on_message(self, topic: bytes, payload: bytes) -> Reaction:
        action = ACTIONS.get(payload)
        if action is None:
            return Reaction("not an instruction")
        return Reaction(action, Publish(topic, DONE))


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


def reading(dialect: str, topic: bytes, value: int) -> bytes:
    """A sensor's payload: the number, in ``topicbyte`` with a word in front.

    >>> reading("topicbyte", b"temperature", 61), reading("rolebyte", b"temperature/room1", 20)
    (b'Temperature:61', b'20')
    """
    prefix = READING_PREFIXES.get(topic, b"") if dialect == "topicbyte" else b""
    return prefix + str(value).encode()


def _number(text: bytes) -> int | None:
    digits = text.removeprefix(b"-")
    return int(text) if digits.isdigit() and len(digits) < 19 else None

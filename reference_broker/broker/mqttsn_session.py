"""What the broker knows of one MQTT-SN client: its state, topic ids, and the messages that it has not acknowledged."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from pcap_tools.dialect.program import Value
from reference_broker.messages.sending import Endpoint

MAX_TOPIC_IDS = 5_000  # of the 65,534 that there are: the most that one client may have the broker remember
MAX_INCOMING = 1_000  # QoS 2 messages of a client between PUBREC and PUBREL
OVERHEAD = 200  # bytes that a held message takes besides its data


class State(StrEnum):
    """The client states of section 6.14 of the standard; a lost client is disconnected here."""

    ACTIVE = "active"
    ASLEEP = "asleep"
    AWAKE = "awake"
    DISCONNECTED = "disconnected"


class Forward(NamedTuple):
    """A publish on its way to one subscriber."""

    topic: bytes
    data: bytes
    qos: int
    retain: int

    @property
    def size(self) -> int:
        return len(self.data) + OVERHEAD


@dataclass(slots=True)
class Unacknowledged:
    """Something sent to a client that it has not acknowledged yet."""

    name: str
    fields: dict[str, Value]
    due_ns: int
    size: int
    tries: int = 1
    is_held_back: bool = False  # until its topic id is registered again


class Replay(NamedTuple):
    """A replay of retained messages that waits until its client has acknowledged what it has got."""

    found: Iterator[tuple[bytes, bytes] | None]
    qos: int


@dataclass(slots=True, eq=False)
class Session:
    """One client. ``held`` counts the bytes of all messages that wait for it or for its ACK."""

    endpoint: Endpoint
    client_id: bytes
    keep_alive_s: int
    seen_ns: int
    state: State = State.ACTIVE
    is_clean: bool = True
    will: dict[str, Value] = field(default_factory=dict)
    topic_ids: dict[bytes, int] = field(default_factory=dict)
    topic_names: dict[int, bytes] = field(default_factory=dict)
    known: set[bytes] = field(default_factory=set)  # topics whose ids it knows since it connected
    predefined: dict[bytes, int] = field(default_factory=dict)  # topics that it knows by a predefined id
    qos_by_filter: dict[bytes, int] = field(default_factory=dict)
    unacknowledged: dict[int, Unacknowledged] = field(default_factory=dict)
    waiting: dict[int, list[Forward]] = field(default_factory=dict)  # by the topic id whose REGACK is to come
    queue: deque[Forward] = field(default_factory=deque)
    replays: deque[Replay] = field(default_factory=deque)
    incoming: dict[int, None] = field(default_factory=dict)  # QoS 2, until PUBREL
    held: int = 0
    last_message_id: int = 0
    last_topic_id: int = 0
    connect: dict[str, Value] = field(default_factory=dict)
    connected_ns: int = 0

    def topic_id(self, topic: bytes) -> int:
        """The id of a topic for this client, a new one if need be; 0 if there are no more."""
        if topic not in self.topic_ids and self.last_topic_id < MAX_TOPIC_IDS:
            self.last_topic_id += 1
            self.topic_ids[topic] = self.last_topic_id
            self.topic_names[self.last_topic_id] = topic
        return self.topic_ids.get(topic, 0)

    def forget_topic_id(self, topic_id: int) -> list[Forward]:
        """The client does not know this id after all; returns what waited for it."""
        name = self.topic_names.pop(topic_id, b"")
        self.topic_ids.pop(name, None)
        self.known.discard(name)
        return self.waiting.pop(topic_id, [])

    def awaits(self, name: str, message_id: int) -> Unacknowledged | None:
        """What an ACK is about, if it fits; the id of a REGISTER says nothing in a PUBACK."""
        waiting = self.unacknowledged.get(message_id)
        return waiting if waiting is not None and waiting.name == name else None

    def next_message_id(self) -> int:
        """The next id that is not in use."""
        self.last_message_id = self.last_message_id % 0xFFFF + 1
        while self.last_message_id in self.unacknowledged:
            self.last_message_id = self.last_message_id % 0xFFFF + 1
        return self.last_message_id

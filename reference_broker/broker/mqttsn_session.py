"""What the broker knows of one MQTT-SN client: its topic ids, what it has not acknowledged, what waits for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pcap_tools.dialect.program import Value
from reference_broker.messages.sending import Endpoint

MAX_TOPIC_IDS = 5_000  # of the 65,534 that there are: what one client may have the broker remember


@dataclass(slots=True)
class Unacknowledged:
    """Something sent to a client that it has not acknowledged yet."""

    name: str
    fields: dict[str, Value]
    due_ns: int
    tries: int = 1


@dataclass(slots=True)
class Forward:
    """A publish on its way to one subscriber."""

    topic: bytes
    data: bytes
    qos: int
    retain: int


@dataclass(slots=True)
class Session:
    """One connected client."""

    endpoint: Endpoint
    client_id: bytes
    keep_alive_s: int
    seen_ns: int
    will: dict[str, Value] = field(default_factory=dict)
    topic_ids: dict[bytes, int] = field(default_factory=dict)
    topic_names: dict[int, bytes] = field(default_factory=dict)
    qos_by_filter: dict[bytes, int] = field(default_factory=dict)
    unacknowledged: dict[int, Unacknowledged] = field(default_factory=dict)
    waiting: dict[int, list[Forward]] = field(default_factory=dict)
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
        self.topic_ids.pop(self.topic_names.pop(topic_id, b""), None)
        return self.waiting.pop(topic_id, [])

    def acknowledge(self, name: str, message_id: int) -> Unacknowledged | None:
        """What an ACK settles, if it is an ACK of that; the id of a REGISTER says nothing in a PUBACK."""
        waiting = self.unacknowledged.get(message_id)
        if waiting is None or waiting.name != name:
            return None
        return self.unacknowledged.pop(message_id)

    def next_message_id(self) -> int:
        self.last_message_id = self.last_message_id % 0xFFFF + 1
        return self.last_message_id

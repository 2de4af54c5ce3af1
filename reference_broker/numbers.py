"""Topics by number: a message binds a number to a name, later ones carry the number alone."""

from __future__ import annotations

from pcap_tools.dialect.spec import TopicsSpec
from pcap_tools.message import Message
from reference_broker.sending import Endpoint

MAX_NUMBERS = 100_000


class TopicNumbers:
    """Each publisher has numbers of its own: two may both call their topic 0. ``shared`` is the mistake not to."""

    def __init__(self, topics: TopicsSpec, shared: bool = False) -> None:
        self._field = topics.number
        self._shared = shared
        self._names: dict[tuple[Endpoint | None, int], bytes] = {}
        self._created: dict[bytes, None] = {}

    def _key(self, message: Message, source: Endpoint) -> tuple[Endpoint | None, int] | None:
        number = message.fields.get(self._field or "")
        return (None if self._shared else source, number) if isinstance(number, int) else None

    def bind(self, message: Message, source: Endpoint) -> bool:
        """Take a creation in; the same one again is fine, another name for a bound number is not."""
        key = self._key(message, source)
        if key is None or message.topic is None or len(self._names) >= MAX_NUMBERS:
            return False
        if self._names.setdefault(key, message.topic) != message.topic:
            return False
        self._created[message.topic] = None
        return True

    def name(self, message: Message, source: Endpoint) -> bytes | None:
        """The name behind the number in a message."""
        key = self._key(message, source)
        return self._names.get(key) if key is not None else None

    def is_created(self, name: bytes) -> bool:
        return name in self._created

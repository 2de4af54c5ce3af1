"""Topics by number: a message binds a number to a name, later ones carry the number alone."""

from __future__ import annotations

from collections.abc import Iterator

from pcap_tools.codec.message import Message
from pcap_tools.dialect.spec import TopicsSpec
from reference_broker.broker.limits import Shares
from reference_broker.messages.sending import Endpoint

MAX_NUMBERS = 100_000


class TopicNumbers:
    """Each publisher has numbers of its own: two may both call their topic 0. ``shared`` is the mistake not to."""

    def __init__(self, topics: TopicsSpec, shared: bool = False) -> None:
        self._field = topics.number
        self._shared = shared
        self._names: dict[tuple[Endpoint | None, int], bytes] = {}
        self._created: dict[bytes, None] = {}
        self._share = Shares(MAX_NUMBERS)

    @property
    def field(self) -> str:
        return self._field or ""

    def _key(self, message: Message, source: Endpoint) -> tuple[Endpoint | None, int] | None:
        number = message.fields.get(self._field or "")
        return (None if self._shared else source, number) if isinstance(number, int) else None

    def __iter__(self) -> Iterator[tuple[Endpoint | None, int, bytes]]:
        for (source, number), name in self._names.items():
            yield source, number, name

    def can_bind(self, message: Message, source: Endpoint) -> bool:
        """The same creation again is fine, another name for a bound number is not."""
        key = self._key(message, source)
        if key is None or message.topic is None:
            return False
        if key in self._names:
            return self._names[key] == message.topic
        return self._share.fits(source[0])

    def bind(self, source: Endpoint | None, number: int, name: bytes) -> None:
        key = None if self._shared else source, number
        if key not in self._names:
            self._share.take(source[0] if source is not None else "", fair=False)
        self._names[key] = name
        self._created[name] = None

    def name(self, message: Message, source: Endpoint) -> bytes | None:
        """The name behind the number in a message."""
        key = self._key(message, source)
        return self._names.get(key) if key is not None else None

    def is_created(self, name: bytes) -> bool:
        return name in self._created

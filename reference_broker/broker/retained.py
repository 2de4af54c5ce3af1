"""The last retained message of each topic, within a limit on bytes and one on their number."""

from __future__ import annotations

from collections.abc import Iterator

from pcap_tools.dialect.spec import TopicsSpec
from reference_broker.topic_index import index_for

MAX_MESSAGES = 20_000  # a subscription with a wildcard looks at each, and may be owed each


class Retained:
    """``matching`` looks topics up by filter: an index of one filter is asked about each topic."""

    def __init__(self, topics: TopicsSpec, max_bytes: int, matches_wildcards: bool) -> None:
        self._topics, self._max_bytes, self._matches_wildcards = topics, max_bytes, matches_wildcards
        self._messages: dict[bytes, bytes] = {}
        self._bytes = 0

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return iter(self._messages.items())

    def __len__(self) -> int:
        return len(self._messages)

    def has_room(self, topic: bytes, datagram: bytes) -> bool:
        """Whether a message may replace that of its topic."""
        if topic not in self._messages and len(self._messages) >= MAX_MESSAGES:
            return False
        return self._bytes - self._size(topic) + len(topic) + len(datagram) <= self._max_bytes

    def keep(self, topic: bytes, datagram: bytes) -> bool:
        """Replace the message of a topic; false if there is no room for it."""
        if not self.has_room(topic, datagram):
            return False
        self._bytes += len(topic) + len(datagram) - self._size(topic)
        self._messages[topic] = datagram
        return True

    def drop(self, topic: bytes) -> None:
        self._bytes -= self._size(topic)
        self._messages.pop(topic, None)

    def _size(self, topic: bytes) -> int:
        return len(topic) + len(self._messages[topic]) if topic in self._messages else 0

    def for_filter(self, text: bytes) -> list[tuple[bytes, bytes]]:
        """The retained messages that a new subscriber of this filter is owed, by topic."""
        index = index_for(self._topics)
        if not self._matches_wildcards or not index.is_wild(text):
            return [(text, self._messages[text])] if text in self._messages else []
        index.add(text)
        return sorted(item for item in self._messages.items() if any(index.matching(item[0])))

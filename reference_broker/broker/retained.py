"""The last retained message of each topic, within limits on bytes and number that addresses share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pcap_tools.dialect.spec import TopicsSpec
from reference_broker.broker.limits import Limits, Shares
from reference_broker.topic_index import index_for

STEP_BYTES = 4_096  # of topics and filters compared: one step of work


class Kept(NamedTuple):
    datagram: bytes
    host: str  # the address whose share it counts against


class Retained:
    """``matches_wildcards``: a filter finds the topics that match it, not only the topic that it names.

    Topics have numbered places, so that a search can be continued after others were added or dropped. A topic that is
    added in the meantime may be missed: the subscriber that searches is subscribed already and gets it as it comes."""

    def __init__(self, topics: TopicsSpec, limits: Limits, matches_wildcards: bool) -> None:
        self._topics, self._matches_wildcards = topics, matches_wildcards
        self._number, self._bytes = Shares(limits.retained), Shares(limits.retained_bytes)
        self._messages: dict[bytes, Kept] = {}
        self._places: list[bytes | None] = []
        self._place_of: dict[bytes, int] = {}
        self._free: list[int] = []

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return ((topic, kept.datagram) for topic, kept in self._messages.items())

    def __len__(self) -> int:
        return len(self._messages)

    def host_of(self, topic: bytes) -> str:
        return self._messages[topic].host

    def why_not(self, topic: bytes, datagram: bytes, host: str, fair: bool = True) -> str | None:
        """Why a message may not replace that of its topic, if so. One that takes no more room always may."""
        known, size = self._messages.get(topic), len(topic) + len(datagram)
        if known is not None:
            more = len(datagram) - len(known.datagram)
            return None if more <= 0 or self._bytes.fits(known.host, more, fair) else "retained bytes"
        if not self._number.fits(host, 1, fair):
            return "retained messages"
        return None if self._bytes.fits(host, size, fair) else "retained bytes"

    def keep(self, topic: bytes, datagram: bytes, host: str = "", fair: bool = True) -> bool:
        """Replace the message of a topic; false if there is no room for it."""
        if self.why_not(topic, datagram, host, fair) is not None:
            return False
        known = self._messages.get(topic)
        if known is None:
            self._number.take(host, 1, fair)
            self._bytes.take(host, len(topic) + len(datagram), fair)
            self._give_place(topic)
        else:
            host = known.host
            more = len(datagram) - len(known.datagram)
            if more > 0:
                self._bytes.take(host, more, fair)
            elif more:
                self._bytes.give_back(host, -more)
        self._messages[topic] = Kept(datagram, host)
        return True

    def drop(self, topic: bytes) -> None:
        known = self._messages.pop(topic, None)
        if known is None:
            return
        self._number.give_back(known.host)
        self._bytes.give_back(known.host, len(topic) + len(known.datagram))
        place = self._place_of.pop(topic)
        self._places[place] = None
        self._free.append(place)

    def _give_place(self, topic: bytes) -> None:
        if self._free:
            place = self._free.pop()
            self._places[place] = topic
        else:
            place = len(self._places)
            self._places.append(topic)
        self._place_of[topic] = place

    def for_filter(self, text: bytes) -> Iterator[tuple[bytes, bytes] | None]:
        """The retained messages that a new subscriber of this filter gets; None for a step that finds nothing."""
        index = index_for(self._topics)
        if not self._matches_wildcards or not index.is_wild(text):
            if text in self._messages:
                yield text, self._messages[text].datagram
            return
        compared, place = 0, 0
        while place < len(self._places):
            topic = self._places[place]
            place += 1
            if topic is None:
                continue
            if index.matches(text, topic):
                yield topic, self._messages[topic].datagram
            compared += len(topic) + len(text)
            if compared > STEP_BYTES:
                compared = 0
                yield None

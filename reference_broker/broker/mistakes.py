"""Mistakes that running systems of these dialects were seen to make: switches, off by default, so that a checker can be
shown a broker that has them. The reference behaviour has none of them."""

import re
from collections.abc import Iterator
from enum import StrEnum

PADDED_BYTES = 65_000


class Mistake(StrEnum):
    """Each names what the broker then does."""

    REGEX_FILTERS = "regex-filters"
    SILENT_UNSUBSCRIBE = "silent-unsubscribe"
    PADDED_RETAINED = "padded-retained"
    ONE_TOPIC = "one-topic"
    ACK_ACKS = "ack-acks"
    SHARED_NUMBERS = "shared-numbers"
    SIGNED_LENGTH = "signed-length"

    @property
    def about(self) -> str:
        """The dialect and what happens, in a sentence."""
        return _ABOUT[self]


_ABOUT = {
    Mistake.REGEX_FILTERS: "colon: `*` becomes `.*` and the rest of a filter is a regular expression",
    Mistake.SILENT_UNSUBSCRIBE: "colon: UNSUBSCRIBE of an unknown filter is never answered",
    Mistake.PADDED_RETAINED: "colon: a retained copy fills a 65,000-byte buffer",
    Mistake.ONE_TOPIC: "topicbyte: humidity subscribers are filed under temperature",
    Mistake.ACK_ACKS: "topicbyte: every datagram is acknowledged, ACKs too",
    Mistake.SHARED_NUMBERS: "topicnumber: two publishers' topics of one number are one",
    Mistake.SIGNED_LENGTH: "rolebyte: the length is read as a signed byte, so long texts break",
}


class FilterFailure(Exception):
    """A filter that is no regular expression brought the broker's matching down."""


class RegexIndex:
    """The index of a broker with REGEX_FILTERS. `a.b` matches `axb`, `room(1)` does not match itself, and after `a(`
    nothing matches any more."""

    def __init__(self) -> None:
        self._filters: dict[bytes, None] = {}

    def add(self, text: bytes) -> None:
        self._filters[text] = None

    def discard(self, text: bytes) -> None:
        self._filters.pop(text, None)

    def is_wild(self, text: bytes) -> bool:
        return b"*" in text

    def wildcards(self, text: bytes) -> int:
        return 0

    def matches(self, text: bytes, topic: bytes) -> bool:
        try:
            return re.fullmatch(text.replace(b"*", b".*"), topic) is not None
        except re.error as error:
            raise FilterFailure(str(error)) from error

    def matching(self, topic: bytes) -> Iterator[bytes]:
        return (text for text in self._filters if self.matches(text, topic))

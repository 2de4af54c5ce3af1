"""Mistakes that running systems of these dialects were seen to make: switches, off by default, so that a checker can be
shown a broker that has them. The reference behaviour has none of them."""

import re
from collections.abc import Iterator
from enum import StrEnum

PADDED_BYTES = 65_000


class Mistake(StrEnum):
    """Each names what the broker then does."""

    REGEX_FILTERS = "regex-filters"  # colon: `*` becomes `.*` and the rest is a regular expression
    SILENT_UNSUBSCRIBE = "silent-unsubscribe"  # colon: UNSUBSCRIBE of an unknown filter is never answered
    PADDED_RETAINED = "padded-retained"  # colon: a retained copy fills a 65,000-byte buffer
    ONE_TOPIC = "one-topic"  # topicbyte: humidity subscribers are filed under temperature
    ACK_ACKS = "ack-acks"  # topicbyte: every datagram is acknowledged, ACKs too
    SHARED_NUMBERS = "shared-numbers"  # topicnumber: two publishers' topics of one number are one
    SIGNED_LENGTH = "signed-length"  # rolebyte: the length is read as a signed byte, so long texts break


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

    def matching(self, topic: bytes) -> Iterator[bytes]:
        for text in self._filters:
            try:
                if re.fullmatch(text.replace(b"*", b".*"), topic):
                    yield text
            except re.error as error:
                raise FilterFailure(str(error)) from error

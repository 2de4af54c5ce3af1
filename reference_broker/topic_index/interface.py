"""What a topic index offers."""

from collections.abc import Iterator
from typing import Protocol


class TopicIndex(Protocol):
    """A set of filters that can be asked which of them match a topic."""

    def add(self, text: bytes) -> None:
        """Take a filter in; one that is there already adds nothing."""

    def discard(self, text: bytes) -> None:
        """Take a filter out; one that is not there is no error."""

    def matching(self, topic: bytes) -> Iterator[bytes]:
        """The filters that match, each once, in no particular order."""

    def is_wild(self, text: bytes) -> bool:
        """Whether a wildcard stands in this text: then it cannot be a topic."""

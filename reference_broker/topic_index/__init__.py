"""Which of many filters match a topic: one interface, one index for each way in which wildcards span topics.

No regular expressions anywhere: a filter comes from the network, and `a(` or `(a+)+b` must be plain characters.

    >>> from pcap_tools import load_dialect
    >>> index = index_for(load_dialect("colon").spec.topics)
    >>> for text in (b"home/*", b"*/fan", b"home/fan", b"home/room"):
    ...     index.add(text)
    >>> sorted(index.matching(b"home/fan"))
    [b'*/fan', b'home/*', b'home/fan']
"""

from collections.abc import Iterator
from typing import Protocol

from pcap_tools.dialect.spec import TopicsSpec
from pcap_tools.errors import TopicsharkError
from reference_broker.topic_index.levels import LevelIndex
from reference_broker.topic_index.runs import RunIndex

__all__ = ["LevelIndex", "RunIndex", "TopicIndex", "index_for"]


class TopicIndex(Protocol):
    """A set of filters that can be asked which of them match a topic."""

    def add(self, text: bytes) -> None:
        """Take a filter in; one that is there already adds nothing."""

    def discard(self, text: bytes) -> None:
        """Take a filter out; one that is not there is no error."""

    def matching(self, topic: bytes) -> Iterator[bytes]:
        """The filters that match, each once, in no particular order."""

    def matches(self, text: bytes, topic: bytes) -> bool:
        """Whether one filter, a member of the set or not, matches a topic."""

    def wildcards(self, text: bytes) -> int:
        """The part of a filter that no index helps with, each of which may cost every publish a search."""

    def is_wild(self, text: bytes) -> bool:
        """Whether a wildcard stands in this text: then it cannot be a topic."""


def index_for(topics: TopicsSpec) -> TopicIndex:
    """An empty index that understands the wildcards of a dialect."""
    spans = set(topics.wildcards.values())
    wildcards = {text.encode(): span for text, span in topics.wildcards.items()}
    if spans <= {"any-run", "all"}:
        return RunIndex(wildcards, topics.case_sensitive)
    if "any-run" in spans:
        raise TopicsharkError("a dialect cannot have wildcards that cross levels and wildcards of levels together")
    if not topics.separator:
        raise TopicsharkError("wildcards of levels need a separator")
    return LevelIndex(wildcards, topics.separator.encode(), topics.case_sensitive)

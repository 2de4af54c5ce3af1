"""Filters whose wildcard matches any run of characters, across levels: `home/*/light`, `*fan*`.

A level trie is wrong here. Filters are kept by the literal text before their first and after their last wildcard, found
by slicing the topic once for each length that occurs; those with literals in between, by the first bytes of the longest
one. What is left to check is one left-to-right search a filter: linear in the topic, whatever the filter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

GRAM = 3


class _Ends:
    """Filters of one prefix with a single wildcard, by what follows it."""

    __slots__ = ("by_suffix", "lengths")

    def __init__(self) -> None:
        self.by_suffix: dict[bytes, set[bytes]] = {}
        self.lengths: Counter[int] = Counter()


class RunIndex:
    """See the module; `wildcards` maps a wildcard to "any-run", or to "all" where it only stands alone."""

    def __init__(self, wildcards: Mapping[bytes, str], case_sensitive: bool = True) -> None:
        self._runs = [text for text, span in wildcards.items() if span == "any-run"]
        self._alls = {text for text, span in wildcards.items() if span == "all"}
        self._case_sensitive = case_sensitive
        self._everything: set[bytes] = set()
        self._exact: dict[bytes, set[bytes]] = {}
        self._prefixes: dict[bytes, _Ends] = {}
        self._prefix_lengths: Counter[int] = Counter()
        self._grams: dict[bytes, dict[bytes, list[bytes]]] = {}
        self._gram_lengths: Counter[int] = Counter()

    def is_wild(self, text: bytes) -> bool:
        if text in self._alls:
            return True
        for wildcard in self._runs:  # noqa: SIM110 - asked for every publish, and any() is three times as slow
            if wildcard in text:
                return True
        return False

    def add(self, text: bytes) -> None:
        parts = self._parts(text)
        if text in self._alls or parts == [b"", b""]:
            self._everything.add(text)
        elif len(parts) == 1:
            self._exact.setdefault(parts[0], set()).add(text)
        elif len(parts) == 2:
            self._add_ends(parts[0], parts[1], text)
        elif text not in self._grams.setdefault(gram := _gram(parts), {}):
            self._grams[gram][text] = parts
            self._gram_lengths[len(gram)] += 1

    def _add_ends(self, prefix: bytes, suffix: bytes, text: bytes) -> None:
        ends = self._prefixes.get(prefix)
        if ends is None:
            ends = self._prefixes[prefix] = _Ends()
            self._prefix_lengths[len(prefix)] += 1
        if suffix not in ends.by_suffix:
            ends.by_suffix[suffix] = set()
            ends.lengths[len(suffix)] += 1
        ends.by_suffix[suffix].add(text)

    def discard(self, text: bytes) -> None:
        parts = self._parts(text)
        if text in self._alls or parts == [b"", b""]:
            self._everything.discard(text)
        elif len(parts) == 1:
            _remove(self._exact, parts[0], text)
        elif len(parts) == 2:
            self._discard_ends(parts[0], parts[1], text)
        elif text in self._grams.get(gram := _gram(parts), {}):
            del self._grams[gram][text]
            _forget(self._gram_lengths, len(gram))
            if not self._grams[gram]:
                del self._grams[gram]

    def _discard_ends(self, prefix: bytes, suffix: bytes, text: bytes) -> None:
        ends = self._prefixes.get(prefix)
        if ends is None or text not in ends.by_suffix.get(suffix, ()):
            return
        if _remove(ends.by_suffix, suffix, text):
            _forget(ends.lengths, len(suffix))
        if not ends.by_suffix:
            del self._prefixes[prefix]
            _forget(self._prefix_lengths, len(prefix))

    def matching(self, topic: bytes) -> Iterator[bytes]:
        if not self._case_sensitive:
            topic = topic.lower()
        yield from self._everything
        yield from self._exact.get(topic, ())
        yield from self._matching_ends(topic)
        yield from self._matching_grams(topic)

    def matches(self, text: bytes, topic: bytes) -> bool:
        if text in self._alls:
            return True
        return _fits(topic if self._case_sensitive else topic.lower(), self._parts(text))

    def wildcards(self, text: bytes) -> int:
        """Literals with wildcards on both sides: those at the ends of a filter are found by slicing."""
        return max(0, len(self._parts(text)) - 2)

    def _matching_ends(self, topic: bytes) -> Iterator[bytes]:
        for length in self._prefix_lengths:
            ends = self._prefixes.get(topic[:length]) if length <= len(topic) else None
            if ends is None:
                continue
            for tail in ends.lengths:
                if length + tail <= len(topic):
                    yield from ends.by_suffix.get(topic[len(topic) - tail :], ())

    def _matching_grams(self, topic: bytes) -> Iterator[bytes]:
        for size in self._gram_lengths:
            for gram in {topic[at : at + size] for at in range(len(topic) - size + 1)}:
                for text, parts in self._grams.get(gram, {}).items():
                    if _fits(topic, parts):
                        yield text

    def _parts(self, text: bytes) -> list[bytes]:
        """The literals between the wildcards; wildcards in a row count as one."""
        for wildcard in self._runs[1:]:
            text = text.replace(wildcard, self._runs[0])
        if not self._case_sensitive:
            text = text.lower()
        if not self._runs:
            return [text]
        first, *rest = text.split(self._runs[0])
        if not rest:
            return [first]
        return [first, *(part for part in rest[:-1] if part), rest[-1]]


def _gram(parts: list[bytes]) -> bytes:
    return max(parts[1:-1], key=len)[:GRAM]


def _fits(topic: bytes, parts: list[bytes]) -> bool:
    """Leftmost search of each literal in turn: with wildcards that match anything the first find is as good as any."""
    if len(parts) == 1:
        return topic == parts[0]
    first, *middle, last = parts
    if not topic.startswith(first) or not topic.endswith(last):
        return False
    at, end = len(first), len(topic) - len(last)
    for part in middle:
        at = topic.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return at <= end


def _remove(table: dict[bytes, set[bytes]], key: bytes, text: bytes) -> bool:
    """Take a filter out of a table of sets; true if its set is gone."""
    texts = table.get(key)
    if texts is None:
        return False
    texts.discard(text)
    if not texts:
        del table[key]
        return True
    return False


def _forget(lengths: Counter[int], length: int) -> None:
    lengths[length] -= 1
    if not lengths[length]:
        del lengths[length]

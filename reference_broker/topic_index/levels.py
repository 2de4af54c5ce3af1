"""Filters whose wildcards stand for whole levels: `+` for one, `#` for the rest, `**` for any number.

A trie of levels, walked with the set of all places where the filters read so far can be: never more places than nodes
of one depth, so there is no backtracking to blow up. What follows a wildcard for any number of levels is no longer at
one depth and stands in ``tails.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reference_broker.topic_index.tails import Key, Tails


class _Node:
    """A place in the trie: children by literal level (bytes) or by what a wildcard spans (str)."""

    __slots__ = ("children", "filters", "tails")

    def __init__(self) -> None:
        self.children: dict[Key, _Node] = {}
        self.filters: set[bytes] = set()
        self.tails = Tails()


class LevelIndex:
    """See the module; `wildcards` maps a wildcard to "one-level", "rest-levels", "any-levels" or "all"."""

    def __init__(self, wildcards: Mapping[bytes, str], separator: bytes, case_sensitive: bool = True) -> None:
        self._spans = dict(wildcards)
        self._separator = separator
        self._case_sensitive = case_sensitive
        self._everything: set[bytes] = set()
        self._root = _Node()

    def is_wild(self, text: bytes) -> bool:
        return any(level in self._spans for level in text.split(self._separator))

    def add(self, text: bytes) -> None:
        if self._spans.get(text) == "all":
            self._everything.add(text)
            return
        head, tail = self._keys(text)
        node = self._root
        for key in head:
            node = node.children.setdefault(key, _Node())
        if tail is None:
            node.filters.add(text)
        else:
            node.tails.add(text, tail)

    def discard(self, text: bytes) -> None:
        self._everything.discard(text)
        head, tail = self._keys(text)
        trail: list[tuple[_Node, Key]] = []
        node = self._root
        for key in head:
            if key not in node.children:
                return
            trail.append((node, key))
            node = node.children[key]
        node.filters.discard(text)
        if tail is not None:
            node.tails.discard(text, tail)
        for parent, key in reversed(trail):
            child = parent.children[key]
            if child.filters or child.children or child.tails:
                return
            del parent.children[key]

    def matching(self, topic: bytes) -> Iterator[bytes]:
        yield from self._everything
        levels = self._levels(topic)
        places = [self._root]
        for at, level in enumerate(levels):
            yield from _open_ends(places, levels[at:])
            places = _step(places, level)
        yield from _open_ends(places, [])
        for node in places:
            yield from node.filters

    def _levels(self, text: bytes) -> list[bytes]:
        return (text if self._case_sensitive else text.lower()).split(self._separator)

    def _keys(self, text: bytes) -> tuple[list[Key], list[Key] | None]:
        """The levels of a filter, cut in two at the first wildcard for any number of them."""
        keys: list[Key] = [self._spans.get(level, level) for level in self._levels(text)]
        if "any-levels" not in keys:
            return keys, None
        at = keys.index("any-levels")
        return keys[:at], keys[at + 1 :]


def _step(places: list[_Node], level: bytes) -> list[_Node]:
    """Where one can be after one more level."""
    children = (child for node in places for child in (node.children.get(level), node.children.get("one-level")))
    return [child for child in children if child is not None]


def _open_ends(places: list[_Node], levels: list[bytes]) -> Iterator[bytes]:
    """Filters that go on from here with a wildcard for the rest (nothing is a rest too), or for any number."""
    for node in places:
        rest = node.children.get("rest-levels")
        if rest is not None:
            yield from rest.filters
        if node.tails:
            yield from node.tails.matching(levels)

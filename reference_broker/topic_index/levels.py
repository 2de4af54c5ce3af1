"""Filters whose wildcards stand for whole levels: `+` for one, `#` for the rest, `**` for any number.

A trie of levels, walked with the set of all places where the filters read so far can be: never more places than nodes,
so there is no backtracking to blow up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class _Node:
    """A place in the trie: children by literal level (bytes) or by what a wildcard spans (str)."""

    __slots__ = ("children", "filters", "is_any_levels")

    def __init__(self, is_any_levels: bool = False) -> None:
        self.children: dict[bytes | str, _Node] = {}
        self.filters: set[bytes] = set()
        self.is_any_levels = is_any_levels


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
        node = self._root
        for key in self._keys(text):
            node = node.children.setdefault(key, _Node(is_any_levels=key == "any-levels"))
        node.filters.add(text)

    def discard(self, text: bytes) -> None:
        self._everything.discard(text)
        trail: list[tuple[_Node, bytes | str]] = []
        node = self._root
        for key in self._keys(text):
            if key not in node.children:
                return
            trail.append((node, key))
            node = node.children[key]
        node.filters.discard(text)
        for parent, key in reversed(trail):
            child = parent.children[key]
            if child.filters or child.children:
                return
            del parent.children[key]

    def matching(self, topic: bytes) -> Iterator[bytes]:
        yield from self._everything
        matched: set[bytes] = set()
        places = _with_any_levels([self._root])
        for level in self._levels(topic):
            matched |= _rests(places)
            places = _with_any_levels(_step(places, level))
        matched |= _rests(places)
        yield from matched.union(*(node.filters for node in places))

    def _levels(self, text: bytes) -> list[bytes]:
        return (text if self._case_sensitive else text.lower()).split(self._separator)

    def _keys(self, text: bytes) -> list[bytes | str]:
        return [self._spans.get(level, level) for level in self._levels(text)]


def _step(places: list[_Node], level: bytes) -> list[_Node]:
    """Where one can be after one more level."""
    after: dict[_Node, None] = {}
    for node in places:
        for child in (node.children.get(level), node.children.get("one-level"), node if node.is_any_levels else None):
            if child is not None:
                after[child] = None
    return list(after)


def _with_any_levels(places: list[_Node]) -> list[_Node]:
    """The places, and those behind a wildcard that may span no level at all."""
    reached = dict.fromkeys(places)
    for node in places:
        while (child := node.children.get("any-levels")) is not None and child not in reached:
            reached[child] = None
            node = child
    return list(reached)


def _rests(places: list[_Node]) -> set[bytes]:
    """Filters that end in a wildcard for the rest; nothing is a rest too."""
    found: set[bytes] = set()
    for node in places:
        rest = node.children.get("rest-levels")
        if rest is not None:
            found |= rest.filters
    return found

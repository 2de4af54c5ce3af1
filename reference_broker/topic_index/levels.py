"""Filters whose wildcards stand for whole levels: `+` for one, `#` for the rest, `**` for any number.

A trie of levels, walked with the set of all places where the filters read so far can be: never more places than nodes,
so there is no backtracking to blow up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class _Node:
    __slots__ = ("children", "filters")

    def __init__(self) -> None:
        self.children: dict[bytes, _Node] = {}
        self.filters: set[bytes] = set()


class LevelIndex:
    """See the module; `wildcards` maps a wildcard to "one-level", "rest-levels", "any-levels" or "all"."""

    def __init__(self, wildcards: Mapping[bytes, str], separator: bytes, case_sensitive: bool = True) -> None:
        self._spans = dict(wildcards)
        self._of = {span: [text for text, other in wildcards.items() if other == span] for span in wildcards.values()}
        self._separator = separator
        self._case_sensitive = case_sensitive
        self._everything: set[bytes] = set()
        self._root = _Node()

    def is_wild(self, text: bytes) -> bool:
        return any(level in self._spans for level in text.split(self._separator))

    def _levels(self, text: bytes) -> list[bytes]:
        return (text if self._case_sensitive else text.lower()).split(self._separator)

    def add(self, text: bytes) -> None:
        if self._spans.get(text) == "all":
            self._everything.add(text)
            return
        node = self._root
        for level in self._levels(text):
            node = node.children.setdefault(level, _Node())
        node.filters.add(text)

    def discard(self, text: bytes) -> None:
        self._everything.discard(text)
        trail: list[tuple[_Node, bytes]] = []
        node = self._root
        for level in self._levels(text):
            if level not in node.children:
                return
            trail.append((node, level))
            node = node.children[level]
        node.filters.discard(text)
        for parent, level in reversed(trail):
            child = parent.children[level]
            if child.filters or child.children:
                return
            del parent.children[level]

    def matching(self, topic: bytes) -> Iterator[bytes]:
        yield from self._everything
        here = self._with_any_levels({self._root})
        matched: set[bytes] = set()
        for level in self._levels(topic):
            matched |= self._rests(here)
            here = self._with_any_levels(self._step(here, level))
        matched |= self._rests(here)
        for node in here:
            matched |= node.filters
        yield from matched

    def _step(self, nodes: set[_Node], level: bytes) -> set[_Node]:
        after: set[_Node] = set()
        for node in nodes:
            for name in (level, *self._of.get("one-level", ())):
                child = node.children.get(name)
                if child is not None and (name != level or level not in self._spans):
                    after.add(child)
            after |= {node.children[name] for name in self._of.get("any-levels", ()) if name in node.children}
            after |= nodes & self._loops
        return after

    def _rests(self, nodes: set[_Node]) -> set[bytes]:
        """Filters that end in a wildcard for the rest; none of the rest is a rest too."""
        found: set[bytes] = set()
        for node in nodes:
            for name in self._of.get("rest-levels", ()):
                if name in node.children:
                    found |= node.children[name].filters
        return found

    def _with_any_levels(self, nodes: set[_Node]) -> set[_Node]:
        return nodes

"""Filters whose wildcards stand for whole levels: `+` for one, `#` for the rest, `**` for any number.

A trie of levels, walked with the set of all places where the filters read so far can be: never more places than nodes
of one depth, so there is no backtracking to blow up. What follows a wildcard for any number of levels is no longer at
one depth and is kept in ``Tails``: pieces of fixed length with such wildcards between them. The first place where a
piece fits is as good as any later one, so one search from left to right decides and nothing is tried again: a filter
costs no more than its own length times that of the topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Key = bytes | str  # a literal level, or what a wildcard spans
SEARCH_COST = 8


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

    def matches(self, text: bytes, topic: bytes) -> bool:
        if self._spans.get(text) == "all":
            return True
        head, tail = self._keys(text)
        levels = self._levels(topic)
        for at, key in enumerate(head):
            if key == "rest-levels":
                return tail is None and at == len(head) - 1
            if at == len(levels) or key not in ("one-level", levels[at]):
                return False
        if tail is not None:
            return _Tail(tail).fits(levels[len(head) :])
        return len(levels) == len(head)

    def wildcards(self, text: bytes) -> int:
        """Wildcards for one level make the walk branch; those for any number make it search, which costs more."""
        head, tail = self._keys(text)
        if tail is None:
            return head.count("one-level")
        return head.count("one-level") + SEARCH_COST * (1 + sum(isinstance(key, str) for key in tail))

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


class _Tail:
    __slots__ = ("is_open", "last", "pieces")

    def __init__(self, keys: Sequence[Key]) -> None:
        self.is_open = bool(keys) and keys[-1] == "rest-levels"
        pieces: list[list[Key]] = [[]]
        for key in keys[:-1] if self.is_open else keys:
            if key == "any-levels":
                pieces.append([])
            else:
                pieces[-1].append(key)
        *self.pieces, self.last = pieces

    def fits(self, levels: Sequence[bytes]) -> bool:
        at = 0
        for piece in self.pieces:
            found = _find(piece, levels, at)
            if found is None:
                return False
            at = found + len(piece)
        if self.is_open:
            return _find(self.last, levels, at) is not None
        start = len(levels) - len(self.last)
        return start >= at and _stands(self.last, levels, start)


class Tails:
    """The ends of many filters, by their last level where that is a plain one."""

    __slots__ = ("_by_end",)

    def __init__(self) -> None:
        self._by_end: dict[bytes | None, dict[bytes, _Tail]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_end)

    def add(self, text: bytes, keys: Sequence[Key]) -> None:
        """A filter of which ``keys`` come after the first wildcard for any number of levels."""
        self._by_end.setdefault(_end(keys), {})[text] = _Tail(keys)

    def discard(self, text: bytes, keys: Sequence[Key]) -> None:
        tails = self._by_end.get(_end(keys), {})
        tails.pop(text, None)
        if not tails:
            self._by_end.pop(_end(keys), None)

    def matching(self, levels: Sequence[bytes]) -> Iterator[bytes]:
        """The filters whose end fits these levels, the last of a topic."""
        for end in {None, levels[-1] if levels else None}:
            for text, tail in self._by_end.get(end, {}).items():
                if tail.fits(levels):
                    yield text


def _end(keys: Sequence[Key]) -> bytes | None:
    last = keys[-1] if keys else None
    return last if isinstance(last, bytes) else None


def _find(piece: Sequence[Key], levels: Sequence[bytes], start: int) -> int | None:
    """The first place from start on where a piece fits."""
    for at in range(start, len(levels) - len(piece) + 1):
        if _stands(piece, levels, at):
            return at
    return None


def _stands(piece: Sequence[Key], levels: Sequence[bytes], at: int) -> bool:
    return all(key in ("one-level", levels[at + offset]) for offset, key in enumerate(piece))

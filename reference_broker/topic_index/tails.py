"""What follows the first wildcard for any number of levels in a filter: `**/a/+/**/b/#` and the like.

Between such wildcards stand pieces of fixed length. The first place where a piece fits is as good as any later one, so
one search from left to right tells, and nothing is tried again: a filter costs no more than its own length times that
of the topic, whatever it looks like.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Key = bytes | str  # a literal level, or what a wildcard spans


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

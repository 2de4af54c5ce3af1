"""Topics x filters, once for all distinct ones of a session.

Most pairs are never looked at. In the sorted topics those that begin with a filter's literal prefix stand side by side;
in the topics sorted from their ends, those that end with its suffix. The shorter of the two stretches is scanned. A
filter without wildcards is looked up. Memory goes with the topics, the filters and the matches, never with the pairs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence, Sized
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pcap_tools.dialect.spec import TopicsSpec

from .match_kernel import BACKWARD, FILTER, FORWARD, mark, prepare, scan, turn
from .patterns import Pattern, raw, rules_for

Longs: TypeAlias = npt.NDArray[np.int64]
Integers: TypeAlias = npt.NDArray[np.int32]
Flags: TypeAlias = npt.NDArray[np.bool_]
Marks: TypeAlias = npt.NDArray[np.uint64]
Range: TypeAlias = tuple[int, int, int]  # as the columns of a kernel's `ranges`
_NOTHING: Range = (FORWARD, 0, 0)
_FIRST_ROOM = 1 << 16


def matches(topics: Sequence[str | bytes], filters: Sequence[str | bytes], spec: TopicsSpec) -> tuple[Longs, Integers]:
    r"""Offsets and filter ids: those of topic `t`, ascending, are `ids[offsets[t]:offsets[t + 1]]`.

    Text is escaped as in the messages table; bytes are taken as they are.

    >>> spec = TopicsSpec(wildcards={"*": "any-run"})
    >>> offsets, ids = matches(["home/fan", "garage"], ["home/*", "*/lamp", "home/fan"], spec)
    >>> offsets.tolist(), ids.tolist()
    ([0, 2, 2], [0, 2])
    """
    rules = rules_for(spec)
    patterns = [rules.pattern(raw(text)) for text in filters]
    texts = [rules.folded(raw(text)) for text in topics]
    parts = _parts(patterns)
    split = [rules.split(text) for text in texts] if len(parts.plain) else []
    return _scanned(rules.packed(split), _starts(split), parts, *_ranges(texts, patterns))


def is_wild(text: str | bytes, spec: TopicsSpec) -> bool:
    """Whether a wildcard stands in this text: then it cannot be a topic."""
    return rules_for(spec).is_wild(raw(text))


def wild_flags(texts: Sequence[str | bytes], spec: TopicsSpec) -> Flags:
    """`is_wild` of each."""
    rules = rules_for(spec)
    return np.fromiter((rules.is_wild(raw(text)) for text in texts), np.bool_, len(texts))


class _Sorted:
    """Texts in order, and which of them begin with a prefix."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        self.order = sorted(range(len(texts)), key=texts.__getitem__)
        self._texts = [texts[at] for at in self.order]

    def beginning(self, prefix: bytes) -> tuple[int, int]:
        if not prefix:
            return 0, len(self._texts)
        low = bisect_left(self._texts, prefix)
        return low, bisect_right(self._texts, prefix, low, key=lambda text: text[: len(prefix)])

    def places(self) -> dict[bytes, tuple[int, int]]:
        """Where each text stands; in more than one place if large and small letters are the same."""
        found: dict[bytes, tuple[int, int]] = {}
        for place, text in enumerate(self._texts):
            found[text] = (found.get(text, (place,))[0], place + 1)
        return found


def _ranges(texts: list[bytes], patterns: list[Pattern | bytes | None]) -> tuple[Integers, Longs]:
    """The topics in two orders, and for each filter the stretch of one of them in which its matches are."""
    forward, backward = _Sorted(texts), None
    if any(isinstance(pattern, Pattern) and pattern.suffix for pattern in patterns):
        backward = _Sorted([text[::-1] for text in texts])
    places = forward.places()

    def range_of(pattern: Pattern | bytes | None) -> Range:
        if pattern is None:
            return _NOTHING
        if isinstance(pattern, bytes):
            return (FORWARD, *places[pattern]) if pattern in places else _NOTHING
        found: Range = (FORWARD, *forward.beginning(pattern.prefix))
        if backward is None or not pattern.suffix:
            return found
        other: Range = (BACKWARD, *backward.beginning(pattern.suffix[::-1]))
        return min(found, other, key=lambda which: which[2] - which[1])

    orders = np.array([forward.order, (backward or forward).order], np.int32).reshape(2, len(texts))
    return orders, np.array([range_of(pattern) for pattern in patterns], np.int64).reshape(len(patterns), 3)


class _Parts(NamedTuple):
    """The parts of all patterns, as the kernel takes them."""

    numbers: Integers
    starts: Longs
    failure: Integers
    plain: Flags
    marks: Marks
    of_filter: Longs


def _parts(patterns: list[Pattern | bytes | None]) -> _Parts:
    of_filter = [pattern.parts if isinstance(pattern, Pattern) else [] for pattern in patterns]
    parts = list(chain.from_iterable(of_filter))
    numbers, starts = np.fromiter(chain.from_iterable(parts), np.int32), _starts(parts)
    failure, plain = np.empty(len(numbers), np.int32), np.empty(len(parts), np.bool_)
    prepare(numbers, starts, failure, plain)
    return _Parts(numbers, starts, failure, plain, _marks(numbers, starts), _starts(of_filter))


def _scanned(
    numbers: Integers, starts: Longs, parts: _Parts, orders: Integers, ranges: Longs
) -> tuple[Longs, Integers]:
    """Find all matches filter by filter, then turn them round."""
    marks = _marks(numbers, starts)
    per_filter, per_topic = np.zeros(len(ranges), np.int64), np.zeros(orders.shape[1], np.int64)
    state, hits, count = np.zeros(2, np.int64), np.empty(_FIRST_ROOM, np.int32), 0
    while True:
        count += scan(numbers, starts, marks, *parts, orders, ranges, state, hits[count:], per_filter, per_topic)
        if state[FILTER] == len(ranges):
            break
        hits.resize(2 * len(hits), refcheck=False)  # in place: no copy of many matches
    offsets, filter_ids = _sums(per_topic), np.empty(count, np.int32)
    turn(hits, per_filter, offsets[:-1].copy(), filter_ids)
    return offsets, filter_ids


def _marks(numbers: Integers, starts: Longs) -> Marks:
    marks = np.empty(len(starts) - 1, np.uint64)
    mark(numbers, starts, marks)
    return marks


def _starts(texts: Sequence[Sized]) -> Longs:
    return _sums(np.fromiter(map(len, texts), np.int64, len(texts)))


def _sums(counts: Longs) -> Longs:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))

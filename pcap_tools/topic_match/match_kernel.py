"""The inner loops of matching: patterns of numbers and gaps against topics of numbers (see `patterns`).

Each part is taken at its first place: behind a gap no other place can do better, so nothing is ever tried again. A part
is searched by Knuth, Morris and Pratt, in time linear in the topic. Only a part that holds both literals and one-level
wildcards, between two gaps (`**/a/+/b/**`), is compared at each place: levels of the topic times levels of the part.
"""

from __future__ import annotations

from typing import Any

from numba import types

from pcap_tools.kernels.jit import inlined, kernel, u64

ONE, UNKNOWN = -1, -2  # a number of a part that any number fits; a number of a topic that no filter names
FORWARD, BACKWARD = range(2)  # topics in order; in the order of their texts read from the end
ORDER, LOW, HIGH = range(3)  # columns of `ranges`: the topics that can match a filter
FILTER, PLACE = range(2)  # where a scan goes on
_I32, _I64, _FLAGS = (types.Array(kind, 1, "C") for kind in (types.int32, types.int64, types.boolean))
_MARKS = types.Array(types.uint64, 1, "C")
_I32_TABLE, _I64_TABLE = (types.Array(kind, 2, "C") for kind in (types.int32, types.int64))


@kernel(_I32, _I64, _I32, _FLAGS)
def prepare(numbers: Any, part_starts: Any, failure: Any, plain: Any) -> None:
    """For each part: is it without ONE, and where does a search go on when a number does not fit."""
    for part in range(plain.shape[0]):
        first, end = part_starts[part], part_starts[part + 1]
        plain[part] = True
        matched = 0
        for at in range(first, end):
            if numbers[at] == ONE:
                plain[part] = False
            failure[at] = 0
            if at == first:
                continue
            while matched > 0 and numbers[first + matched] != numbers[at]:
                matched = failure[first + matched - 1]
            if numbers[first + matched] == numbers[at]:
                matched += 1
            failure[at] = matched


@kernel(_I32, _I64, _MARKS)
def mark(numbers: Any, starts: Any, marks: Any) -> None:
    """For each stretch 32 bits that tell which numbers it may hold, and 32 for which ones side by side.

    A topic that lacks a bit of a filter cannot match it: most pairs that share no literal end are done with here.
    """
    for stretch in range(marks.shape[0]):
        found, before = u64(0), ONE
        for at in range(starts[stretch], starts[stretch + 1]):
            number = numbers[at]
            if number != ONE:
                found |= u64(1) << u64(number & 31)
                if before != ONE:
                    found |= u64(1) << u64(32 + ((before * 7 + number) & 31))
            before = number
        marks[stretch] = found


@inlined
def _marks_of(marks: Any, first: int, end: int) -> Any:
    found = u64(0)
    for part in range(first, end):
        found |= marks[part]
    return found


@inlined
def _is_at(topics: Any, at: int, numbers: Any, first: int, count: int) -> bool:
    for step in range(count):
        wanted = numbers[first + step]
        if wanted != ONE and wanted != topics[at + step]:
            return False
    return True


@inlined
def _behind_plain(topics: Any, at: int, end: int, numbers: Any, failure: Any, first: int, count: int) -> int:
    """Where the first place of a part ends; -1 if there is none."""
    matched = 0
    while matched < count:
        if at == end:
            return -1
        number = topics[at]
        at += 1
        while matched > 0 and numbers[first + matched] != number:
            matched = failure[first + matched - 1]
        if numbers[first + matched] == number:
            matched += 1
    return at


@inlined
def _behind_any(topics: Any, at: int, end: int, numbers: Any, first: int, count: int) -> int:
    """The same for a part that holds ONE."""
    while at + count <= end:
        if _is_at(topics, at, numbers, first, count):
            return at + count
        at += 1
    return -1


@inlined
def _fits(
    topics: Any, at: int, end: int, numbers: Any, part_starts: Any, failure: Any, plain: Any, first: int, last: int
) -> bool:
    """Whether the parts `first` to `last` match the topic from `at` to `end`."""
    head = part_starts[first + 1] - part_starts[first]
    if end - at < part_starts[last + 1] - part_starts[first] or not _is_at(
        topics, at, numbers, part_starts[first], head
    ):
        return False
    at += head
    if first == last:
        return at == end
    tail = part_starts[last + 1] - part_starts[last]
    end -= tail
    if not _is_at(topics, end, numbers, part_starts[last], tail):
        return False
    for part in range(first + 1, last):
        start, count = part_starts[part], part_starts[part + 1] - part_starts[part]
        if plain[part]:
            at = _behind_plain(topics, at, end, numbers, failure, start, count)
        else:
            at = _behind_any(topics, at, end, numbers, start, count)
        if at < 0:
            return False
    return True


@kernel(_I32, _I64, _MARKS, _I32, _I64, _I32, _FLAGS, _MARKS, _I64, _I32_TABLE, _I64_TABLE, _I64, _I32, _I64, _I64)
def scan(
    topics: Any, topic_starts: Any, topic_marks: Any,
    numbers: Any, part_starts: Any, failure: Any, plain: Any, part_marks: Any, filter_parts: Any,
    orders: Any, ranges: Any, state: Any, hits: Any, per_filter: Any, per_topic: Any,
) -> Any:  # fmt: skip
    """Write the topics of each filter to `hits`, from where `state` says, until all is done or `hits` is full.

    A filter without parts takes all of its range. Returns how many were written.
    """
    written = 0
    while state[FILTER] < ranges.shape[0]:
        pattern = state[FILTER]
        first, end = filter_parts[pattern], filter_parts[pattern + 1]
        order, wanted = ranges[pattern, ORDER], _marks_of(part_marks, first, end)
        for place in range(max(ranges[pattern, LOW], state[PLACE]), ranges[pattern, HIGH]):
            topic = orders[order, place]
            if first < end:
                if wanted & ~topic_marks[topic]:
                    continue
                at, stop = topic_starts[topic], topic_starts[topic + 1]
                if not _fits(topics, at, stop, numbers, part_starts, failure, plain, first, end - 1):
                    continue
            if written == hits.shape[0]:
                state[PLACE] = place
                return written
            hits[written] = topic
            written += 1
            per_filter[pattern] += 1
            per_topic[topic] += 1
        state[FILTER] += 1
        state[PLACE] = 0
    return written


@kernel(_I32, _I64, _I64, _I32)
def turn(hits: Any, per_filter: Any, places: Any, filter_ids: Any) -> None:
    """From the topics of each filter to the filters of each topic; `places`: where the next one of a topic goes."""
    at = 0
    for pattern in range(per_filter.shape[0]):
        for _ in range(per_filter[pattern]):
            topic = hits[at]
            filter_ids[places[topic]] = pattern
            places[topic] += 1
            at += 1

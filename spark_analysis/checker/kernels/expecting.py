"""What is due: one expectation for each publish and each subscription that it matches and that stood when it came."""

from __future__ import annotations

from typing import Any

from numba import types

from pcap_tools.columnar.jit import i64, inlined, kernel

from .subscribing import CHANGE_ID, CHANGE_LEAST, CHANGE_MOST, CHANGE_TIME

PUBLISH, CLIENT, LEAST, MOST, FILTER, SINCE = range(6)  # of an expectation
EXPECTED = 6

_column = types.Array(types.int64, 1, "C")
_ids = types.Array(types.int32, 1, "C")
_matrix = types.Array(types.int64, 2, "C")


@inlined
def standing(changes: Any, begin: Any, end: Any, time: Any) -> Any:
    """The last change up to a time, -1 before the first."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if changes[CHANGE_TIME, middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low - 1 if low > begin else i64(-1)


@kernel(_column, _column, _column, _column, _column, _ids, _column, _matrix, _column, _matrix, _matrix, types.int64)
def expect(
    rows: Any,
    time: Any,
    broker: Any,
    topic: Any,
    filters_of: Any,
    filters: Any,
    by_filter: Any,
    subscribers: Any,
    first: Any,
    changes: Any,
    out: Any,
    room: Any,
) -> Any:
    """Fill `out` with expectations, in the order of the publishes; returns how many there are, also beyond the room.

    `rows` are the publishes' places among the events; `topic` numbers their topics; `filters_of`/`filters` tell which
    filters match a topic, `by_filter` which subscribers a filter has.
    """
    count = i64(0)
    for at in range(len(rows)):
        for place in range(filters_of[topic[at]], filters_of[topic[at] + 1]):
            text = i64(filters[place])
            for who in range(by_filter[text], by_filter[text + 1]):
                if subscribers[0, who] != broker[at]:
                    continue
                change = standing(changes, first[who], first[who + 1], time[at])
                if change < 0 or changes[CHANGE_MOST, change] == 0:
                    continue
                if count < room:
                    out[PUBLISH, count] = rows[at]
                    out[CLIENT, count] = subscribers[1, who]
                    out[LEAST, count] = changes[CHANGE_LEAST, change]
                    out[MOST, count] = changes[CHANGE_MOST, change]
                    out[FILTER, count] = text
                    out[SINCE, count] = changes[CHANGE_ID, change]
                count += 1
    return count

"""What is due: one expectation for each publish and each subscription that it matches and that stood when it came.

Clients come and go: few of all that ever subscribed to a filter are there at a time. So the time of the session is
divided into blocks, and each filter has a list by block of the subscribers that may be there (`Lists`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from pcap_tools.kernels.jit import i64, inlined, kernel

from .subscribing import CHANGE_ASKS, CHANGE_ID, CHANGE_LEAST, CHANGE_MOST, CHANGE_TIME

PUBLISH, CLIENT, LEAST, MOST, FILTER, SINCE, ASKS = range(7)  # of an expectation
EXPECTED = 7
FEW = 32  # subscribers of a filter that are simply all looked at
MOST_BLOCKS = 1024
MOST_ENTRIES = 16  # in lists, a subscriber

Integers = NDArray[np.int64]

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


@kernel(
    _column,
    _column,
    _column,
    _column,
    _column,
    _ids,
    _column,
    _column,
    types.int64,
    types.int64,
    types.int64,
    _matrix,
    _column,
    _matrix,
    _matrix,
    types.int64,
)
def expect(
    rows: Any,
    time: Any,
    broker: Any,
    topic: Any,
    filters_of: Any,
    filters: Any,
    listed_from: Any,
    listed: Any,
    begin: Any,
    block_ns: Any,
    blocks: Any,
    subscribers: Any,
    first: Any,
    changes: Any,
    out: Any,
    room: Any,
) -> Any:
    """Fill `out` with expectations, in the order of the publishes; returns how many there are, also beyond the room.

    `rows` are the publishes' places among the events; `topic` numbers their topics; `filters_of`/`filters` tell which
    filters match a topic; what follows are `Lists`.
    """
    count = i64(0)
    for at in range(len(rows)):
        block = min(max((time[at] - begin) // block_ns, i64(0)), blocks - 1)
        for place in range(filters_of[topic[at]], filters_of[topic[at] + 1]):
            text = i64(filters[place])
            for entry in range(listed_from[text * blocks + block], listed_from[text * blocks + block + 1]):
                who = listed[entry]
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
                    out[ASKS, count] = changes[CHANGE_ASKS, change]
                count += 1
    return count


@kernel(_column, _column, _column, types.int64, _column, _column)
def _enlist(text: Any, since: Any, until: Any, blocks: Any, listed_from: Any, listed: Any) -> None:
    """Enter each subscriber in the lists of its filter from block to block; `listed_from` moves on as they fill."""
    for who in range(len(text)):
        for block in range(since[who], until[who] + 1):
            entry = text[who] * blocks + block
            listed[listed_from[entry]] = who
            listed_from[entry] += 1


@dataclass(frozen=True)
class Lists:
    """Subscribers by filter and block of time: those of filter `f` in block `b` are ``listed[listed_from[i]]`` and on
    to ``listed_from[i + 1]``, where `i` is ``f * blocks + b``; in their order."""

    listed_from: Integers
    listed: Integers
    begin: int
    block_ns: int
    blocks: int

    @classmethod
    def of(cls, text: Integers, begins: Integers, ends: Integers, filters: int) -> Lists:
        """By subscriber: its filter, and from when until when it may be there."""
        begin, end = (int(begins.min()), int(ends.max())) if len(text) else (0, 0)
        room = MOST_ENTRIES * len(text) // max(filters, 1)
        blocks = min(MOST_BLOCKS, 1 << room.bit_length() >> 1) if len(text) > FEW * filters else 1
        while True:
            block_ns = (end - begin) // blocks + 1
            since, until = (begins - begin) // block_ns, (ends - begin) // block_ns
            size = int((until - since + 1).sum())
            if blocks == 1 or size <= MOST_ENTRIES * len(text):
                break
            blocks //= 2
        steps = np.zeros((filters, blocks + 1), np.int64)
        np.add.at(steps, (text, since), 1)
        np.add.at(steps, (text, until + 1), -1)
        counts = np.cumsum(steps, axis=1)[:, :blocks].ravel()
        listed_from = np.append(0, np.cumsum(counts))
        listed = np.empty(size, np.int64)
        _enlist(text, since, until, blocks, listed_from.copy(), listed)
        return cls(listed_from, listed, begin, block_ns, blocks)

"""Subscriptions over time: how many copies each is owed, at least and at most, after each change."""

from __future__ import annotations

from typing import Any

from numba import types

from pcap_tools.kernels.jit import i64, kernel

CHANGE_TIME, CHANGE_LEAST, CHANGE_MOST, CHANGE_ID, CHANGE_ENDED, CHANGE_ASKS = range(6)
CHANGED = 6
UNANSWERED = -1
DOUBLE_NS = 10_000_000  # the same again within this time is the network's doing

_column = types.Array(types.int64, 1, "C")
_flags = types.Array(types.boolean, 1, "C")
_matrix = types.Array(types.int64, 2, "C")


@kernel(_column, _flags, _column, _column, _column, _flags, types.boolean, _matrix, _column)
def follow_subscriptions(
    group: Any,
    is_subscribe: Any,
    time: Any,
    ids: Any,
    answered: Any,
    valid: Any,
    counts: Any,
    out: Any,
    owner: Any,
) -> Any:
    """Rows are sorted by `group` (one subscriber of one filter), then by time. Each makes one or two changes: when it
    is sent, and when it is answered. ASKS and ENDED of a change: it is by a subscription; it ends all copies. `counts`:
    a repeated subscription is one more copy. Returns the number of changes; `owner` tells the group of each."""
    made = i64(0)
    least = most = i64(0)
    last = i64(-(1 << 62))
    for row in range(len(group)):
        if row == 0 or group[row] != group[row - 1]:
            least = most = i64(0)
            last = i64(-(1 << 62))
        ended, asks = i64(0), i64(is_subscribe[row])
        if is_subscribe[row]:
            most = most + 1 if counts else i64(1)
        else:
            least = i64(0)
        out[CHANGE_TIME, made], out[CHANGE_LEAST, made], out[CHANGE_MOST, made] = time[row], least, most
        out[CHANGE_ID, made], out[CHANGE_ENDED, made], out[CHANGE_ASKS, made] = ids[row], ended, asks
        owner[made] = group[row]
        made += 1
        settles = answered[row] != UNANSWERED
        if is_subscribe[row]:
            settles = settles and valid[row]
            if settles:
                if not counts:
                    least = i64(1)
                elif time[row] - last >= DOUBLE_NS:
                    least += 1
            last = time[row]
        else:
            if settles:
                most = i64(0)
                ended = i64(1)
            last = i64(-(1 << 62))
        if settles:
            out[CHANGE_TIME, made], out[CHANGE_LEAST, made], out[CHANGE_MOST, made] = answered[row], least, most
            out[CHANGE_ID, made], out[CHANGE_ENDED, made], out[CHANGE_ASKS, made] = ids[row], ended, asks
            owner[made] = group[row]
            made += 1
    return made

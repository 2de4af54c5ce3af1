"""Which status message follows which request: a broker sends it behind the ACK, or at least behind the request."""

from __future__ import annotations

from typing import Any

from numba import types

from pcap_tools.kernels.jit import i64, kernel

_column = types.Array(types.int64, 1, "C")


@kernel(_column, _column, _column, _column, _column, _column)
def follow(order: Any, talk: Any, wants: Any, acked: Any, status: Any, out: Any) -> None:
    """`order` sorts rows by talk, then by place. `wants` is for a request that a status follows its group (else -1),
    `acked` for an ACK the group that it answers, `status` tells status messages. `out` gets for a group its status."""
    waiting = opened = i64(-1)
    for at in range(len(order)):
        row = order[at]
        if at == 0 or talk[row] != talk[order[at - 1]]:
            waiting = opened = i64(-1)
        if wants[row] >= 0:
            opened = wants[row]
        elif acked[row] >= 0:
            if out[acked[row]] < 0:
                waiting = acked[row]
        elif status[row] == 1:
            chosen = waiting if waiting >= 0 else opened
            if chosen >= 0 and out[chosen] < 0:
                out[chosen] = row
            waiting = opened = i64(-1)

"""Anchors of ACKs: a broker sends the forwards and the ACK of one publish in the dialect's order, so the forwards
beside an ACK tell whose it is."""

from __future__ import annotations

from typing import Any

from numba import types

from pcap_tools.columnar.jit import i64, kernel

_column = types.Array(types.int64, 1, "C")


@kernel(_column, _column, _column, types.int64, _column)
def anchor(order: Any, broker: Any, publish: Any, ack_first: Any, out: Any) -> None:
    """`order` sorts what brokers sent by broker, then by place. `publish` is what a forward passes on, -2 for an ACK,
    -1 for a forward that is not explained. `out` gets for each ACK the publish whose forwards stand on the
    side where its own would: just before it, or with `ack_first` just behind it."""
    step = -1 if ack_first else 1
    start = len(order) - 1 if ack_first else 0
    stop = -1 if ack_first else len(order)
    last, whose = i64(-1), i64(0)
    for at in range(start, stop, step):
        row = order[at]
        if broker[row] != whose:
            last, whose = i64(-1), broker[row]
        if publish[row] == -2:
            out[row] = last
            last = i64(-1)
        else:
            last = publish[row]

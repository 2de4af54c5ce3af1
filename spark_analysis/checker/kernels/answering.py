"""When was a request first answered? Enough to bound when a subscription took effect."""

from __future__ import annotations

from typing import Any

from numba import types

from pcap_tools.kernels.jit import i64, kernel

_column = types.Array(types.int64, 1, "C")
_table = types.Array(types.boolean, 2, "C")
_flags = types.Array(types.boolean, 1, "C")


@kernel(_column, _column, _column, _column, _column, _column, _table, _flags, types.int64, _column)
def first_answers(
    order: Any,
    talk: Any,
    time: Any,
    message: Any,
    key: Any,
    content: Any,
    answers: Any,
    is_keyed: Any,
    within: Any,
    out: Any,
) -> None:
    """`order` sorts rows by talk, then time; requests and ACKs only. `out` gets the row of the first ACK that a request
    may have got before it was sent again, -1 for none."""
    for at in range(len(order)):
        row = order[at]
        out[row] = i64(-1)
        for ahead in range(at + 1, len(order)):
            other = order[ahead]
            if talk[other] != talk[row] or time[other] - time[row] > within:
                break
            if content[other] == content[row]:
                break
            ack = message[other]
            if answers[ack, message[row]] and (not is_keyed[ack] or key[other] == key[row]):
                out[row] = other
                break

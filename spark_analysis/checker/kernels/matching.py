"""The matcher: pairs expectations with observations of the same key, in the order of the capture.

An observation goes to an expectation before it that still lacks one: of several that are but a moment old to the
first, since brokers work in order, else to the latest, since they answer at once; failing that to the latest that may
have one more. What is left over on either side is for the rules to explain.
"""

from __future__ import annotations

from typing import Any

from numba import types

from pcap_tools.kernels.jit import i64, kernel

_column = types.Array(types.int64, 1, "C")
_flags = types.Array(types.boolean, 1, "C")
MOMENT_NS = 50_000_000
LOOK_BACK = 64  # expectations of one key, of which all but a few have what they need


@kernel(
    _column, _column, _column, _column, _column, _column, _flags, types.int64, types.int64, _column, _column, _column
)
def match(
    order: Any,
    key: Any,
    time: Any,
    least: Any,
    most: Any,
    until: Any,
    jumps: Any,
    expected: Any,
    known: Any,
    filled: Any,
    first_seen: Any,
    found: Any,
) -> None:
    """Entries 0 to `expected` are expectations, the rest observations; `order` sorts all by key, then by place.

    `until`: an expectation takes nothing later than that. `jumps`: it goes before older ones, however new they are: a
    client subscribes to one filter after the other, and gets what is retained each time. `filled` counts what an
    expectation got, `first_seen` is the first of it, `found` the expectation of an observation, -1 for none. These hold
    already what the first `known` observations have got in an earlier call.
    """
    begin = i64(0)
    for at in range(len(order)):
        entry = order[at]
        if at == 0 or key[entry] != key[order[at - 1]]:
            begin = i64(at)
        if entry < expected + known:
            continue
        found[entry - expected] = i64(-1)
        spare = lacking = i64(-1)
        for back in range(at - 1, max(begin, at - LOOK_BACK) - 1, -1):
            other = order[back]
            if other >= expected or time[entry] > until[other]:
                continue
            if filled[other] < least[other]:
                if lacking < 0 or time[entry] - time[other] <= MOMENT_NS:
                    lacking = other
                if jumps[other] or time[entry] - time[other] > MOMENT_NS:
                    break
            elif spare < 0 and filled[other] < most[other]:
                spare = other
        fresh = spare >= 0 and time[entry] - time[spare] <= MOMENT_NS
        if lacking >= 0 and (not fresh or time[entry] - time[lacking] <= MOMENT_NS):
            spare = lacking
        if spare >= 0:
            if filled[spare] == 0:
                first_seen[spare] = entry
            filled[spare] += 1
            found[entry - expected] = spare

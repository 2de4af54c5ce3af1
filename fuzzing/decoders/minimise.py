"""The smallest datagram that still shows a difference: delta debugging on its bytes, a batch of candidates at a time.

Decoders in processes of their own take seconds to start, so every round asks about all its candidates at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from fuzzing.decoders.outcome import Item

SECONDS = 30  # then it is small enough
MOST_CANDIDATES = 512
PLAIN = (0x00, 0x61)  # bytes that say nothing, the plainest first

StillDiffers = Callable[[Sequence[Item]], list[bool]]


def minimised(item: Item, still_differs: StillDiffers) -> Item:
    """Fewer bytes first, then plainer ones."""
    size, until = max(1, len(item.payload) // 2), time.monotonic() + SECONDS
    while time.monotonic() < until:
        shorter = _first(_shorter(item, size), still_differs)
        if shorter is not None:
            item, size = shorter, min(size, max(1, len(shorter.payload) // 2))
        elif size > 1:
            size //= 2
        elif (plainer := _first(_plainer(item), still_differs)) is not None:
            item = plainer
        else:
            break
    return item


def _first(candidates: list[Item], still_differs: StillDiffers) -> Item | None:
    some = candidates[:MOST_CANDIDATES]
    answers = still_differs(some) if some else []
    return next((one for one, differs in zip(some, answers, strict=True) if differs), None)


def _shorter(item: Item, size: int) -> list[Item]:
    """Whole instead of cut by the capture, and without ``size`` bytes at each place."""
    payload, missing = item.payload, item.length - len(item.payload)
    whole = [item._replace(length=len(payload))] if missing else []
    starts = range(0, len(payload), max(1, min(size, len(payload) // MOST_CANDIDATES or 1)))
    rests = [payload[:at] + payload[at + size :] for at in starts]
    return whole + [Item(item.dialect, rest, len(rest) + missing) for rest in rests]


def _plainer(item: Item) -> list[Item]:
    found = []
    for at, byte in enumerate(item.payload):
        for plain in PLAIN[: PLAIN.index(byte) if byte in PLAIN else len(PLAIN)]:
            found.append(item._replace(payload=item.payload[:at] + bytes([plain]) + item.payload[at + 1 :]))
    return found

"""A chunk of datagrams through the codec and one other decoder: how many, how fast, and where they differ.

Chunks are the unit of everything: they are small enough for memory, repeat from their seed, and run in any process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fuzzing.decoders.backends import Backend, caught
from fuzzing.decoders.outcome import Answer, Item, described, differing, full_outcome, vector_text
from pcap_tools.codec import Codec
from pcap_tools.codec.message import Message
from pcap_tools.dialect import Dialect

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


MOST_SHOWN = 3  # kinds of difference in a chunk that are minimised and printed; all are counted


class Difference(NamedTuple):
    """One datagram about which two decoders disagree, as small as it could be made."""

    backend: str
    part: str
    item: Item
    text: str


@dataclass
class Tally:
    """What a chunk, or all chunks of a decoder, came to."""

    datagrams: int = 0
    valid: int = 0
    seconds: float = 0.0
    differing: int = 0
    failures: int = 0
    differences: list[Difference] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.datagrams += other.datagrams
        self.valid += other.valid
        self.seconds += other.seconds
        self.differing += other.differing
        self.failures += other.failures
        self.differences = (self.differences + other.differences)[:10]


class Comparison:
    """The codec beside one decoder."""

    def __init__(self, name: str, backend: Backend, dialects: Mapping[str, Dialect]) -> None:
        self.name, self.backend = name, backend
        self._codecs = {word: Codec(dialect) for word, dialect in dialects.items()}

    def run(self, items: Sequence[Item]) -> Tally:
        """Compare all, minimise the first few that differ."""
        begin = time.monotonic()
        asked = [item for item in items if self.backend.takes(item)]
        parts, tally = self._differing(asked)
        firsts = {(item.dialect, part): item for item, part in zip(reversed(asked), reversed(parts), strict=True)}
        shown = [(item, part) for (_, part), item in firsts.items() if part is not None][:MOST_SHOWN]
        tally.differences = [self._difference(item, part) for item, part in shown]
        tally.seconds = time.monotonic() - begin
        return tally

    def _differing(self, items: Sequence[Item]) -> tuple[list[str | None], Tally]:
        tally = Tally(datagrams=len(items))
        parts: list[str | None] = []
        for item, seen in zip(items, self.backend.decode(items), strict=True):
            expected, message = self._expected(item)
            part = differing(expected, seen)
            parts.append(part)
            tally.valid += message is not None and message.error is None
            tally.failures += part == "failure"
            tally.differing += part is not None and part != "failure"
        return parts, tally

    def _expected(self, item: Item) -> tuple[Answer, Message | None]:
        try:
            message = self._codecs[item.dialect].decode(item.payload, item.length)
            return self.backend.expected(message, item), message
        except Exception as error:  # the codec must never raise; that it did is what we look for
            return caught(error), None

    def _difference(self, item: Item, part: str) -> Difference:
        def still_differs(candidates: Sequence[Item]) -> list[bool]:
            known = [one for one in candidates if self.backend.takes(one)]
            answers = dict(zip(known, self._differing(known)[0], strict=True))
            return [answers.get(one) == part for one in candidates]

        small = minimised(item, still_differs)
        (seen,) = self.backend.decode([small])
        expected, message = self._expected(small)
        lines = [
            f"# {self.name}, {small.dialect}: {part}, of {small.length} bytes",
            f"#   codec says {described(expected, part)}",
            f"#   {self.name} says {described(seen, part)}",
        ]
        if message is not None:
            lines.append(vector_text(small, full_outcome(message), f"{self.name} differs in {part}"))
        return Difference(self.name, part, small, "\n".join(lines))

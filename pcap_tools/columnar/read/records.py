"""Frames of a capture by their numbers or times, found through its index: only parts that hold them are read.

    >>> with open_records("run.pcap") as records:                          # doctest: +SKIP
    ...     for frame in records.frames(FrameRanges([(1_000_000, 1_000_010)])):
    ...         print(frame.number, frame.time_ns, len(frame.data))

A compressed capture has no index and is read from its begin.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pcap_tools.capture.damage import Damage
from pcap_tools.capture.frame import MAX_CAPTURED, Frame
from pcap_tools.capture.ip import read_packet
from pcap_tools.capture.link import PARSERS
from pcap_tools.columnar.read.frame_ranges import FrameRanges
from pcap_tools.columnar.read.frames import (
    ASK,
    CAPTURED,
    NEED,
    NUMBER,
    ORIGINAL,
    PLACE,
    POSITION,
    SLOT,
    TIME,
)
from pcap_tools.columnar.read.reading import Reading, State
from pcap_tools.columnar.read.sources import ByteSource, RangeFeed, is_compressed, open_bytes, whole_feed
from pcap_tools.columnar.read.splits import STEP, find_index

_PART = 4 << 20  # of the file that is walked through between two looks at what was found
_HEAD = MAX_CAPTURED + (1 << 16)  # holds a first record, whatever it is
_MOST_GROUPS = 4096
_ALL = 1 << 62


class Records:
    """The frames of one capture. ``damage``: where it stops to make sense."""

    def __init__(self, source: ByteSource, step: int = STEP) -> None:
        self._source = source
        self._index = None if is_compressed(source) else find_index(source, step)
        self._states: list[State] = [] if self._index is None else self._index.states
        self.damage: list[Damage] = [] if self._index is None else list(self._index.damage)
        self._times: dict[int, int] = {}

    def frames(
        self, ranges: FrameRanges, periods: FrameRanges | None = None, whole: FrameRanges | None = None
    ) -> Iterator[Frame]:
        """Those of these numbers, in order. ``periods``: only those of these times (first and last nanosecond), and
        the ``whole`` numbers at any time."""
        for part, wanted in self._parts(ranges):
            yield from self._read(part, wanted, periods, whole)

    def numbers_between(self, since: int, until: int) -> tuple[int, int]:
        """The first and the last frame that may be of a time from ``since`` on and before ``until``.

        The capture is taken to be in the order of time, but for what is out of order within some 16 MB.
        """
        if not self._states:
            return 1, _ALL
        begin = max(0, self._first_later(since) - 2)
        end = self._first_later(until) + 1
        first = self._states[begin].frames + 1
        return first, self._states[end].frames if end < len(self._states) else _ALL

    def with_fragments(self, ranges: FrameRanges) -> FrameRanges:
        """With all fragments of the datagrams that become whole in these frames."""
        found: set[int] = set()
        for part, wanted in self._parts(ranges):
            if any(_fragment_key(frame) for frame in self._read(part, wanted)):
                found.update(self._companions(part, wanted))
        return FrameRanges([*ranges, *((number, number) for number in found)])

    # --- Parts between two places of the index ----------------------------------------------------------------------

    def _parts(self, ranges: FrameRanges) -> Iterator[tuple[int, FrameRanges]]:
        """Places in the index, and the ranges that are wanted from there to the next place."""
        lasts = [state.frames for state in self._states[1:]]
        part = 0
        for part in range(len(lasts) + 1):
            low = self._states[part].frames + 1 if self._states else 1
            high = lasts[part] if part < len(lasts) else _ALL
            wanted = [(max(first, low), min(last, high)) for first, last in ranges if first <= high and last >= low]
            if wanted:
                yield part, FrameRanges(wanted)

    def _read(
        self, part: int, wanted: FrameRanges, periods: FrameRanges | None = None, whole: FrameRanges | None = None
    ) -> Iterator[Frame]:
        """Up to the last one that is wanted, which lies in front of the next place."""
        picking = self._open(part, wanted)
        if picking is None:
            return
        picking.periods, picking.whole = periods, whole
        last = wanted.last
        while not picking.over and picking.frames < last:
            before = picking.position
            for _ in picking.batches(limit=before + _PART):
                pass
            yield from picking.picked()
            if picking.position == before:
                return

    def _open(self, part: int, wanted: FrameRanges, size: int = _ALL) -> _Picking | None:
        name, seed = self._source.name, (0, 0)
        if self._index is None:
            picking = _Picking(name, whole_feed(self._source), seed, self._damaged, _ignore, wanted=wanted)
            return picking if picking.open() else None
        if not self._states:
            return None
        state = self._states[part]
        feed = RangeFeed(self._source, state.offset, min(self._index.end, state.offset + size))
        picking = _Picking(name, feed, seed, _ignore, _ignore, wanted=wanted)
        picking.resume(State(state.offset, state.frames, state.facts), [])
        return picking

    def _damaged(self, damage: Damage) -> None:
        self.damage.append(damage)

    # --- Times ------------------------------------------------------------------------------------------------------

    def _first_later(self, time_ns: int) -> int:
        """The first place of the index whose frame is not before this time, by halving."""
        low, high = 0, len(self._states)
        while low < high:
            middle = (low + high) // 2
            if self._time_at(middle) < time_ns:
                low = middle + 1
            else:
                high = middle
        return low

    def _time_at(self, part: int) -> int:
        if part not in self._times:
            number = self._states[part].frames + 1
            picking = self._open(part, FrameRanges([(number, number)]), _HEAD)
            found: list[Frame] = []
            while picking is not None and not picking.over and not found:
                for _ in picking.batches(limit=picking.position + 1):
                    pass
                found = picking.picked()
            self._times[part] = found[0].time_ns if found else -(1 << 63)
        return self._times[part]

    # --- Fragments --------------------------------------------------------------------------------------------------

    def _companions(self, part: int, wanted: FrameRanges) -> Iterator[int]:
        """Frames of this part and the one before with fragments of the datagrams that the wanted frames complete."""
        groups: dict[tuple[object, ...], list[int]] = {}
        for place in (part - 1, part) if part else (part,):
            last = wanted.last if place == part else self._states[part].frames
            for frame in self._read(place, FrameRanges([(1, last)])):
                key = _fragment_key(frame)
                if key is None:
                    continue
                if len(groups) >= _MOST_GROUPS and key not in groups:
                    del groups[next(iter(groups))]
                groups.setdefault(key, []).append(frame.number)
                if frame.number in wanted:
                    yield from groups.pop(key)


@contextmanager
def open_records(capture: str, step: int = STEP) -> Iterator[Records]:
    """The frames of a path or a URI; raises `CaptureError` if it cannot be opened or is no capture. ``step``: bytes
    between two places of the index."""
    with open_bytes(capture) as source:
        yield Records(source, step)


def _fragment_key(frame: Frame) -> tuple[object, ...] | None:
    link = PARSERS[frame.link_type](frame.data) if frame.link_type in PARSERS else None
    packet = read_packet(frame.data, link[0], link[1], frame.original_length) if link else None
    return packet.fragment.key if packet is not None and packet.fragment is not None else None


class _Picking(Reading):
    """Gives no datagrams, but keeps frames that are wanted until they are picked up."""

    def __init__(self, *args: object, wanted: FrameRanges) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._wanted = wanted
        self.periods: FrameRanges | None = None
        self.whole: FrameRanges | None = None
        self._found: list[Frame] = []

    def picked(self) -> list[Frame]:
        """What was found since the last call."""
        found, self._found = self._found, []
        return found

    def _stride(self, limit: int) -> int:
        data = self._buffer.data
        found, self._at, self._number, why, need = self._walker.walk(
            data, self._at, self._have, limit - self._offset, self._number, len(self._frames)
        )
        numbers = self._frames[:found, NUMBER]
        chosen = self._wanted.include(numbers)
        if self.periods is not None:
            in_time = self.periods.include(self._frames[:found, TIME])
            chosen &= in_time if self.whole is None else in_time | self.whole.include(numbers)
        for row in np.flatnonzero(chosen).tolist():
            self._found.append(self._frame(row))
        if why == ASK:
            block = data[self._at : min(self._have, self._at + need)].tobytes()
            self._at += self._walker.ask(block, self.position, self._number, "")
        return need if why == NEED else 0

    def _frame(self, row: int) -> Frame:
        about = self._frames[row]
        begin = int(about[POSITION])
        link_type = self._walker.link_types[int(about[SLOT])]
        data = self._buffer.data[begin : begin + int(about[CAPTURED])].tobytes()
        return Frame(int(about[NUMBER]), int(about[TIME]), link_type, int(about[PLACE]), data, int(about[ORIGINAL]))


def _ignore(about: object) -> None:
    """What there is to say about the whole of a capture, other readings say."""

"""Packets out of captures of any size: around a finding, of a client, of a topic, of a time.

>>> wanted = Selection(client=("10.0.0.12", None), topic="home/*")                    # doctest: +SKIP
>>> extract(find_sources(["run.pcap"]), wanted_dialects(), wanted, "small.pcapng").frames       # doctest: +SKIP
200

The index of a capture leads to its packets, so of a large one only the parts that hold them are read. A client is
looked for in packet headers, and only for a topic messages are decoded; an ingested folder has both in its columns.
"""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pcap_tools.capture import CaptureWriter, Frame, Interface
from pcap_tools.capture.damage import CaptureError
from pcap_tools.capture.writer import new_file
from pcap_tools.codec.detect import Dialects
from pcap_tools.columnar.read.datagrams import DatagramBatch
from pcap_tools.columnar.read.frame_ranges import FrameRanges
from pcap_tools.columnar.read.reading import read_batches
from pcap_tools.columnar.read.records import Records, open_records
from pcap_tools.errors import TopicsharkError
from pcap_tools.escaping import escape_text, shorten

from ..sources.planning import plan_capture
from ..sources.units import Unit, open_batches
from .ingested import Sources

Period = tuple[int, int]  # from, and up to without

_UNIT_BYTES, _BATCH_ROWS = 16 << 20, 65_536
_ENDS = ("frame", "time_ns", "src", "sport", "dst", "dport")
_MOST_MERGED = 100  # captures that are open at a time
_LONGEST_NAME = 200


@dataclass(frozen=True)
class Place:
    """A finding as far as packets matter: ``own`` are its frame and the related ones, by capture."""

    capture: str
    frame: int
    time_ns: int
    own: tuple[tuple[str, int], ...]
    comment: str


@dataclass(frozen=True)
class Selection:
    """What is wanted: the packets around ``findings``, or all; of these only those of a client, a topic, a period.

    The packets of a finding itself are taken in any case.
    """

    findings: tuple[Place, ...] = ()
    around_ns: int = 0
    client: tuple[str, int | None] | None = None
    topic: str | None = None
    period: Period | None = None

    def periods(self, capture: str) -> list[Period] | None:
        """The times that are wanted of a capture, in order; None for all."""
        if not self.findings:
            return None if self.period is None else [self.period]
        near = [
            (one.time_ns - self.around_ns, one.time_ns + self.around_ns + 1)
            for one in self.findings
            if one.capture == capture
        ]
        low, high = self.period or (min(since for since, _ in near or [(0, 0)]), 1 << 63)
        return [
            (max(since, low), min(until, high)) for since, until in FrameRanges(near) if since < high and until > low
        ]

    def own(self, capture: str) -> dict[int, list[str]]:
        """The comments for each of the findings' own frames."""
        found: dict[int, list[str]] = {}
        for one in self.findings:
            for other, frame in dict.fromkeys(one.own):
                if other == capture:
                    is_its = (capture, frame) == (one.capture, one.frame)
                    found.setdefault(frame, []).append(one.comment if is_its else f"related: {one.comment}")
        return found


@dataclass
class Extracted:
    """What was written. ``damage``: sentences about captures of which a part cannot be read."""

    frames: int = 0
    captures: int = 0
    damage: list[str] = field(default_factory=list)


class _Capture(NamedTuple):
    path: str
    files: tuple[str, ...] | None  # of an ingested folder

    @property
    def name(self) -> str:
        return escape_text(self.path)


class _Picked(NamedTuple):
    """Compares by time, then by place."""

    time_ns: int
    capture: int
    number: int
    frame: Frame
    comments: tuple[str, ...]


def extract(
    sources: Sources,
    dialects: Dialects,
    selection: Selection,
    target: str | os.PathLike[str],
    progress: Callable[[int], None] | None = None,
) -> Extracted:
    """Write a pcapng with the packets, in order of time; each says in a comment which frame of which capture it was.

    Raises `TopicsharkError` if there are none, and leaves `target` as it was.
    """
    done = Extracted()
    captures = [one for one in _captures(sources) if _may_hold(one, selection)]
    streams = [_frames(number, one, dialects, selection, done) for number, one in enumerate(captures)]
    ordered = heapq.merge(*streams) if len(streams) <= _MOST_MERGED else (one for stream in streams for one in stream)
    with new_file(target) as stream:
        writer: CaptureWriter | None = None
        interfaces: dict[tuple[int, int, int], int] = {}
        for picked in ordered:
            key = (picked.capture, picked.frame.link_type, picked.frame.interface)
            if key not in interfaces:
                described = Interface(key[1], shorten(_short_name(captures[key[0]]), _LONGEST_NAME))
                if writer is None:
                    writer = CaptureWriter(stream, "pcapng", interfaces=[described])
                    interfaces[key] = 0
                else:
                    interfaces[key] = writer.add_interface(described)
            if writer is not None:
                _write(writer, picked, interfaces[key], captures[picked.capture])
            done.frames += 1
            if progress:
                progress(done.frames)
        if not done.frames:
            raise TopicsharkError("no packet matches; nothing was written")
    done.captures = len({capture for capture, *_ in interfaces})
    return done


def _write(writer: CaptureWriter, picked: _Picked, interface: int, capture: _Capture) -> None:
    frame = picked.frame
    origin = f"frame {frame.number} of {shorten(_short_name(capture), _LONGEST_NAME)}"
    writer.write(
        frame.data,
        max(0, frame.time_ns),
        interface=interface,
        original_length=frame.original_length & 0xFFFFFFFF,
        comments=(origin, *picked.comments),
    )


def _short_name(capture: _Capture) -> str:
    return escape_text(os.path.basename(capture.path))


def _captures(sources: Sources) -> list[_Capture]:
    found = [_Capture(path, None) for path in sources.captures]
    for folder in sources.folders:
        for entries in folder.sessions.values():
            found += [_Capture(entry.uri, tuple(folder.files(entry))) for entry in entries]
    return found


def _may_hold(capture: _Capture, selection: Selection) -> bool:
    """Whether it must be opened at all."""
    if not selection.findings:
        return True
    return bool(selection.own(capture.name)) or any(one.capture == capture.name for one in selection.findings)


# --- The frames of one capture --------------------------------------------------------------------------------------


def _frames(
    number: int, capture: _Capture, dialects: Dialects, selection: Selection, done: Extracted
) -> Iterator[_Picked]:
    own, periods = selection.own(capture.name), selection.periods(capture.name)
    try:
        with open_records(capture.path) as records:
            ranges, singles = _of_periods(records, periods), [(frame, frame) for frame in own]
            if selection.client or selection.topic is not None:
                rows = _matching(capture, dialects, selection, ranges, periods)
                singles += [(frame, frame) for part in rows for frame in part.tolist()]
                ranges = FrameRanges([])
            whole = records.with_fragments(FrameRanges(singles))
            times = None if periods is None else FrameRanges((since, until - 1) for since, until in periods)
            for frame in records.frames(FrameRanges([*ranges, *whole]), times, whole):
                yield _Picked(frame.time_ns, number, frame.number, frame, tuple(own.get(frame.number, ())))
            done.damage += [str(damage) for damage in records.damage]
    except CaptureError as error:
        if capture.files is None:
            raise
        raise TopicsharkError(f"{error}; packets are taken from the capture, which must still be there") from error


def _of_periods(records: Records, periods: list[Period] | None) -> FrameRanges:
    if periods is None:
        return FrameRanges([(1, 1 << 62)])
    found = [records.numbers_between(since, until) for since, until in periods]
    return FrameRanges((first, last) for first, last in found if first <= last)


def _matching(
    capture: _Capture, dialects: Dialects, selection: Selection, ranges: FrameRanges, periods: list[Period] | None
) -> Iterator[NDArray[np.int64]]:
    """Numbers of frames that are of the client, the topic and the periods; these lie in the ranges."""
    for unit in _units(capture, dialects, ranges):
        if selection.topic is None and unit.split is not None and selection.client is not None:
            for batch in read_batches(unit.split, _BATCH_ROWS, _unsaid, _unsaid):
                rows = _of_client(batch, *selection.client) & _are_in(batch.time_ns[: batch.count], periods)
                yield batch.frame[: batch.count][rows]
            continue
        columns = _ENDS if selection.topic is None else (*_ENDS, "topic", "filter")
        for table in open_batches(
            unit, dialects, columns, plain=True, batch_rows=_BATCH_ROWS, on_damage=_unsaid, on_warning=_unsaid
        ):
            rows = _rows_matching(table, selection) & _are_in(table.column("time_ns").to_numpy(), periods)
            yield table.column("frame").to_numpy()[rows]


def _units(capture: _Capture, dialects: Dialects, ranges: FrameRanges) -> Iterator[Unit]:
    if capture.files is not None:
        yield from (Unit(capture.name, file=file) for file in capture.files)
        return
    plan = plan_capture(capture.path, dialects, _UNIT_BYTES, keep=True)
    ends = [*(split.first_frame - 1 for split in plan.splits[1:]), 1 << 62]
    for unit, split, end in zip(plan.units, plan.splits, ends, strict=True):
        if ranges.overlap(split.first_frame, end):
            yield unit


def _of_client(batch: DatagramBatch, host: str, port: int | None) -> NDArray[np.bool_]:
    places = [place for place, address in enumerate(batch.addresses) if address == host]
    count = batch.count
    found = np.zeros(count, np.bool_)
    for ends, ports in ((batch.src, batch.sport), (batch.dst, batch.dport)):
        of_host = np.isin(ends[:count], places)
        found |= of_host if port is None else of_host & (ports[:count] == port)
    return found


def _are_in(times: NDArray[np.int64], periods: list[Period] | None) -> NDArray[np.bool_]:
    if periods is None:
        return np.ones(len(times), np.bool_)
    found = np.zeros(len(times), np.bool_)
    for since, until in periods:
        found |= (times >= since) & (times < until)
    return found


def _rows_matching(rows: pa.RecordBatch, selection: Selection) -> NDArray[np.bool_]:
    found = pa.array(np.ones(rows.num_rows, np.bool_))
    if selection.client is not None:
        host, port = selection.client
        ends = []
        for end in ("src", "dst"):
            of_host = pc.equal(rows.column(end), host)
            port_of = rows.column(f"{end[0]}port")
            ends.append(of_host if port is None else pc.and_(of_host, pc.equal(port_of, port)))
        found = pc.and_(found, pc.or_(*ends))
    if selection.topic is not None:
        pattern = _pattern(selection.topic)
        topics = [pc.match_substring_regex(rows.column(name), pattern).fill_null(False) for name in ("topic", "filter")]
        found = pc.and_(found, pc.or_(*topics))
    matching: NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
    return matching


def _pattern(topic: str) -> str:
    r"""`*` is any text, `?` any character.

    >>> _pattern("home/*")
    '^(?s:home/.*)$'
    """
    parts = {"*": ".*", "?": "."}
    return "^(?s:" + "".join(parts.get(one) or _quoted(one) for one in topic) + ")$"


def _quoted(character: str) -> str:
    return re.escape(character) if character.isascii() else character


def _unsaid(about: object) -> None:
    """The records tell of damage."""


# --- Findings -------------------------------------------------------------------------------------------------------


def places_of(findings: Iterable[Any], ids: Sequence[str]) -> tuple[Place, ...]:
    """The findings whose ids begin so; they are objects of `check --format json`, or the findings themselves.

    Raises `TopicsharkError` for an id that no finding has.
    """
    found: list[Place] = []
    wanted = dict.fromkeys(ids, False)
    for finding in findings:
        about = finding if isinstance(finding, dict) else _as_dict(finding)
        names = [one for one in ids if str(about["id"]).startswith(one)]
        if names:
            found.append(_place(about))
            wanted |= dict.fromkeys(names, True)
    missing = [one for one, is_there in wanted.items() if not is_there]
    if missing:
        raise TopicsharkError(f"no finding {missing[0]}; topicshark check --format json has the id of each finding")
    return tuple(found)


def _as_dict(finding: Any) -> dict[str, Any]:
    names = ("id", "rule", "level", "verdict", "capture", "frame", "time_ns", "text")
    related = [{"capture": capture, "frame": frame} for capture, frame in finding.related]
    return {name: getattr(finding, name) for name in names} | {"related": related}


def _place(about: dict[str, Any]) -> Place:
    """Raises `TopicsharkError` if it is no finding."""
    try:
        capture, frame, time_ns = str(about["capture"]), int(about["frame"]), int(about["time_ns"])
        own = ((capture, frame), *((str(one["capture"]), int(one["frame"])) for one in about["related"]))
        text = escape_text(f"{about['rule']} ({about['level']}): {about['text']}")
    except (KeyError, TypeError, ValueError) as error:
        raise TopicsharkError(f"not a finding of topicshark check --format json: {error!r}") from error
    return Place(capture, frame, time_ns, own, f"topicshark {shorten(text, 1_000)}")

"""The messages around findings, read again from captures or ingested folders: what a sequence diagram shows.

>>> near = frames_near(find_sources(["run.pcap"]), dialects, result.sessions[0].findings[:5])   # doctest: +SKIP
>>> [(row["frame"], row["message"]) for row in near[0]]                                         # doctest: +SKIP
[(7, 'PUBLISH'), (8, 'PUBLISH'), (9, 'ACK')]

Of a large capture only the units that hold a wanted frame are read, in small batches, and only batches that hold one
are decoded: memory is bounded whatever the size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pcap_tools.codec.detect import Dialects
from pcap_tools.columnar.read.frame_ranges import FrameRanges
from pcap_tools.errors import TopicsharkError
from pcap_tools.escaping import escape_text

from ..checker.session.events import endpoint_text
from ..sessions.ingested import Sources
from ..sources.options import arrow_schema
from ..sources.planning import plan_capture
from ..sources.units import Unit, open_batches
from .verdicts import Finding, Place

Row = dict[str, Any]
MOST_ROWS = 12  # around one finding
MOST_RELATED = 8  # of them
MOST_OTHERS = 6
NEAR_FRAMES = 1_000  # on each side
NEAR_NS = 2_000_000_000
_UNIT_BYTES, _BATCH_ROWS = 16 << 20, 4_096
_COLUMNS = (
    *("frame", "time_ns", "src", "sport", "dst", "dport", "dialect", "message", "meaning", "topic", "filter"),
    *("retain", "payload", "error", "copy_of"),
)
_SCHEMA = arrow_schema(_COLUMNS)


def frames_near(
    sources: Sources, dialects: Dialects, findings: Sequence[Finding], brokers: Collection[str] = ()
) -> list[list[Row]]:
    """For each finding the messages of its datagrams, of whichever capture, and in its own capture those nearby of the
    same client or topic; in the order of time.

    Empty where the finding's capture can no longer be read.
    """
    rows: dict[str, list[Row]] = {}
    for capture, wanted in _wanted_frames(findings).items():
        try:
            read = pa.Table.from_batches(_rows(sources, dialects, capture, wanted), _SCHEMA).to_pylist()
        except TopicsharkError:
            continue  # the check has told what there is to tell
        rows[capture] = [_with_ends(row, capture) for row in read]
    return [_around(rows, finding, brokers) for finding in findings]


def _around(rows: Mapping[str, Sequence[Row]], finding: Finding, brokers: Collection[str]) -> list[Row]:
    if not rows.get(finding.capture):
        return []
    captures = dict.fromkeys((finding.capture, *(place.capture for place in _related(finding))))
    return chosen([row for capture in captures for row in rows.get(capture, ())], finding, brokers)


def _related(finding: Finding) -> Sequence[Place]:
    return finding.related[:MOST_RELATED]


def chosen(rows: Sequence[Row], finding: Finding, brokers: Collection[str] = ()) -> list[Row]:
    """The finding's own datagrams, then of the same clients or topics in its capture those that are nearest, up to
    `MOST_ROWS`."""
    own = {(finding.capture, finding.frame), *_related(finding)}
    told = [row for row in rows if (row["capture"], row["frame"]) in own]
    topics = {finding.topic, *(row["topic"] for row in told)} - {None}
    clients = {finding.client, *(row[end] for row in told for end in ("source", "target"))} - {None, *brokers}

    def is_near(row: Row) -> bool:
        if row["capture"] != finding.capture or (row["capture"], row["frame"]) in own:
            return False
        is_same = row["topic"] in topics or row["source"] in clients or row["target"] in clients
        return is_same and row["copy_of"] is None and abs(row["time_ns"] - finding.time_ns) <= NEAR_NS

    others = sorted(
        (row for row in rows if is_near(row)),
        key=lambda row: (abs(row["frame"] - finding.frame), row["frame"]),
    )
    room = max(0, min(MOST_OTHERS, MOST_ROWS - len(told)))
    return sorted([*told, *others[:room]], key=lambda row: (row["time_ns"], row["frame"]))


def _with_ends(row: Row, capture: str) -> Row:
    source, target = endpoint_text(row["src"], row["sport"]), endpoint_text(row["dst"], row["dport"])
    return row | {"capture": capture, "source": source, "target": target}


def _wanted_frames(findings: Iterable[Finding]) -> dict[str, FrameRanges]:
    """By capture."""
    ends: dict[str, list[tuple[int, int]]] = {}
    for one in findings:
        ends.setdefault(one.capture, []).append((one.frame - NEAR_FRAMES, one.frame + NEAR_FRAMES))
        for place in _related(one):
            ends.setdefault(place.capture, []).append((place.frame, place.frame))
    return {capture: FrameRanges(some) for capture, some in ends.items()}


def _rows(sources: Sources, dialects: Dialects, capture: str, frames: FrameRanges) -> Iterator[pa.RecordBatch]:
    """From wherever the capture's messages are. Damage has been told by the check."""
    for unit in _units(sources, dialects, capture, frames):
        yield from open_batches(
            unit,
            dialects,
            _COLUMNS,
            plain=True,
            frames=frames,
            batch_rows=_BATCH_ROWS,
            on_damage=lambda damage: None,
            on_warning=lambda text: None,
        )


def _units(sources: Sources, dialects: Dialects, capture: str, frames: FrameRanges) -> Iterator[Unit]:
    """Those that may hold wanted frames."""
    for path in sources.captures:
        if escape_text(path) == capture:
            plan = plan_capture(path, dialects, _UNIT_BYTES)
            ends = [*(split.first_frame - 1 for split in plan.splits[1:]), 1 << 62]
            for unit, split, last in zip(plan.units, plan.splits, ends, strict=True):
                if frames.overlap(split.first_frame, last):
                    yield unit
            return
    for folder in sources.folders:
        for entries in folder.sessions.values():
            for entry in entries:
                if escape_text(entry.uri) == capture:
                    yield from (Unit(capture, file=file) for file in folder.files(entry))
                    return

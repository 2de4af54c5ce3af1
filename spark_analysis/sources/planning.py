"""From a capture to the units that tasks read: where they begin, and which endpoint speaks which dialect.

>>> plan = plan_capture("/captures/run.pcap", wanted_dialects(["colon"]), unit_bytes=128 << 20)  # doctest: +SKIP
>>> [(split.begin, split.end) for split in plan.splits], plan.evidence[0]                       # doctest: +SKIP

A capture that is one unit is not looked into before its task: thousands of small ones are planned in the time it takes
to list them. Of a larger one the dialects are found in the same first datagrams as by `topicshark decode`, so that both
decode alike.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import lru_cache

from pcap_tools.capture.damage import Corrupt, Damage
from pcap_tools.codec.decoding import LEARN_DATAGRAMS
from pcap_tools.codec.detect import Dialects, Evidence, Routes
from pcap_tools.columnar.decode.learning import find_dialects
from pcap_tools.columnar.read.frames import read_facts
from pcap_tools.columnar.read.reading import Split, read_file
from pcap_tools.columnar.read.sources import ByteSource, is_compressed, open_bytes, read_at
from pcap_tools.columnar.read.splits import plan_splits, whole_split
from pcap_tools.escaping import escape_text

from .units import Unit

_HEAD, _EDGE = 64, 1 << 20
_PLANS_KEPT = 1024
_PACKET_BYTES = 90  # of small messages in a capture


@dataclass(frozen=True)
class CapturePlan:
    """One capture: its splits, and what planning has found out about the whole of it.

    routes       None if tasks must find the dialects; then there is no evidence, damage or warning yet either
    frames       the number of the last frame; None if it is not known before reading
    version      changes with the content
    fingerprint  SHA-256 over the size, the first and the last MiB, of a capture that was planned in full
    """

    source: str
    splits: list[Split]
    routes: Routes | None
    size: int
    version: str
    evidence: list[Evidence] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    frames: int | None = None
    fingerprint: str = ""

    @property
    def units(self) -> list[Unit]:
        """One for each split."""
        name = escape_text(self.source)
        sizes = [split.end - split.begin for split in self.splits]
        return [
            Unit(name, split, self.routes, weight=size // _PACKET_BYTES)
            for split, size in zip(self.splits, sizes, strict=True)
        ]


def plan_capture(
    source: str, dialects: Dialects, unit_bytes: int, *, in_full: bool = False, keep: bool = False
) -> CapturePlan:
    """Divide a capture into units of about `unit_bytes`. Raises `TopicsharkError` if it is none.

    in_full  look into a capture that is one unit, too
    keep     keep the plan in this process, and the index of the capture beside it, for the next time
    """
    with open_bytes(source) as data:
        zipped, version = is_compressed(data), data.version
        if not in_full and (zipped or data.size <= unit_bytes):
            if not zipped:
                _check_head(data)
            return CapturePlan(source, [whole_split(data)], None, data.size, version)
        fingerprint = _fingerprint(data) if in_full else ""
    plan = (_walk_once if keep else _walk)(source, version, dialects, unit_bytes, keep)
    return replace(plan, fingerprint=fingerprint)


def _walk(source: str, version: str, dialects: Dialects, unit_bytes: int, keep: bool) -> CapturePlan:
    plan = plan_splits(source, unit_bytes, keep=keep)
    first = read_file(source, _unsaid, _unsaid, rows=LEARN_DATAGRAMS)
    found = find_dialects(first, dialects.detector())
    return CapturePlan(
        source=source,
        splits=plan.splits,
        routes=found.routes,
        size=plan.bytes,
        version=version,
        evidence=found.evidence,
        damage=plan.damage,
        warnings=plan.warnings,
        frames=plan.frames,
    )


_walk_once = lru_cache(_PLANS_KEPT)(_walk)


def _unsaid(about: object) -> None:
    """Damage and warnings are told by the plan, or by the reading of the whole."""


def _check_head(data: ByteSource) -> None:
    """Better no query than one that fails in a task: raises `CaptureError` if the first bytes are of no capture."""
    try:
        read_facts(data.name, read_at(data, 0, _HEAD), "")
    except Corrupt:
        return  # damage, which the reading tells


def _fingerprint(data: ByteSource) -> str:
    digest = hashlib.sha256(data.size.to_bytes(8, "big"))
    for offset in (0, max(data.size - _EDGE, 0)):
        digest.update(read_at(data, offset, min(_EDGE, data.size)))
    return digest.hexdigest()

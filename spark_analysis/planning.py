"""What must be known of a capture before its splits are decoded side by side: where they begin, who speaks what.

>>> plan = plan_capture("/captures/run.pcap", wanted_dialects(["colon"]), split_bytes=128 << 20)  # doctest: +SKIP
>>> [(split.begin, split.end) for split in plan.splits], plan.evidence[0]                       # doctest: +SKIP

The dialects are found in the same first datagrams as by `topicshark decode`, so that both decode alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pcap_tools.capture.damage import Damage
from pcap_tools.columnar.learning import find_dialects
from pcap_tools.columnar.reading import read_file
from pcap_tools.columnar.sources import ByteSource, open_bytes, read_at
from pcap_tools.columnar.splits import plan_splits
from pcap_tools.columnar.state import Split
from pcap_tools.decoding import LEARN_DATAGRAMS
from pcap_tools.detect import Evidence, Routes
from pcap_tools.dialect import builtin_names, load_dialect
from pcap_tools.errors import UsageError

from .capture_parts import Dialects

_EDGE = 1 << 20


def wanted_dialects(names: Sequence[str] | None = None, ports: Sequence[int] = ()) -> Dialects:
    """Names or TOML files, none for all that are built in; and more ports of the one dialect that is named."""
    dialects = tuple(load_dialect(name) for name in names or builtin_names())
    if ports and (not names or len(dialects) != 1):
        raise UsageError("a port goes with one dialect: --dialect colon --port 1234")
    if ports:
        spec = dialects[0].spec
        more = spec.model_copy(update={"ports": {**spec.ports, "more": tuple(ports)}})
        dialects = (replace(dialects[0], spec=more),)
    return Dialects(dialects, bool(names))


@dataclass(frozen=True)
class CapturePlan:
    """One capture: its splits, and what is to be said of the whole of it.

    version      changes with the content
    fingerprint  SHA-256 over the size, the first and the last MiB
    frames       the number of the last frame; None if it is not known before reading (gzip)
    """

    source: str
    splits: list[Split]
    routes: Routes
    evidence: list[Evidence]
    damage: list[Damage]
    warnings: list[str]
    frames: int | None
    size: int
    version: str
    fingerprint: str


def plan_capture(source: str, dialects: Dialects, split_bytes: int) -> CapturePlan:
    """Walk over a capture once. Raises `TopicsharkError` if it is none."""
    with open_bytes(source) as data:
        size, version, fingerprint = data.size, data.version, _fingerprint(data)
    plan = plan_splits(source, split_bytes, keep=False)
    first = read_file(source, _unsaid, _unsaid, rows=LEARN_DATAGRAMS)
    found = find_dialects(first, dialects.detector())
    return CapturePlan(
        source=source,
        splits=plan.splits,
        routes=found.routes,
        evidence=found.evidence,
        damage=plan.damage,
        warnings=plan.warnings,
        frames=plan.frames,
        size=size,
        version=version,
        fingerprint=fingerprint,
    )


def _unsaid(about: object) -> None:
    """Damage and warnings are told by the plan, or by the reading of the whole."""


def _fingerprint(data: ByteSource) -> str:
    digest = hashlib.sha256(data.size.to_bytes(8, "big"))
    for offset in (0, max(data.size - _EDGE, 0)):
        digest.update(read_at(data, offset, min(_EDGE, data.size)))
    return digest.hexdigest()

"""Parts of a capture that can be read side by side: `plan_splits`.

    >>> plan = plan_splits("run.pcap", split_bytes=128 << 20)              # doctest: +SKIP
    >>> rows = [batch.count for split in plan.splits for batch in read_batches(split)]

Each datagram belongs to the split in which its last frame lies. All splits together give exactly the rows of the
whole file, because each begins with what a reader that comes from the file's begin knows at that border: open trains
of fragments, and the datagrams of the last millisecond.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pcap_tools.capture.damage import Damage
from pcap_tools.columnar.read.feeds import is_gzip
from pcap_tools.columnar.read.index import STEP, Index, find_index
from pcap_tools.columnar.read.sources import ByteSource, open_bytes
from pcap_tools.columnar.read.state import Split, State
from pcap_tools.errors import UsageError

Opener = Callable[[str], AbstractContextManager[ByteSource]]


@dataclass(frozen=True)
class Plan:
    """The splits of one capture, in file order, and what is to be said about the whole of it.

    frames      the number of the last frame; None if it is not known before reading
    bytes       size of the file
    why_single  why there is only one split though the file is larger, else empty
    """

    splits: list[Split]
    damage: list[Damage]
    warnings: list[str]
    frames: int | None
    bytes: int
    why_single: str


def plan_splits(
    source: str,
    split_bytes: int = 256 << 20,
    cache: Path | None = None,
    keep: bool = True,
    opener: Opener = open_bytes,
) -> Plan:
    """Divide a path or URI into splits of about `split_bytes`.

    The index is kept for the next time (see `index.py`): in the folder `cache` if that is given, and not at all if
    `keep` is false. Raises `CaptureError` if `source` is no capture.
    """
    if split_bytes < 1:
        raise UsageError(f"split_bytes is at least 1, not {split_bytes}")
    with opener(source) as data:
        if is_gzip(data):
            why = "a file compressed with gzip can only be read from its begin; decompress it to read it in parallel"
            return Plan([whole_split(data)], [], [], None, data.size, why)
        index = find_index(data, min(STEP, split_bytes), keep, cache)
        size = data.size
    chosen = _choose(index, split_bytes)
    ends = [*(state.offset for state in chosen[1:]), index.end]
    splits = [
        Split(source, ordinal, end, index.version, index.seed, state)
        for ordinal, (state, end) in enumerate(zip(chosen, ends, strict=False))
    ]
    why = "its fragments leave too much open to begin anywhere else" if len(splits) == 1 < size // split_bytes else ""
    return Plan(splits, index.damage, index.warnings, index.frames, size, why)


def whole_split(data: ByteSource) -> Split:
    """All of a capture, which is not looked into."""
    return Split(data.name, 0, data.size, data.version, (0, 0), None)


def _choose(index: Index, split_bytes: int) -> list[State]:
    """Borders at least `split_bytes` apart, the first one always."""
    chosen: list[State] = []
    for state in index.states:
        if not chosen or state.offset - chosen[-1].offset >= split_bytes:
            chosen.append(state)
    return chosen

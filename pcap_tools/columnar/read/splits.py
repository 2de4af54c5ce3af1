"""Parts of a capture that can be read side by side: `plan_splits`.

    >>> plan = plan_splits("run.pcap", split_bytes=128 << 20)              # doctest: +SKIP
    >>> rows = [batch.count for split in plan.splits for batch in read_batches(split)]

Each datagram belongs to the split in which its last frame lies. All splits together give exactly the rows of the whole
file, because each begins with what a reader that comes from the file's begin knows at that border: open groups
of fragments, and the datagrams of the last millisecond.

The borders come from the *index* of a capture: places between records where a reading can begin, with all it must know
there. One pass with the reader itself makes it, so that a border knows what the reader knew; the pass hops over records
that leave nothing to remember. The index is kept beside the capture as NAME.topicshark-index, or in the user's cache
where that is not possible, and made again when the capture has changed. It is an npz file of plain arrays.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from pcap_tools.capture.damage import Damage
from pcap_tools.capture.frame import MAX_CAPTURED
from pcap_tools.capture.pcapng import InterfaceBlock
from pcap_tools.columnar.read.copies import GROUP_COLUMNS, random_seed
from pcap_tools.columnar.read.fragments import FrameNote
from pcap_tools.columnar.read.frames import IF_LINK, PCAP, Facts
from pcap_tools.columnar.read.packets import skim
from pcap_tools.columnar.read.reading import Reading, Split, State
from pcap_tools.columnar.read.sources import ByteSource, is_compressed, is_remote, open_bytes, whole_feed
from pcap_tools.errors import UsageError

_VERSION = 1
_SUFFIX = ".topicshark-index"
STEP = 16 << 20
# A capture below this size is walked through sooner than its index is found and checked.
_SMALL = 4 << 20
# A border with more to remember is left out: the splits get longer, not the index.
_MOST_NOTES, _MOST_INTERFACES = 20_000, 10_000
_NOTE_COLUMNS = len(FrameNote._fields)


@dataclass(frozen=True)
class Index:
    """What one pass over a capture found. `end` is where the sound records end, `frames` the last frame's number."""

    version: str
    step: int
    seed: tuple[int, int]
    states: list[State]
    end: int
    frames: int
    damage: list[Damage]
    warnings: list[str]


def find_index(source: ByteSource, step: int = STEP, keep: bool = True, cache: Path | None = None) -> Index:
    """The index that was kept, if it fits and is fine enough, else a new one.

    `cache` is a folder to keep indexes in, instead of the place beside the capture.
    """
    places = _places(source.name, cache) if keep and source.size >= _SMALL else []
    for place in places:
        index = _load(place, source)
        if index is not None and index.step <= step:
            return index
    index = build_index(source, step)
    for place in places:
        if _save(place, index):
            break
    return index


def build_index(source: ByteSource, step: int = STEP) -> Index:
    """Walk over the whole capture, with a border about every `step` bytes."""
    damage: list[Damage] = []
    warnings: list[str] = []
    seed = random_seed()
    reading = _Skimming(source.name, whole_feed(source), seed, damage.append, warnings.append)
    states: list[State] = []
    if reading.open():
        while not reading.over:
            _add(states, reading.state())
            for _ in reading.batches(limit=reading.position + step):
                pass
    end = damage[0].offset if damage else reading.position
    states = [state for state in states if state.offset < end] or states[:1]
    return Index(source.version, step, seed, states, end, reading.frames, damage, warnings)


class _Skimming(Reading):
    """Gives no rows where there is nothing to remember: no fragments, and nowhere that copies can come from."""

    def _stride(self, limit: int) -> int:
        facts, link = self._walker.facts(), int(self._walker.interfaces[0, IF_LINK])
        if self._copies is None and facts.format == PCAP and link >= 0:
            self._at, self._number = skim(
                self._buffer.data, self._at, self._have, limit - self._offset, self._number, facts.order == ">", link
            )
        return super()._stride(limit)


def _add(states: list[State], state: State | None) -> None:
    if state is None or len(state.notes) > _MOST_NOTES or len(state.facts.interfaces) > _MOST_INTERFACES:
        return
    states.append(state)


# --- Keeping it -----------------------------------------------------------------------------------------------------


def _places(name: str, cache: Path | None) -> list[Path]:
    """Where the index of a capture may be, the best place first."""
    full = name if is_remote(name) else os.path.abspath(name)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "topicshark"
    hashed = blake2b(full.encode(errors="surrogateescape"), digest_size=16).hexdigest() + _SUFFIX
    if cache is not None:
        return [cache / hashed]
    return [home / hashed] if is_remote(name) else [Path(full + _SUFFIX), home / hashed]


def _save(place: Path, index: Index) -> bool:
    """All at once or not at all."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=".topicshark-", delete=False) as file:
            try:
                np.savez(file, allow_pickle=False, **_arrays(index))
                os.replace(file.name, place)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError:
        return False
    return True


def _arrays(index: Index) -> dict[str, Any]:
    facts = list(dict.fromkeys(state.facts for state in index.states))
    about = {
        "format": _VERSION,
        "version": index.version,
        "step": index.step,
        "seed": index.seed,
        "end": index.end,
        "frames": index.frames,
        "damage": [asdict(one) for one in index.damage],
        "warnings": index.warnings,
        "facts": [asdict(one) for one in facts],
    }
    groups = [_no_groups() if state.groups is None else state.groups for state in index.states]
    notes = [np.array(state.notes, np.int64).reshape(-1, _NOTE_COLUMNS) for state in index.states]
    states = [
        (state.offset, state.frames, facts.index(state.facts), len(group), len(note))
        for state, group, note in zip(index.states, groups, notes, strict=True)
    ]
    return {
        "about": np.frombuffer(json.dumps(about).encode(), np.uint8),
        "states": np.array(states, np.int64).reshape(-1, 5),
        "groups": np.concatenate([*groups, _no_groups()]),
        "notes": np.concatenate([*notes, np.zeros((0, _NOTE_COLUMNS), np.int64)]),
    }


def _no_groups() -> NDArray[np.int64]:
    return np.zeros((0, GROUP_COLUMNS), np.int64)


def _load(place: Path, source: ByteSource) -> Index | None:
    """None if there is none, if it is of another content or version, or if it is not an index at all.

    It may come from whoever sent the capture, so it is not believed more than that.
    """
    try:
        with np.load(place, allow_pickle=False) as arrays:
            if any(member.compress_type for member in arrays.zip.infolist()):
                return None  # none is written so: it could be a bomb
            about = json.loads(arrays["about"].tobytes())
            if about["format"] != _VERSION or about["version"] != source.version:
                return None
            index = _index(about, arrays["states"], arrays["groups"], arrays["notes"], source.name)
            return index if _is_possible(index, source.size) else None
    except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError, AttributeError, BadZipFile, MemoryError):
        return None


def _is_possible(index: Index, size: int) -> bool:
    """Nothing in it asks for bytes that the capture cannot have."""
    offsets = [state.offset for state in index.states]
    notes = [note for state in index.states for note in state.notes]
    return (
        bool(offsets)
        and offsets == sorted(offsets)
        and 0 <= offsets[0] <= offsets[-1] <= index.end <= size
        and all(0 <= note.captured <= MAX_CAPTURED and 0 <= note.offset < size for note in notes)
    )


def _index(
    about: dict[str, Any], table: NDArray[np.int64], groups: NDArray[np.int64], notes: NDArray[np.int64], name: str
) -> Index:
    facts = [
        Facts(
            one["format"],
            one["order"],
            one["magic"],
            tuple(InterfaceBlock(*values) for values in one["interfaces"]),
            one["next_interface"],
        )
        for one in about["facts"]
    ]
    states, group, note = [], 0, 0
    for offset, frames, which, group_count, note_count in table.tolist():
        state_notes = [FrameNote(*row) for row in notes[note : note + note_count].tolist()]
        state_groups = np.ascontiguousarray(groups[group : group + group_count])
        states.append(State(offset, frames, facts[which], state_groups, state_notes))
        group, note = group + group_count, note + note_count
    # The name may have changed since; the content has not.
    damage = [Damage(name, one["offset"], one["text"]) for one in about["damage"]]
    seed = (int(about["seed"][0]), int(about["seed"][1]))
    return Index(
        about["version"], about["step"], seed, states, about["end"], about["frames"], damage, about["warnings"]
    )  # fmt: skip


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
        if is_compressed(data):
            why = "a compressed file can only be read from its begin; decompress it to read it in parallel"
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

"""One capture through all readers: what is wrong with their answers.

Judges are the frames that the capture was built of, and the pure-Python reader against the kernels: whole, in splits,
and as `topicshark decode` prints them. Anything but the project's own exceptions leaves this module as it came.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from fuzzing.captures.mutants import Mutant
from pcap_tools.capture import CaptureError, read_frames
from pcap_tools.codec.decoding import Notes, decode_capture
from pcap_tools.columnar.read.reading import read_batches
from pcap_tools.columnar.read.splits import plan_splits
from pcap_tools.columnar.text.json_lines import JsonLines
from pcap_tools.columnar.text.rows import decode_lines
from pcap_tools.dialect import Dialect, load_dialect
from tests.pcap_tools.columnar.captures import Result, by_kernels, by_python, rows_of

_PARTS = 4
_FEW_ROWS = 37  # so that a capture is several batches


class Verdict(NamedTuple):
    """What was read, and what is wrong with it."""

    frames: int
    datagrams: int
    damaged: bool
    refused: bool
    complaints: tuple[str, ...]


def try_capture(mutant: Mutant, path: Path) -> Verdict:
    """Read a capture in all ways; `path` is where it may be put."""
    path.write_bytes(mutant.content)
    frames, error = _frames(mutant.content)
    expected = by_python(path)
    complaints = [
        *_not_all(mutant, frames),
        *_differing("kernels", expected, by_kernels(path, _FEW_ROWS)),
        *_differing("splits", expected, _by_splits(path, len(mutant.content) // _PARTS + 1)),
        *_differing_text(path),
    ]
    if bool(error) != bool(expected.error):
        complaints.append(f"frames say {error!r}, datagrams {expected.error!r}")
    return Verdict(len(frames), len(expected.rows), bool(expected.damage), bool(error), tuple(complaints))


def _frames(content: bytes) -> tuple[list[bytes], str]:
    found: list[bytes] = []
    try:
        found.extend(frame.data for frame in read_frames(io.BytesIO(content), lambda damage: None))
    except CaptureError as error:
        return found, str(error)
    return found, ""


def _not_all(mutant: Mutant, frames: list[bytes]) -> Iterator[str]:
    for number, sound in enumerate(mutant.sound):
        if number >= len(frames) or frames[number] != sound:
            yield f"frame {number + 1} is before the damage, but was not read as it is"
            return


def _differing(way: str, expected: Result, found: Result) -> Iterator[str]:
    for part, one, other in zip(Result._fields, expected, found, strict=True):
        if one != other:
            yield f"{way}: {part} differ: {_shown(one)} by Python, {_shown(other)}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) < 500 else f"{text[:250]} … {text[-250:]}"


def _by_splits(path: Path, split_bytes: int) -> Result:
    try:
        plan = plan_splits(str(path), split_bytes, keep=False)
        damage, warnings = list(plan.damage), list(plan.warnings)
        rows = [
            row for one in plan.splits for row in rows_of(read_batches(one, _FEW_ROWS, damage.append, warnings.append))
        ]
    except CaptureError as error:
        return Result([], [], [], str(error))
    return Result(rows, damage, warnings, "")


def _differing_text(path: Path) -> Iterator[str]:
    by_rows, by_columns = _text_by_rows(path), _text_by_columns(path)
    for line, (one, other) in enumerate(zip(by_rows, by_columns, strict=False), 1):
        if one != other:
            yield f"decode: line {line} differs: {_shown(one)} by rows, {_shown(other)} by columns"
            return
    if len(by_rows) != len(by_columns):
        yield f"decode: {len(by_rows)} lines by rows, {len(by_columns)} by columns"


def _text_by_rows(path: Path) -> list[str]:
    try:
        rows = decode_capture(path, _dialects(), Notes())
        return [json.dumps(row.as_dict(), ensure_ascii=False) for row in rows]
    except CaptureError as error:
        return [str(error)]


def _text_by_columns(path: Path) -> list[str]:
    try:
        lines = decode_lines(partial(JsonLines, keep_other=True, capture=None), path, _dialects(), Notes())
        return "".join(one.text for one in lines).splitlines()
    except CaptureError as error:
        return [str(error)]


@cache
def _dialects() -> list[Dialect]:
    return [load_dialect("colon")]

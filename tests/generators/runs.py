"""Scenarios played for the tests of this folder: generated, written, and read back by the readers users have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generators.capture.capture_point import write
from generators.generate import GeneratedRun, GeneratorOptions, generate
from pcap_tools.codec.decoding import Row, decode_capture
from pcap_tools.dialect import builtin_names
from tests.vectors import DIALECTS, dialect_of, own_dialect_names

ALL_DIALECTS = [*builtin_names(), *own_dialect_names()]
SMALL: dict[str, Any] = {"sensors": 3, "dashboards": 3, "actuators": 1, "rounds": 4}


@dataclass
class Play:
    """A run, the file it was written to, its truth, and what the codec reads in the file, by frame."""

    made: GeneratedRun
    path: Path
    truth: dict[str, Any]
    rows: dict[int, Row]

    def shown(self, frame: int) -> dict[str, Any]:
        return self.rows[frame].as_dict()


def named(dialect: str) -> str:
    """How an order names a dialect: those of the tests by their file."""
    return dialect if dialect in builtin_names() else str(DIALECTS / f"{dialect}.toml")


def play(scenario: str, folder: Path, *dialects: str, **more: Any) -> Play:
    made = generate(GeneratorOptions(scenario, dialects=tuple(map(named, dialects)), **more))
    path = folder / "run.pcap"
    write(made.capture, path)
    known = [dialect_of(name) for name in dialects] or None
    return Play(made, path, made.truth(), {row.datagram.frame: row for row in decode_capture(path, known)})

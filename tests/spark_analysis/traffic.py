"""Small captures, and what the codec, one datagram at a time, says of them: what the source is judged by."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from generators.capture.capture_point import write
from generators.generate import GeneratorOptions, generate
from pcap_tools.codec.decoding import decode_capture
from pcap_tools.dialect import load_dialect
from spark_analysis.sources.options import SOURCE_COLUMNS

Row = tuple[Any, ...]


def write_capture(path: Path, *dialects: str, seed: int = 1, rounds: int = 3, **capture: Any) -> Path:
    """Traffic of a building in these dialects."""
    scenario = "mixed" if len(dialects) > 1 else "building"
    order = GeneratorOptions(scenario, seed=seed, dialects=dialects or ("colon",), rounds=rounds, capture=capture)
    path.parent.mkdir(parents=True, exist_ok=True)
    write(generate(order).capture, path)
    return path


def codec_rows(
    path: Path, session: str, dialect: str | None = None, keep_other: bool = False, capture: str | None = None
) -> list[Row]:
    """In the order of the file, with all columns of the source."""
    named = [load_dialect(dialect)] if dialect else None
    rows = [
        row.as_dict() | {"session": session, "capture": capture or str(path)}
        for row in decode_capture(path, named)
        if row.message is not None or keep_other
    ]
    return [tuple(row[name] for name in SOURCE_COLUMNS) for row in rows]


def spark_rows(frame: DataFrame) -> list[Row]:
    """All rows, sorted by capture and frame."""
    return in_order(tuple(row) for row in frame.collect())


def in_order(rows: Iterable[Row]) -> list[Row]:
    """By capture and frame, the columns 1 and 2 of the source."""
    return sorted(rows, key=lambda row: (row[1], row[2]))

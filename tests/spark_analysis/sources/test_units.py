"""Units: the same messages from a capture, from splits of it and from Parquet, in whichever types."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pcap_tools.codec.detect import wanted_dialects
from pcap_tools.columnar.decode.schema import ALL_COLUMNS, ALL_MESSAGES
from pcap_tools.columnar.read.frame_ranges import FrameRanges
from pcap_tools.errors import TopicsharkError
from spark_analysis.ingest import UnitFile, write_unit
from spark_analysis.sources.options import ALL_SOURCE_COLUMNS, SOURCE_COLUMNS, arrow_schema
from spark_analysis.sources.planning import plan_capture
from spark_analysis.sources.units import Unit, open_batches
from tests.spark_analysis.traffic import codec_rows, write_capture

ALL = wanted_dialects()


@pytest.fixture(scope="module", params=[("colon",), ("colon", "rolebyte", "mqttsn")], ids=str)
def capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_capture(tmp_path_factory.mktemp("units") / "run.pcap", *request.param)


@pytest.fixture(scope="module")
def whole(capture: Path) -> list[Unit]:
    return plan_capture(str(capture), ALL, 1 << 30).units


@pytest.fixture(scope="module")
def splits(capture: Path) -> list[Unit]:
    units = plan_capture(str(capture), ALL, 3000).units
    assert len(units) > 3
    return units


@pytest.fixture(scope="module")
def files(splits: list[Unit], capture: Path) -> list[Unit]:
    """As `ingest` writes them."""
    folder = str(capture.parent / "files")
    written = [write_unit(ALL, UnitFile(unit, folder, f"part-{place}")) for place, unit in enumerate(splits)]
    return [Unit(str(capture), file=f"{folder}/{one.file}") for one in written if one.file]


def rows_of(units: Sequence[Unit], columns: Sequence[str], **options: Any) -> list[dict[str, Any]]:
    return [row for unit in units for batch in open_batches(unit, ALL, columns, **options) for row in batch.to_pylist()]


def test_plain_rows_are_those_of_the_codec_from_wherever_they_come(
    capture: Path, whole: list[Unit], splits: list[Unit], files: list[Unit]
) -> None:
    wanted = [dict(zip(SOURCE_COLUMNS, row, strict=True)) for row in codec_rows(capture, "monday")]
    for units in (whole, splits, files):
        assert rows_of(units, SOURCE_COLUMNS, plain=True, session="monday") == wanted


def test_types_are_plain_or_those_of_the_decoder(whole: list[Unit], splits: list[Unit], files: list[Unit]) -> None:
    columns = ("topic", "session", "frame", "dialect")
    for units in (whole, splits, files):
        (plain, *_), (coded, *_) = (
            open_batches(units[0], ALL, columns, plain=True),
            open_batches(units[0], ALL, ["src"]),
        )
        assert plain.schema == arrow_schema(columns)
        assert pa.types.is_dictionary(coded.schema.field("src").type)
        assert [row["src"] for row in rows_of(units, ["src"])] == [
            row["src"] for row in rows_of(units, ["src"], plain=True)
        ]


def test_datagrams_of_no_known_dialect_are_counted_or_kept(whole: list[Unit]) -> None:
    colon = wanted_dialects(["colon"])
    opened = open_batches(whole[0], colon, ["frame", "dialect"])
    known = sum(batch.num_rows for batch in opened)
    kept = open_batches(whole[0], colon, ["frame", "dialect"], plain=True, keep_other=True)
    dialects = [row["dialect"] for batch in kept for row in batch.to_pylist()]
    assert (dialects.count("colon"), dialects.count(None)) == (known, opened.other)
    assert known > 100


def test_the_task_says_why_dialects_are_believed_if_it_has_found_them(whole: list[Unit], splits: list[Unit]) -> None:
    assert open_batches(whole[0], ALL, ["frame"]).evidence
    assert not open_batches(splits[0], ALL, ["frame"]).evidence


@pytest.mark.parametrize("last", [0, 1 << 40], ids=["early", "beyond"])
def test_some_frames(whole: list[Unit], splits: list[Unit], files: list[Unit], last: int) -> None:
    every = [row["frame"] for row in rows_of(whole, ["frame"])]
    middle = every[len(every) // 2]
    ranges = [(every[0], every[2]), (middle, middle + 5), (min(last, every[-1]), last)]
    wanted = [frame for frame in every if any(low <= frame <= high for low, high in ranges)]
    for units in (whole, splits, files):
        rows = rows_of(units, ("frame", "topic"), plain=True, frames=FrameRanges(ranges), batch_rows=20)
        assert [row["frame"] for row in rows] == wanted


def test_what_a_file_lacks_is_null(files: list[Unit], tmp_path: Path) -> None:
    old = tmp_path / "old.parquet"
    pq.write_table(pq.read_table(files[0].file).drop_columns(["code", "ip_id"]), old)
    unit = Unit("run.pcap", file=str(old))
    for options in ({}, {"plain": True}):
        rows = rows_of([unit], ALL_COLUMNS, **options)
        assert {(row["code"], row["ip_id"]) for row in rows} == {(None, None)}
    (batch, *_) = open_batches(unit, ALL, ALL_SOURCE_COLUMNS, plain=True)
    assert batch.schema.field("code").type == ALL_MESSAGES.field("code").type


@pytest.mark.parametrize("plain", [False, True])
def test_a_file_that_is_gone_or_broken_is_told(files: list[Unit], tmp_path: Path, plain: bool) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(Path(files[0].file).read_bytes()[:-20])
    for path in (broken, tmp_path / "gone.parquet"):
        with pytest.raises(TopicsharkError, match=f"{path}: cannot be read: "):
            list(open_batches(Unit("run.pcap", file=str(path)), ALL, ["frame"], plain=plain))

"""Plans of captures: what is found out now, and what is left to the tasks."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path

import pytest

from pcap_tools.codec.detect import wanted_dialects
from pcap_tools.columnar.read.splits import plan_splits
from pcap_tools.errors import TopicsharkError
from spark_analysis.sources import planning
from spark_analysis.sources.options import parse_options
from spark_analysis.sources.planning import plan_capture
from spark_analysis.sources.reading import SourceReading
from tests.spark_analysis.traffic import write_capture

ALL = wanted_dialects()
SMALL, LARGE = 1000, 1 << 30  # of units


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return write_capture(tmp_path / "run.pcap")


@pytest.fixture
def zipped(capture: Path) -> Path:
    path = capture.with_name("zipped.pcap.gz")
    path.write_bytes(gzip.compress(capture.read_bytes()))
    return path


def test_a_capture_of_one_unit_is_left_to_its_task(
    capture: Path, zipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("plan_splits", "read_file", "find_dialects"):
        monkeypatch.delattr(planning, name)
    for path, unit_bytes in ((capture, LARGE), (zipped, SMALL)):
        (unit,) = plan_capture(str(path), ALL, unit_bytes).units
        assert (unit.capture, unit.routes, unit.bytes) == (str(path), None, path.stat().st_size)
        assert unit.weight == unit.bytes // 90, "so that sessions of many are cut into as many buckets as large ones"


def test_first_bytes_of_no_capture_are_told_before_any_task(tmp_path: Path) -> None:
    text = tmp_path / "text.pcap"
    text.write_text("just a text")
    with pytest.raises(TopicsharkError, match=r"text\.pcap"):
        plan_capture(str(text), ALL, LARGE)


def test_a_plan_in_full_tells_all_of_a_small_capture(capture: Path, zipped: Path) -> None:
    plan = plan_capture(str(capture), ALL, LARGE, in_full=True)
    assert (len(plan.splits), plan.frames, len(plan.fingerprint)) == (1, plan_splits(str(capture)).frames, 64)
    assert {one.dialect for one in plan.evidence} == {"colon"}
    assert plan.units[0].routes == plan.routes == plan_capture(str(capture), ALL, SMALL).routes
    of_zipped = plan_capture(str(zipped), ALL, SMALL, in_full=True)
    assert (len(of_zipped.splits), of_zipped.frames, of_zipped.routes) == (1, None, plan.routes)


def test_only_a_plan_that_is_to_be_kept_leaves_an_index(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcap_tools.columnar.read.splits._SMALL", 0)  # it is not worth it otherwise
    before = set(capture.parent.iterdir())
    plan = plan_capture(str(capture), ALL, SMALL)
    assert len(plan.units) > 3
    assert set(capture.parent.iterdir()) == before
    assert plan_capture(str(capture), ALL, SMALL, keep=True).damage == plan.damage == []
    assert [path.name for path in set(capture.parent.iterdir()) - before] == ["run.pcap.topicshark-index"]


def test_damage_is_logged_once_however_often_spark_plans(capture: Path, caplog: pytest.LogCaptureFixture) -> None:
    capture.write_bytes(capture.read_bytes()[:-3])
    reading = SourceReading(parse_options({"path": str(capture), "splitsize": "0.001"}), ["frame"])
    with caplog.at_level(logging.WARNING):
        plans = [reading.plan([str(capture)], ["run"]) for _ in range(3)]
    assert [len(plan) > 3 for plan in plans] == [True] * 3
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [str(capture)]

"""However a session is cut, its tables have the same rows: read in up to 50 units that begin anywhere, judged in up to
16 buckets of keys, in this process and by Spark, and as three merged captures.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import event, example, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from generators.capture.capture_point import Capture, CapturedFrame
from generators.capture.options import Point
from generators.generate import GeneratorOptions, generate
from generators.simulation.fault import CATALOGUE
from pcap_tools.capture import CaptureWriter
from pcap_tools.codec.detect import wanted_dialects
from pcap_tools.dialect import load_dialect
from spark_analysis import check, cutting, pipeline
from spark_analysis.engine.engines import Engine, LocalEngine, SparkEngine
from spark_analysis.pipeline import ROW_TABLES, Options
from spark_analysis.sessions.plans import SessionPlan
from spark_analysis.sources.planning import plan_capture
from spark_analysis.sources.units import Unit
from spark_analysis.tables.packing import joined
from tests.spark_analysis.checker.checked import judged
from tests.spark_analysis.local_tables import tables_of, texts

EXAMPLES = int(os.environ.get("TOPICSHARK_FUZZ", "4000")) // 1000
MANY = "TOPICSHARK_FUZZ" in os.environ
DIALECTS = ("colon", "topicbyte", "portdigits", "topicnumber", "rolebyte", "mqttsn")
SCENARIOS = ("building", "churn", "retained", "lossy")
MOST_UNITS, MOST_BUCKETS = 50, 16
FILES = 3
# Copies of a frame that `any` makes are known by what came before in the same file: it is cut where nothing did.
QUIET_NS = 2_000_000

Tables = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Cuts:
    """Where units begin, as shares of the whole; how many buckets there are; how many rows chunks and slices have; how
    many subscriptions with wildcards go to all topics before publishes go to them."""

    begins: tuple[float, ...]
    buckets: int
    chunk_rows: int = 1000
    slice_rows: int = 1000
    sent_everywhere: int = 100_000


@st.composite
def orders(draw: st.DrawFn) -> GeneratorOptions:
    """Small sessions with two faults that their dialect can have."""
    dialect = draw(st.sampled_from(DIALECTS))
    loaded = load_dialect(dialect)
    scenarios = [one for one in SCENARIOS if one != "retained" or loaded.spec.broker.retained != "none"]
    faults = sorted(name for name, one in CATALOGUE.items() if one.fits(loaded) is None)
    chosen = draw(st.lists(st.sampled_from(faults), max_size=2, unique=True))
    return GeneratorOptions(
        draw(st.sampled_from(scenarios)),
        draw(st.integers(1, 10**6)),
        (dialect,),
        faults=dict.fromkeys(chosen, 0.2),
        capture={"point": draw(st.sampled_from([Point.BROKER, Point.ANY]))},
        sensors=2,
        dashboards=2,
        rounds=draw(st.integers(1, 8)),
    )


@st.composite
def cuts(draw: st.DrawFn) -> Cuts:
    """Up to 50 units: the number first, or most would be few."""
    borders = draw(st.integers(0, MOST_UNITS - 1))
    begins = draw(st.lists(st.floats(0, 1, exclude_max=True), min_size=borders, max_size=borders))
    rows = st.integers(1, 100)
    return Cuts(tuple(begins), draw(st.integers(1, MOST_BUCKETS)), draw(rows), draw(rows), draw(st.integers(0, 40)))


def write_frames(capture: Capture, begin: int, end: int, path: Path) -> Path:
    """Frames from one to another, counted from 0."""
    options = capture.options
    with CaptureWriter(path, link_type=options.link_type.number, resolution=options.resolution) as out:
        for frame in capture.frames[begin:end]:
            out.write(frame.data, frame.time_ns, original_length=frame.original_length)
    return path


def units_of(path: Path, options: Options, begins: Sequence[float]) -> list[Unit]:
    """A unit may begin at any record."""
    plan = plan_capture(str(path), options.dialects, 1)
    count = len(plan.splits)
    edges = [0, *sorted({int(share * count) for share in begins} - {0}), count]
    return [
        Unit(str(path), replace(plan.splits[begin], end=plan.splits[end - 1].end), plan.routes)
        for begin, end in pairwise(edges)
    ]


def tables(
    engine: Engine, paths: Sequence[Path], options: Options, cut: Cuts | None = None, datagrams: int = 1
) -> Tables:
    """The tables of one session; without ``cut`` it has as few units as captures."""
    units = [unit for path in paths for unit in units_of(path, options, cut.begins if cut else ())]
    with pytest.MonkeyPatch.context() as patch:
        if cut is not None:
            patch.setattr(pipeline, "BUCKET_ROWS", max(1, -(-datagrams // cut.buckets)))
            patch.setattr(cutting, "CHUNK_ROWS", cut.chunk_rows)
            patch.setattr(cutting, "SLICE_ROWS", cut.slice_rows)
            patch.setattr(cutting, "SHARE_ROWS", cut.slice_rows)
            patch.setattr(cutting, "SENT_EVERYWHERE", cut.sent_everywhere)
        found = tables_of(engine, [SessionPlan("run", tuple(map(str, paths)), tuple(units))], options)
    return {name: table.to_pylist() for name, table in found.items()}


def same(found: Tables, expected: Tables) -> None:
    for name, rows in expected.items():
        one, two = texts(found[name]), texts(rows)
        assert one == two, (name, sorted(set(one) - set(two))[:3], sorted(set(two) - set(one))[:3])


class Example:
    """A session in one capture, and what its tables hold when it is read as a whole."""

    def __init__(self, order: GeneratorOptions, folder: Path) -> None:
        self.folder = folder
        self.capture = generate(order).capture
        self.options = Options(wanted_dialects(order.dialects), summaries=False, tables=frozenset(ROW_TABLES))
        self.path = write_frames(self.capture, 0, len(self.capture.frames), folder / "run.pcap")
        self.whole = tables(LocalEngine(), [self.path], self.options)
        self.datagrams = sum(row["datagrams"] for row in self.whole["endpoints"])

    def cut(self, cut: Cuts, engine: Engine) -> Tables:
        return tables(engine, [self.path], self.options, cut, self.datagrams)

    def merged(self, cut: Cuts, engine: Engine) -> Tables:
        """From three files; places are told as in the one capture."""
        begins = [0, *(self._quiet(number * len(self.capture.frames) // FILES) for number in range(1, FILES))]
        ends = [*begins[1:], len(self.capture.frames)]
        before: dict[str, int] = {}
        for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            path = write_frames(self.capture, begin, end, self.folder / f"run{number}.pcap")
            before[str(path)] = begin
        found = tables(engine, list(map(Path, before)), self.options, cut, self.datagrams)
        return {name: [self._in_one(row, before) for row in rows] for name, rows in found.items()}

    def _quiet(self, frame: int) -> int:
        """The next frame before which nothing was sent for a while; the end, if there is none."""
        frames = self.capture.frames
        quiet = (at for at in range(frame, len(frames)) if at and gap(frames[at - 1], frames[at]) > QUIET_NS)
        return next(quiet, len(frames))

    def _in_one(self, value: Any, before: dict[str, int]) -> Any:
        """Of all places in a row, however deep."""
        if isinstance(value, list):
            return [self._in_one(one, before) for one in value]
        if not isinstance(value, dict):
            return value
        made = {name: self._in_one(one, before) for name, one in value.items()}
        if "capture" in made:
            made |= {"capture": str(self.path), "frame": made["frame"] + before[made["capture"]]}
        return made


def gap(one: CapturedFrame, two: CapturedFrame) -> int:
    return two.time_ns - one.time_ns


def without_ids(found: Tables) -> Tables:
    """The id of a finding is made of its place: in other files it is another. What it follows from is a row."""
    rows = {
        row["id"]: {name: value for name, value in row.items() if name not in ("id", "cause")}
        for row in found["findings"]
    }
    assert len(rows) == len(found["findings"]), "each finding has an id of its own"
    findings = [{**rows[row["id"]], "cause": row["cause"] and rows[row["cause"]]} for row in found["findings"]]
    return {**found, "findings": findings}


LOSS = {"network-loss": 0.1, "forward-missing": 0.2}
# What some clients' datagrams show of the network makes other clients' deliveries uncertain.
UNCERTAIN = GeneratorOptions(
    "retained", 14, ("colon",), faults=LOSS, capture={"point": Point.ANY}, sensors=2, dashboards=2, rounds=3
)


@example(UNCERTAIN, Cuts((0.5,), 3, 10))
@settings(max_examples=EXAMPLES, derandomize=not MANY, database=None)
@given(orders(), cuts())
def test_fuzz_any_cut_has_the_rows_of_the_whole(order: GeneratorOptions, cut: Cuts) -> None:
    with TemporaryDirectory() as folder:
        made = Example(order, Path(folder))
        note(f"{order}, {cut}")
        event(f"units: {len(cut.begins) // 10 * 10} or more, in {cut.buckets} buckets")
        event(f"datagrams: {made.datagrams // 100 * 100} or more")
        same(made.cut(cut, LocalEngine()), made.whole)
        same(without_ids(made.merged(cut, LocalEngine())), without_ids(made.whole))


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_has_the_rows_of_the_whole(spark: SparkSession, tmp_path: Path) -> None:
    faults = {"forward-missing": 0.1, "ack-missing": 0.1, "network-loss": 0.05}
    order = GeneratorOptions("churn", 5, ("colon",), faults=faults, sensors=2, dashboards=2, rounds=4)
    example, engine = Example(order, tmp_path), SparkEngine(spark)
    assert all(example.whole.values()), "each table has rows"
    try:
        merged = example.merged(Cuts((0.3,), 2, 7), engine)
    finally:
        engine.release()
    same(without_ids(merged), without_ids(example.whole))


def test_what_stands_beside_an_ack_may_be_in_another_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two requests wait; the ACK follows the forward of the second, so the first got none and should be sent again.
    Each frame is a unit."""
    lines = """
    1     0    anna > broker  SUBSCRIBE filter=home/*
    2     1    broker > anna  SUBACK
    3   100    bert > broker  PUBLISH topic=home/fan payload=1
    4   100.2  bert > broker  PUBLISH topic=home/lamp payload=2
    5   100.4  broker > anna  PUBLISH topic=home/fan payload=1
    6   100.6  broker > anna  PUBLISH topic=home/lamp payload=2
    7   100.8  broker > bert  PUBACK
    8 60000    dora > broker  PUBLISH topic=elsewhere payload=3
    9 60001    broker > dora  PUBACK
"""
    whole = judged(tmp_path, lines)
    monkeypatch.setattr(check, "UNIT_BYTES", 1)
    monkeypatch.setattr(pipeline, "BUCKET_ROWS", 1)
    assert judged(tmp_path, lines).failed == whole.failed == {"A-MISSING": [3], "R-MISSING": [3]}


def test_subscriptions_are_not_sent_to_topics_without_retained_messages(tmp_path: Path) -> None:
    """Those with wildcards would go to every bucket, which is most of what is sent where clients come and go."""
    example = Example(GeneratorOptions("churn", 1, ("colon",)), tmp_path)
    sent: list[tuple[str, int]] = []

    class Watching(LocalEngine):
        def fold(self, rows: Any, kinds: Any, buckets: int, function: Any, label: str) -> Any:
            def watched(bucket: int, given: dict[str, list[bytes]]) -> Any:
                sent.extend((function.func.__name__, len(joined([data]))) for data in given.get("asks", ()))
                for data in given.get("topic", ()):
                    assert "SUBSCRIBE" not in joined([data]).column("message").cast("string").to_pylist()
                return function(bucket, given)

            return super().fold(rows, kinds, buckets, watched, label)

    same(example.cut(Cuts((0.3, 0.6), 8), Watching()), example.whole)
    assert sent == []

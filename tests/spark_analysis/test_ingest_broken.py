"""Ingest of a set in which captures of every class of broken file stand between good ones: these lose nothing, and of
the broken ones all that is before the damage is there.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pcap_tools.codec.detect import wanted_dialects
from spark_analysis.ingest import ingest
from tests.fuzzing.broken_files import BROKEN, FRAMES, TALK
from tests.pcap_tools.capture import packets as p

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_ingest_of_a_set_with_every_class_of_broken_file(tmp_path: Path, spark: SparkSession) -> None:
    captures = {tmp_path / f"{number:03}.pcap": broken for number, broken in enumerate(BROKEN.values(), 1)}
    for path, broken in captures.items():
        path.write_bytes(broken.content)
    good = [tmp_path / "000.pcap", tmp_path / "999.pcap"]
    for path in good:
        path.write_bytes(p.pcap(FRAMES))
    done = ingest(spark, [str(tmp_path)], tmp_path / "out", wanted_dialects(["colon"]))
    entries = {Path(entry.uri): entry for entry in done.ingested}
    for path in good:
        assert (entries[path].frames, entries[path].decoded, entries[path].damage) == (6, len(TALK), [])
    assert {Path(name) for name in done.failed} == {path for path, broken in captures.items() if broken.refused}
    for path, broken in captures.items():
        if broken.refused:
            assert broken.words in done.failed[str(path)]
            continue
        assert entries[path].decoded == len(broken.said)
        assert [one["offset"] for one in entries[path].damage] == ([] if broken.offset is None else [broken.offset])

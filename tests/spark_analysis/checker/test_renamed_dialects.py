"""A dialect's name means nothing: the same file under another name gives the same verdicts, findings and citations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from generators.capture.capture_point import write
from generators.generate import GeneratorOptions, generate
from pcap_tools.codec.detect import wanted_dialects
from pcap_tools.dialect import builtin_text
from spark_analysis.check import check
from spark_analysis.reports.as_json import check_object
from spark_analysis.reports.html.page import html_page
from spark_analysis.sessions.ingested import find_sources

OTHER_NAME = "renamed"


def faulty(dialect: str, capture: Path) -> bytes:
    """A generated capture with a second acknowledgement now and then."""
    write(generate(GeneratorOptions("building", 3, (dialect,), faults={"ack-duplicate": 0.2})).capture, str(capture))
    return capture.read_bytes()


def verdicts(capture: Path, dialect: str, name: str) -> tuple[str, str]:
    """All that the checker reports of a capture, with a word in place of the dialect's name."""
    dialects = wanted_dialects([dialect])
    result = check([str(capture)], dialects=dialects, engine="local")
    page = html_page(result, find_sources([str(capture)]), dialects)
    shown = repr(check_object(result, 1000)), page
    return re.sub(rf"\b{name}\b", "DIALECT", shown[0]), re.sub(rf"\b{name}\b", "DIALECT", shown[1])


@pytest.mark.parametrize("dialect", ["colon", "mqttsn"])
def test_a_renamed_dialect_is_judged_alike(dialect: str, tmp_path: Path) -> None:
    file, capture = tmp_path / "own.toml", tmp_path / "run.pcap"
    file.write_text(re.sub(rf'^name( *)= "{dialect}"', rf'name\1= "{OTHER_NAME}"', builtin_text(dialect), flags=re.M))
    assert faulty(dialect, capture) == faulty(str(file), tmp_path / "renamed.pcap")
    findings, page = verdicts(capture, dialect, dialect)
    assert (findings, page) == verdicts(capture, str(file), OTHER_NAME)
    assert "A-DUPLICATE" in findings
    assert "report, " in page or "MQTT-SN 1.2, section" in page

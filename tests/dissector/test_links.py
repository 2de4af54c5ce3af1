"""The dissector's links beside the truth, in short: `make accuracy` does it for every fault, dialect and condition.

The first test judges the judge, with links written by hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.accuracy.exchanges import tables_of
from benchmarks.accuracy.jobs import ROOT
from benchmarks.accuracy.links import Checked, Links, Said, Truth, judge, judge_capture
from generators.capture.capture_point import write
from generators.generate import GeneratorOptions, generate
from pcap_tools.dialect import load_dialect


def said(meaning: str, ack_to: int | None = None, *candidates: int, forward_of: int | None = None) -> Said:
    return Said(ack_to, candidates, forward_of, None, None, meaning, False, "t", "", "exact")


def told(exchanges: list[dict[str, Any]], deliveries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"capture": {"doubles": [[8, 2]]}, "faults": [], "exchanges": exchanges, "deliveries": deliveries}


def test_what_is_wrong_is_counted_as_wrong() -> None:
    asked = [
        {"from": "a", "frames": [1], "ack_frames": [2]},
        {"from": "a", "frames": [3, 4], "ack_frames": [5]},
    ]
    truth = Truth.of(told(asked, [{"publish_frame": 1, "frame": 6, "subscriber": "b"}]))
    checked = Checked({2: 1, 5: 3}, {}, frozenset([5]))
    right = {2: said("ack", 1), 5: said("ack", 4), 8: said("ack", 1), 6: said("publish", forward_of=1)}
    colon = load_dialect("colon")
    assert [(one.wrong, one.against) for one in judge(right, truth, checked, colon).counts.values()] == [(0, 0)] * 4
    wrong = {2: said("ack", 3), 5: said("ack", None, 1, 3), 8: said("ack"), 6: said("publish", forward_of=3)}
    found = judge(wrong, truth, checked, colon).counts
    assert (found["ack"].all, found["ack"].wrong, found["ack"].unsure, found["ack"].lacking) == (3, 1, 1, 1)
    assert (found["ack"].against, found["ack"].queued, found["forward"].wrong) == (1, 1, 1)


CASES = {
    "the command of docs/report.md": (
        "colon",
        "building",
        {"ack-missing": 0.05, "forward-missing": 0.05, "ack-duplicate": 0.03},
    ),
    "resends with other bytes": ("colon", "building", {"resend-altered": 0.1}),
    "the same filter again": ("colon", "churn", {"network-loss": 0.05}),
    "no ids, no resends": ("rolebyte", "building", {"ack-missing": 0.1}),
    "the network doubles": ("rolebyte", "building", {"network-duplicate": 0.05}),
    "two copies of one echo": ("topicnumber", "building", {"ack-misdirected": 0.1}),
    "the topic is the address": ("tests/dialects/addresstopic.toml", "building", {}),
    "message ids and sessions": ("mqttsn", "churn", {"broker-restart": 0.1}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("links")


@pytest.mark.tshark
@pytest.mark.parametrize("case", CASES)
def test_every_link_is_right_or_left_open(case: str, folder: Path) -> None:
    dialect, scenario, faults = CASES[case]
    named = str(ROOT / dialect) if dialect.endswith(".toml") else dialect
    made = generate(GeneratorOptions(scenario, seed=1, dialects=(named,), faults=faults))
    path = folder / "run.pcap"
    write(made.capture, path)
    tables = tables_of(path, named)
    checked = Checked.of(tables.exchanges, tables.deliveries)
    for passes, links in judge_capture(path, load_dialect(named), made.truth(), checked).items():
        assert is_right(links), (passes, links.cases)
        assert sum(one.all for one in links.counts.values()) > 100
        assert passes == "one pass" or not links.is_too_unsure


def is_right(links: Links) -> bool:
    return not any(one.wrong or one.against for one in links.counts.values())

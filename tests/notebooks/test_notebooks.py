"""Every notebook runs from first cell to last in a real kernel, ends in a picture, and holds what its text says.

Expectations are hand-written: which rules a mistake breaks, how many pairs are right, what bytes a message has. They
are asked of the notebook's own variables, by a cell that the test puts behind the last.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest

from notebooks.refresh import FOLDER, NAMES, run

# One after the other: each starts a Spark of its own, and more of them would only wait for each other.
pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.xdist_group("notebooks"), pytest.mark.timeout(900)]
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark on this machine")
MOST_BYTES = 150_000
PNG = b"\x89PNG\r\n\x1a\n"
OF_A_MACHINE = re.compile(r"(/home/|/root/|/tmp/|/Users/|/var/|/mnt/|[A-Z]:\\\\)")

# What a mistake of the class must be found as.
RULES = {
    "ack-missing": "A-MISSING",
    "forward-missing": "D-MISSING",
    "wildcard-one-level": "D-MISSING",
    "forward-duplicate": "D-DUPLICATE",
    "wire-no-delimiter": "W-NO-DELIMITER",
    "ack-reordered": "A-ORDER",
    "ack-duplicate": "A-DUPLICATE",
    "wildcard-dot-regex": "D-UNEXPECTED",
    "ack-late": "A-LATE",
    "resend-early": "R-EARLY",
    "forward-altered": "D-ALTERED",
    "resend-after-ack": "R-AFTER-ACK",
    "wildcard-case-blind": "D-UNEXPECTED",
    "ack-unsolicited": "A-UNSOLICITED",
    "ack-misdirected": "A-MISDIRECTED",
    "forward-misdirected": "D-MISDIRECTED",
}


def told(name: str, folder: Path, size: int, asked: dict[str, str]) -> Any:
    """Run a notebook of this size; its answers to Python expressions. Its own last cell must have shown a picture."""
    question = "{" + ", ".join(f"{key!r}: {expression}" for key, expression in asked.items()) + "}"
    cell = f"import json\nprint(json.dumps({question}, default=str))"
    notebook = run(name, folder, {"TOPICSHARK_NOTEBOOK_SIZE": str(size)}, last=cell)
    *_, picture, answer = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = picture.outputs[-1]["data"]["image/png"]
    assert base64.b64decode(shown).startswith(PNG)
    return json.loads(answer.outputs[-1]["text"])


@pytest.mark.long
@needs_tshark
def test_first_look_sees_the_same_through_pyshark_and_spark(tmp_path: Path) -> None:
    asked = {
        "rows": "len(rows)",
        "packets": "len(wireshark)",
        "differences": "differences",
        "frames": "len(made.capture.frames)",
        "topic": "both.loc[both.frame == 11, ['topic', 'topic_wireshark']].values.tolist()",
        "lines": "[line.get_label() for line in axes.lines]",
    }
    answer = told("first_look", tmp_path, 1, asked)
    assert answer["rows"] == answer["packets"] == answer["frames"] == 94
    assert answer["differences"] == 0
    assert answer["topic"] == [["home/room1/temperature"] * 2]
    # 4 sensors publish 6 times each; everything that asks is acknowledged: 24 publishes and 5 subscriptions
    assert answer["lines"] == ["subscribe (5)", "publish (24)", "forward (36)", "ack (29)"]


@pytest.mark.long
def test_the_class_is_found_to_fail_what_it_does_wrong(tmp_path: Path) -> None:
    asked = {"made_by": "made_by", "failed": "failed", "axes": "[len(one.get_xticklabels()) for one in figure.axes]"}
    answer = told("class_of_submissions", tmp_path, 10, asked)
    assert len(answer["made_by"]) == 10
    expected = {who: {RULES[one] for one in made.split(", ") if one} for who, made in answer["made_by"].items()}
    found = {who: set(rules) for who, rules in answer["failed"].items()}
    assert found == expected
    assert len(set().union(*expected.values())) == answer["axes"][1] >= 3  # a column of the picture each


@pytest.mark.long
def test_ack_timing_pairs_by_anchors_where_order_goes_wrong(tmp_path: Path) -> None:
    asked = {
        "quality": "bursts['quality'].value_counts().to_dict()",
        "anchored": "sum(anchored.get(frame) == ack for frame, ack in truth.items())",
        "by_order": "sum(by_order.get(frame) == ack for frame, ack in truth.items())",
        "bounds": "resent[['rtt_low_ns', 'rtt_high_ns']].values.tolist()",
        "resent": "sorted(resent['frame'].map({frame: one for one, frame in requests.items()}))",
        "drawn": "[len(known), len(wrong), len(axes.collections[0].get_segments())]",
    }
    answer = told("ack_timing", tmp_path, 8, asked)
    assert answer["anchored"] == 90
    assert answer["by_order"] < 45
    assert answer["resent"] == [7, 31, 52]
    assert answer["quality"]["resent"] == 3
    assert sum(answer["quality"].values()) == 90
    for low, high in answer["bounds"]:  # sent again 5 s later, and acknowledged 3.1 ms after that
        assert low == pytest.approx(3.1e6, abs=1_000)
        assert high == pytest.approx(5.0031e9, abs=1_000)
    known, wrong, bounds = answer["drawn"]
    assert (known, bounds) == (87, 3)
    assert wrong >= 45


@pytest.mark.long
def test_fanout_shows_that_only_wildcards_have_lost_their_copies(tmp_path: Path) -> None:
    asked = {
        "counts": "counts.values.tolist()",
        "amplification": "amplification.set_index('session').to_dict('index')",
        "overlap": "overlap.values.tolist()",
        "rules": "[rule.id for rule in result.sessions[0].rules if rule.verdict == 'fail']",
        "titles": "[one.get_title(loc='left') for one in figure.axes]",
    }
    answer = told("wildcard_fanout", tmp_path, 6, asked)
    right, wrong = "right", "stops_at_slash"
    assert {filter_ for session, filter_, _, _, missing in answer["counts"] if session == right and missing} == set()
    lost = {filter_ for session, filter_, _, _, missing in answer["counts"] if session == wrong and missing}
    kept = {filter_ for session, filter_, _, came, _ in answer["counts"] if session == wrong and came}
    assert all("*" in filter_ for filter_ in lost)
    assert not any("*" in filter_ for filter_ in kept)
    assert lost
    assert kept
    assert answer["rules"] == ["D-MISSING"]
    assert answer["amplification"][right]["publishes"] == 6 * 6  # sensors, rounds
    assert answer["amplification"][right]["amplification"] > 2 * answer["amplification"][wrong]["amplification"]
    assert all(first < second and count > 0 for _, first, second, count in answer["overlap"])
    assert answer["overlap"]
    assert ["0 are missing" in title for title in answer["titles"]] == [True, False]


@pytest.mark.long
def test_sql_tells_copies_that_nobody_asked_for_from_those_that_somebody_did(tmp_path: Path) -> None:
    asked = {
        "crossings": "crossings.values.tolist()",
        "doors": "doors[['subscriber', 'topic', 'outcome', 'filters_held']].values.tolist()",
        "faults": "len(made.truth()['faults'])",
        "bars": "float(sum(patch.get_width() for patch in axes.patches))",
    }
    answer = told("sql_across_tables", tmp_path, 6, asked)
    pairs = [(room_of, device_of) for room_of, device_of, *_ in answer["crossings"]]
    assert pairs == [("Ada", "Ada"), ("Ada", "Ben"), ("Ben", "Ada")]
    unasked = [count for *_, count in answer["crossings"]]
    assert unasked[:2] == [0, 0]
    assert unasked[2] == answer["faults"] > 0
    assert answer["bars"] == sum(one + other for _, _, one, other in answer["crossings"])
    # Dashboards 6 and actuator 1 hold `home/room.1/humidity`; dashboards 2, 3 and 4 hold wildcards.
    assert answer["doors"] == [
        ["10.0.0.21:50000", "home/roomx1/humidity", "unexpected", "home/room.1/humidity, home/room1/temperature"],
        ["10.0.0.22:50000", "home/roomx1/humidity", "unexpected", "home/room.1/humidity"],
        ["10.0.0.17:50000", "home/roomx1/humidity", "delivered", "*/humidity, home/room1/temperature"],
        ["10.0.0.18:50000", "home/room1/door", "delivered", "*/door, */light"],
        ["10.0.0.18:50000", "home/room1/light", "delivered", "*/door, */light"],
        ["10.0.0.19:50000", "home/room1/power", "delivered", "*/power, HOME/*"],
    ]


@needs_tshark
def test_a_dialect_of_ones_own_drives_every_tool(tmp_path: Path) -> None:
    asked = {
        "datagram": "datagram.hex()",
        "columns": "shown.stdout",
        "truth": "truth",
        "found": "found",
        "squares": "len(figure.axes[0].patches)",
    }
    answer = told("write_your_own_dialect", tmp_path, 1, asked)
    # BC; type 1 in seven bits and the retain flag; number 7; nine bytes of topic; payload
    assert answer["datagram"] == "4243" + "03" + "0007" + "09" + b"roof/wind".hex() + b"12".hex()
    assert re.search(r"beacon TELL home/room1/temperature \S+ \S+ → \d subscribers", answer["columns"])
    assert re.search(r"beacon OK \[ACK to \d+\]", answer["columns"])
    assert set(answer["truth"]) == {"A-MISSING", "D-DUPLICATE"}
    assert answer["found"] == answer["truth"]
    # LISTEN, TELL, OK, LEAVE, and a TELL of which nine bytes are left
    assert answer["squares"] == 12 + 17 + 5 + 12 + 9


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_in_the_repository_is_small_whole_and_of_no_machine(name: str) -> None:
    path = FOLDER / f"{name}.ipynb"
    assert path.stat().st_size < MOST_BYTES
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert "image/png" in code[-1].outputs[-1]["data"]
    for cell in notebook.cells:
        assert not cell.metadata
        assert not OF_A_MACHINE.search(cell.source)
    for cell in code:
        texts = [text for output in cell.outputs for text in _texts(output)]
        assert not [text for text in texts if OF_A_MACHINE.search(text)]
        assert not [output for output in cell.outputs if output.get("name") == "stderr"]


def _texts(output: Any) -> list[str]:
    data = output.get("data", {})
    return [str(output.get("text", "")), *(str(text) for kind, text in data.items() if kind.startswith("text/"))]


def test_there_are_the_six() -> None:
    first = ["ack_timing", "class_of_submissions", "first_look"]
    assert [*first, "sql_across_tables", "wildcard_fanout", "write_your_own_dialect"] == NAMES

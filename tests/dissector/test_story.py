"""What people look for in a capture: who was left out, what belongs together, refusals, findings, JSON."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from struct import pack

import pytest

from tests.conftest import Run
from tests.dissector.test_tracking import BROKER, A, B, C, D, Talk, Tracked
from tests.dissector.tshark import fields_of, run_tshark, udp_packet, write_pcap

pytestmark = pytest.mark.tshark

LEFT_OUT: Talk = [
    (0.0, B, BROKER, b"\x03\x00t"),
    (0.1, BROKER, B, b"\x04"),
    (0.2, C, BROKER, b"\x03\x00*"),
    (0.3, BROKER, C, b"\x04"),
    (1.0, A, BROKER, b"\x01\x00t:1"),
    (1.1, BROKER, B, b"\x01\x00t:1"),
    (1.2, BROKER, B, b"\x01\x00t:1"),
    (1.3, BROKER, A, b"\x02"),
    (1.301, BROKER, A, b"\x02"),
    (9.0, D, BROKER, b"\x05\x00t"),
]


def see(talk: Talk, folder: Path, *names: str) -> Tracked:
    frames = [(at, udp_packet(raw, source, target, n)) for n, (at, source, target, raw) in enumerate(talk, 1)]
    return Tracked(write_pcap(folder / "talk.pcap", frames), folder, names, ("-2", "-Y", "udp"))


def test_who_was_left_out(tmp_path: Path) -> None:
    names = ("due", "fanout", "missing", "subscriber", "expert.missing_forward", "_ws.expert.message", "_ws.col.Info")
    seen = see(LEFT_OUT, tmp_path, *names)
    assert (seen["due", 5], seen["fanout", 5], seen["missing", 5]) == ("2", "2", "10.0.0.3:50000")
    assert seen["subscriber", 5] == "10.0.0.2:50000,10.0.0.3:50000"
    assert seen["expert.missing_forward", 5]
    assert seen["_ws.expert.message", 5] == "Not forwarded to 10.0.0.3:50000"


def test_what_was_not_due(tmp_path: Path) -> None:
    seen = see(LEFT_OUT, tmp_path, "expert.duplicate_forward", "expert.duplicate_ack", "ack_to", "_ws.col.Info")
    assert [n for n in range(1, 11) if seen["expert.duplicate_forward", n]] == [7]
    assert [n for n in range(1, 11) if seen["expert.duplicate_ack", n]] == [9]
    assert seen["ack_to", 9] == ""
    assert seen["_ws.col.Info", 9] == "PUBACK [once more, after 8]"


def test_one_filter_shows_the_story_of_a_publish(tmp_path: Path) -> None:
    seen = see(LEFT_OUT, tmp_path, "exchange", "stream")
    assert [n for n in range(1, 11) if seen["exchange", n] == "5"] == [5, 6, 7, 8]
    assert [seen["stream", n] for n in (1, 2, 3, 5, 6, 8)] == ["0", "0", "1", "2", "0", "2"]


def test_times_are_fields_for_graphs(tmp_path: Path) -> None:
    see(LEFT_OUT, tmp_path, "due")
    graph = "io,stat,0,AVG(pubsub.ack_time)pubsub.ack_time,MAX(pubsub.forward_time)pubsub.forward_time"
    shown = run_tshark(tmp_path / "talk.pcap", "-q", "-z", graph, home=tmp_path / "home")
    row = next(line for line in shown.splitlines() if "<>" in line and "." in line)
    assert [cell.strip() for cell in row.split("|")[2:4]] == ["0.166667", "0.200000"]


def test_a_forward_that_comes_late(tmp_path: Path) -> None:
    talk = [*LEFT_OUT[:4], (1.0, A, BROKER, b"\x01\x00t:1"), (5.0, BROKER, B, b"\x01\x00t:1")]
    seen = see(talk, tmp_path, "expert.late_forward", "forward_time")
    assert seen["expert.late_forward", 6]
    assert seen["forward_time", 6] == "4.000000000"


def test_a_refused_subscription_makes_nothing_due(tmp_path: Path) -> None:
    publisher, subscriber, gateway = ("10.0.0.1", 40000), ("10.0.0.3", 40001), ("10.0.0.2", 1883)

    def talk(code: int) -> Talk:
        return [
            (0.0, subscriber, gateway, pack(">BBBHH", 7, 0x12, 1, 1, 5)),  # of the predefined topic 5
            (0.1, gateway, subscriber, pack(">BBBHHB", 8, 0x13, 0, 5, 1, code)),
            (1.0, publisher, gateway, pack(">BBBHH", 9, 0x0C, 0x21, 5, 2) + b"on"),
            (9.0, publisher, gateway, b"\x02\x18"),
        ]

    for code, due in ((0, "1"), (2, "0")):
        seen = see(talk(code), tmp_path, "due", "expert.refusal")
        assert (seen["due", 3], bool(seen["expert.refusal", 2])) == (due, code != 0)


def test_findings_in_comments_have_their_level(tmp_path: Path, run: Run) -> None:
    capture, annotated = tmp_path / "run.pcap", tmp_path / "run.pcapng"
    assert run("generate", "building", "-o", capture, "--fault", "forward-missing=0.05", "--rounds", 3)[0] == 0
    assert run("annotate", capture, "-o", annotated)[0] in (0, 1)
    found = json.loads(run("check", capture, "--format", "json")[1])["sessions"][0]["findings"]
    errors = sorted(one["frame"] for one in found if one["level"] == "error" and one["verdict"] == "fail")
    rows = fields_of(annotated, "frame.number", home=tmp_path / "home", options=["-Y", "pubsub.expert.finding_error"])
    assert errors
    assert [int(row[0]) for row in rows] == sorted(set(errors))


@pytest.mark.parametrize(
    ("text", "is_json"),
    [
        ('{"a": [1, -2.5e3, true, null, "\\u00e9\\n"], "b": {}}', True),
        (" [ ] ", True),
        ("21.5", False),
        ('{"a": 1,}', False),
        ('{"a" 1}', False),
        ('["\n"]', False),
        ("[01]", False),
        ("[1] x", False),
        ("[" * 100 + "]" * 100, False),
        ('{"a": tru}', False),
    ],
)
def test_what_is_json(text: str, is_json: bool, tmp_path: Path) -> None:
    script = tmp_path / "ask.lua"
    script.write_text("local ts = dofile(arg[1])\nprint(ts.is_json(io.read('a') or ''))\n")
    lua = subprocess.run(
        ["lua5.4", str(script), str(Path(__file__).parents[2] / "dissector.lua")],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    assert lua.stdout.strip() == str(is_json).lower()

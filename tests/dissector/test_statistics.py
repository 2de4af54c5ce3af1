"""The tables that tshark prints at the end of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.dissector.tshark import Address, run_tshark, udp_packet, write_pcap

pytestmark = pytest.mark.tshark

A, B, BROKER = ("10.0.0.1", 50000), ("10.0.0.2", 50000), ("10.0.0.9", 50000)
Talk = list[tuple[float, Address, Address, bytes]]
TALK: Talk = [
    (0.0, B, BROKER, b"\x03\x00home/*"),
    (0.1, BROKER, B, b"\x04"),
    (1.0, A, BROKER, b"\x01\x01home/fan:ON"),
    (1.1, BROKER, B, b"\x01\x01home/fan:ON"),
    (1.2, BROKER, A, b"\x02"),
    (2.0, A, BROKER, b"\x01\x00\x1b[2J:1"),
]


def statistics(folder: Path, name: str, talk: Talk = TALK) -> list[list[str]]:
    """The rows of a table, without title and head."""
    frames = [(at, udp_packet(raw, source, target, n)) for n, (at, source, target, raw) in enumerate(talk, 1)]
    capture = write_pcap(folder / "talk.pcap", frames)
    text = run_tshark(capture, "-q", home=folder / "home", arguments=[f"statistics={name}"])
    return [line.split() for line in text.strip().splitlines()[2:]]


def test_topics(tmp_path: Path) -> None:
    assert statistics(tmp_path, "topics") == [
        [r"\x1b[2J", "1", "0", "0", "1"],
        ["home/fan", "1", "1", "1", "4"],
    ]


def test_acks(tmp_path: Path) -> None:
    assert statistics(tmp_path, "acks") == [
        ["10.0.0.1:50000", "10.0.0.9:50000", "PUBLISH", "2", "1", "0", "200.000", "200.000", "200.000"],
        ["10.0.0.2:50000", "10.0.0.9:50000", "SUBSCRIBE", "1", "1", "0", "100.000", "100.000", "100.000"],
    ]


def test_an_ack_of_any_request_counts_for_the_one_it_answers(tmp_path: Path) -> None:
    client, broker = ("10.0.0.1", 50002), ("10.0.0.9", 50001)
    requests = [b"\x06\x05c/d 1", b"\x05\x05g/h 2", b"\x01\x03a/b", b"\x04\x03e/f"]  # of rolebyte, each another kind
    talk: Talk = [(place / 100, client, broker, request) for place, request in enumerate(requests)]
    talk += [(0.035 + place / 1000, broker, client, b"\x07\x0a") for place in range(2)]  # likely to the two oldest
    acked = {row[2]: row[3:5] for row in statistics(tmp_path, "acks", talk)}
    assert acked == {
        "DASHBOARD_PUBLISH": ["1", "1"],
        "ACTUATOR_PUBLISH": ["1", "1"],
        "DASHBOARD_SUBSCRIBE": ["1", "0"],
        "ACTUATOR_SUBSCRIBE": ["1", "0"],
    }


def test_fanout(tmp_path: Path) -> None:
    assert statistics(tmp_path, "fanout") == [["home/*", "1", "1"]]


def test_clients(tmp_path: Path) -> None:
    assert statistics(tmp_path, "clients") == [
        ["10.0.0.1:50000", "colon", "2", "1", "2", "0", "0"],
        ["10.0.0.2:50000", "colon", "1", "2", "0", "1", "0"],
        ["10.0.0.9:50000", "colon", "3", "3", "1", "0", "2"],
    ]


@pytest.mark.parametrize(
    "faults",
    [
        {"ack-missing": 0.05, "forward-missing": 0.05, "ack-duplicate": 0.03},
        {"ack-late": 0.1},
        {"network-loss": 0.05},
    ],
    ids=" ".join,
)
def test_they_agree_with_the_command_timing(faults: dict[str, float], tmp_path: Path, run: Run) -> None:
    capture = tmp_path / "run.pcap"
    asked = [part for name, rate in faults.items() for part in ("--fault", f"{name}={rate}")]
    assert run("generate", "building", "-o", capture, *asked)[0] == 0
    rows = json.loads(run("timing", capture, "--format", "json")[1])["sessions"][0]["rows"]
    told = {
        (row["client"], row["kind"]): (
            row["requests"],
            row["acked"],
            row["resent"],
            *(f"{row['rtt_ms'][which]:.3f}" if row["rtt_ms"] else "-" for which in ("min", "max")),
        )
        for row in rows
    }
    text = run_tshark(capture, "-q", home=tmp_path / "home", arguments=["statistics=acks"])
    shown = [line.split() for line in text.strip().splitlines()[2:]]
    assert {(row[0], row[2]): (*map(int, row[3:6]), row[6], row[8]) for row in shown} == told

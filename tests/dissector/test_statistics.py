"""The tables that tshark prints at the end of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dissector.tshark import run_tshark, udp_packet, write_pcap

pytestmark = pytest.mark.tshark

A, B, BROKER = ("10.0.0.1", 50000), ("10.0.0.2", 50000), ("10.0.0.9", 50000)
TALK = [
    (0.0, B, BROKER, b"\x03\x00home/*"),
    (0.1, BROKER, B, b"\x04"),
    (1.0, A, BROKER, b"\x01\x01home/fan:ON"),
    (1.1, BROKER, B, b"\x01\x01home/fan:ON"),
    (1.2, BROKER, A, b"\x02"),
    (2.0, A, BROKER, b"\x01\x00\x1b[2J:1"),
]


def statistics(folder: Path, name: str) -> list[list[str]]:
    """The rows of a table, without title and head."""
    frames = [(at, udp_packet(raw, source, target)) for at, source, target, raw in TALK]
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


def test_fanout(tmp_path: Path) -> None:
    assert statistics(tmp_path, "fanout") == [["home/*", "1", "1"]]


def test_clients(tmp_path: Path) -> None:
    assert statistics(tmp_path, "clients") == [
        ["10.0.0.1:50000", "colon", "2", "1", "2", "0", "0"],
        ["10.0.0.2:50000", "colon", "1", "2", "0", "1", "0"],
        ["10.0.0.9:50000", "colon", "3", "3", "1", "0", "2"],
    ]

"""`topicshark replay`: clients of a capture play again against real brokers, and `compare` names the difference."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from generators.replay import Planned, plan_replay
from pcap_tools import load_dialect
from pcap_tools.capture import Datagram, read_datagrams
from tests.conftest import Run
from tests.reference_broker.running import running_broker
from topicshark.exit_codes import ExitCode

CLIENT, BROKER = ("10.0.0.2", 4000), ("10.0.0.1", 50000)
FAST = ("--speed", "100", "--wait", "0.2")


def talk(*said: tuple[str, bytes], dialect: str = "colon") -> list[Planned]:
    """What is planned of a talk; ``>`` is by the client."""
    datagrams = []
    for number, (way, payload) in enumerate(said, 1):
        source, target = (CLIENT, BROKER) if way == ">" else (BROKER, CLIENT)
        datagrams.append(
            Datagram(number, number * 10**9, *source, *target, payload, len(payload), (number,), 1, None, 0)
        )
    return plan_replay(datagrams, {BROKER: load_dialect(dialect)}).planned


def test_a_resend_is_the_same_request_before_its_acknowledgement() -> None:
    publish, ack = b"\x01\x00home/fan:on", b"\x02"
    planned = talk((">", publish), (">", publish), ("<", ack), (">", publish))
    assert [one.is_resend for one in planned] == [False, True, False]
    assert [one.at_ns for one in planned] == [10**9, 2 * 10**9, 4 * 10**9]


def test_an_acknowledgement_knows_what_it_answers_and_a_publish_who_gave_its_number() -> None:
    register, regack = bytes.fromhex("0a 0a 0000 0001 68656c6c"), bytes.fromhex("07 0b 0005 0001 00")
    publish, forward = bytes.fromhex("08 0c 20 0005 0007 78"), bytes.fromhex("08 0c 20 0005 0009 79")
    said = [(">", register), ("<", regack), (">", publish), ("<", forward), (">", bytes.fromhex("07 0d 0005 0009 00"))]
    planned = talk(*said, dialect="mqttsn")
    assert planned[1].number == (("create", b"hell"), 5)
    assert planned[2].answers == (("PUBLISH", b"hell", b"y"), 0)


@pytest.mark.net
@pytest.mark.parametrize("dialect", ["colon", "mqttsn"])
def test_a_right_broker_after_one_that_forgets_acks(run: Run, tmp_path: Path, dialect: str) -> None:
    """Where the old broker never acknowledged, the new one does; its topic ids and message ids are its own."""
    old, new = tmp_path / "old.pcap", tmp_path / "new.pcapng"
    order = ["building", "--dialect", dialect, "--seed", "4", "--rounds", "3", "--fault", "ack-missing=0.1"]
    assert run("generate", *order, "-o", old)[0] == ExitCode.CLEAN
    with running_broker(tmp_path, "--dialect", dialect) as broker:
        code, _, err = run("replay", old, "--to", f"{broker.host}:{broker.port}", "-o", new, *FAST)
    assert (code, "resends were left out" in err) == (ExitCode.CLEAN, True)
    code, out, _ = run("compare", old, new, "--format", "json")
    (compared,) = json.loads(out)["dialects"]
    assert {finding["rule"] for finding in compared["findings"]["gone"]} == {"A-MISSING"}
    # A hundred times as fast, resends come too early, and that is the replay's own doing.
    new_ones = [finding for finding in compared["findings"]["new"] if finding["verdict"] == "fail"]
    assert {finding["rule"] for finding in new_ones} <= {"R-EARLY"}
    assert compared["fanout"]["b"]["missing"] == 0
    assert brokers(old) == brokers(new)


def brokers(capture: Path) -> set[tuple[str, int]]:
    """Where requests go to."""
    return {(one.dst, one.dport) for one in read_datagrams(capture) if one.dst.endswith(".0.1")}


@pytest.mark.net
def test_a_broker_with_a_mistake_after_a_right_one(run: Run, tmp_path: Path) -> None:
    old, new = tmp_path / "old.pcap", tmp_path / "new.pcapng"
    assert run("generate", "building", "--dialect", "topicbyte", "--rounds", "2", "-o", old)[0] == ExitCode.CLEAN
    with running_broker(tmp_path, "--dialect", "topicbyte", "--mistake", "one-topic") as broker:
        assert run("replay", old, "--to", f"{broker.host}:{broker.port}", "-o", new, *FAST)[0] == ExitCode.CLEAN
    code, out, _ = run("compare", old, new, "--format", "json")
    found: dict[str, Any] = json.loads(out)["dialects"][0]["findings"]
    assert code == ExitCode.FINDINGS
    assert {finding["rule"][0] for finding in found["new"] if finding["verdict"] == "fail"} == {"D"}


@pytest.mark.net
def test_it_ends_when_its_time_is_up(run: Run, tmp_path: Path) -> None:
    old = tmp_path / "old.pcap"
    assert run("generate", "building", "--rounds", "2", "-o", old)[0] == ExitCode.CLEAN
    with running_broker(tmp_path) as broker:
        code, _, err = run("replay", old, "--to", f"{broker.host}:{broker.port}", "--timeout", "0.1")
    assert (code, "the time was up" in err) == (ExitCode.FINDINGS, True)


def test_what_cannot_be_played(run: Run, tmp_path: Path) -> None:
    old, empty = tmp_path / "old.pcap", tmp_path / "empty.pcap"
    assert run("generate", "building", "--rounds", "1", "-o", old)[0] == ExitCode.CLEAN
    empty.write_bytes(old.read_bytes()[:24])
    assert run("replay", empty, "--to", "127.0.0.1")[0] == ExitCode.UNREADABLE
    assert run("replay", old, "--to", "127.0.0.1", "-o", old)[0] == ExitCode.USAGE
    assert os.path.getsize(old) > 24

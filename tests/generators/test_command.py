"""`topicshark generate` as a user runs it."""

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from pcap_tools.codec.decoding import decode_capture
from tests.conftest import REPO, Command


def test_a_capture_and_its_truth(topicshark: Command, tmp_path: Path) -> None:
    capture, truth = tmp_path / "run.pcap", tmp_path / "truth.json"
    done = topicshark("generate", "building", "-o", str(capture), "--fault", "ack-missing=0.2", "--truth", str(truth))
    assert done.returncode == 0, done.stderr
    told = json.loads(truth.read_text())
    rows = {row.datagram.frame: row for row in decode_capture(capture)}
    assert told["capture"]["frames"] == len(rows)
    assert told["faults"]
    for fault in told["faults"]:
        assert fault["rule"] == "A-MISSING"
        assert [rows[frame].message.message for frame in fault["frames"]]  # type: ignore[union-attr]
    for exchange in told["exchanges"]:
        if exchange["ack_frame"] is not None:
            assert rows[exchange["ack_frame"]].message.meaning == "ack"  # type: ignore[union-attr]


def test_packets_in_any_number(topicshark: Command, tmp_path: Path) -> None:
    """Exactly as many as asked for, and each publish of the tiled part is another one."""
    capture, truth = tmp_path / "big.pcap", tmp_path / "truth.json"
    done = topicshark("generate", "building", "-o", str(capture), "--packets", "20_000", "--truth", str(truth))
    assert done.returncode == 0, done.stderr
    rows = list(decode_capture(capture))
    assert len(rows) == 20_000
    broker = json.loads(truth.read_text())["sites"][0]["broker"].partition(":")[0]
    messages = [(row.datagram, row.message) for row in rows if row.message is not None]
    published = [message.payload for datagram, message in messages if datagram.dst == broker and message.payload]
    assert len(set(published)) == len(published)
    forwards = Counter(message.payload for datagram, message in messages if datagram.src == broker and message.payload)
    assert set(forwards) <= set(published)


def test_the_frames_of_a_tiled_capture_are_told(topicshark: Command, tmp_path: Path) -> None:
    """What tile 0 shows, tile 1 shows as many frames later as the body has."""
    capture, truth = tmp_path / "big.pcap", tmp_path / "truth.json"
    done = topicshark(
        *("generate", "building", "--sensors", "3", "--rounds", "5", "--packets", "500"),
        *("--fault", "forward-altered=0.3", "-o", str(capture), "--truth", str(truth)),
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(truth.read_text())
    rows = {row.datagram.frame: row for row in decode_capture(capture)}
    body = told["tiling"]["body"]
    assert told["tiling"]["tiles"] > 1
    altered = [fault["frames"] for fault in told["faults"]]
    assert altered
    for frames in altered:
        publish, forward = frames[0], frames[-1]
        for tile in (0, 1):
            sent, passed_on = rows[publish + tile * body].message, rows[forward + tile * body].message
            assert sent is not None
            assert passed_on is not None
            assert sent.topic == passed_on.topic
            assert sent.payload != passed_on.payload


@pytest.mark.tshark
def test_pcapng_names_its_hosts(topicshark: Command, tmp_path: Path) -> None:
    capture = tmp_path / "run.pcapng"
    assert topicshark("generate", "building", "-o", str(capture)).returncode == 0
    shown = subprocess.run(
        ["tshark", "-N", "n", "-r", str(capture), "-c", "1"],
        capture_output=True,
        text=True,
        check=True,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    ).stdout
    assert "dashboard1" in shown
    assert "broker" in shown


@pytest.mark.tshark
@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("ethernet", "Ethernet"),
        ("cooked1", "Linux cooked-mode capture v1"),
        ("cooked2", "Linux cooked-mode capture v2"),
        ("raw", "Raw IP"),
        ("null", "NULL/Loopback"),
    ],
)
def test_link_layers(topicshark: Command, tmp_path: Path, link: str, shown: str) -> None:
    capture = tmp_path / "run.pcap"
    done = topicshark("generate", "building", "--link", link, "-o", str(capture))
    assert done.returncode == 0, done.stderr
    told = subprocess.run(["capinfos", "-E", str(capture)], capture_output=True, text=True, check=True).stdout
    assert f"File encapsulation:  {shown}" in told
    assert "!!" not in topicshark("decode", str(capture), "--dialect", "colon").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no scenario given"),
        (["building"], "-o FILE.pcap"),
        (["nothing", "-o", "x.pcap"], "unknown scenario 'nothing'"),
        (["building", "-o", "x.pcap", "--fault", "none-such"], "there is no fault 'none-such'"),
        (["building", "-o", "x.pcap", "--fault", "ack-missing=much"], "a rate like 0.05"),
        (["building", "-o", "x.pcap", "--fault", "ack-missing=2"], "above 0 up to 1"),
        (["building", "-o", "x.pcap", "--fault", "number-zero"], "is not for colon"),
        (["building", "-o", "x.pcap", "--packets", "many"], "a whole number"),
        (["building", "-o", "x.pcap", "--packets", "1.5"], "a whole number"),
        (["building", "-o", "x.pcap", "--packets", "1e99999999"], "a whole number"),
        (["building", "-o", "x.pcap", "--packets", "nan"], "a whole number"),
        (["mixed", "-o", "x.pcap", "--packets", "1e6"], "mixed cannot be repeated"),
        (["building", "-o", "x.pcap", "--capture-at", "nowhere"], "there is no node 'nowhere'"),
        (["building", "-o", "x.pcap", "--link", "token-ring"], "unknown link layer 'token-ring'"),
        (["building", "-o", "x.pcap", "--dialect", "mqttsn", "--form", "wide"], "has no form 'wide'"),
        (["report-colon", "-o", "x.pcap", "--dialect", "mqttsn"], "is a run of colon"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_told(topicshark: Command, tmp_path: Path, words: list[str], said: str) -> None:
    done = topicshark("generate", *[str(tmp_path / word) if word == "x.pcap" else word for word in words])
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_place_that_cannot_be_written_is_told(topicshark: Command, tmp_path: Path) -> None:
    done = topicshark("generate", "building", "-o", str(tmp_path / "no" / "such" / "folder.pcap"))
    assert done.returncode == 3
    assert "cannot be written" in done.stderr


def test_scenarios_and_faults_are_listed(topicshark: Command) -> None:
    scenarios = topicshark("generate", "--list").stdout
    for name in ("report-rolebyte", "building", "retained", "churn", "lossy", "fragmented", "hostile", "mixed"):
        assert f"{name} " in scenarios
    faults = topicshark("generate", "--list-faults").stdout
    for rule in ("A-MISSING", "D-UNEXPECTED", "T-STALE", "R-ALTERED", "N-ZERO", "X-LOOP", "P-SPEAKER", "W-EMPTY"):
        assert f" {rule}" in faults


def test_a_dialect_of_ones_own(topicshark: Command, tmp_path: Path) -> None:
    own, capture = REPO / "docs" / "examples" / "bulletin.toml", tmp_path / "own.pcap"
    done = topicshark("generate", "building", "--dialect", str(own), "-o", str(capture))
    assert done.returncode == 0, done.stderr
    decoded = topicshark("decode", str(capture), "--dialect", str(own))
    assert decoded.returncode == 0
    assert "!!" not in decoded.stdout

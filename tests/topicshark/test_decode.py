"""`topicshark decode` on real files: what it prints, what it says on stderr, and its exit codes."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pcap_tools.escaping import unescape
from tests.conftest import REPO, Command
from tests.pcap_tools.capture.packets import cooked1, ethernet, ipv4, pcap, udp
from topicshark.exit_codes import ExitCode

KEYS = ["frame", "time_ns", "src", "sport", "dst", "dport", "dialect", "form", "message", "meaning"]
KEYS += ["topic", "filter", "retain", "payload", "fields", "padding", "length", "error", "error_offset", "copy_of"]
BROKER, CLIENT, SUBSCRIBER = "10.0.0.1", "10.0.0.2", "10.0.0.3"
PUBLISH, PUBACK, SUBSCRIBE, SUBACK = b"\x01\x01temp:123", b"\x02", b"\x03\x00temp", b"\x04"
DNS = bytes.fromhex("1a2b01000001000000000000076578616d706c6503636f6d0000010001")


def frame(payload: bytes, src: str = CLIENT, dst: str = BROKER, sport: int = 50000, dport: int = 50000) -> bytes:
    return ethernet(ipv4(udp(payload, sport, dport), src=src, dst=dst))


DIALOGUE = [
    frame(SUBSCRIBE, SUBSCRIBER),
    frame(SUBACK, BROKER, SUBSCRIBER),
    frame(PUBLISH),
    frame(PUBLISH, BROKER, SUBSCRIBER),
    frame(PUBACK, BROKER, CLIENT),
]


def write(path: Path, frames: list[bytes]) -> str:
    path.write_bytes(pcap(frames))
    return str(path)


def rows(answer: "subprocess.CompletedProcess[str]") -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.stdout.splitlines()]


def test_jsonl_has_the_promised_keys_in_their_order(topicshark: Command, tmp_path: Path) -> None:
    answer = topicshark("decode", write(tmp_path / "a.pcap", DIALOGUE), "--format", "jsonl")
    assert answer.returncode == ExitCode.CLEAN
    assert [list(row) for row in rows(answer)] == [KEYS] * 5
    assert rows(answer)[2] | {"time_ns": 0} == {
        "frame": 3,
        "time_ns": 0,
        "src": CLIENT,
        "sport": 50000,
        "dst": BROKER,
        "dport": 50000,
        "dialect": "colon",
        "form": "documented",
        "message": "PUBLISH",
        "meaning": "publish",
        "topic": "temp",
        "filter": None,
        "retain": True,
        "payload": "123",
        "fields": {"type": 1, "retain": 1, "topic": "temp", "payload": "123"},
        "padding": 0,
        "length": 10,
        "error": None,
        "error_offset": None,
        "copy_of": None,
    }


def test_the_table_says_what_happened_and_stderr_why_it_is_believed(topicshark: Command, tmp_path: Path) -> None:
    answer = topicshark("decode", write(tmp_path / "a.pcap", DIALOGUE))
    assert "10.0.0.2:50000 → 10.0.0.1:50000" in answer.stdout
    assert 'colon PUBLISH temp "123" retained' in answer.stdout
    assert "colon at 10.0.0.1 port 50000 (one of its ports): 5 of 5 datagrams decode" in answer.stderr


def test_hostile_text_reaches_neither_terminal_nor_json_as_it_is(topicshark: Command, tmp_path: Path) -> None:
    topic = b"\x1b]0;owned\x07<script>" + "‮bidi\u200b".encode() + b"\\\xff"
    file = write(tmp_path / "a.pcap", [*DIALOGUE, frame(b"\x03\x00" + topic)])
    for output in ("table", "jsonl"):
        answer = topicshark("decode", file, "--format", output)
        assert not any(mark in answer.stdout for mark in ("\x1b", "\x07", "‮", "\u200b"))
    last = rows(answer)[-1]
    assert unescape(last["filter"]) == topic
    assert (last["error"], last["error_offset"]) == ("bad-text", 2 + topic.index(b"\xff"))


def test_stdin_and_gzip(tmp_path: Path) -> None:
    for content in (pcap(DIALOGUE), gzip.compress(pcap(DIALOGUE))):
        done = subprocess.run(
            [sys.executable, "-m", "topicshark.main", "decode", "-", "--format", "jsonl"],
            input=content,
            capture_output=True,
            cwd=REPO,
            check=True,
        )
        assert len(done.stdout.splitlines()) == 5


def test_a_cut_capture_is_partial_and_says_where(topicshark: Command, tmp_path: Path) -> None:
    whole = pcap(DIALOGUE)
    (tmp_path / "cut.pcap").write_bytes(whole[:-7])
    answer = topicshark("decode", str(tmp_path / "cut.pcap"), "--format", "jsonl")
    assert answer.returncode == ExitCode.PARTIAL
    assert len(rows(answer)) == 4
    last_record = len(whole) - len(DIALOGUE[-1]) - 16
    assert "cut.pcap" in answer.stderr
    assert str(last_record) in answer.stderr


@pytest.mark.parametrize(
    ("content", "word"),
    [(b"", "empty"), (b"version https://git-lfs.github.com/spec/v1\n", "LFS"), (b"just a text", "capture")],
)
def test_what_is_no_capture_is_unreadable(topicshark: Command, tmp_path: Path, content: bytes, word: str) -> None:
    (tmp_path / "x.pcap").write_bytes(content)
    answer = topicshark("decode", str(tmp_path / "x.pcap"))
    assert answer.returncode == ExitCode.UNREADABLE
    assert word in answer.stderr
    assert "Traceback" not in answer.stderr


def test_one_bad_file_among_several_does_not_harm_the_others(topicshark: Command, tmp_path: Path) -> None:
    good = write(tmp_path / "good.pcap", DIALOGUE)
    answer = topicshark("decode", str(tmp_path / "missing.pcap"), good, "--format", "jsonl")
    assert answer.returncode == ExitCode.PARTIAL
    assert [row["capture"] for row in rows(answer)] == [good] * 5
    assert "missing.pcap" in answer.stderr


def test_other_traffic_is_left_out_and_counted(topicshark: Command, tmp_path: Path) -> None:
    noise = [frame(DNS, CLIENT, "9.9.9.9", 50000, 53)]
    file = write(tmp_path / "a.pcap", [*DIALOGUE, *noise])
    answer = topicshark("decode", file, "--format", "jsonl")
    assert len(rows(answer)) == 5
    assert "1 UDP datagrams of no known dialect" in answer.stderr
    shown = rows(topicshark("decode", file, "--format", "jsonl", "--all"))[-1]
    assert (shown["dialect"], shown["message"], shown["length"]) == (None, None, len(DNS))


def test_no_datagram_of_a_dialect_is_never_a_pass(topicshark: Command, tmp_path: Path) -> None:
    answer = topicshark("decode", write(tmp_path / "a.pcap", [frame(DNS, dport=53)]))
    assert answer.returncode == ExitCode.UNREADABLE
    assert "no datagram belongs to a known dialect" in answer.stderr


def test_a_named_dialect_shows_its_broken_datagrams_too(topicshark: Command, tmp_path: Path) -> None:
    file = write(tmp_path / "a.pcap", [frame(b"\x09what"), frame(b"\x01\x00no delimiter")])
    answer = topicshark("decode", file, "--dialect", "colon", "--format", "jsonl")
    assert [(row["error"], row["error_offset"]) for row in rows(answer)] == [
        ("unknown-type", 0),
        ("no-delimiter", 2),
    ]


def test_a_dialect_on_another_port(topicshark: Command, tmp_path: Path) -> None:
    odd = [frame(PUBACK, BROKER, CLIENT, 777, 778)]
    file = write(tmp_path / "a.pcap", odd)
    assert topicshark("decode", file).returncode == ExitCode.UNREADABLE  # one byte convinces nobody
    answer = topicshark("decode", file, "--dialect", "colon", "--port", "777", "--format", "jsonl")
    assert [row["message"] for row in rows(answer)] == ["PUBACK"]
    assert topicshark("decode", file, "--port", "777").returncode == ExitCode.USAGE


def test_a_dialect_of_ones_own(topicshark: Command, tmp_path: Path) -> None:
    (tmp_path / "shout.toml").write_text(
        'name = "shout"\ntitle = "A word and a text"\nports = { broker = 7000 }\n'
        '[fields]\nword = { kind = "text", until = " " }\ntopic = { kind = "text" }\n'
        '[messages]\nHEAR = { when = { word = "HEAR" }, layout = ["word", "topic"], means = "subscribe" }\n'
    )
    file = write(tmp_path / "a.pcap", [frame(b"HEAR news", dport=7000)])
    answer = topicshark("decode", file, "--dialect", str(tmp_path / "shout.toml"), "--format", "jsonl")
    assert [(row["dialect"], row["message"], row["filter"]) for row in rows(answer)] == [("shout", "HEAR", "news")]


def test_copies_of_an_any_capture(topicshark: Command, tmp_path: Path) -> None:
    packets = [ipv4(udp(PUBLISH, 50000, 50000), src=CLIENT, dst=BROKER, ident=7)]
    frames = [cooked1(packet, packet_type) for packet in packets for packet_type in (3, 4)]
    (tmp_path / "any.pcap").write_bytes(pcap(frames, link_type=113, step=12_000))
    answer = topicshark("decode", str(tmp_path / "any.pcap"), "--format", "jsonl")
    assert [row["copy_of"] for row in rows(answer)] == [None, 1]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_capture(tmp_path: Path) -> None:
    """400 MB of datagrams; whoever kept them, or the file, would need more than the 200 MB allowed."""
    packet = ipv4(udp(b"\x01\x00big:" + bytes(range(32, 127)) * 600, 50000, 50000), src=CLIENT, dst=BROKER)
    record = pcap([packet], link_type=101)
    with open(tmp_path / "big.pcap", "wb") as out:
        out.write(record[:24])
        for _ in range(400_000_000 // len(record)):
            out.write(record[24:])
    script = (
        "import re, sys; from pcap_tools.codec.decoding import decode_capture\n"
        "rows = sum(row.message is not None for row in decode_capture(sys.argv[1]))\n"
        # not getrusage: its peak is at least that of the process which started this one
        "print(rows, int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) // 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "big.pcap")],
        capture_output=True,
        text=True,
        cwd=REPO,
        check=True,
    )
    count, peak_mb = map(int, done.stdout.split())
    assert count == 400_000_000 // len(record)
    assert peak_mb < 200

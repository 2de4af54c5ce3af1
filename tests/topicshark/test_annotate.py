"""`annotate` as it is called: the findings of `check` stand on the right frames in tshark, and nothing else differs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.pcap_tools.capture.tshark import needs_tshark, run_tshark, tshark_fields
from tests.spark_analysis.checker.checked import Talk
from topicshark.exit_codes import ExitCode
from topicshark.main import exit_code_of

pytestmark = [needs_tshark, pytest.mark.tshark]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A capture in which requests are never acknowledged, and the truth about them."""
    folder = tmp_path_factory.mktemp("captures")
    capture, truth = folder / "faulty.pcap", folder / "truth.json"
    made = ["generate", "building", "--seed", "3", "--fault", "ack-missing=0.1", "-o", str(capture)]
    assert exit_code_of([*made, "--truth", str(truth)]) == 0
    return capture, json.loads(truth.read_text())["faults"]


def comments_in(path: Path) -> dict[int, str]:
    rows = tshark_fields(path, "frame.number", "frame.comment", only="frame.comment")
    return {int(number): text for number, text in rows}


def as_pcap(path: Path, folder: Path) -> bytes:
    """By editcap: times in ns, lengths, bytes and order, and no comments."""
    target = folder / f"{path.name}.back"
    subprocess.run(["editcap", "-F", "nsecpcap", str(path), str(target)], check=True, timeout=60)
    return target.read_bytes()


def test_findings_stand_on_their_frames(run: Run, faulty: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    capture, faults = faulty
    out = tmp_path / "out.pcapng"
    code, printed, err = run("annotate", capture, "-o", out)
    assert (code, printed) == (ExitCode.CLEAN, "")  # findings are no failure of this command
    said = comments_in(out)
    assert len(faults) > 3
    assert {frame for frame, text in said.items() if "A-MISSING (error)" in text} == {
        one["frames"][0] for one in faults
    }
    for fault in faults:
        first, *others = fault["frames"]
        if others:
            assert ", ".join(str(frame) for frame in others) in said[first]
    assert as_pcap(out, tmp_path) == as_pcap(capture, tmp_path)
    assert f"{len(said)} findings in {len(said)} comments, 15 addresses named" in err
    assert f"wireshark {out}" in err
    listed = run_tshark(out, "-q", "-z", "expert,comment")  # Wireshark's expert information
    assert listed.count("A-MISSING (error)") == len(faults)
    hosts = run_tshark(out, "-q", "-z", "hosts")
    assert all(f"\t{name}\n" in hosts for name in ("broker", "publisher-8", "subscriber-6"))


def test_comments_that_were_there_stay(run: Run, faulty: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    frame = faulty[1][0]["frames"][0]
    mine, out = tmp_path / "mine.pcapng", tmp_path / "out.pcapng"
    words = ["-a", f"{frame}:my own words", "-a", "2:and these"]
    subprocess.run(["editcap", *words, str(faulty[0]), str(mine)], check=True, timeout=60)
    assert run("annotate", mine, "-o", out)[0] == ExitCode.CLEAN
    said = comments_in(out)
    assert said[2] == "and these"
    assert said[frame].startswith("my own words,topicshark A-MISSING (error): ")
    assert run("annotate", out, "-o", tmp_path / "again.pcapng")[0] == ExitCode.CLEAN
    assert (tmp_path / "again.pcapng").read_bytes() == out.read_bytes()


def test_all_findings_not_the_first_thousand(run: Run, tmp_path: Path) -> None:
    lines = "1 0 anna > broker SUBSCRIBE filter=x\n2 1 broker > anna SUBACK\n"
    lines += "".join(f"{n} {10 * n} bert > broker hex:ffff\n" for n in range(3, 1_503))
    capture, out = Talk().write(tmp_path / "talk.pcap", lines), tmp_path / "out.pcapng"
    assert run("annotate", capture, "-o", out, "--dialect", "colon")[0] == ExitCode.CLEAN
    assert set(range(3, 1_503)) <= set(comments_in(out))


def test_a_hostile_topic_in_a_comment(run: Run, tmp_path: Path) -> None:
    topic = "home/\x1b[31m\u202e<script>alert(1)</script>" + "y" * 10_000
    lines = f"""
        1    0 anna > broker SUBSCRIBE filter=home/*
        2    1 broker > anna SUBACK
        3  100 bert > broker PUBLISH 'topic={topic}' payload=ON
        4  101 broker > bert PUBACK
        5 9000 bert > broker PUBLISH topic=away payload=ON
        6 9001 broker > bert PUBACK
    """
    capture, out = Talk().write(tmp_path / "talk.pcap", lines), tmp_path / "out.pcapng"
    assert run("annotate", capture, "-o", out, "--dialect", "colon")[0] == ExitCode.CLEAN
    text = comments_in(out)[3]
    assert text.startswith('topicshark D-MISSING (error): "home/\\x1b[31m')
    assert "<script>" in text
    assert text.isprintable()
    assert as_pcap(out, tmp_path) == as_pcap(capture, tmp_path)
    (raw,) = [one for one in out.read_bytes().split(b"topicshark ") if one.startswith(b"D-MISSING")]
    assert "\u202e".encode() not in raw.partition(b"is not passed on")[0]


def test_damage_is_told_and_all_before_it_is_written(
    run: Run, faulty: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    cut, out = tmp_path / "cut.pcap", tmp_path / "out.pcapng"
    cut.write_bytes(faulty[0].read_bytes()[:-7])
    code, _, err = run("annotate", cut, "-o", out)
    assert code == ExitCode.PARTIAL
    assert err.count("damaged at byte") == 1
    assert as_pcap(faulty[0], tmp_path).startswith(as_pcap(out, tmp_path))
    assert len(tshark_fields(out, "frame.number")) == len(tshark_fields(faulty[0], "frame.number")) - 1


def test_nothing_to_annotate_writes_nothing(
    run: Run, faulty: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    (tmp_path / "text.pcap").write_text("no capture at all, just some text")
    out = tmp_path / "out.pcapng"
    for args in ((tmp_path / "text.pcap",), (faulty[0], "--dialect", "mqttsn"), (tmp_path / "absent.pcap",)):
        code, _, err = run("annotate", *args, "-o", out)
        assert code == ExitCode.UNREADABLE
        assert err
        assert not out.exists()


def test_what_cannot_be_meant(run: Run, faulty: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    same = tmp_path / "same.pcapng"
    same.write_bytes(faulty[0].read_bytes())
    cases = [
        (faulty[0], tmp_path / "out.pcap", "ends in .pcapng"),
        (faulty[0], "-", "ends in .pcapng"),
        (same, same, "is the capture itself"),
        (tmp_path, tmp_path / "out.pcapng", "one local capture"),
        ("-", tmp_path / "out.pcapng", "one local capture"),
        ("s3://bucket/run.pcap", tmp_path / "out.pcapng", "one local capture"),
        (faulty[0], tmp_path / "absent" / "out.pcapng", "no such folder"),
    ]
    for capture, out, words in cases:
        code, _, err = run("annotate", capture, "-o", out)
        assert (code, words in err) == (ExitCode.USAGE, True), err
    assert same.read_bytes() == faulty[0].read_bytes()


@pytest.mark.parametrize("name", ["colon-clean", "topicbyte", "portdigits"])
def test_real_captures(run: Run, shared_captures: Path, tmp_path: Path, name: str) -> None:
    """Cooked and Ethernet, fragments, copies, a pcapng that is called pcap: the same frames, and who is who."""
    capture, out = shared_captures / f"{name}.pcap", tmp_path / f"{name}.pcapng"
    assert run("annotate", capture, "-o", out)[0] == ExitCode.CLEAN
    assert as_pcap(out, tmp_path) == as_pcap(capture, tmp_path)
    hosts = run_tshark(out, "-q", "-z", "hosts")
    assert all(f"\t{one}\n" in hosts for one in ("broker", "publisher-1", "subscriber-1"))

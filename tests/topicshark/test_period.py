"""`--since` and `--until`, in every command that has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pcap_tools.errors import UsageError
from tests.conftest import Run
from tests.pcap_tools.capture import packets as p
from topicshark.commands.captures import decode
from topicshark.commands.captures.period import LATEST, Period, duration_ns
from topicshark.exit_codes import ExitCode

SECOND = 1_000_000_000
NOON_NS = 1_795_176_000 * SECOND  # 2026-11-20 12:00:00 UTC
HEAD = 24


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A publish and its ACK each second, from noon on; the publishes of seconds 2 and 7 get no ACK."""
    content = p.pcap([])
    for second in range(10):
        ask = p.ethernet(p.ipv4(p.udp(b"\x01\x00home/%d:on" % second, 40_000, 50_000)))
        answer = p.ethernet(p.ipv4(p.udp(b"\x02", 50_000, 40_000), src=p.B4, dst=p.A4))
        for frame, after in ((ask, 0), (answer, 1_000_000)):
            if frame is ask or second not in (2, 7):
                content += p.pcap_record(frame, NOON_NS + second * SECOND + after)
    path = tmp_path / "a.pcap"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("since", "until"),
    [
        ("+3s", "+5s"),
        ("12:00:03", "12:00:05"),
        ("2026-11-20T12:00:03", "2026-11-20 13:00:05+01:00"),
        ("1795176003", "1795176005.0"),
        ("+2.5s", "1795176004.9"),
    ],
)
@pytest.mark.parametrize("small", [0, 1 << 40])
def test_decode_in_each_form_of_a_time(
    run: Run, capture: Path, since: str, until: str, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decode, "SMALL", small)
    code, out, _ = run("decode", capture, "--format", "jsonl", "--since", since, "--until", until)
    assert code == ExitCode.CLEAN
    assert [json.loads(line)["topic"] for line in out.splitlines()] == ["home/3", None, "home/4", None]


def test_check_sees_nothing_of_what_is_before_and_after(run: Run, capture: Path) -> None:
    broken = {}
    for period in (["--until", "+2s"], ["--since", "+1s", "--until", "+6s"], []):
        code, out, _ = run("check", capture, "--format", "json", "--dialect", "colon", *period)
        (session,) = json.loads(out)["sessions"]
        frames = [one["frame"] for one in session["findings"] if one["rule"] == "A-MISSING"]
        broken[" ".join(period)] = frames, session["datagrams"], code
    assert [frames for frames, _, _ in broken.values()] == [[], [5], [5, 14]]
    assert [datagrams for _, datagrams, _ in broken.values()] == [4, 9, 18]


def test_timing_and_fanout(run: Run, capture: Path) -> None:
    for command, key in (("timing", "requests"), ("fanout", "publishes")):
        code, out, _ = run(command, capture, "--format", "json", "--dialect", "colon", "--since", "12:00:08")
        assert code == ExitCode.CLEAN
        assert f'"{key}": 2,' in out


@pytest.mark.parametrize("text", ["", "soon", "25:00:99x", "+", "+5 parsecs", "-5", "2026-13-01T00:00:00", "1e9", "٣"])
def test_other_words_are_refused(run: Run, capture: Path, text: str) -> None:
    for command in ("decode", "check"):
        code, _, err = run(command, capture, f"--since={text}")
        assert (code, "not a time" in err) == (ExitCode.USAGE, True)


def test_the_order_of_the_two() -> None:
    with pytest.raises(UsageError, match="not before"):
        Period("+5s", "+5s").nanoseconds(lambda: NOON_NS)
    Period("12:00", "2026-11-20T13:00:00").check()
    assert Period("12:00", None).nanoseconds(lambda: NOON_NS) == (NOON_NS, LATEST)
    assert [duration_ns(text) for text in ("2s", "500ms", "1.5h", "3")] == [
        2 * SECOND,
        SECOND // 2,
        5400 * SECOND,
        3 * SECOND,
    ]

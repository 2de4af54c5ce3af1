"""`topicshark decode` prints the same by columns as row by row, to the byte: rows, notes, exit code.

The way by rows, which `Codec` and `read_datagrams` serve, is the judge. Which way is taken depends on the size of the
file, so the size that counts as small is what these tests turn.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from generators.capture.capture_point import write
from generators.generate import GeneratorOptions, generate
from pcap_tools.dialect import builtin_names
from tests.conftest import REPO
from tests.pcap_tools.capture import packets as p
from tests.pcap_tools.columnar.batches import datagrams_for
from tests.pcap_tools.columnar.captures import files
from tests.vectors import DIALECTS, dialect_of, load_vectors, own_dialect_names
from topicshark.commands.captures import decode
from topicshark.exit_codes import ExitCode
from topicshark.main import exit_code_of

PORT = 7777
HOSTILE = [
    b'"', b"\\", b'\\"', b'a"b\\c"', b"\x00", b"\n\r\t\x1b\x7f", b"\xff\xfe", "‮\u200b\u2028é°→😀\u00a0".encode(),
    b"\xed\xa0\x80", b"\xc3", b"\xf4\x90\x80\x80", b"\\x41", b'\\\\"\\', bytes(range(256)), b"", b" ", b"</script>",
]  # fmt: skip
FILES = files()


class Said(NamedTuple):
    code: int
    out: str
    err: str


class Ways:
    """The command run in this process, by columns or row by row."""

    def __init__(self, turn: pytest.MonkeyPatch, captured: Callable[[], tuple[str, str]]) -> None:
        self._turn, self._captured = turn, captured

    def rows(self, *args: str) -> Said:
        return self._run(1 << 40, args)

    def columns(self, *args: str) -> Said:
        return self._run(0, args)

    def _run(self, small: int, args: tuple[str, ...]) -> Said:
        self._turn.setattr(decode, "SMALL", small)
        code = exit_code_of(["decode", *args])
        return Said(code, *self._captured())

    def agree(self, *args: str) -> Said:
        """Both ways, both formats; gives what the table says."""
        for output in ("jsonl", "table"):
            expected = self.rows(*args, "--format", output)
            assert self.columns(*args, "--format", output) == expected
        return expected


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Ways:
    return Ways(monkeypatch, capfd.readouterr)


def frame(payload: bytes, sport: int = 40000, dport: int = PORT) -> bytes:
    return p.ethernet(p.ipv4(p.udp(payload, sport, dport)))


def save(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def named(dialect: str) -> list[str]:
    """Options that make everything at PORT be of this dialect."""
    name = dialect if dialect in builtin_names() else str(DIALECTS / f"{dialect}.toml")
    return ["--dialect", name, "--port", str(PORT)]


@pytest.mark.parametrize("dialect", sorted({*builtin_names(), *own_dialect_names()}))
def test_every_vector_and_what_is_near_it(ways: Ways, tmp_path: Path, dialect: str) -> None:
    payloads = [vector.datagram for vector in load_vectors() if vector.dialect == dialect]
    payloads += datagrams_for(dialect_of(dialect), 300, seed=5)
    cut = [p.pcap_record(frame(one)[: 41 + min(len(one), 19)], p.T0, original=1500) for one in payloads[:40] if one]
    content = p.pcap([frame(one[:60_000]) for one in payloads]) + b"".join(cut)
    said = ways.agree(save(tmp_path / "a.pcap", content), *named(dialect))
    assert len(said.out.splitlines()) == len(payloads) + len(cut)
    assert " !! cut at byte " in said.out


@pytest.mark.parametrize("begin", [b"\x01\x00", b"\x01\x01a:", b"\x03\x00", b"\x09"])
def test_hostile_text(ways: Ways, tmp_path: Path, begin: bytes) -> None:
    content = p.pcap([frame(begin + text + end) for text in HOSTILE for end in (b"", b":x", b"\x00\x00")])
    file = save(tmp_path / "a.pcap", content)
    ways.agree(file, *named("colon"))
    assert all(json.loads(line) for line in ways.columns(file, *named("colon"), "--format", "jsonl").out.splitlines())


@pytest.mark.parametrize("name", ["colon-clean", "topicbyte", "portdigits"])
def test_real_captures(ways: Ways, shared_captures: Path, name: str) -> None:
    assert ways.agree(str(shared_captures / f"{name}.pcap")).code == ExitCode.CLEAN


@pytest.mark.parametrize("scenario", ["mixed", "hostile", "fragmented"])
def test_scenarios_and_noise(ways: Ways, tmp_path: Path, scenario: str) -> None:
    write(
        generate(GeneratorOptions(scenario, seed=3, sensors=3, dashboards=2, rounds=4, capture={"noise": 1})).capture,
        tmp_path / "a.pcapng",
    )
    assert "skipped" in ways.agree(str(tmp_path / "a.pcapng")).err
    assert "  UDP\n" in ways.agree(str(tmp_path / "a.pcapng"), "--all").out


@pytest.mark.parametrize("dialect", builtin_names())
def test_a_building_of_each_dialect_and_its_copies(ways: Ways, tmp_path: Path, dialect: str) -> None:
    order = GeneratorOptions("building", dialects=(dialect,), rounds=2, sensors=3, capture={"point": "any"})
    write(generate(order).capture, tmp_path / "a.pcap")
    assert "[copy of " in ways.agree(str(tmp_path / "a.pcap")).out


@pytest.mark.parametrize("name", [name for name in FILES if name != "clocks"])
def test_every_kind_of_file(ways: Ways, tmp_path: Path, name: str) -> None:
    ways.agree(save(tmp_path / "a.pcap", FILES[name]), "--dialect", "colon", "--port", str(p.DPORT), "--all")


def test_times_before_the_epoch_and_at_the_edge(ways: Ways, tmp_path: Path) -> None:
    file = save(tmp_path / "a.pcapng", FILES["clocks"])
    options = ("--dialect", "colon", "--port", str(p.DPORT), "--format", "jsonl")
    expected, found = (
        [json.loads(line) for line in way(file, *options).out.splitlines()] for way in (ways.rows, ways.columns)
    )
    assert any(row["time_ns"] < 0 for row in expected)
    assert expected == found
    early = p.section() + p.interface(tsoffset=-3)
    early += b"".join(p.enhanced(frame(b"\x02"), ticks) for ticks in (0, 1, 2_999_999, 3_000_000, 3_000_001))
    said = ways.agree(save(tmp_path / "b.pcapng", early), *named("colon"))
    assert "  -3.000000  " in said.out
    assert "  00:00:00.000001  " in said.out


def dialogue(count: int) -> bytes:
    return p.pcap([frame(b"\x01\x00home/%d:%d" % (n % 7, n), 50000 + n % 3, 50000) for n in range(count)])


def test_more_than_is_learned_from_or_fits_into_a_batch(ways: Ways, tmp_path: Path) -> None:
    large = p.pcap([frame(b"\x01\x00big:" + b"%05d " % n * 10_000, 50000, 50000) for n in range(180)])
    ways.agree(save(tmp_path / "many.pcap", dialogue(20_000)))
    ways.agree(save(tmp_path / "large.pcap", large))


@pytest.mark.parametrize("size", [0, 3, 20, 24, 30, 1000, -7])
def test_damage(ways: Ways, tmp_path: Path, size: int) -> None:
    said = ways.agree(save(tmp_path / "a.pcap", dialogue(50)[:size]))
    assert said.code in (ExitCode.UNREADABLE, ExitCode.PARTIAL)
    corrupt = bytearray(dialogue(50))
    corrupt[24 + 8 : 24 + 12] = b"\xff" * 4
    ways.agree(save(tmp_path / "b.pcap", bytes(corrupt)))


def test_several_files_of_odd_names_and_no_dialect(ways: Ways, tmp_path: Path) -> None:
    good = save(tmp_path / 'a "quoted\\ \x1b[1m.pcap', dialogue(9))
    other = save(tmp_path / "other.pcap", p.pcap([frame(b"\x02what", 1, 2)]))
    text = save(tmp_path / "text.pcap", b"just a text")
    missing = str(tmp_path / "missing.pcap")
    assert ways.agree(good, other, text, missing).code == ExitCode.PARTIAL
    assert ways.agree(other).code == ExitCode.UNREADABLE
    ways.agree(other, "--all")
    ways.agree(good, "--dialect", "colon", "--dialect", "colon", "--dialect", "topicbyte")


def test_a_narrow_terminal(ways: Ways, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = save(tmp_path / "a.pcap", p.pcap([frame(b"\x01\x00" + text + b":x", 50000, 50000) for text in HOSTILE]))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for columns in (1, 5, 70, 93, 94, 95, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        said = ways.agree(file, *named("colon"), "--port", "50000")
        assert max(map(len, said.out.splitlines())) <= columns


def run_on_stdin(content: bytes, output: str) -> Said:
    done = subprocess.run(
        [sys.executable, "-m", "topicshark.main", "decode", "-", "--format", output],
        input=content,
        capture_output=True,
        cwd=REPO,
        timeout=300,
        check=False,
    )
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize("content", [dialogue(6000), dialogue(60)[:-7]], ids=["whole", "cut"])
def test_stdin(ways: Ways, tmp_path: Path, content: bytes) -> None:
    file = save(tmp_path / "a.pcap", content)
    for output in ("jsonl", "table"):
        expected = ways.rows(file, "--format", output)
        said = run_on_stdin(content, output)
        assert said._replace(err="") == expected._replace(err="")
        assert complaints(said.err) == complaints(expected.err.replace(file, "-"))


def complaints(err: str) -> list[str]:
    """Without the evidence, of which a pipe has less at first."""
    return [line for line in err.splitlines() if " datagrams decode" not in line and " more endpoints" not in line]


def test_gzip(ways: Ways, tmp_path: Path) -> None:
    file = save(tmp_path / "a.pcap", dialogue(60))
    expected = ways.rows(file, "--format", "jsonl")
    Path(file).write_bytes(gzip.compress(dialogue(60)))
    assert ways.columns(file, "--format", "jsonl") == expected


@contextlib.contextmanager
def fed_pipe(content: bytes) -> Iterator[str]:
    """A pipe with a path, which gives its content in pieces."""
    reader, writer = os.pipe()

    def feed() -> None:
        with open(writer, "wb", buffering=0) as out:
            for start in range(0, len(content), 700):
                out.write(content[start : start + 700])

    thread = threading.Thread(target=feed)
    thread.start()
    yield f"/dev/fd/{reader}"
    thread.join()
    os.close(reader)


def test_a_pipe_in_pieces(ways: Ways, tmp_path: Path) -> None:
    file = save(tmp_path / "a.pcap", dialogue(7000))
    expected = ways.rows(file)
    with fed_pipe(dialogue(7000)) as path:
        assert not decode.is_small(path)
        said = ways.columns(path)
    assert said._replace(err="") == expected._replace(err="")
    assert "colon at 10.1.0.2 port 50000 (one of its ports): " in said.err


def test_only_small_plain_files_go_row_by_row(tmp_path: Path) -> None:
    small = save(tmp_path / "small.pcap", dialogue(10))
    assert decode.is_small(small)
    assert not decode.is_small(save(tmp_path / "large.pcap", bytes(decode.SMALL)))
    assert not decode.is_small(save(tmp_path / "small.pcap.gz", gzip.compress(dialogue(10))))
    assert not decode.is_small("-")
    assert decode.is_small(str(tmp_path / "missing"))


@pytest.mark.long
def test_memory_does_not_grow_with_the_capture(tmp_path: Path) -> None:
    """From 40 to 160 MB of the most hostile text: whoever kept it would need hundreds of MB more."""
    peaks = []
    record = p.pcap([frame(b"\x01\x00big:" + bytes(range(128, 256)) * 460, 50000, 50000)])
    for megabytes in (40, 160):
        with open(tmp_path / "big.pcap", "wb") as out:
            out.write(record[:24])
            for _ in range(megabytes * 1_000_000 // len(record)):
                out.write(record[24:])
        script = (
            "import re, sys; from topicshark.main import exit_code_of\n"
            "exit_code_of(['decode', sys.argv[1], '--format', 'jsonl'])\n"
            # not getrusage: its peak is at least that of the process which started this one
            "print(int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) // 1024, file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "big.pcap")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=REPO,
            check=True,
        )
        peaks.append(int(done.stderr.split()[-1]))
    assert peaks[1] < peaks[0] + 60, peaks
    assert peaks[1] < 500

"""`check --by-directory` as a teacher runs it: table, CSV for a spreadsheet, JSON, a page, exit codes."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import unicodedata
from base64 import b64encode
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.spark_analysis.checker.checked import Talk
from tests.spark_analysis.test_grading import CLEAN, FORGETS, folder
from topicshark.exit_codes import ExitCode
from topicshark.main import exit_code_of

HOSTILE = '<script>alert(1)</script>"><img onerror=x>\x1b[31m\u202e'
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    def run(*args: object) -> tuple[int, str, str]:
        code = exit_code_of(["check", "--by-directory", *map(str, args)])
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


@pytest.fixture
def submissions(tmp_path: Path) -> Path:
    top = tmp_path / "submissions"
    top.mkdir()
    folder(top, "anna", run=CLEAN)
    folder(top, "bert", run=FORGETS)
    folder(top, "carla")
    return top


def test_a_table_and_what_to_look_at(run: Run, submissions: Path) -> None:
    code, out, err = run(submissions)
    assert (code, err) == (ExitCode.FINDINGS, "")
    assert out.splitlines() == [
        "submission  dialect  captures  datagrams  verdict           errors  broken rules",
        "anna        colon           1          7  pass                   0",
        "bert        colon           1          6  fail                   1  D-MISSING 1",
        "carla       -               0          0  nothing to judge       0",
        "",
        "bert: fail",
        '  run.pcap frame 3: "home/fan" is not passed on to 10.0.0.2:50000; "home/*" asks for it, but not if wildcards '
        "are not understood: only the exact topic is taken (D-MISSING)",
        "",
        "carla: nothing to judge",
        "  problem: no captures in it; expected names like *.pcap, *.pcapng or *.cap, also with .gz, .zst or .lz4",
        "",
        "3 submissions: 1 pass, 1 fail, 1 nothing to judge",
    ]


def test_csv_is_what_rfc_4180_says_and_starts_no_formula(run: Run, submissions: Path) -> None:
    for name in ("=1+1", "+1", "-1", "@sum", "\t=x", "\r=x", 'say "hi", x'):
        folder(submissions, name)
    code, out, _ = run(submissions, "--format", "csv")
    assert code == ExitCode.FINDINGS
    assert out.count("\r\n") == out.count("\n") == 11
    rows = list(csv.reader(io.StringIO(out, newline="")))
    assert rows[0][:6] == ["submission", "dialect", "captures", "datagrams", "verdict", "errors"]
    assert {len(row) for row in rows} == {9}
    assert ["bert", "colon", "1", "6", "fail", "1", "D-MISSING 1"] in [row[:7] for row in rows]
    assert {row[0] for row in rows} >= {"'=1+1", "'+1", "'-1", "'@sum", 'say "hi", x'}
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


def test_json_has_a_row_for_each(run: Run, submissions: Path) -> None:
    whole = json.loads(run(submissions, "--format", "json")[1])
    assert whole["verdicts"] == {"pass": 1, "fail": 1, "nothing to judge": 1}
    anna, bert, carla = whole["submissions"]
    assert (anna["submission"], anna["verdict"], anna["sessions"][0]["name"]) == ("anna", "pass", "anna/run")
    assert bert["broken"] == [{"id": "D-MISSING", "level": "error", "count": 1}]
    assert (carla["sessions"], len(carla["problems"])) == ([], 1)


def test_junit_has_a_suite_for_each(run: Run, submissions: Path) -> None:
    root = ElementTree.fromstring(run(submissions, "--format", "junit")[1].encode())  # noqa: S314  (our own)
    counts = {one.get("name"): (one.get("failures"), one.get("errors")) for one in root}
    assert counts == {"anna": ("0", "0"), "bert": ("1", "0"), "carla": ("0", "1")}


class Page(HTMLParser):
    """What a browser would see: elements, and the text of rows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ids |= {value or "" for name, value in attrs if name == "id"}
        self.links |= {value or "" for name, value in attrs if name == "href"}


def test_the_page_needs_nothing_and_runs_nothing(run: Run, submissions: Path) -> None:
    publish = b"\x01\x00" + HOSTILE.encode() * 50 + b":1"
    talk = f"1 0 anna > broker hex:{publish.hex()}\n2 90000 broker > anna SUBACK"
    Talk().write(folder(submissions, HOSTILE.replace("/", "_")) / f"{HOSTILE.replace('/', '_')}.pcap", talk)
    code, out, _ = run(submissions, "--format", "html")
    assert code == ExitCode.FINDINGS
    page = Page(out)
    assert not {"script", "img", "iframe", "link", "object", "form"} & set(page.tags)
    assert not {name for name in page.attributes if name.startswith("on") or name in ("style", "src")}
    assert {link.removeprefix("#") for link in page.links} <= page.ids
    assert all(unicodedata.category(character)[0] != "C" for character in out.replace("\n", ""))
    style = re.search(r"<style>(.*?)</style>", out, re.S)
    assert style is not None
    digest = b64encode(hashlib.sha256(style.group(1).encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in out
    assert page.tags.count("article") == 4
    assert "&lt;script&gt;alert(1)" in out


def test_the_exit_code(run: Run, submissions: Path) -> None:
    assert run(submissions, "--rule", "A-MISSING")[0] == ExitCode.PARTIAL  # carla
    (submissions / "carla").rmdir()
    assert run(submissions, "--rule", "A-MISSING")[0] == ExitCode.CLEAN
    assert run(submissions)[0] == ExitCode.FINDINGS
    assert run(submissions, "--dialect", "mqttsn")[0] == ExitCode.UNREADABLE
    assert run(submissions / "anna")[0] == ExitCode.UNREADABLE
    code, _, err = run(submissions / "absent")
    assert code == ExitCode.UNREADABLE
    assert "--by-directory takes a folder" in err


def test_a_file_instead_of_stdout(run: Run, submissions: Path, tmp_path: Path) -> None:
    code, out, _ = run(submissions, "--format", "csv", "-o", tmp_path / "grades.csv")
    assert (code, out) == (ExitCode.FINDINGS, "")
    assert (tmp_path / "grades.csv").read_bytes().startswith(b"submission,dialect,captures")
    assert run(submissions, "-o", tmp_path / "absent" / "grades.txt")[0] == ExitCode.USAGE
    before = (submissions / "anna" / "run.pcap").read_bytes()
    code, _, err = run(submissions, "-o", submissions / "anna" / "run.pcap")
    assert code == ExitCode.USAGE
    assert "lies in a submission (anna)" in err
    assert (submissions / "anna" / "run.pcap").read_bytes() == before


def test_what_only_a_class_can_have(submissions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["check", str(submissions / "anna"), "--format", "csv"]) == ExitCode.USAGE
    assert "needs --by-directory" in capsys.readouterr().err

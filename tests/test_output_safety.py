"""One hostile corpus of topics, payloads and names through every output: nothing that a terminal, a browser, an XML
reader or a spreadsheet would act on comes out. What must not come out is said here, not by the code that escapes."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import socket
import subprocess
import sys
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pcap_tools.capture import CaptureWriter
from tests.conftest import REPO, Command
from tests.pcap_tools.capture.packets import T0, ethernet, ipv4, udp
from tests.waiting import PATIENCE_S

CORPUS = [
    b"<script>alert(1)</script>",
    b"\"><img src=x onerror=alert(1)>'",
    b"]]></system-out><!ENTITY x>&x;",
    b"\x1b[31mred\x1b]0;title\x07\x1b[2J",
    b"\x9b31m\xc2\x9b31m",
    "\u202egpj.exe\u2066\u2069\u200f".encode(),
    b"line\r\nSet-Cookie: x\x00\x08\x7f",
    b"\xff\xfe\xed\xa0\x80",
    b'=cmd|" /C calc"!A0',
    b"@SUM(1)",
    b"{{7*7}}${7*7}%n%s",
    b"x" * 10_000,
]
NAME = "=<blink>\x1b[31m\u202e.pcap"
ALLOWED = {"\n"}


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each text is asked for and published; it is never passed on, and half of the publishes have no ACK."""
    path = tmp_path_factory.mktemp("hostile") / "student" / NAME
    path.parent.mkdir()
    time = T0

    with CaptureWriter(path, link_type=1) as out:

        def send(src: int, dst: int, datagram: bytes) -> None:
            nonlocal time
            time += 1_000_000_000
            packet = ipv4(udp(datagram, 50000, 50000), src=f"10.0.0.{src}", dst=f"10.0.0.{dst}")
            out.write(ethernet(packet), time)

        for number, text in enumerate(CORPUS):
            send(3, 1, b"\x03\x00" + text)
            send(1, 3, b"\x04")
            send(2, 1, b"\x01\x01" + text.replace(b":", b"") + b":" + text)
            if number % 2:
                send(1, 2, b"\x02")
    return path


def assert_plain(text: str) -> None:
    """No control characters, no marks that change the direction, nothing that is no character."""
    for character in set(text) - ALLOWED:
        assert unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"), f"{character!r}"


class Tags(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.targets: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.targets += [value or "" for name, value in attrs if name in ("href", "src", "srcset")]


def assert_harmless_html(page: str) -> None:
    assert_plain(page)
    seen = Tags(page)
    assert not seen.tags & {"script", "iframe", "object", "embed", "form", "base", "blink"}, (
        "`blink` is in a file's name"
    )
    assert not {name for name in seen.attributes if name.startswith("on")}
    assert all(target.startswith(("#", "data:image/")) or target == "data:," for target in seen.targets)
    assert "default-src 'none'" in html.unescape(page)


COMMANDS = [
    ("decode", "{}", "--dialect", "colon"),
    ("decode", "{}", "--dialect", "colon", "--format", "jsonl"),
    ("check", "{}"),
    ("check", "{}", "--format", "json"),
    ("check", "{}", "--format", "sarif"),
    ("check", "{}", "--format", "junit"),
    ("check", "{}", "--format", "html"),
    ("check", "{}/..", "--by-directory", "--format", "text"),
    ("check", "{}/..", "--by-directory", "--format", "csv"),
    ("check", "{}/..", "--by-directory", "--format", "html"),
    ("timing", "{}"),
    ("timing", "{}", "--format", "json"),
    ("fanout", "{}"),
    ("fanout", "{}", "--format", "json"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: "-".join(w.strip("-{}/.") for w in words if w != "{}"))
def test_a_command_prints_nothing_that_acts(topicshark: Command, capture: Path, words: tuple[str, ...]) -> None:
    folder = str(capture.parent.parent)
    done = topicshark(*(folder if word == "{}/.." else word.replace("{}", str(capture)) for word in words))
    assert done.returncode in (0, 1), done.stderr
    assert_plain(done.stderr)
    assert len(done.stdout) > 100
    _assert_harmless(done.stdout, words[-1])


def _assert_harmless(text: str, form: str) -> None:
    if form == "html":
        assert_harmless_html(text)
        return
    assert_plain(text.replace("\r\n", "\n") if form == "csv" else text)
    if form == "junit":
        ElementTree.fromstring(text)  # noqa: S314 - our own, just made
    elif form in ("json", "sarif"):
        json.loads(text)
    elif form == "jsonl":
        assert all(json.loads(line) for line in text.splitlines())
    elif form == "csv":
        for row in csv.reader(io.StringIO(text)):
            assert not [cell for cell in row if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]


def test_packet_comments_are_plain_text(topicshark: Command, capture: Path, tmp_path: Path) -> None:
    annotated = tmp_path / "annotated.pcapng"
    done = topicshark("annotate", str(capture), "-o", str(annotated))
    assert done.returncode == 0, done.stderr
    assert_plain(done.stderr)
    raw = annotated.read_bytes()
    headers = list(re.finditer(rb"\x01\x00(..)topicshark [A-Z]-", raw, re.DOTALL))  # the option's code, its length
    assert len(headers) > len(CORPUS)
    assert raw.count(b"script>alert") > 4, "a topic of the corpus stands in a comment, beside those in frames"
    for header in headers:
        size = int.from_bytes(header[1], "little")
        assert_plain(raw[header.end(1) : header.end(1) + size].decode())


@pytest.mark.tshark
def test_the_dissector_shows_nothing_that_acts(capture: Path) -> None:
    """The text of its tree and its column; where tshark itself escapes, so much the better."""
    command = ["tshark", "-n", "-X", f"lua_script:{REPO / 'dissector.lua'}", "-r", str(capture), "-V", "-O", "pubsub"]
    done = subprocess.run([*command, "-P"], capture_output=True)
    assert b"pub" in done.stdout.lower()
    assert b"Lua Error" not in done.stdout + done.stderr
    assert_plain(done.stdout.decode())


def test_notebooks_show_markup_as_text(capture: Path) -> None:
    from pcap_tools.dialect import load_dialect
    from spark_analysis.check import check

    result = check([str(capture)], engine="local")
    session = result.sessions[0]
    for shown in (result, session, session.findings[0], load_dialect("colon")):
        page = shown._repr_html_()
        assert not Tags(page).tags & {"script", "img", "blink", "iframe"}
        assert_plain(page)


def test_the_broker_logs_nothing_that_acts() -> None:
    """Real sockets: each text published to a broker that prints a line a message."""
    command = [sys.executable, "-m", "topicshark.main", "broker", "--port", "0"]
    broker = subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        assert broker.stdout is not None
        port = int(re.findall(rb"port (\d+)", broker.stdout.readline())[0])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            for text in CORPUS:
                client.sendto(b"\x01\x01" + text.replace(b":", b"") + b":" + text, ("127.0.0.1", port))
            client.sendto(b"\x01\x00last:1", ("127.0.0.1", port))
        told = [broker.stdout.readline()]
        while b"last" not in told[-1]:
            told.append(broker.stdout.readline())
    finally:
        broker.terminate()
        broker.communicate(timeout=PATIENCE_S)
    assert len(told) > len(CORPUS)
    assert_plain(b"".join(told).decode())

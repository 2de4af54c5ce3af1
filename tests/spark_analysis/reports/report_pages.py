"""Pages of `topicshark report` for tests: from talks written by hand, one of them as hostile as topics can be."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

from pcap_tools.codec.detect import wanted_dialects
from spark_analysis.check import check
from spark_analysis.reports.html.page import html_page
from spark_analysis.sessions.ingested import find_sources
from tests.spark_analysis.checker.checked import Talk

# Anna publishes; Bert, who asked for everything at home, gets nothing of frame 5, and nobody answers frame 9.
FINDINGS = """
    1      0  bert > broker  SUBSCRIBE filter=home/*
    2      1  broker > bert  SUBACK
    3     10  carla > broker SUBSCRIBE filter=home/fan
    4     11  broker > carla SUBACK
    5    100  anna > broker  PUBLISH topic=home/fan payload=ON
    6    101  broker > carla PUBLISH topic=home/fan payload=ON
    7    102  broker > anna  PUBACK
    8    600  dora > broker  SUBSCRIBE filter=garden
    9   1000  anna > broker  PUBLISH topic=attic payload=7
    10  1001  broker > dora  SUBACK
    11  6000  anna > broker  PUBLISH topic=attic payload=7
    12 11000  anna > broker  PUBLISH topic=attic payload=7
    13 16000  anna > broker  PUBLISH topic=attic payload=7
    14 21000  anna > broker  PUBLISH topic=attic payload=7
    15 40000  anna > broker  PUBLISH topic=cellar payload=1
    16 40001  broker > anna  PUBACK
"""
HOSTILE = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror=window.hacked=1>',
    "</style><style>*{display:none}</style>",
    "\x1b[31mred\x07",
    "\u202egnp.exe\u2066",
    "$\\frac{1}{0}$ $x^2$",
    "{{ 7*7 }}{% include 'x' %}",
    "&lt;b&gt;&#60;",
    "\u05e9\u05dc\u05d5\u05dd/\u0645\u0631\u062d\u0628\u0627",
    "10,000 letters " + "x" * 10_000,
)
HOSTILE_NAME = '<b>"&$x$<script>.pcap'


def findings_capture(folder: Path) -> Path:
    return Talk().write(folder / "findings.pcap", FINDINGS)


def hostile_capture(folder: Path) -> Path:
    """Each topic is subscribed to and published; nothing is passed on, and every other publish is not acknowledged."""
    lines: list[str] = []

    def say(time: int, ends: str, datagram: bytes) -> None:
        lines.append(f"{len(lines) + 1} {time} {ends} hex:{datagram.hex()}")

    for at, topic in enumerate(HOSTILE):
        text = topic.encode()
        say(1_000 * at, "bert > broker", b"\x03\x00" + text)
        say(1_000 * at + 1, "broker > bert", b"\x04")
        say(1_000 * at + 100, "anna > broker", b"\x01\x00" + text + b":" + text)
        if at % 2:
            say(1_000 * at + 101, "broker > anna", b"\x02")
    say(60_000, "dora > broker", b"\x03\x00end")
    say(60_001, "broker > dora", b"\x04")
    return Talk().write(folder / HOSTILE_NAME, "\n".join(lines))


def page_of(*sources: Path) -> str:
    names = [str(source) for source in sources]
    dialects = wanted_dialects(["colon"])
    return html_page(check(names, dialects=dialects, engine="local"), find_sources(names), dialects)


class Markup(HTMLParser):
    """The tags of a page, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

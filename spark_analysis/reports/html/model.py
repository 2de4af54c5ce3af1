"""What stands on the page. Plain values: the template does nothing but lay them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pcap_tools.escaping import shorten

from ...results.safe_text import shown

LONGEST = 160  # characters of a text from a packet


@dataclass(frozen=True)
class Picture:
    """Two `data:` URIs of the same picture, for light and for dark ground; pixels; ``alt`` says what it shows."""

    light: str
    dark: str
    alt: str
    width: int
    height: int


@dataclass(frozen=True)
class Table:
    """``numbers``, ``codes`` (names) and ``wide`` (sentences) are columns of that kind; ``more`` rows are left out."""

    caption: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    more: int = 0
    numbers: frozenset[int] = frozenset()
    codes: frozenset[int] = frozenset()
    wide: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Diagram:
    """The frames around one finding, as a picture and in words."""

    caption: str
    picture: Picture
    frames: Table


@dataclass(frozen=True)
class Filter:
    """A display filter of Wireshark; ``capture`` is told where there are several."""

    capture: str
    text: str
    more: str | None


@dataclass(frozen=True)
class RuleSection:
    """A rule that is broken, or of which the capture cannot tell."""

    anchor: str
    id: str
    level: str
    verdict: str
    fault: str
    sentence: str
    meaning: str
    advice: str
    section: str
    findings: Table
    filters: list[Filter]
    diagrams: list[Diagram] = field(default_factory=list)


@dataclass(frozen=True)
class Measures:
    """A part of the page about one thing: sentences, then pictures and tables."""

    sentences: list[str]
    pictures: list[Picture]
    tables: list[Table]


@dataclass(frozen=True)
class SessionSection:
    """One session in full."""

    anchor: str
    name: str
    about: str
    verdict: str
    sentence: str
    broken: list[RuleSection]
    doubts: list[RuleSection]
    timing: Measures
    fanout: Measures
    quality: Measures
    rules: list[Table]
    passed: str


@dataclass(frozen=True)
class OverviewRow:
    """One session in the table of all; ``anchor`` is empty if the page does not tell more of it."""

    anchor: str
    name: str
    dialect: str
    datagrams: str
    verdict: str
    broken: str


@dataclass(frozen=True)
class Page:
    """The whole. ``overview`` is empty where there is one session only."""

    title: str
    version: str
    verdict: str
    sentence: str
    troubles: list[str]
    troubles_more: int
    overview: list[OverviewRow]
    overview_more: int
    sessions: list[SessionSection]
    sessions_more: int


def short(text: str | None, longest: int = LONGEST) -> str:
    """Text from a packet, or a name: safe, and no longer than a page bears."""
    return shorten(shown(text), longest)


def counted(count: int, what: str) -> str:
    """
    >>> counted(1, "rule"), counted(1200, "rule")
    ('1 rule', '1,200 rules')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"

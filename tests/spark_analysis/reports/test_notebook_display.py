"""Sessions, findings and results in a notebook: they say what is wrong, and nothing in them becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from spark_analysis.results.notebook import FindingTable
from spark_analysis.results.verdicts import Cause, Place
from tests.spark_analysis.reports.made_results import HOSTILE, finding, hostile_result, result, session

MARKUP = '</td><script>alert(1)</script><img src=x onerror="alert(1)">\u202e\x1b[31m$\\href{javascript:alert(1)}{x}$'
OURS = {"table", "thead", "tbody", "tr", "th", "td", "p", "b"}
NO_MATH = ("class", "tex2jax_ignore mathjax_ignore")


class Page(HTMLParser):
    """What a browser would see: elements with their attributes, and the text of each cell."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.cells: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(attrs)))
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.elements[-1][0] in ("td", "th"):
            self.cells[-1] += data


def shown(thing: object) -> Page:
    return Page(thing._repr_html_())  # type: ignore[attr-defined]


def test_a_finding_tells_all_that_is_known_of_it() -> None:
    assert shown(finding(frame=12345)).cells == [
        *("finding", "A-MISSING"),
        *("level", "error"),
        *("verdict", "fail"),
        *("capture", "run 1.pcap"),
        *("frame", "12345"),
        *("related", "frames 130, 140"),
        *("client", "10.0.0.2:50000"),
        *("topic", "home/x"),
        *("what is wrong", "PUBLISH home/x is never acknowledged"),
    ]


def test_a_finding_names_the_one_that_it_follows_from() -> None:
    cells = shown(finding(follows_from=Cause("A-LATE", "/b/other.pcap", 9))).cells
    assert cells[-1] == "PUBLISH home/x is never acknowledged; follows from A-LATE at other.pcap frame 9"


def test_a_session_begins_with_its_verdict_and_names_the_broken_rules_only() -> None:
    page = shown(session(finding()))
    assert page.text.startswith("run: fail colon; broker 10.0.0.1:50000; 1,234 datagrams; run 1.pcap")
    assert "Rules: 2 fail, 1 inconclusive, 1 n/a, 1 not exercised, 1 pass" in page.text
    assert {"A-MISSING", "A-CLIENT-MISSING", "D-MISSING"} <= set(page.cells)
    assert not {"W-EMPTY", "T-MISSING", "X-LOOP"} & set(page.cells)
    assert "PUBLISH home/x is never acknowledged" in page.cells


def test_many_sessions_are_one_row_each_and_bounded() -> None:
    page = shown(result(*(session(finding(), name=f"run{number}") for number in range(30))))
    assert page.cells[5:10] == ["run0", "colon", "1,234", "fail", "A-MISSING (3), A-CLIENT-MISSING (2)"]
    assert "run19" in page.cells
    assert "run20" not in page.cells
    assert "… and 10 more sessions" in page.text


def test_a_list_of_findings_is_bounded() -> None:
    page = shown(FindingTable([finding(frame=number) for number in range(100, 150)], most=3))
    assert [cell for cell in page.cells if cell.startswith("1") and len(cell) == 3] == ["100", "101", "102"]
    assert "… and 47 more findings" in page.text


def test_folders_of_the_machine_are_not_told() -> None:
    broken = result(
        session(), partial=["/captures/run 1.pcap: damaged at byte 9"], failed={"/a/b.pcap": "/a/b.pcap: no"}
    )
    page = shown(broken)
    assert "Read in part: run 1.pcap: damaged at byte 9" in page.text
    assert "Not read: b.pcap: no" in page.text
    assert "/captures" not in page.text


@pytest.mark.parametrize("text", [MARKUP, HOSTILE, "x" * 10_000])
def test_hostile_text_stays_text(text: str) -> None:
    texts: dict[str, Any] = {"detail": {"message": text}, "reason": text, "topic": text, "client": text}
    texts["capture"] = f"/{text}.pcap"
    found = finding(rule=text, verdict="inconclusive", related=(1, Place(f"/x{text}", 2)), **texts)
    named = session(found, name=text, captures=[f"/{text}.pcap"], brokers=[text])
    for thing in (found, named, result(named, named), result(named, partial=[text], failed={text: text})):
        page = shown(thing)
        assert {tag for tag, _ in page.elements} <= OURS
        assert {one for _, attributes in page.elements for one in attributes} <= {NO_MATH}
        assert page.text.isprintable()
        assert max(map(len, page.cells)) <= 300


def test_every_place_of_a_hostile_result_is_escaped() -> None:
    page = shown(hostile_result())
    assert {tag for tag, _ in page.elements} <= OURS
    assert r"a\x1b[31m\x00\x0a]]><x a=" in page.text

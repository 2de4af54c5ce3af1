"""The page of `topicshark report`: what it says, in which order, how much of it, and that no text becomes markup."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from pcap_tools.codec.detect import wanted_dialects
from spark_analysis.reports.html.page import html_page
from spark_analysis.reports.html.sentences import page_sentence, page_verdict, session_sentence
from spark_analysis.results.verdicts import Cause, CheckResult, RuleVerdict
from spark_analysis.sessions.ingested import Sources
from tests.spark_analysis.reports.made_results import finding, hostile_result, result, session
from tests.spark_analysis.reports.report_pages import (
    HOSTILE,
    HOSTILE_NAME,
    Markup,
    findings_capture,
    hostile_capture,
    page_of,
)


def page_of_result(made: CheckResult) -> str:
    """Of captures that are not there: such a page has no diagrams."""
    return html_page(made, Sources(()), wanted_dialects(["colon"]))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("talks")
    made = {"findings": page_of(findings_capture(folder)), "hostile": page_of(hostile_capture(folder))}
    return made | {"made up": page_of_result(hostile_result())}


@pytest.fixture(params=["findings", "hostile", "made up"])
def page(request: pytest.FixtureRequest, pages: dict[str, str]) -> str:
    return pages[request.param]


# -- what it says -------------------------------------------------------------------------------------------------


def test_a_finding_names_the_one_that_it_follows_from() -> None:
    found = finding(follows_from=Cause("A-LATE", "/b/other.pcap", 9))
    text = Markup(page_of_result(result(session(found)))).text
    assert "client follows from see also" in text
    assert "A-LATE at other.pcap frame 9 frames 130, 140" in text
    assert "follows from" not in Markup(page_of_result(result(session(finding())))).text


def test_it_begins_with_the_verdict_and_then_what_is_broken(pages: dict[str, str]) -> None:
    text = Markup(pages["findings"]).text
    told = [
        "findings.pcap fail",
        "1 of 6 requests was never acknowledged. 1 more rule is broken.",
        "Broken rules, worst first",
        "1 of 6 requests was never acknowledged A-MISSING",
        "The rule The broker acknowledges every request.",
        "What it means No ACK for a request",
        "What to do Compare the request with acknowledged ones",
        "Around frame 9: PUBLISH is never acknowledged, though it is sent 5 times",
        "frame.number in {9, 11, 12, 13, 14}",
        "Around frame 5:",
        "frame.number in {1, 5}",
        "ACK timing",
        "Fan-out",
        "The capture was taken at the broker",
        "All rules",
        "Not put to the test",
    ]
    place = 0
    for words in told:
        place = text.find(words, place)
        assert place >= 0, words


def test_a_diagram_tells_the_frames_and_what_never_came(pages: dict[str, str]) -> None:
    text = Markup(pages["findings"]).text
    assert "9 0 10.0.0.2:50000 broker 10.0.0.1:50000 PUBLISH attic = 7 (part of the finding)" in text
    assert "14 +20 s 10.0.0.2:50000 broker 10.0.0.1:50000 PUBLISH attic = 7 (part of the finding)" in text
    assert "broker 10.0.0.1:50000 10.0.0.2:50000 no ACK" in text
    assert "7 +2 ms broker 10.0.0.1:50000 10.0.0.2:50000 PUBACK" in text  # of the publish that Bert misses
    assert "broker 10.0.0.1:50000 10.0.0.3:50000 not passed on" in text


def test_rules_stand_by_level_and_then_by_how_often_they_are_broken() -> None:
    rules = [
        RuleVerdict("A-CLIENT-MISSING", "warning", "fail", 100, 90, 0),
        RuleVerdict("A-LATE", "error", "fail", 100, 2, 0),
        RuleVerdict("D-MISSING", "error", "fail", 100, 5, 0),
        RuleVerdict("R-ALTERED-RETAIN", "note", "fail", 100, 99, 0),
        RuleVerdict("W-EMPTY", "error", "inconclusive", 100, 0, 50),
    ]
    page = Markup(page_of_result(result(session(rules=rules))))
    anchors = [one["id"] for one in page.all("article")]
    order = ["D-MISSING", "A-LATE", "A-CLIENT-MISSING", "R-ALTERED-RETAIN", "W-EMPTY"]
    assert anchors == [f"s1-{rule}" for rule in order]


@pytest.mark.parametrize(
    ("rules", "verdict", "sentence"),
    [
        ([("fail", "error")], "fail", "1 of 9 requests was never acknowledged; of 1 more the capture cannot tell."),
        (
            [("fail", "error"), ("fail", "note"), ("pass", "error"), ("n/a", "error")],
            "fail",
            "1 of 9 requests was never acknowledged; of 1 more the capture cannot tell. 1 more rule is broken.",
        ),
        (
            [("inconclusive", "error"), ("pass", "error")],
            "inconclusive",
            "Nothing is broken for certain, but of 1 rule this capture cannot tell.",
        ),
        (
            [("pass", "error"), ("fail", "warning")],
            "pass",
            "No rule of level error is broken, of the 2 rules that this traffic put to the test; "
            "1 rule of lower level is.",
        ),
        ([("not exercised", "error")], "pass", "Nothing in this traffic put a rule to the test."),
    ],
)
def test_the_sentence_says_what_the_verdict_is(rules: list[tuple[str, str]], verdict: str, sentence: str) -> None:
    made = session(rules=[RuleVerdict("A-MISSING", level, one, 9, 1, 1) for one, level in rules])
    assert (made.verdict, session_sentence(made)) == (verdict, sentence)
    assert page_verdict(result(made)) == verdict


def test_nothing_judged_is_no_pass() -> None:
    assert page_verdict(result()) == page_verdict(result(session(datagrams=0))) == "nothing judged"
    assert "Nothing could be judged" in page_sentence(result())
    assert "nothing tells which end is the broker" in page_sentence(result(session(brokers=[], rules=[])))
    assert "Nothing could be judged" in Markup(page_of_result(result(failed={"x.pcap": "no capture"}))).text


def test_dialects_of_one_capture_have_headings_of_their_own() -> None:
    page = Markup(page_of_result(result(session(finding()), session(finding(), dialect="rolebyte")))).text
    assert "run: colon" in page
    assert "run: rolebyte" in page
    assert "run: colon" not in Markup(page_of_result(result(session(finding())))).text


# -- how much -----------------------------------------------------------------------------------------------------


def test_a_page_of_many_findings_stays_short() -> None:
    found = [finding(frame=number) for number in range(1, 5_001)]
    rules = [RuleVerdict("A-MISSING", "error", "fail", 2_000_000, 1_000_000, 0)]
    page = Markup(page_of_result(result(session(*found, rules=rules))))
    assert "1,000,000 of 2,000,000 requests were never acknowledged" in page.text
    assert "… and 999,990 more" in page.text
    assert len(page.all("tr")) < 40


def test_a_page_of_many_sessions_stays_short() -> None:
    passing = [RuleVerdict("A-MISSING", "error", "pass", 9, 0, 0)]
    sessions = [session(finding(), name=f"run {number}") for number in range(3)]
    sessions += [session(name=f"good {number}", rules=passing) for number in range(900)]
    made = page_of_result(result(*reversed(sessions), partial=[f"capture {number}" for number in range(50)]))
    page = Markup(made)
    assert "3 of 903 sessions break a rule of level error; most often A-MISSING, in 3." in page.text
    assert "… and 403 more" in page.text  # of 903 in the table of all
    assert "… and 30 more" in page.text  # of what could not be read
    details = [one["id"] for one in page.all("section") if one.get("class") == "session"]
    assert details == [f"s{number}" for number in range(1, 21)]
    assert page.text.index("run 0") < page.text.index("good 899")
    assert len(made) < 1_000_000


# -- and that it is safe ------------------------------------------------------------------------------------------


def test_no_text_becomes_markup(page: str) -> None:
    markup = Markup(page)
    in_topics = {"script", "b", "x"}  # all that HOSTILE and made_results bring, but for img and style
    assert not {tag for tag, _ in markup.tags} & {*in_topics, "iframe", "object", "embed", "form", "base", "svg"}
    assert {one["class"] for one in markup.all("img")} <= {"on-light", "on-dark"}
    names = {name for _, attributes in markup.tags for name in attributes}
    assert not [name for name in names if name.startswith("on") or name == "style"]
    assert len(markup.all("style")) == 1
    texts = "".join(markup.texts) + "".join(
        value or "" for _, attributes in markup.tags for value in attributes.values()
    )
    assert not [character for character in texts if not character.isprintable() and character != "\n"]


def test_hostile_topics_are_shown_as_they_are_or_escaped(pages: dict[str, str]) -> None:
    text = Markup(pages["hostile"]).text
    for topic in HOSTILE[:2]:
        assert topic in text
    assert "\\x1b[31mred\\x07" in text
    assert "\\xe2\\x80\\xaegnp.exe" in text
    assert "&lt;b&gt;&#60;" in text
    assert HOSTILE_NAME in text
    assert "x" * 200 not in text


def test_the_policy_allows_this_style_and_pictures_in_the_page_and_nothing_else(page: str) -> None:
    markup = Markup(page)
    (policy,) = (one["content"] for one in markup.all("meta") if one.get("http-equiv") == "Content-Security-Policy")
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert policy is not None
    assert set(policy.split("; ")) == {
        "default-src 'none'",
        "img-src data:",
        f"style-src 'sha256-{digest}'",
        "base-uri 'none'",
        "form-action 'none'",
    }
    first = [tag for tag, _ in markup.tags].index("meta")
    assert [tag for tag, _ in markup.tags[:first]] == ["html", "head"]


def test_links_stay_in_the_page_and_ids_are_there_once(page: str) -> None:
    markup = Markup(page)
    ids = Counter(attributes["id"] for _, attributes in markup.tags if "id" in attributes)
    assert set(ids.values()) == {1}
    targets = [one["href"] or "" for one in markup.all("a")]
    assert targets
    assert {target[:1] for target in targets} == {"#"}
    assert {target[1:] for target in targets} <= set(ids)


def test_pictures_are_in_the_page_twice_and_have_a_description(pages: dict[str, str]) -> None:
    images = Markup(pages["hostile"]).all("img")
    assert Counter(one["class"] for one in images) == {"on-light": len(images) // 2, "on-dark": len(images) // 2}
    assert len(images) >= 2 * (6 + 3)
    assert all(one["alt"] for one in images)
    for one in images:
        kind, _, data = (one["src"] or "").partition(",")
        assert kind == "data:image/svg+xml;base64"
        svg = b64decode(data).decode()
        assert "<script" not in svg
        assert "<img" not in svg


def test_a_capture_that_is_gone_has_a_report_without_diagrams(tmp_path: Path) -> None:
    page = Markup(page_of_result(result(session(finding(capture=str(tmp_path / "gone.pcap"))))))
    assert "PUBLISH home/x is never acknowledged" in page.text
    assert not page.all("figure")

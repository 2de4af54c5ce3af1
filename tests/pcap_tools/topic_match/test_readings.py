"""Wrong readings, case by case: what a broker did, and the sentence that should be told."""

from itertools import product

import pytest

from pcap_tools.dialect.spec import TopicsSpec
from pcap_tools.topic_match import WrongReadings, is_wild, readings, wrong_reading
from pcap_tools.topic_match.patterns import rules_for
from tests.steps import steps_of

RUNS = TopicsSpec(separator="/", wildcards={"*": "any-run"})
LEVELS = TopicsSpec(separator="/", wildcards={"+": "one-level", "#": "rest-levels", "**": "any-levels"})
DOTS = TopicsSpec(separator=".", wildcards={"*": "one-level", ">": "rest-levels"}, case_sensitive=False)
ALL = TopicsSpec(kind="code", wildcards={"255": "all"})


@pytest.mark.parametrize(
    ("filter_", "topic", "spec", "sentence"),
    [
        ("a/+", "a/b/c", LEVELS, "a wildcard crosses levels"),
        ("+/c", "a/b/c", LEVELS, "a wildcard crosses levels"),
        ("10.*", "10.0.0.1", DOTS, "a wildcard crosses levels"),
        ("home/fan", "Home/Fan", RUNS, "large and small letters are taken for the same"),
        ("HOME/*", "home/fan", RUNS, "large and small letters are taken for the same"),
        ("\u00c4/+", "\u00e4/b", LEVELS, "large and small letters are taken for the same"),
        ("a.b", "axb", RUNS, "a dot stands for any character, as in a regular expression"),
        ("a.b", "a\u00b0b", RUNS, "a dot stands for any character, as in a regular expression"),
        ("room.1/*", "room-1/fan", RUNS, "a dot stands for any character, as in a regular expression"),
        ("r.1/+", "r-1/fan", LEVELS, "a dot stands for any character, as in a regular expression"),
        ("r.1/#", "r-1", LEVELS, "a dot stands for any character, as in a regular expression"),
        ("**/r.1", "r-1", LEVELS, "a dot stands for any character, as in a regular expression"),
        ("a.b(1).c", "axb(1)yc", RUNS, "a dot stands for any character, as in a regular expression"),
        ("room(1)", "room1", RUNS, "the filter is taken for a regular expression"),
        ("[a-c]/*", "b/fan", RUNS, "the filter is taken for a regular expression"),
        ("room\\\\d", "room7", RUNS, "the filter is taken for a regular expression"),
        ("fo*", "f", RUNS, "the filter is taken for a regular expression"),
        ("home/bedroom/*", "home/bedroom", RUNS, "a wildcard also matches the parent level"),
        ("a/+", "a", LEVELS, "a wildcard also matches the parent level"),
        ("*/temperature", "temperature", RUNS, "a wildcard also matches nothing"),
        ("a/+/+/b", "a/b", LEVELS, "a wildcard also matches nothing"),
        ("a/+/b", "a/b", LEVELS, "a wildcard also matches nothing"),
        ("home", "home/fan", RUNS, "the filter is taken as a prefix"),
        ("home/*/temp", "home/x/temp/sensor", RUNS, "the filter is taken as a prefix"),
        ("home", "home/" + "x" * 300, RUNS, "the filter is taken as a prefix"),
        ("lang/c++", "lang/cc", RUNS, "the filter is taken for a regular expression"),
        ("HO", "home", DOTS, "the filter is taken as a prefix"),
        ("home/fan", "garage", RUNS, None),
        ("a/#/b", "c", LEVELS, None),
        ("7", "8", ALL, None),
    ],
)
def test_passed_on_though_nobody_asked(filter_: str, topic: str, spec: TopicsSpec, sentence: str | None) -> None:
    assert wrong_reading(topic, filter_, spec, delivered=True) == sentence


@pytest.mark.parametrize(
    ("filter_", "topic", "spec", "sentence"),
    [
        ("home/*", "home/room/fan", RUNS, "a wildcard stops at the end of a level"),
        ("a/#", "a/b/c", LEVELS, "a wildcard stops at the end of a level"),
        ("**/c", "a/b/c", LEVELS, "a wildcard stops at the end of a level"),
        ("a/#", "a", LEVELS, readings.SOMETHING),
        ("**/c", "c", LEVELS, readings.SOMETHING),
        ("fan*", "fan", RUNS, readings.SOMETHING),
        ("HOME.FAN", "home.fan", DOTS, "large and small letters are told apart"),
        ("room(1)", "room(1)", RUNS, "the filter is taken for a regular expression"),
        ("a(/*", "a(/b", RUNS, "the filter is taken for a regular expression"),
        ("home/*", "home/fan", RUNS, "wildcards are not understood: only the exact topic is taken"),
        ("a/+", "a/b", LEVELS, "wildcards are not understood: only the exact topic is taken"),
        ("255", "7", ALL, "wildcards are not understood: only the exact topic is taken"),
        ("home/fan", "home/fan", RUNS, None),
        ("a.b", "a.b", RUNS, None),
    ],
)
def test_kept_back_though_asked_for(filter_: str, topic: str, spec: TopicsSpec, sentence: str | None) -> None:
    assert wrong_reading(topic, filter_, spec, delivered=False) == sentence


def test_what_is_right_needs_no_explanation() -> None:
    assert wrong_reading("home/fan", "home/*", RUNS, delivered=True) is None
    assert wrong_reading("garage", "home/*", RUNS, delivered=False) is None


MOST_STEPS = 200_000  # lines of Python: tens of milliseconds untraced


@pytest.mark.parametrize(
    "filter_",
    [
        "(a+)+b",
        "(a|a)" * 35 + "b",
        "(|)" * 60 + "b",
        "a?" * 40 + "a" * 40,
        "*a" * 30 + "*b",
        "(a*)*b",
        "(?:a+)+b",
        "((((((a*)*)*)*)*)*)*b",
        "(a{1,50}){1,50}b",
        "(a)\\\\1" * 20,
        "(" * 190,
        "[[a]" * 40,
        "[\x01-\uffff]" * 39 + "b",
        "a{1,4294967296}",
        "*/" * 100,
        "+/a/" * 50,
        "**/+/" * 40 + "z",
        "*" * 500,
        "*" * 60_000 + "b",
        "(a+)+b" * 10_000,
    ],
)
@pytest.mark.parametrize("topic", ["a" * 40, "", "a" * 199, "/" * 200, "/" * 500, "a" * 60_000])
def test_a_hostile_filter_takes_few_steps(filter_: str, topic: str) -> None:
    """None of them reaches `re`, whose work cannot be counted: see `test_bounded_regex`."""
    for spec, delivered in product((RUNS, LEVELS, DOTS), (True, False)):
        name, text = (one.replace("/", spec.separator or "") for one in (topic, filter_))
        assert steps_of(wrong_reading, name, text, spec, delivered) < MOST_STEPS


def test_the_count_of_steps_sees_work() -> None:
    """A control: without a limit the longest of these filters takes far more."""
    assert steps_of(is_wild, "*" * 60_000, RUNS) < 100
    assert steps_of(rules_for(RUNS).pattern, b"*" * 60_000) > 2 * MOST_STEPS


@pytest.mark.parametrize("delivered", [True, False])
def test_long_texts_are_not_explained(delivered: bool) -> None:
    fits, too_long = "a/" * 250, "a/" * 250 + "a"
    filter_ = "a" if delivered else "*"
    assert wrong_reading(fits, filter_, RUNS, delivered)
    assert wrong_reading(too_long, filter_, RUNS, delivered) is None


def test_a_session_tries_each_pair_once_and_so_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[str, str, bool]] = []

    def counted(topic: str, filter_: str, spec: TopicsSpec, delivered: bool) -> str | None:
        tried.append((topic, filter_, delivered))
        return wrong_reading(topic, filter_, spec, delivered)

    monkeypatch.setattr(readings, "wrong_reading", counted)
    monkeypatch.setattr(readings, "MOST_PAIRS", 3)
    session = WrongReadings(RUNS)
    pairs = [("home", "home/*", True), ("x", "y", True), ("home/a/b", "home/*", False), ("axb", "a.b", True)]
    for _ in range(3):
        told = [session.explain(*pair) for pair in pairs]
        assert told == [readings.PARENT, None, readings.STOPS, None]
    assert tried == pairs[:3]

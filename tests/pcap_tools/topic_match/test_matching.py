"""Topics x filters: hand-written pairs, the reference broker's index as judge, and texts that mean harm."""

import runpy
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcap_tools.dialect import load_dialect
from pcap_tools.dialect.spec import TopicsSpec
from pcap_tools.errors import TopicsharkError
from pcap_tools.escaping import escape
from pcap_tools.kernels import jit
from pcap_tools.topic_match import is_wild, match_kernel, matches, matching, wild_flags
from reference_broker.topic_index import index_for

DIALECTS = Path(__file__).parents[2] / "dialects"
RUNS = TopicsSpec(separator="/", wildcards={"*": "any-run"})
LEVELS = TopicsSpec(separator="/", wildcards={"+": "one-level", "#": "rest-levels", "**": "any-levels"})
OF_DIALECTS: dict[str, str | Path] = {
    "colon": "colon",
    "mqttsn": "mqttsn",
    **{
        name: DIALECTS / f"{name}.toml"
        for name in ("addresstopic", "allwild", "keywords", "lengthorcode", "magicbyte", "nibbles")
    },
}
SPECS = {
    **{name: load_dialect(where).spec.topics for name, where in OF_DIALECTS.items()},
    "no wildcards": TopicsSpec(case_sensitive=False),
    "levels": LEVELS,
    "levels and all": TopicsSpec(separator="/", wildcards={"+": "one-level", "a": "all"}, case_sensitive=False),
    "long separator": TopicsSpec(separator="ab", wildcards={"+": "one-level", "#": "any-levels"}),
    "two runs and all": TopicsSpec(wildcards={"*": "any-run", "b/": "any-run", "a": "all"}, case_sensitive=False),
    "a backslash": TopicsSpec(separator="x", wildcards={"\\": "one-level", "1": "rest-levels"}),
}


def pairs(topics: list[bytes] | list[str], filters: list[bytes] | list[str], spec: TopicsSpec) -> list[list[int]]:
    """For each topic the filters, as lists."""
    offsets, ids = matches(topics, filters, spec)
    assert offsets.dtype == np.int64
    assert ids.dtype == np.int32
    assert len(offsets) == len(topics) + 1
    assert offsets[-1] == len(ids)
    return [ids[begin:end].tolist() for begin, end in pairwise(offsets)]


def takes(filter_: str, topic: str, spec: TopicsSpec) -> bool:
    return pairs([topic], [filter_], spec) == [[0]]


@pytest.mark.parametrize(
    ("text", "taken", "left"),
    [
        ("home/bedroom/*", ["home/bedroom/fan", "home/bedroom/window/blind"], ["home/bedroom", "home/floor1/bedroom"]),
        (
            "*/temperature",
            ["home/room1/temperature", "garage/temperature"],
            ["home/temperature/sensor", "temperature/sensor"],
        ),
        (
            "home/*/temperature",
            ["home/anyroom/temperature", "home/floor1/room1/temperature"],
            ["home/room/temperature/sensor", "houses/home/room/temperature"],
        ),
        ("*", ["", "a", "a/b"], []),
        ("a*a", ["aa", "aba"], ["a", "ab"]),
        ("*ab*ab*", ["abab", "xabyabz"], ["ab", "aba", "xabz"]),
        ("*aab*", ["aaab", "aabaaab"], ["abab", "aa"]),
        ("a.b", ["a.b"], ["axb", "A.b"]),
        ("room(1)", ["room(1)"], ["room1"]),
    ],
)
def test_runs(text: str, taken: list[str], left: list[str]) -> None:
    assert [takes(text, topic, RUNS) for topic in taken + left] == [True] * len(taken) + [False] * len(left)


@pytest.mark.parametrize(
    ("text", "taken", "left"),
    [
        ("a/+", ["a/b", "a/"], ["a", "a/b/c", "b/a"]),
        ("+/+", ["a/b", "/"], ["a", "a/b/c"]),
        ("a/#", ["a", "a/b", "a/b/c"], ["ab", "b", "ab/c"]),
        ("#", ["", "a", "a/b"], []),
        ("a/#/b", [], ["a/b", "a/x/b", "a/#/b"]),
        ("a+/b", ["a+/b"], ["ax/b"]),
        ("**/b", ["b", "a/b", "a/a/b"], ["b/a", "ab"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a", "b", "a/x"]),
        ("**/a/+/c/**", ["a/b/c", "x/a/a/c/y", "a/a/b/c"], ["a/c", "a/b/b/c"]),
    ],
)
def test_levels(text: str, taken: list[str], left: list[str]) -> None:
    assert [takes(text, topic, LEVELS) for topic in taken + left] == [True] * len(taken) + [False] * len(left)


def test_filters_come_in_ascending_order_of_exact_and_wild_ones() -> None:
    filters = ["*fan", "home/fan", "garage", "home/*", "*", "*o*f*"]
    assert pairs(["home/fan", "garage", "fan"], filters, RUNS) == [[0, 1, 3, 4, 5], [2, 4], [0, 4]]


def test_large_and_small_letters_can_be_the_same() -> None:
    spec = TopicsSpec(wildcards={"*": "any-run"}, case_sensitive=False)
    assert pairs(["Home/Fan", "hOME/fan", "x"], ["HOME/*", "home/FAN", "Home/fan"], spec) == [[0, 1, 2], [0, 1, 2], []]


def test_nothing_to_match() -> None:
    assert pairs([], [], RUNS) == []
    assert pairs([], ["*", "a"], RUNS) == []
    assert pairs(["a", ""], [], LEVELS) == [[], []]


def test_more_matches_than_there_was_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_FIRST_ROOM", 2)
    assert pairs([f"t{number}" for number in range(9)], ["*", "t5", "t*", "**"], RUNS) == [
        [0, 1, 2, 3] if number == 5 else [0, 2, 3] for number in range(9)
    ]


def test_escaped_text_means_the_bytes_it_stands_for() -> None:
    assert not takes("*b", escape(b"\x1b"), RUNS)
    assert takes("*" + escape(b"\x1b"), escape(b"a\x1b"), RUNS)
    assert takes("\\\\*", "\\\\x41", RUNS)
    assert pairs([b"\\x41"], ["\\\\x41"], RUNS) == [[0]]


TEXTS = st.text("aAb/.+#*>x1\\", max_size=9).map(str.encode)
LEVEL_TEXTS = st.lists(st.sampled_from([b"a", b"A", b"b", b"", b"+", b"#", b"*", b"**", b">"]), max_size=6)
TOPIC_LEVELS = st.lists(st.sampled_from([b"a", b"b", b"B", b"", b"+"]), max_size=6)


def joined(levels: st.SearchStrategy[list[bytes]], spec: TopicsSpec) -> st.SearchStrategy[bytes]:
    return levels.map((spec.separator or "/").encode().join)


@pytest.mark.parametrize("name", SPECS)
@given(data=st.data())
def test_the_reference_index_agrees(name: str, data: st.DataObject) -> None:
    spec = SPECS[name]
    filters = data.draw(st.lists(TEXTS | joined(LEVEL_TEXTS, spec) | st.just(b"255"), unique=True, max_size=20))
    topics = data.draw(st.lists(TEXTS | joined(TOPIC_LEVELS, spec), unique=True, max_size=8))
    index = index_for(spec)
    for text in filters:
        index.add(text)
    expected = [sorted(map(filters.index, index.matching(topic))) for topic in topics]
    assert pairs(topics, filters, spec) == expected
    assert wild_flags(filters, spec).tolist() == [index.is_wild(text) for text in filters]


BYTES = st.lists(st.sampled_from([b"\\", b"x", b"1", b"b", b"\x1b", b"\xff", "°".encode(), b"*", b"/"]), max_size=8)


@pytest.mark.parametrize("name", ["colon", "keywords", "a backslash"])
@given(topics=st.lists(BYTES.map(b"".join), max_size=5), filters=st.lists(BYTES.map(b"".join), max_size=5))
def test_escaped_text_matches_as_its_bytes_do(name: str, topics: list[bytes], filters: list[bytes]) -> None:
    spec = SPECS[name]
    escaped = [escape(topic) for topic in topics], [escape(text) for text in filters]
    assert pairs(*escaped, spec) == pairs(topics, filters, spec)
    assert [is_wild(escape(text), spec) for text in filters] == [is_wild(text, spec) for text in filters]


def test_what_is_wild() -> None:
    assert wild_flags(["a*b", "*", "a", ""], RUNS).tolist() == [True, True, False, False]
    assert wild_flags(["a+", "a/+", "+", "#/a", "a/**"], LEVELS).tolist() == [False, True, True, True, True]
    number = TopicsSpec(kind="code", wildcards={"255": "all"})
    assert wild_flags(["255", "25", "2551"], number).tolist() == [True, False, False]


def test_wildcards_that_cannot_stand_together_are_refused() -> None:
    with pytest.raises(TopicsharkError, match="cross levels"):
        matches(["a"], ["b"], TopicsSpec(separator="/", wildcards={"*": "any-run", "+": "one-level"}))
    with pytest.raises(TopicsharkError, match="separator"):
        is_wild("a", TopicsSpec(wildcards={"+": "one-level"}))


# Topics of about so many letters or levels, and filters that make a matcher try many places. Each topic has all ends,
# letters and neighbours of its filter, so that it is really searched.
HOSTILE: list[tuple[Callable[[int], tuple[str, str]], TopicsSpec]] = [
    (
        lambda size: (
            "cb" + "a" * size + "b",
            "*a" * (size // 150) + "*c*b",
        ),
        RUNS,
    ),
    (lambda size: (("a" * (size // 2 - 1) + "b") * 2, "*" + "a" * (size // 2) + "b*"), RUNS),
    (lambda size: (("aab" * (size // 6 - 1) + "b") * 2, "*" + "aab" * (size // 6) + "*"), RUNS),
    (lambda size: ("c/b/" + "a/" * size + "b", "**/a/" * (size // 5) + "**/c/**/b"), LEVELS),
    (lambda size: (("a/" * (size // 3 - 1) + "b/") * 3, "**/" + "a/" * (size // 3) + "b/**"), LEVELS),
    (lambda size: ("a/" * size, "+/" * (size + 3) + "#"), LEVELS),
]


@pytest.mark.parametrize(("texts", "spec"), HOSTILE)
def test_hostile_filters_end(texts: Callable[[int], tuple[str, str]], spec: TopicsSpec) -> None:
    """A matcher that backtracks needs hours here: the time limit of all tests would end it."""
    topic, text = texts(60_000)
    assert not takes(text, f"0/{topic}", spec)


class Counted:
    """An array that counts how often one of its elements is read."""

    reads = 0

    def __init__(self, array: npt.NDArray[np.int32]) -> None:
        self.array = array

    def __getitem__(self, at: int) -> np.int32:
        Counted.reads += 1
        element: np.int32 = self.array[at]
        return element


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels as Python runs them; elements of topics and of filters are counted as they are read."""
    monkeypatch.setattr(jit, "kernel", lambda *_signature: lambda function: function)
    monkeypatch.setattr(jit, "inlined", lambda function: function)
    kernels = runpy.run_path(match_kernel.__file__)
    prepare, scan = kernels["prepare"], kernels["scan"]
    monkeypatch.setattr(matching, "prepare", lambda numbers, *others: prepare(Counted(numbers), *others))

    def counted_scan(topics: Any, starts: Any, marks: Any, numbers: Any, *others: Any) -> Any:
        return scan(Counted(topics), starts, marks, Counted(numbers), *others)

    monkeypatch.setattr(matching, "scan", counted_scan)
    monkeypatch.setattr(Counted, "reads", 0)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(("texts", "spec"), HOSTILE)
def test_hostile_filters_take_linear_work(texts: Callable[[int], tuple[str, str]], spec: TopicsSpec) -> None:
    """A search that begins anew at each place reads some elements hundreds of times."""
    topic, text = texts(3_000)
    assert not takes(text, f"0/{topic}", spec)
    assert 0 < Counted.reads < 8 * (len(topic) + len(text))


def test_ten_thousand_filters_without_a_literal_end() -> None:
    """Pairs that no prefix rules out; every answer has its own reason."""
    topics = [f"b{number}/x{number % 100}/y{number % 7}" for number in range(2_000)]
    filters = [f"*x{number % 100}/*{number // 100}*" for number in range(10_000)]
    found = pairs(topics, filters, RUNS)
    for number in (0, 17, 1_999):
        wanted = [at for at, text in enumerate(filters) if _by_hand(topics[number], text)]
        assert found[number] == wanted
        assert wanted


def _by_hand(topic: str, text: str) -> bool:
    _, first, second, _ = text.split("*")
    _, middle, rest = topic.partition(first)
    return bool(middle) and second in rest

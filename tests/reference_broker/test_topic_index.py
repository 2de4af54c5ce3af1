"""The topic index against its oracle, the vectors of the protocol, and filters that mean harm."""

import random
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcap_tools.dialect import load_dialect
from pcap_tools.dialect.spec import TopicsSpec
from pcap_tools.errors import TopicsharkError
from reference_broker.topic_index import LevelIndex, RunIndex, index_for
from tests.reference_broker.naive_matcher import level_matches, run_matches
from tests.steps import steps_of

STAR = {b"*": "any-run"}
LEVELS = {b"+": "one-level", b"#": "rest-levels", b"**": "any-levels"}
Operation = tuple[bool, bytes]


@pytest.mark.parametrize(
    ("text", "taken", "left"),
    [
        (
            b"home/bedroom/*",
            [b"home/bedroom/fan", b"home/bedroom/window/blind"],
            [b"home/bedroom", b"home/floor1/bedroom"],
        ),
        (
            b"*/temperature",
            [b"home/room1/temperature", b"garage/temperature"],
            [b"home/temperature/sensor", b"temperature/sensor"],
        ),
        (
            b"home/*/temperature",
            [b"home/anyroom/temperature", b"home/floor1/room1/temperature"],
            [b"home/room/temperature/sensor", b"houses/home/room/temperature"],
        ),
    ],
)
def test_the_vectors_of_colon(text: bytes, taken: list[bytes], left: list[bytes]) -> None:
    index = index_for(load_dialect("colon").spec.topics)
    index.add(text)
    assert all(list(index.matching(topic)) == [text] for topic in taken)
    assert all(list(index.matching(topic)) == [] for topic in left)


def texts(letters: str) -> st.SearchStrategy[bytes]:
    return st.text(letters, max_size=8).map(str.encode)


def operations(filters: st.SearchStrategy[bytes]) -> st.SearchStrategy[list[Operation]]:
    return st.lists(st.tuples(st.booleans(), filters), max_size=25)


def check(index: RunIndex | LevelIndex, done: list[Operation], topic: bytes, oracle: Callable[..., bool]) -> None:
    inside: set[bytes] = set()
    for adding, text in done:
        (index.add if adding else index.discard)(text)
        (inside.add if adding else inside.discard)(text)
    found = list(index.matching(topic))
    assert sorted(found) == sorted(text for text in inside if oracle(text, topic))


@given(operations(texts("ab/*")), texts("ab/"))
def test_runs_match_as_the_oracle_does(done: list[Operation], topic: bytes) -> None:
    check(RunIndex(STAR), done, topic, run_matches)


LEVEL_TEXTS = st.lists(st.sampled_from([b"a", b"b", b"", b"+", b"#", b"**"]), min_size=1, max_size=5).map(b"/".join)
TOPICS = st.lists(st.sampled_from([b"a", b"b", b""]), min_size=1, max_size=5).map(b"/".join)


@given(operations(LEVEL_TEXTS), TOPICS)
def test_levels_match_as_the_oracle_does(done: list[Operation], topic: bytes) -> None:
    check(LevelIndex(LEVELS, b"/"), done, topic, level_matches)


def test_a_number_that_means_all() -> None:
    index = index_for(TopicsSpec(kind="code", wildcards={"255": "all"}))
    for text in (b"255", b"7", b"2"):
        index.add(text)
    assert sorted(index.matching(b"7")) == [b"255", b"7"]
    assert index.is_wild(b"255")
    assert not index.is_wild(b"25")


def test_characters_of_regular_expressions_are_plain() -> None:
    index = RunIndex(STAR)
    for text in (b"a.b", b"room(1)", b"a(", b"[a-z]*", b"\\d*", b"(a+)+$"):
        index.add(text)
    assert list(index.matching(b"axb")) == []
    assert list(index.matching(b"room(1)")) == [b"room(1)"]
    assert list(index.matching(b"a(")) == [b"a("]


def test_case_can_be_ignored() -> None:
    index = RunIndex(STAR, case_sensitive=False)
    index.add(b"Home/*")
    assert list(index.matching(b"hOME/Fan")) == [b"Home/*"]
    index.discard(b"Home/*")
    assert list(index.matching(b"home/fan")) == []


def test_wildcards_that_no_index_can_hold_together_are_refused() -> None:
    with pytest.raises(TopicsharkError, match="cross levels"):
        index_for(TopicsSpec(separator="/", wildcards={"*": "any-run", "+": "one-level"}))
    with pytest.raises(TopicsharkError, match="separator"):
        index_for(TopicsSpec(wildcards={"+": "one-level"}))


@pytest.mark.parametrize("stars", [10, 100, 400])
@pytest.mark.parametrize("end", [b"b", b"b/**"])
def test_a_hostile_filter_costs_no_more_than_the_topic_is_long(stars: int, end: bytes) -> None:
    """`*a*a*a…b` against `aaaa…` is what makes backtracking matchers hang."""
    index = RunIndex(STAR)
    index.add(b"*aaa" + b"*a" * stars + b"*b*")
    level_index = LevelIndex(LEVELS, b"/")
    level_index.add(b"**/a/" * stars + b"**/" + end)
    topic, deep_topic = b"a" * 1000, b"/".join([b"a"] * 1000)
    assert list(index.matching(topic)) == []
    assert list(level_index.matching(deep_topic)) == []
    assert steps_of(lambda: list(index.matching(topic))) < 5 * 1000
    assert steps_of(lambda: list(level_index.matching(deep_topic))) < 50 * 1000


def search(index: RunIndex, topic: bytes, found: set[bytes]) -> None:
    found.update(index.matching(topic))


def test_many_filters() -> None:
    """The index looks at few of them, and every answer is that of the oracle, which looks at all."""
    chance = random.Random(7)
    index = RunIndex(STAR)
    kinds = ["b{}/f{}/*", "*/f{}/r{}", "b{}/*/r{}", "b{}/f{}/r9", "*x{}*y{}*"]
    filters = {
        chance.choice(kinds).format(chance.randrange(2000), chance.randrange(300)).encode() for _ in range(26_000)
    }
    filters = set(sorted(filters)[:20_000])
    for text in filters:
        index.add(text)
    for _ in range(3):
        topic = f"b{chance.randrange(2000)}/f{chance.randrange(300)}/r{chance.randrange(300)}x1y2".encode()
        found: set[bytes] = set()
        assert steps_of(partial(search, index, topic, found)) < len(filters) // 20
        assert found == {text for text in filters if run_matches(text, topic)}

"""Fan-out summaries: counted by hand, bounded, and the same however the publishes are spread over parts."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_analysis.summaries import fanout
from spark_analysis.summaries.fanout import OUTCOMES, FanoutSummary
from spark_analysis.tables.schemas import DELIVERIES, PUBLISHES, SUBSCRIPTIONS


def due(frame: int, topic: str, subscriber: str, outcome: str = "delivered", **more: Any) -> dict[str, Any]:
    row = dict.fromkeys(DELIVERIES.names) | {"publish": place(frame), "topic": topic}
    row |= {"subscriber": subscriber, "filter": topic, "retained": False, "outcome": outcome}
    seen = outcome not in ("missing", "inconclusive", "optional")
    return row | {"forward": place(frame + 1) if seen else None} | more


def place(frame: int, capture: str = "c") -> dict[str, Any]:
    return {"capture": capture, "frame": frame}


def deliveries(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), DELIVERIES)


def publishes(**counts: int) -> pa.Table:
    return pa.table([list(counts), list(counts.values())], schema=PUBLISHES)


def subscriptions(*pairs: tuple[str, str]) -> pa.Table:
    rows = [dict.fromkeys(SUBSCRIPTIONS.names) | {"subscriber": who, "filter": what} for who, what in pairs]
    return pa.Table.from_pylist(rows, SUBSCRIPTIONS)


def test_totals_by_outcome() -> None:
    rows = [
        due(1, "a", "x"),
        due(1, "a", "y", "late"),
        due(3, "a", "x", "missing"),
        due(3, "a", "y", "inconclusive"),
        due(5, "b", "x", "altered", forward=None),
        due(5, "b", "x", "altered", publish=None, forward=place(6)),  # the forward that it was
        due(5, "b", "y", "misdirected", forward=None),
        due(5, "b", "z", "optional"),
        due(7, "b", "x", "duplicate"),
        due(9, "b", "z", "unexpected", publish=None, filter=None),
        due(9, "b", "z", "inconclusive", publish=None, filter=None, forward=place(10)),  # was it due at all?
        due(2, "a", "z", retained=True),
    ]
    assert FanoutSummary.of(deliveries(*rows), publishes(a=2, b=2, nobody=1)).totals() == {
        "publishes": 5,
        "expected": 7,
        "delivered": 3,
        "missing": 1,
        "unexpected": 1,
        "duplicate": 1,
        "inconclusive": 2,
        "altered": 1,
        "late": 1,
        "misdirected": 1,
        "optional": 1,
        "retained": 1,
        "amplification": 1.2,  # 6 forwards seen, but for the retained one
    }


def test_rows_by_topic_count_publishes_without_subscribers_too() -> None:
    rows = [due(1, "a", "x"), due(1, "a", "y"), due(3, "a", "x", "missing"), due(5, "b", "x", "unexpected")]
    told = FanoutSummary.of(deliveries(*rows), publishes(a=2, b=1, nobody=4)).topic_rows()
    zero = {"expected": 0, "delivered": 0, "missing": 0, "unexpected": 0, "duplicate": 0, "inconclusive": 0}
    assert {row["topic"]: row for row in told} == {
        "a": {**zero, "topic": "a", "publishes": 2, "expected": 3, "delivered": 2, "missing": 1, "subscribers": 2},
        "b": {**zero, "topic": "b", "publishes": 1, "unexpected": 1, "subscribers": 0},
        "nobody": {**zero, "topic": "nobody", "publishes": 4, "subscribers": 0},
    }
    assert [row["topic"] for row in told] == ["a", "nobody", "b"]


def test_without_counts_by_topic_those_publishes_count_that_were_due_to_somebody() -> None:
    rows = [due(1, "a", "x"), due(1, "a", "y"), due(3, "a", "x", "missing"), due(5, "b", "x", "unexpected")]
    rows += [due(1, "a", "x", publish=place(1, "another")), due(8, "a", "x", retained=True)]
    summary = FanoutSummary.of(deliveries(*rows), 9)
    assert {row["topic"]: row["publishes"] for row in summary.topic_rows()} == {"a": 3, "b": 0}
    assert summary.totals()["publishes"] == 9


def test_rows_by_filter_and_filters_that_nothing_hits() -> None:
    rows = [due(1, "a", "x", filter="a*"), due(1, "a", "y", "missing", filter="a"), due(3, "ab", "x", filter="a*")]
    rows += [due(5, "q", "z", "unexpected", filter=None), due(7, "o", "z", "optional", filter="o")]
    asked = subscriptions(("x", "a*"), ("y", "a"), ("z", "a*"), ("z", "never"), ("z", "o"))
    summary = FanoutSummary.of(deliveries(*rows), 3, asked)
    assert summary.filter_rows() == [
        {"filter": "a*", "hits": 2, "missing": 0, "subscribers": 2},
        {"filter": "a", "hits": 1, "missing": 1, "subscribers": 1},
        {"filter": "o", "hits": 1, "missing": 0, "subscribers": 1},
        {"filter": "never", "hits": 0, "missing": 0, "subscribers": 1},
    ]
    assert summary.unused_filters() == ["never"]
    by_names = FanoutSummary.of(deliveries(*rows), 3, ("a*", "a", "o", "never"))
    assert by_names.unused_filters() == ["never"]
    assert {row["filter"]: row["subscribers"] for row in by_names.filter_rows()} == {
        "a*": 1,
        "a": 1,
        "o": 1,
        "never": 0,
    }


def test_overlap_counts_pairs_of_one_publish_and_one_subscriber() -> None:
    rows = [due(n, "a", who, filter=what) for n in (1, 3) for who, what in (("x", "a"), ("x", "a*"), ("y", "*"))]
    rows += [due(3, "a", "x", filter="*"), due(3, "a", "x", filter="*"), due(3, "a", "x", filter="a", capture="other")]
    assert FanoutSummary.of(deliveries(*rows)).overlap_rows() == [
        {"filters": ["a", "a*"], "count": 2},
        {"filters": ["*", "a"], "count": 1},
        {"filters": ["*", "a*"], "count": 1},
    ]


def test_a_thousand_filters_on_one_message_do_not_make_half_a_million_pairs() -> None:
    rows = [due(1, "a", "x", filter=f"a{n:03}") for n in range(1_000)]
    summary = FanoutSummary.of(deliveries(*rows))
    assert len(summary.pairs) == 28  # of the first eight
    assert len(summary.overlap_rows()) == 20


def test_what_is_too_much_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fanout, "MOST_NAMES", 2)
    monkeypatch.setattr(fanout, "MOST_LINKS", 3)
    rows = [due(at, topic, who) for at, topic in enumerate("abcde") for who in ("x", "y")]
    summary = FanoutSummary.of(deliveries(*rows), publishes(a=1, b=1, c=1, d=1, e=1))
    told = {row["topic"]: row for row in summary.topic_rows()}
    assert {name: (row["expected"], row["subscribers"]) for name, row in told.items()} == {
        "a": (2, 2),
        "b": (2, None),  # one of its two was still counted: no number is better than a wrong one
        "(other)": (6, None),
    }
    assert summary.totals()["expected"] == 10
    assert summary.unused_filters() == []


def test_nothing_gives_no_rows() -> None:
    empty = FanoutSummary.of(DELIVERIES.empty_table())
    assert empty == FanoutSummary.empty() == empty + FanoutSummary.empty()
    assert (empty.topic_rows(), empty.filter_rows(), empty.overlap_rows()) == ([], [], [])
    assert empty.totals()["amplification"] is None


ROWS = st.builds(
    due,
    frame=st.integers(1, 8),
    topic=st.sampled_from("abcdef"),
    subscriber=st.sampled_from("wxyz"),
    outcome=st.sampled_from(OUTCOMES),
    filter=st.none() | st.sampled_from(("a", "a*", "*", "b", "c")),
    retained=st.booleans(),
)
PAIRS = st.lists(st.tuples(st.sampled_from("wxyz"), st.sampled_from(("a", "q", "*"))), max_size=6)


@settings(max_examples=30, deadline=None)
@given(rows=st.lists(ROWS, max_size=30), pairs=PAIRS, seed=st.integers(0, 99))
def test_any_spread_of_publishes_over_parts_gives_the_same(rows: list[Any], pairs: list[Any], seed: int) -> None:
    choose = random.Random(seed)
    part_of = [choose.randrange(3) for _ in range(20)]
    published: pa.Table | int = choose.choice((publishes(a=3, b=1), 4))
    by_topic = isinstance(published, pa.Table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fanout, "MOST_NAMES", 4)
        patch.setattr(fanout, "MOST_LINKS", 5)
        whole = FanoutSummary.of(deliveries(*rows), published, subscriptions(*pairs))
        parts = [
            FanoutSummary.of(
                deliveries(*(row for row in rows if part_of[row["publish"]["frame"]] == part)),
                publishes() if by_topic else 0,
            )
            for part in range(3)
        ]
        parts.append(FanoutSummary.of(deliveries(), published, subscriptions(*pairs)))
        choose.shuffle(parts)
        assert sum(parts, FanoutSummary.empty()) == whole
        assert FanoutSummary.merged(pickle.loads(pickle.dumps(parts))) == whole  # noqa: S301

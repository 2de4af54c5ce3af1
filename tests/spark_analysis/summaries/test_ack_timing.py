"""Timing summaries: counted by hand, percentiles beside numpy's, and the same however the rows are cut into parts."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_analysis.summaries import ack_timing
from spark_analysis.summaries.ack_timing import MOST_BUCKETS, QUALITIES, WIDTHS_NS, TimingSummary
from spark_analysis.tables.histograms import bins_of, middles_of
from spark_analysis.tables.schemas import DELIVERIES, EXCHANGES

MS, SECOND = 1_000_000, 1_000_000_000


def request(client: str = "10.0.0.2:50000", rtt_ns: int | None = MS, **more: Any) -> dict[str, Any]:
    """A PUBLISH that was sent once and acknowledged, unless told otherwise."""
    row = dict.fromkeys(EXCHANGES.names) | {"client": client, "message": "PUBLISH", "asks": "client", "time_ns": 0}
    row |= {"sends": 1, "ack": {"capture": "c", "frame": 2}, "rtt_ns": rtt_ns, "quality": "exact", "owed": True}
    return row | more


def exchanges(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), EXCHANGES)


def deliveries(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([dict.fromkeys(DELIVERIES.names) | row for row in rows], DELIVERIES)


def test_counts_by_client_and_kind() -> None:
    rows = [
        request(rtt_ns=1 * MS),
        request(rtt_ns=3 * MS, quality="anchored"),
        request(rtt_ns=None, quality="resent", sends=3),
        request(rtt_ns=900 * MS, quality="queued"),  # not sure: in no percentile
        request(rtt_ns=None, quality="none", ack=None, sends=2),
        request(rtt_ns=None, quality="none", ack=None, owed=False),  # asks for nothing
        request(rtt_ns=7 * MS, owed=False, message="SUBSCRIBE"),  # not due, but it came
        request(client="10.0.0.9:50000", rtt_ns=5 * MS, asks="broker", message="FORWARD"),
    ]
    told = {(row["client"], row["asks"], row["kind"]): row for row in TimingSummary.of(exchanges(*rows)).rows()}
    assert set(told) == {
        ("10.0.0.2:50000", "client", "PUBLISH"),
        ("10.0.0.2:50000", "client", "SUBSCRIBE"),
        ("10.0.0.9:50000", "broker", "FORWARD"),
    }
    publish = told["10.0.0.2:50000", "client", "PUBLISH"]
    counts = {name: publish[name] for name in ("requests", "acked", "unacked", "resent", "sends")}
    assert counts == {"requests": 5, "acked": 4, "unacked": 1, "resent": 2, "sends": 8}
    assert publish["quality"] == {"exact": 1, "anchored": 1, "resent": 1, "queued": 1, "none": 1}
    assert (publish["rtt_ms"]["min"], publish["rtt_ms"]["max"]) == (1.0, 3.0)
    assert publish["rtt_ms"]["p50"] == pytest.approx(1.0, rel=0.01)
    assert publish["rtt_ms"]["p90"] == pytest.approx(3.0, rel=0.01)
    assert told["10.0.0.2:50000", "client", "SUBSCRIBE"]["rtt_ms"] == dict.fromkeys(
        ("min", "p50", "p90", "p99", "max"), 7.0
    )


def test_kinds_put_all_clients_together_and_what_has_no_round_trip_says_null() -> None:
    summary = TimingSummary.of(
        exchanges(request("a", 1 * MS), request("b", 9 * MS), request("b", None, message="SUBSCRIBE", quality="resent"))
    )
    publish, subscribe = summary.kinds()
    assert (publish["kind"], publish["requests"], publish["rtt_ms"]["min"], publish["rtt_ms"]["max"]) == (
        "PUBLISH",
        2,
        1.0,
        9.0,
    )
    assert subscribe["rtt_ms"] == dict.fromkeys(("min", "p50", "p90", "p99", "max"))
    assert "client" not in publish


def test_nothing_gives_no_rows() -> None:
    empty = TimingSummary.of(EXCHANGES.empty_table())
    assert empty == TimingSummary.empty() == TimingSummary.empty() + empty
    assert (empty.rows(), empty.kinds(), empty.over_time()) == ([], [], [])
    assert empty.forward_latency() == {
        "forwards": 0,
        "latency_ms": dict.fromkeys(("min", "p50", "p90", "p99", "max")),
    }


def test_latency_of_forwards_and_of_retained_messages_apart() -> None:
    rows = [{"outcome": "delivered", "latency_ns": n * MS, "retained": False} for n in (1, 2, 3)]
    rows += [{"outcome": "late", "latency_ns": 4_000 * MS, "retained": False}]
    rows += [{"outcome": "delivered", "latency_ns": 50 * MS, "retained": True}]
    rows += [{"outcome": "duplicate", "latency_ns": 7_777 * MS, "retained": False}, {"outcome": "missing"}]
    summary = TimingSummary.of(EXCHANGES.empty_table(), deliveries(*rows))
    forward = summary.forward_latency()
    assert (forward["forwards"], forward["latency_ms"]["min"], forward["latency_ms"]["max"]) == (4, 1.0, 4_000.0)
    assert forward["latency_ms"]["p50"] == pytest.approx(2.0, rel=0.01)
    assert summary.forward_latency(retained=True)["latency_ms"]["p50"] == 50.0


def test_the_middle_of_a_bin_is_within_one_per_cent() -> None:
    values = np.unique(np.concatenate([np.arange(5_000), np.logspace(0, 18.9, 20_000).astype(np.int64)]))
    bins = bins_of(values)
    assert (np.diff(bins) >= 0).all()
    assert (np.abs(middles_of(bins) - values) <= 0.01 * values).all()
    assert bins_of(np.array([-5])).tolist() == [0]


@pytest.mark.parametrize("seed", range(4))
def test_percentiles_are_within_one_per_cent_of_numpy(seed: int) -> None:
    values = np.random.default_rng(seed).lognormal(12, 3, 5_000).astype(np.int64) + 1
    told = TimingSummary.of(exchanges(*(request(rtt_ns=int(value)) for value in values))).rows()[0]["rtt_ms"]
    for percent in (50, 90, 99):
        true = np.percentile(values, percent, method="inverted_cdf") / MS
        assert told[f"p{percent}"] == pytest.approx(true, rel=0.01)
    assert (told["min"], told["max"]) == (pytest.approx(values.min() / MS), pytest.approx(values.max() / MS))


ROWS = st.builds(
    request,
    client=st.sampled_from("abcdefgh"),
    rtt_ns=st.none() | st.integers(-5, 10 * SECOND),
    time_ns=st.integers(0, 400) | st.integers(0, 3_000 * SECOND) | st.integers(0, 1 << 62),
    message=st.sampled_from(("PUBLISH", "SUBSCRIBE")),
    asks=st.sampled_from(("client", "broker")),
    quality=st.sampled_from(QUALITIES),
    sends=st.integers(1, 4),
    ack=st.none() | st.just({"capture": "c", "frame": 3}),
    owed=st.booleans(),
)
FORWARDS = st.fixed_dictionaries(
    {
        "outcome": st.sampled_from(("delivered", "late", "missing")),
        "latency_ns": st.none() | st.integers(0, 10 * SECOND),
        "retained": st.booleans(),
    }
)


@settings(max_examples=30, deadline=None)
@given(rows=st.lists(ROWS, max_size=30), forwards=st.lists(FORWARDS, max_size=10), seed=st.integers(0, 99))
def test_any_cut_into_parts_gives_the_same(rows: list[Any], forwards: list[Any], seed: int) -> None:
    choose = random.Random(seed)
    parts = [(exchanges(), deliveries())] * 4
    for table, add in ((rows, 0), (forwards, 1)):
        for row in table:
            at = choose.randrange(4)
            one = exchanges(row) if add == 0 else deliveries(row)
            pair = list(parts[at])
            pair[add] = pa.concat_tables([pair[add], one])
            parts[at] = (pair[0], pair[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ack_timing, "MOST_GROUPS", 6)
        whole = TimingSummary.of(exchanges(*rows), deliveries(*forwards))
        summaries = [pickle.loads(pickle.dumps(TimingSummary.of(*part))) for part in parts]  # noqa: S301
        assert sum(summaries, TimingSummary.empty()) == whole
        assert TimingSummary.merged(reversed(summaries)) == whole
        assert (summaries[3] + summaries[1]) + (summaries[0] + summaries[2]) == whole
    assert len(whole.rows()) <= 7
    assert sum(row["requests"] for row in whole.rows()) == sum(row["owed"] or row["ack"] is not None for row in rows)


def test_too_many_clients_become_one_row_that_keeps_its_round_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ack_timing, "MOST_GROUPS", 2)
    rows = [request(name, (at + 1) * MS) for at, name in enumerate("abcde")]
    told = {row["client"]: row for row in TimingSummary.of(exchanges(*rows)).rows()}
    assert {name: row["requests"] for name, row in told.items()} == {"a": 1, "b": 1, "(other)": 3}
    assert (told["(other)"]["rtt_ms"]["min"], told["(other)"]["rtt_ms"]["max"]) == (3.0, 5.0)
    assert told["b"]["rtt_ms"]["p50"] == 2.0


def test_rows_are_cut_to_those_with_most_requests() -> None:
    rows = [request(name) for name in "abbbcc"]
    assert [row["client"] for row in TimingSummary.of(exchanges(*rows)).rows(most=2)] == ["b", "c"]


@pytest.mark.parametrize("span_ns", [0, 150 * MS, 3 * SECOND, 86_400 * SECOND, 1 << 62])
def test_time_comes_in_few_buckets_of_a_round_width(span_ns: int) -> None:
    times = np.linspace(0, span_ns, 1_000).astype(np.int64)
    summary = TimingSummary.of(exchanges(*(request(time_ns=int(time)) for time in times)))
    buckets = summary.over_time()
    assert summary.width_ns in WIDTHS_NS
    assert len(buckets) <= MOST_BUCKETS
    assert len(buckets) > 30 or span_ns == 0
    assert sum(bucket["requests"] for bucket in buckets) == 1_000
    assert all(bucket["time_ns"] % summary.width_ns == 0 for bucket in buckets)
    assert buckets[0]["rtt_ms"]["p50"] == 1.0


def test_a_part_stays_as_coarse_as_it_is() -> None:
    """In buckets of 30 s the two are 1,980 s apart: few enough for 10 s, were it not for what was before."""
    summary = TimingSummary.of(exchanges(request(time_ns=0), request(time_ns=2_005 * SECOND)))
    assert summary.width_ns == 30 * SECOND
    assert summary + TimingSummary.empty() == summary

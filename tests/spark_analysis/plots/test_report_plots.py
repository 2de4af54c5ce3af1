"""Pictures: safe with any text, bounded, the same in light and dark, and none fails where there is nothing to show."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from matplotlib.figure import Figure

from spark_analysis.plots import ack_timing, fanout
from spark_analysis.plots.sequence import Arrow, lanes_of, sequence
from spark_analysis.plots.style import DARK, LIGHT, in_theme, svg
from spark_analysis.summaries.ack_timing import TimingSummary
from spark_analysis.summaries.fanout import FanoutSummary
from spark_analysis.tables.schemas import DELIVERIES, EXCHANGES

HOSTILE = "<script>$\\frac{$ #ffffff & \x1b[31m\u202e"
SAFE = "<script>$\\\\frac{$ #ffffff & \\x1b["  # as a label begins

TIMING: list[Callable[..., Figure]] = [ack_timing.round_trips, ack_timing.over_time, ack_timing.by_client]
FANOUT: list[Callable[..., Figure]] = [fanout.by_topic, fanout.links, fanout.by_filter]


def place(frame: int) -> dict[str, Any]:
    return {"capture": "c", "frame": frame}


def timing_of(*clients: str) -> TimingSummary:
    """Each has asked thrice: answered after 1 and 10 ms, and never."""
    rows: list[dict[str, Any]] = []
    for at, client in enumerate(clients):
        for second, rtt in enumerate((1_000_000, 10_000_000, None)):
            row = dict.fromkeys(EXCHANGES.names) | {
                "client": client,
                "message": "PUBLISH",
                "asks": "client",
                "sends": 1,
            }
            row |= {"time_ns": (10 * at + second) * 10**9, "owed": True, "rtt_ns": rtt}
            row |= {"quality": "none" if rtt is None else "exact", "ack": None if rtt is None else place(7)}
            rows.append(row)
    return TimingSummary.of(pa.Table.from_pylist(rows, EXCHANGES))


def fanout_of(*topics: str) -> FanoutSummary:
    """A copy of each was delivered to Bert, and one to Carla is missing."""
    rows = []
    for at, topic in enumerate(topics):
        for subscriber, outcome in (("bert", "delivered"), ("carla", "missing")):
            row = dict.fromkeys(DELIVERIES.names) | {"topic": topic, "subscriber": subscriber, "filter": topic}
            row |= {"publish": place(at), "forward": place(at) if outcome == "delivered" else None}
            rows.append(row | {"retained": False, "outcome": outcome})
    return FanoutSummary.of(pa.Table.from_pylist(rows, DELIVERIES))


def texts(figure: Figure) -> list[str]:
    """All that is written in a picture."""
    root = ElementTree.fromstring(svg(figure))  # noqa: S314 - our own
    return ["".join(one.itertext()).strip() for one in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("draw", TIMING)
def test_timing_of_nothing(draw: Callable[..., Figure]) -> None:
    (said,) = texts(draw(TimingSummary.empty()))
    assert "no" in said


@pytest.mark.parametrize("draw", FANOUT)
def test_fanout_of_nothing(draw: Callable[..., Figure]) -> None:
    (said,) = texts(draw(FanoutSummary.empty()))
    assert "no" in said


def test_what_the_pictures_of_timing_say() -> None:
    timing = timing_of("10.0.0.2:1", "10.0.0.3:1")
    assert {"PUBLISH", "median 1 ms", "from request to ACK"} <= set(texts(ack_timing.round_trips(timing)))
    assert {"answered", "never answered"} <= set(texts(ack_timing.over_time(timing)))
    by_client = texts(ack_timing.by_client(timing))
    assert {"10.0.0.2:1 PUBLISH", "10.0.0.3:1 PUBLISH", "1 of 3 never answered"} <= set(by_client)


def test_what_the_pictures_of_fanout_say() -> None:
    summary = fanout_of("home/x", "home/y")
    assert {"home/x", "home/y", "delivered", "missing"} <= set(texts(fanout.by_topic(summary)))
    assert {"home/x", "home/y", "bert", "carla"} <= set(texts(fanout.links(summary)))
    assert {"home/x", "2 subscribers", "missing"} <= set(texts(fanout.by_filter(summary)))


@pytest.mark.parametrize("draw", FANOUT)
def test_a_hostile_topic_is_text_and_no_mathematics(draw: Callable[..., Figure]) -> None:
    said = texts(draw(fanout_of(HOSTILE, "$a$ and $b$", "x" * 10_000)))
    assert any(one.startswith(SAFE) for one in said)
    assert "$a$ and $b$" in said
    assert max(map(len, said)) < 60


def test_a_hostile_client_is_text_and_no_mathematics() -> None:
    said = texts(ack_timing.by_client(timing_of("$a$ $\\frac$")))
    assert "$a$ $\\frac$ PUBLISH" in said


def test_a_hostile_message_in_a_diagram() -> None:
    said = texts(sequence([Arrow(1, 0, HOSTILE, "$b$", f"PUBLISH {HOSTILE}")], ["$b$"]))
    assert "$b$" in said
    assert any(one.startswith(f"PUBLISH {SAFE}") for one in said)


def test_many_rows_are_bounded() -> None:
    summary = fanout_of(*(f"topic {number:04}" for number in range(300)))
    for draw in FANOUT:
        assert sum(one.startswith("topic ") for one in texts(draw(summary))) == 15
    timing = timing_of(*(f"client {number:04}" for number in range(100)))
    assert sum(one.startswith("client ") for one in texts(ack_timing.by_client(timing))) == 15


def test_a_diagram_has_few_arrows_and_few_ends() -> None:
    arrows = [Arrow(number, number, f"client {number}", "broker", "PUBLISH") for number in range(40)]
    arrows.append(Arrow(40, 40, "client 39", "broker", "marked", is_marked=True))
    assert len(lanes_of(arrows, ["broker"])) == 6
    assert "client 39" in lanes_of(arrows, ["broker"])
    drawn = texts(sequence(arrows, ["broker"]))
    assert sum(one.startswith("client ") for one in drawn) == 5
    again = [Arrow(number, number, "a", "broker", "PUBLISH") for number in range(40)]
    assert texts(sequence(again, ["broker"])).count("PUBLISH") == 14


def test_who_asks_stands_left_of_the_broker_and_who_gets_right_of_it() -> None:
    arrows = [Arrow(1, 0, "anna", "broker", "PUBLISH x"), Arrow(2, 1, "broker", "bert", "PUBLISH x")]
    assert lanes_of(arrows, ["broker"]) == ["anna", "broker", "bert"]


def test_times_count_from_the_finding() -> None:
    arrows = [
        Arrow(1, 0, "a", "b", "x"),
        Arrow(2, 2_000_000, "b", "a", "y"),
        Arrow(None, 2_000_000, "b", "a", "no ACK"),
    ]
    said = texts(sequence(arrows, ["b"], zero_ns=2_000_000))
    assert {"\u22122 ms", "0", "no ACK"} <= set(said)


def test_the_dark_picture_is_the_light_one_in_other_colours() -> None:
    summary = fanout_of("#ffffff", "fill: #0072b2")
    for draw in FANOUT:
        light, dark = svg(draw(summary, theme=LIGHT)), svg(draw(summary, theme=DARK))
        turned = in_theme(light, LIGHT, DARK)
        assert LIGHT.text not in turned
        assert "#ffffff" in turned  # the topic
        assert _without_ids(turned) == _without_ids(dark)


def _without_ids(picture: str) -> str:
    return re.sub(r'(id="|#|url\(#)[a-z]{1,2}[0-9a-f]{8,}', "", picture)


def test_the_same_figure_is_the_same_picture() -> None:
    summary = fanout_of("home/x")
    assert svg(fanout.by_topic(summary)) == svg(fanout.by_topic(summary))

"""Faults of the network and the capture, by name: what they set, and that they break no rule."""

from __future__ import annotations

from typing import Any

import pytest

from generators.faults.conditions import SNAPLEN, conditions
from generators.generate import GeneratedRun, GeneratorOptions, generate, prepare
from generators.simulation.engine import START_NS
from generators.simulation.fault import CATALOGUE, Place
from pcap_tools.errors import UsageError

CONDITIONS = [name for name, fault in CATALOGUE.items() if fault.is_condition]


def made_with(name: str, rate: float = 0.1) -> GeneratedRun:
    """A run under a condition."""
    set_ = conditions({name: rate}, prepare(GeneratorOptions("building")).sites, START_NS)
    options: dict[str, Any] = {"network": set_.network, "capture": set_.capture, "restarts": set_.restarts}
    return generate(GeneratorOptions("building", **options))


def test_all_are_there() -> None:
    assert sorted(CONDITIONS) == [
        "broker-restart",
        "capture-cut",
        "capture-drop",
        "capture-early-end",
        "capture-late",
        "network-cut",
        "network-duplicate",
        "network-loss",
        "network-reorder",
    ]


@pytest.mark.parametrize("name", CONDITIONS)
def test_no_rule_is_broken(name: str) -> None:
    fault = CATALOGUE[name]
    assert fault.rules == ()
    assert fault.family == "-"
    assert fault.place in (Place.NETWORK, Place.CAPTURE)
    assert "breaks no rule" in fault.about
    assert made_with(name).truth()["faults"] == []


@pytest.mark.parametrize("name", CONDITIONS)
def test_each_sets_something_and_only_its_own(name: str) -> None:
    set_ = conditions({name: 0.2, "ack-missing": 1.0}, prepare(GeneratorOptions("building")).sites)
    assert bool(set_.capture) is (CATALOGUE[name].place is Place.CAPTURE)
    assert len(set_.network) + len(set_.capture) + bool(set_.restarts) == 1


def test_several_at_once() -> None:
    set_ = conditions({"network-loss": 0.1, "network-duplicate": 0.2, "capture-drop": 0.3}, [])
    assert set_.network == {"loss": 0.1, "double": 0.2}
    assert set_.capture == {"drop": 0.3}


def test_the_network_loses() -> None:
    run = made_with("network-loss").run
    lost = sum(not sent.transit.arrived_ns for sent in run.sent)
    assert 0.05 < lost / len(run.sent) < 0.15


def test_the_network_doubles() -> None:
    run = made_with("network-duplicate").run
    assert any(len(sent.transit.arrived_ns) == 2 for sent in run.sent)


def test_the_network_reorders() -> None:
    def overtaken(made: GeneratedRun) -> bool:
        ways: dict[object, list[int]] = {}
        for transit in made.run.transits:
            ways.setdefault((transit.src[0], transit.dst[0]), []).extend(transit.arrived_ns)
        return any(times != sorted(times) for times in ways.values())

    assert overtaken(made_with("network-reorder", 0.5))
    assert not overtaken(generate(GeneratorOptions("building")))


def test_one_client_is_cut_off_for_a_while() -> None:
    run = made_with("network-cut", 0.3).run
    lost = [sent.transit for sent in run.sent if not sent.transit.arrived_ns]
    clients = {end for transit in lost for end in (transit.src[0], transit.dst[0])} - {run.sites[0].broker[0]}
    assert len(clients) == 1


@pytest.mark.parametrize(("rate", "times"), [(0.1, 1), (0.3, 3)])
def test_the_broker_restarts(rate: float, times: int) -> None:
    set_ = conditions({"broker-restart": rate}, prepare(GeneratorOptions("building")).sites)
    assert len(set(set_.restarts)) == times
    run = made_with("broker-restart", rate).run
    assert any(len(exchange.sends) > 1 for exchange in run.exchanges)  # what came meanwhile was sent again


def test_the_capture_misses_frames() -> None:
    whole, part = generate(GeneratorOptions("building")), made_with("capture-drop")
    assert 0.8 < len(part.capture.frames) / len(whole.capture.frames) < 0.97


def test_the_capture_starts_late_and_ends_early() -> None:
    whole = generate(GeneratorOptions("building")).capture.frames
    late, early = made_with("capture-late", 0.3).capture.frames, made_with("capture-early-end", 0.3).capture.frames
    assert [frame.data for frame in late] == [frame.data for frame in whole[-len(late) :]]
    assert [frame.data for frame in early] == [frame.data for frame in whole[: len(early)]]
    assert len(late) < len(whole) > len(early)


def test_the_capture_is_cut() -> None:
    frames = made_with("capture-cut").capture.frames
    assert max(len(frame.data) for frame in frames) == SNAPLEN
    assert any(frame.original_length > SNAPLEN for frame in frames)


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.5])
def test_a_rate_is_a_share(rate: float) -> None:
    with pytest.raises(UsageError, match="a share between 0 and 1"):
        conditions({"network-loss": rate}, [])

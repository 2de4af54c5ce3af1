"""Large captures: whatever a scenario's run left behind at the broker, every repeat of it conforms.

The judge is the reference broker: it must answer the clients of all repeats with the datagrams that the capture shows.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from generators.bulk.segment import Tiling
from generators.bulk.tiling import options_to_repeat, segment_of
from generators.bulk.write import write_bulk
from generators.generate import GeneratedRun, GeneratorOptions, generate
from generators.scenarios import SCENARIOS
from pcap_tools.capture import read_datagrams
from pcap_tools.codec.decoding import Row, decode_capture
from pcap_tools.errors import UsageError
from tests.conftest import Command
from tests.generators.replay import replay
from tests.generators.runs import ALL_DIALECTS, named
from tests.vectors import dialect_of

TILES = 3
SMALL: dict[str, Any] = {"sensors": 3, "dashboards": 3, "actuators": 2, "rounds": 6}
WITH_SUBSCRIPTIONS = sorted(set(ALL_DIALECTS) - {"openended"})
CASES = [
    *(("churn", dialect) for dialect in WITH_SUBSCRIPTIONS),
    *(("building", dialect) for dialect in WITH_SUBSCRIPTIONS),
    *(("retained", dialect) for dialect in ("colon", "mqttsn", "magicbyte")),
    *((scenario, dialect) for scenario in ("lossy", "fragmented") for dialect in ("colon", "addresstopic")),
]


def repeat(
    scenario: str, path: Path, dialect: str = "colon", tiles: int = TILES, **more: Any
) -> tuple[GeneratedRun, Tiling]:
    made = generate(options_to_repeat(GeneratorOptions(scenario, dialects=(named(dialect),), **(SMALL | more))))
    segment = segment_of(made)
    return made, write_bulk(segment, len(segment.prologue) + tiles * len(segment.body), path)


@pytest.mark.parametrize(("scenario", "dialect"), CASES)
def test_a_broker_that_lives_through_all_repeats_says_what_the_capture_shows(
    scenario: str, dialect: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.pcap"
    made, tiling = repeat(scenario, path, dialect)
    host, port = made.script.sites[0].broker
    addresses = {tiling.addresses.of(host, tile) for tile in range(TILES)}
    shown, expected = replay(path, dialect_of(dialect), addresses, port)
    assert shown == expected
    assert shown.total() > 10 * TILES


# -- churn ------------------------------------------------------------------------------------------------------------


def rows_by_tile(path: Path, tiling: Tiling) -> list[list[Row]]:
    rows = list(decode_capture(path, [dialect_of("colon")]))
    begins = [tiling.number(0, tile) - 1 for tile in range(tiling.tiles)]
    return [rows[begin : begin + tiling.body] for begin in begins]


def speakers(rows: list[Row], meaning: str) -> set[str]:
    return {row.datagram.src for row in rows if row.message is not None and row.message.meaning == meaning}


def test_one_broker_serves_clients_that_come_again_and_clients_that_are_new(tmp_path: Path) -> None:
    made, tiling = repeat("churn", tmp_path / "run.pcap")
    node = {node.name: node.endpoint[0] for node in made.script.sites[0].nodes}
    tiles = rows_by_tile(tmp_path / "run.pcap", tiling)
    for tile, rows in enumerate(tiles):
        actuators = {tiling.addresses.of(node[name], tile) for name in ("actuator1", "actuator2")}
        dashboards = {node[name] for name in ("dashboard1", "dashboard2", "dashboard3")}
        assert speakers(rows, "subscribe") == speakers(rows, "unsubscribe") == actuators | dashboards
        assert {row.datagram.dst for row in rows if row.message and row.message.meaning == "subscribe"} == {"10.0.0.1"}
    assert len(set.union(*(speakers(rows, "subscribe") for rows in tiles))) == 3 + 2 * TILES


def test_without_actuators_there_are_few_addresses(tmp_path: Path) -> None:
    repeat("churn", tmp_path / "run.pcap", actuators=0)
    assert len({one.src for one in read_datagrams(tmp_path / "run.pcap")}) == 1 + 3 + 3


def test_each_repeat_takes_its_subscriptions_back(tmp_path: Path) -> None:
    _, tiling = repeat("churn", tmp_path / "run.pcap")
    for rows in rows_by_tile(tmp_path / "run.pcap", tiling):
        standing: set[tuple[object, ...]] = set()
        for row in rows:
            message = row.message
            if message is not None and message.meaning == "subscribe":
                standing.add((row.datagram.src, message.filter))
            elif message is not None and message.meaning == "unsubscribe":
                standing.remove((row.datagram.src, message.filter))
        assert not standing


def test_control_messages_are_a_large_part_of_a_large_capture(topicshark: Command, tmp_path: Path) -> None:
    """And `check` finds no error in it."""
    path = tmp_path / "churn.pcap"
    done = topicshark("generate", "churn", "--packets", "2e4", "-o", str(path))
    assert done.returncode == 0, done.stderr
    kinds = Counter(row.message.meaning for row in decode_capture(path, [dialect_of("colon")]) if row.message)
    assert kinds.total() == 20_000
    assert kinds["subscribe"] + kinds["unsubscribe"] > 0.2 * kinds.total()  # and each has its ACK
    assert topicshark("check", str(path)).returncode == 0


# -- what else is repeated, and what is not ---------------------------------------------------------------------------


def test_hostile_datagrams_are_in_every_repeat(tmp_path: Path) -> None:
    _, tiling = repeat("hostile", tmp_path / "run.pcap")
    errors = [
        [row.message.error for row in rows if row.message and row.message.error]
        for rows in rows_by_tile(tmp_path / "run.pcap", tiling)
    ]
    assert errors[0]
    assert errors == [errors[0]] * TILES


@pytest.mark.parametrize("scenario", sorted(SCENARIOS))
def test_a_scenario_that_cannot_be_repeated_says_why(scenario: str) -> None:
    if SCENARIOS[scenario].only_once:
        with pytest.raises(UsageError, match=r"cannot be repeated to make a large capture: .* needs? .*; use another"):
            options_to_repeat(GeneratorOptions(scenario))
    else:
        assert options_to_repeat(GeneratorOptions(scenario)).repeated
        assert not scenario.startswith("report-")


def test_chosen_sizes_stay() -> None:
    order = options_to_repeat(GeneratorOptions("churn", actuators=0, rounds=3))
    assert (order.actuators, order.rounds) == (0, 3)
    assert order.sensors == SCENARIOS["churn"].tile["sensors"]

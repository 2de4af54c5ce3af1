"""Small captures with faults, lost datagrams and restarts, quick to make, longer than the margins of a part.

A run of the generator lasts some seconds. A capture here is up to three runs of one dialect, one after the other with
pauses between them, so that causes and answers lie on both sides of any cut, and much lies beyond the margins.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path

from generators.capture.capture_point import Capture
from generators.capture.options import Point
from generators.generate import GeneratorOptions, generate
from generators.simulation.fault import CATALOGUE
from pcap_tools.capture import CaptureWriter
from pcap_tools.dialect import load_dialect

SECOND = 1_000_000_000
CAPTURES = int(os.environ.get("TOPICSHARK_CAPTURES", "15"))  # `make accuracy` takes 200
CONDITIONS = ("network-loss", "network-duplicate", "network-reorder", "broker-restart", "capture-late", "capture-drop")
# How many runs of each: those of mqttsn and topicnumber take the longest.
RUNS = {"colon": 12, "topicbyte": 8, "portdigits": 8, "topicnumber": 5, "rolebyte": 8, "mqttsn": 5}
PAUSES = (0.1, 1.0, 20.0)
LONG_PAUSE = 200.0  # so that a message id may be used again
SCENARIOS = ("building", "churn", "retained", "lossy")


@dataclass(frozen=True)
class Run:
    dialect: str
    point: Point
    capture: Capture


def make(folder: Path) -> dict[str, list[Path]]:
    """The captures by dialect; the first of each are the same, however many are made."""
    made: dict[str, list[Path]] = {}
    for dialect, count in RUNS.items():
        chance = random.Random(f"7 {dialect}")
        runs = [_run(dialect, seed, chance) for seed in range(1, count + 1)]
        many = CAPTURES // len(RUNS) + (dialect == "colon") * (CAPTURES % len(RUNS))
        made[dialect] = [_string(folder, runs, number, chance) for number in range(many)]
    return made


def _run(dialect: str, seed: int, chance: random.Random) -> Run:
    """One with two faults that the dialect can have, or with one and something that the network does."""
    loaded = load_dialect(dialect)
    faults = [name for name, one in CATALOGUE.items() if not one.is_condition and one.fits(loaded) is None]
    chosen = {chance.choice(faults): 0.3, chance.choice([*faults, *CONDITIONS]): 0.1}
    point = Point.ANY if seed % 4 == 0 else Point.BROKER
    retains = loaded.spec.broker.retained != "none"
    scenario = chance.choice([one for one in SCENARIOS if one != "retained" or retains])
    capture = {"point": point}
    order = GeneratorOptions(
        scenario, seed, (dialect,), faults=chosen, capture=capture, sensors=2, dashboards=2, rounds=3
    )
    return Run(dialect, point, generate(order).capture)


def _string(folder: Path, runs: list[Run], number: int, chance: random.Random) -> Path:
    """Different runs that were captured in the same way."""
    first = chance.choice(runs)
    alike = [run for run in runs if run.point is first.point]
    parts = chance.sample(alike, min(len(alike), chance.randrange(1, 4)))
    path = folder / f"{first.dialect}-{number:03}.pcap"
    options = first.capture.options
    end = 1_700_000_000 * SECOND
    with CaptureWriter(path, link_type=options.link_type.number, resolution=options.resolution) as out:
        for run in parts:
            frames = run.capture.frames
            pause = LONG_PAUSE if run.dialect == "mqttsn" else chance.choice(PAUSES)
            shift = end + int(pause * SECOND) - frames[0].time_ns
            for frame in frames:
                out.write(frame.data, frame.time_ns + shift, original_length=frame.original_length)
            end = frames[-1].time_ns + shift
    return path

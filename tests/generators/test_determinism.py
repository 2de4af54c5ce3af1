"""One seed, the same bytes: in this process, in another with other hashes, and on any machine and day.

``digests.toml`` holds the digest of each scenario's capture and truth. A change of the generators that is meant to
change them comes with a new file: `TOPICSHARK_REFRESH_DIGESTS=1 pytest tests/generators/test_determinism.py`.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from generators.capture.capture_point import write
from generators.generate import GeneratorOptions, generate
from generators.scenarios import SCENARIOS
from tests.conftest import REPO
from tests.generators.digests import digest
from tests.generators.runs import ALL_DIALECTS, SMALL, named

pytestmark = pytest.mark.xdist_group("determinism")  # in one process `elsewhere` is asked once
COMMITTED = Path(__file__).with_name("digests.toml")
HEAD = "# sha256 of capture and truth of each scenario with nothing chosen. How to renew: test_determinism.py\n"


@pytest.fixture(scope="module")
def elsewhere() -> dict[str, str]:
    """The digests that another process finds, with other hashes, in another place and language."""
    variables = {**os.environ, "PYTHONHASHSEED": "4711", "TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONPATH": str(REPO)}
    command = [sys.executable, "-m", "tests.generators.digests"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPO, env=variables, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    if os.environ.get("TOPICSHARK_REFRESH_DIGESTS"):
        COMMITTED.write_text(HEAD + "".join(f'{name} = "{value}"\n' for name, value in found.items()))
    return found


def test_every_scenario_has_its_committed_digest(elsewhere: dict[str, str]) -> None:
    assert tomllib.loads(COMMITTED.read_text()) == elsewhere


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name != "mixed"])
def test_this_process_finds_the_same(scenario: str, elsewhere: dict[str, str]) -> None:
    assert digest(GeneratorOptions(scenario)) == elsewhere[scenario]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_another_seed_gives_other_bytes(scenario: str) -> None:
    sizes = {} if SCENARIOS[scenario].dialect else SMALL
    captures = [capture(GeneratorOptions(scenario, seed, **sizes)) for seed in (1, 2, 1)]
    assert captures[0] != captures[1]
    assert captures[0] == captures[2]


@pytest.mark.parametrize("dialect", ALL_DIALECTS)
def test_the_same_seed_gives_the_same_bytes_in_every_dialect(dialect: str) -> None:
    options = GeneratorOptions("lossy", 5, (named(dialect),), capture={"noise": 0.5}, **SMALL)
    assert digest(options) == digest(options)


def capture(options: GeneratorOptions) -> bytes:
    stream = io.BytesIO()
    write(generate(options).capture, stream)
    return stream.getvalue()

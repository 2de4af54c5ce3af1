"""A short soak on real sockets, and that a soak can fail."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fuzzing.soak import growth
from tests.conftest import REPO


def samples(megabytes: list[float]) -> list[dict[str, Any]]:
    return [{"megabytes": {"broker": one}, "files": {"broker": 9}} for one in megabytes]


def test_memory_that_grows_is_told() -> None:
    assert growth(samples([10.0 + minute for minute in range(60)])) == ["broker: megabytes grew from 32.0 to 62.0"]


def test_memory_that_stays_is_not() -> None:
    assert growth(samples([5.0] * 15 + [40.0] * 45)) == []
    assert growth(samples([1.0, 500.0])) == [], "too short to tell"


@pytest.mark.long
@pytest.mark.net
@pytest.mark.xdist_group("live")
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("tcpdump"), reason="captures on the loopback interface")
def test_nothing_is_lost_in_a_short_soak(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fuzzing.soak", "--minutes", "0.2", "--rotate", "4"]
    done = subprocess.run([*command, "--output", str(tmp_path / "soak")], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()[0].replace(",", "").split()
    counts = {int(word) for word in told if word.isdigit()}
    assert len(counts) == 1
    assert counts.pop() > 100
    assert json.loads((tmp_path / "soak" / "soak.json").read_text())[-1]["files"]["broker"] > 0
    assert (tmp_path / "soak" / "soak.png").stat().st_size > 10_000

"""`make test` has two processes. What must not run twice at once, or is dear to start, is a group in one of them."""

import subprocess
import sys
from pathlib import Path

GROUPED = """
import os
from pathlib import Path
import pytest

@pytest.mark.xdist_group("together")
@pytest.mark.parametrize("number", range(8))
def test_one(number):
    Path(f"{os.environ['PYTEST_XDIST_WORKER']}-{number}").touch()
"""


def test_a_group_runs_in_one_process(tmp_path: Path) -> None:
    """With some versions of pytest and pytest-xdist groups have no effect, and nothing says so."""
    (tmp_path / "test_grouped.py").write_text(GROUPED)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "--rootdir", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    ran = sorted(path.name for path in tmp_path.glob("gw*"))
    assert len(ran) == 8
    assert len({name.partition("-")[0] for name in ran}) == 1

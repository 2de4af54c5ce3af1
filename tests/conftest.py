"""What every test may use: the real command, and the captures of running systems where they are at hand."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cli.main import exit_code_of

REPO = Path(__file__).resolve().parent.parent
# Java's second compiler pays off after minutes: without it a small Spark takes little more than half as long.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

Command = Callable[..., "subprocess.CompletedProcess[str]"]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def topicshark() -> Command:
    """Runs the real command in a process of its own: `topicshark("doctor", "--json", env={"PATH": ""})`.

    `env` overrides single variables; None takes one away.
    """

    def run(*args: str, env: Mapping[str, str | None] | None = None) -> "subprocess.CompletedProcess[str]":
        variables = {**os.environ, **(env or {})}
        return subprocess.run(
            [sys.executable, "-m", "cli.main", *args],
            capture_output=True,
            text=True,
            cwd=REPO,
            env={name: value for name, value in variables.items() if value is not None},
            timeout=120,
            check=False,
        )

    return run


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """The command in this process, where the kernels are loaded once: exit code, stdout, stderr."""

    def run(*args: object) -> tuple[int, str, str]:
        code = exit_code_of([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture(scope="session")
def shared_captures() -> Path:
    """The directory of real captures beside the checkout; they are not part of the project."""
    captures = REPO.parent / "shared" / "captures"
    if not captures.is_dir():
        pytest.skip("no real captures in ../shared/captures")
    return captures

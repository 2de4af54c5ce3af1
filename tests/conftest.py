"""What every test may use: the real command, and the captures of running systems where they are at hand."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from topicshark.main import exit_code_of

REPO = Path(__file__).resolve().parent.parent
# Java's second compiler pays off after minutes: without it a small Spark takes little more than half as long.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
# Hypothesis fails an example after 200 ms, and a test whose examples come slowly. A busy machine does both.
settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")

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
            [sys.executable, "-m", "topicshark.main", *args],
            capture_output=True,
            text=True,
            cwd=REPO,
            env={name: value for name, value in variables.items() if value is not None},
            timeout=600,
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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process runs everything that needs the Spark session, so that it is started once."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


def pytest_unconfigure(config: pytest.Config) -> None:
    """End with one line: how many passed, failed and were skipped, and why; the seed of the order."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(config, "workerinput") and reporter.stats:
        print(closing_line(reporter.stats, config.getoption("randomly_seed", None)))


def closing_line(stats: Mapping[str, list[pytest.TestReport]], seed: int | None) -> str:
    """For example `9,810 passed, 0 failed, 3 skipped (2: no Chromium; 1: needs root); order: --randomly-seed=7`."""
    passed, failed, skipped = len(stats.get("passed", [])), stats.get("failed", []), stats.get("skipped", [])
    line = f"{passed:,} passed, {len(failed) + len(stats.get('error', []))} failed, {len(skipped)} skipped"
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped if report.longrepr)  # type: ignore[index]
    if reasons:
        line += f" ({'; '.join(f'{count}: {why}' for why, count in reasons.most_common())})"
    return line if seed is None else f"{line}; order: --randomly-seed={seed}"

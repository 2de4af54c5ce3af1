"""Tests hold on a busy machine: none asserts how long something took, none waits by sleeping.

Read from the syntax trees of all files below `tests`. A deadline that only ends a hang belongs to `tests/waiting.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPO

CLOCKS = {"perf_counter", "monotonic", "process_time", "thread_time", "time"}
CLOCKS |= {f"{name}_ns" for name in CLOCKS}
WAITING = REPO / "tests" / "waiting.py"


def reads_clock(node: ast.AST) -> bool:
    """A call such as `time.monotonic()` or `perf_counter()`."""
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    if isinstance(called, ast.Attribute):
        return called.attr in CLOCKS and isinstance(called.value, ast.Name) and called.value.id == "time"
    return isinstance(called, ast.Name) and called.id in CLOCKS


def from_a_clock(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression contains a clock's reading, directly or by one of these names."""
    return any(reads_clock(part) or (isinstance(part, ast.Name) and part.id in names) for part in ast.walk(node))


def called_name(node: ast.AST) -> str | None:
    called = node.func if isinstance(node, ast.Call) else None
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else None


def tainted_names(tree: ast.Module) -> set[str]:
    """Variables, and functions of this file, whose value comes from a clock, however many steps away."""
    names: set[str] = set()
    while True:
        found = set(names)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if from_a_clock(node.value, names):
                    found |= {target.id for target in targets if isinstance(target, ast.Name)}
            elif isinstance(node, ast.Return) and node.value is not None and from_a_clock(node.value, names):
                found |= {f.name for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and node in ast.walk(f)}
            elif called_name(node) == "append" and isinstance(node, ast.Call) and from_a_clock(node, names):
                owner = node.func.value if isinstance(node.func, ast.Attribute) else None
                found |= {owner.id} if isinstance(owner, ast.Name) else set()
        if found == names:
            return names
        names = found


def complaints(source: str) -> Iterator[tuple[int, str]]:
    """Line and fault of everything in a test file that depends on how busy the machine is."""
    tree = ast.parse(source)
    names = tainted_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and from_a_clock(node.test, names):
            yield node.lineno, "asserts elapsed time"
        if isinstance(node, ast.Call) and called_name(node) == "sleep":
            yield node.lineno, "sleeps instead of waiting for a condition (tests/waiting.py)"


@pytest.mark.parametrize("path", sorted((REPO / "tests").rglob("*.py")), ids=lambda path: path.name)
def test_no_test_depends_on_how_busy_the_machine_is(path: Path) -> None:
    if path != WAITING:
        assert list(complaints(path.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        "assert time.perf_counter() - start < 3",
        "from time import monotonic\nassert monotonic() < 3",
        "def cpu(since): return time.process_time() - since\nstart = 1\nassert cpu(start) < 2",
        "took = time.time() - start\nlimit = took * 2\nassert limit < 3",
        "times = []\ntimes.append(time.perf_counter() - start)\nassert max(times) < 1",
        "end = time.monotonic() + 5\nwhile True:\n    assert time.monotonic() < end",
        "time.sleep(1)",
        "from time import sleep\nsleep(0.1)",
    ],
)
def test_each_kind_of_clock_is_seen(source: str) -> None:
    assert list(complaints(source)) != []


@pytest.mark.parametrize(
    "source",
    ["start = time.monotonic()\nprint(time.monotonic() - start)", "now = event.time\nassert now == 5", "assert time"],
)
def test_printing_a_time_and_times_of_packets_are_fine(source: str) -> None:
    assert list(complaints(source)) == []

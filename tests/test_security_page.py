"""SECURITY.md names tests and programs that are there."""

import re
from importlib.util import find_spec

from tests.conftest import REPO

PAGE = (REPO / "SECURITY.md").read_text()


def test_every_test_that_it_names_is_there() -> None:
    named = re.findall(r"`(tests/[^`]+)`", PAGE)
    assert len(named) > 10
    assert [name for name in named if not (REPO / name).exists()] == []


def test_every_program_that_it_names_is_there() -> None:
    named = re.findall(r"`python -m ([\w.]+)`", PAGE)
    assert len(named) >= 3
    assert [name for name in named if find_spec(name) is None] == []


def test_every_promise_is_tested() -> None:
    rows = re.findall(r"^\| (?!promise|---)(.+?) \| (.+?) \|$", PAGE, re.M)
    assert len(rows) > 8
    assert all("`tests/" in tests for _, tests in rows)

"""The documentation tells the truth: its commands run, and it leaves no key of a dialect file out."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from pcap_tools.dialect import spec
from tests.conftest import REPO

DOCS = [REPO / "README.md", *sorted((REPO / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


def command_blocks(page: Path) -> list[str]:
    """All but the README's, which set up a whole machine: those are what `make test` on a fresh one does."""
    return blocks(page, "sh") if page.name != "README.md" else []


@pytest.mark.parametrize("page", [page for page in DOCS if blocks(page, "python")], ids=lambda page: page.name)
def test_the_python_of_a_page_runs_and_prints_what_its_comments_say(page: Path, tmp_path: Path) -> None:
    for block in blocks(page, "python"):
        environment = {**os.environ, "PYTHONPATH": str(REPO)}
        done = subprocess.run(
            [sys.executable, "-c", block], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{block}\n{done.stderr}"
        for promised in re.findall(r"print\(.*\)\s+# ([A-Za-z].*)$", block, re.M):
            if "the forward" not in promised:
                assert promised in done.stdout.splitlines()


@pytest.mark.parametrize("page", [page for page in DOCS if command_blocks(page)], ids=lambda page: page.name)
def test_the_commands_of_a_page_run_one_after_the_other(page: Path, tmp_path: Path) -> None:
    for example in (REPO / "docs" / "examples").iterdir():
        shutil.copy(example, tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for block in command_blocks(page):
        done = subprocess.run(
            ["bash", "-euc", block],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{block}\n{done.stderr}"


def test_the_decoded_example_is_what_the_page_shows(tmp_path: Path) -> None:
    for example in (REPO / "docs" / "examples").iterdir():
        shutil.copy(example, tmp_path)
    subprocess.run(
        [sys.executable, "bulletin.py"], cwd=tmp_path, check=True, env={**os.environ, "PYTHONPATH": str(REPO)}
    )
    answer = subprocess.run(
        [
            sys.executable,
            "-m",
            "cli.main",
            "decode",
            str(tmp_path / "bulletin.pcap"),
            "--dialect",
            str(tmp_path / "bulletin.toml"),
        ],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=True,
    )
    shown = re.findall(r"^    (\d)  …  (.*)$", (REPO / "docs" / "dialects.md").read_text(), re.M)
    printed = [re.sub(r"\s+", " ", line).strip().split(" ", 2) for line in answer.stdout.splitlines()]
    assert [(number, re.sub(r"\s+", " ", text)) for number, text in shown] == [(n, rest) for n, _, rest in printed]


def test_every_key_of_a_dialect_file_is_documented() -> None:
    page = (REPO / "docs" / "dialects.md").read_text()
    tables = [table for table in vars(spec).values() if isinstance(table, type) and issubclass(table, BaseModel)]
    keys = {field.alias or name for table in tables for name, field in table.model_fields.items()}
    missing = sorted(key for key in keys if not re.search(rf"(`|\[|\b){key}\b", page))
    assert missing == []


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target

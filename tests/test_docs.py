"""The documentation tells the truth: its commands and programs run, and what it only shows exists.

A page's `sh` blocks run one after the other in an empty folder with docs/examples/ copied in. Where a page has `diff`
blocks its folder is a copy of the project with these changes made.
"""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import typer
import yaml  # type: ignore[import-untyped]

from pcap_tools.capture import CaptureWriter
from tests.conftest import REPO
from tests.dissector.tshark import run_tshark
from tests.reference_broker.labs import loopback_to_ourselves
from topicshark.main import COMMANDS, load_command

DOCS = [REPO / "README.md", REPO / "CONTRIBUTING.md", REPO / "CHANGELOG.md", *sorted((REPO / "docs").rglob("*.md"))]
SETS_UP = ("README.md", "CONTRIBUTING.md")  # a whole machine: what `make test` on a fresh one does
PROJECT = ("pcap_tools", "reference_broker", "generators", "spark_analysis", "topicshark", "tests", "pyproject.toml")
STARTS_SPARK = ("docs/cluster.md", "docs/dataframes.md", "docs/spark.md")  # `make long`; `make test` has docs/ingest.md
PORT_OF_PAGES = "47123"  # pages name one port; another run of the tests may be at it
OPERATOR = re.compile(r"[|&;<>()]+")
OF_TOPICSHARK = ("--help", "--version", "--install-completion", "--show-completion")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


def named(page: Path) -> str:
    return str(page.relative_to(REPO))


def command_blocks(page: Path) -> list[str]:
    return blocks(page, "sh") if named(page) not in SETS_UP else []


def run_commands(page: Path, folder: Path, **variables: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for block in command_blocks(page):
        with loopback_to_ourselves() if "topicshark lab" in block else nullcontext():
            done = subprocess.run(
                ["bash", "-euc", block.replace(PORT_OF_PAGES, str(free_port()))],
                cwd=folder,
                env={**os.environ, "PATH": path, **variables},
                capture_output=True,
                text=True,
            )
        assert done.returncode == 0, f"{block}\n{done.stdout[-3000:]}\n{done.stderr}"


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def copy_examples(folder: Path) -> None:
    for example in (REPO / "docs" / "examples").iterdir():
        shutil.copy(example, folder)


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


def pages_of_commands() -> Iterator[object]:
    for page in DOCS:
        if command_blocks(page) and not blocks(page, "diff"):
            marks = pytest.mark.long if named(page) in STARTS_SPARK else ()
            yield pytest.param(page, id=named(page), marks=marks)


@pytest.mark.parametrize("page", list(pages_of_commands()))
def test_the_commands_of_a_page_run_one_after_the_other(page: Path, tmp_path: Path) -> None:
    if "tcpdump -i" in "".join(command_blocks(page)) and (os.geteuid() != 0 or shutil.which("tcpdump") is None):
        pytest.skip("only root may capture, with tcpdump")
    copy_examples(tmp_path)
    run_commands(page, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in DOCS if blocks(page, "diff")], ids=named)
def test_the_changes_of_a_page_can_be_made_and_do_what_it_says(page: Path, tmp_path: Path) -> None:
    for name in PROJECT:
        source = REPO / name  # with its compiled kernels, which need not be compiled again
        shutil.copytree(source, tmp_path / name) if source.is_dir() else shutil.copy(source, tmp_path)
    for change in blocks(page, "diff"):
        alone = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}  # not part of a repository around it
        done = subprocess.run(["git", "apply"], cwd=tmp_path, env=alone, input=change, capture_output=True, text=True)
        assert done.returncode == 0, f"the page is stale: {done.stderr}\n{change}"
    run_commands(page, tmp_path, PYTHONPATH=str(tmp_path))


def shown_commands(text: str) -> Iterator[list[str]]:
    """The words behind `topicshark` of indented lines, which are not run; without what a pipe leads to."""
    for line in re.findall(r"^ {4,}(?:\.venv/bin/)?topicshark ((?:--)?[a-z].*)$", text, re.M):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
        end = next((at for at, word in enumerate(words) if OPERATOR.fullmatch(word)), len(words))
        yield words[:end]


def complaint(words: list[str]) -> str | None:
    """What is wrong with a command line, found by parsing it and running nothing; None: it is right."""
    name, *rest = words
    if name.startswith("--"):
        return (
            None if name in ("--help", "--version", "--install-completion", "--show-completion") else "no such option"
        )
    if name not in COMMANDS:
        return f"there is no command {name}"
    command = load_command(name)
    below = getattr(command, "commands", None)
    if below is not None:
        if not rest or rest[0] not in below:
            return f"{name} has no command {' '.join(rest[:1])}"
        command, rest = below[rest[0]], rest[1:]
    try:
        command.make_context(name, rest)
    except typer.Exit:  # --help and its like
        return None
    except Exception as error:
        return f"{type(error).__name__}: {getattr(error, 'message', error)}"
    return None


@pytest.mark.parametrize("page", DOCS, ids=named)
def test_commands_that_are_only_shown_exist_with_their_options(page: Path) -> None:
    complaints = {" ".join(words): complaint(words) for words in shown_commands(page.read_text())}
    assert {line: why for line, why in complaints.items() if why} == {}


def test_the_workflow_for_github_has_the_commands_that_its_page_runs() -> None:
    workflow = yaml.safe_load((REPO / "docs" / "examples" / "github-actions.yml").read_text())
    assert workflow["permissions"]["security-events"] == "write"
    steps = workflow["jobs"]["check"]["steps"]
    commands = [step["run"] for step in steps if step.get("run", "").startswith("topicshark")]
    assert len(commands) == 3
    assert f"--format sarif > {steps[-1]['with']['sarif_file']}" in commands[1]
    run = "".join(blocks(REPO / "docs" / "continuous-integration.md", "sh")).splitlines()
    assert [line for line in commands if line.replace("protocol.toml", "bulletin.toml") not in run] == []


def test_the_checked_example_is_what_the_page_shows(tmp_path: Path) -> None:
    """Line by line, in its order; … stands for what the page leaves out."""
    page = (REPO / "docs" / "checking.md").read_text()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    commands = "\n".join(blocks(REPO / "docs" / "checking.md", "sh")[0].splitlines()[:2])
    done = subprocess.run(
        ["bash", "-euc", commands], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    example = re.search(r"^    run: .*?(?=^\S)", page, re.M | re.S)
    assert example is not None
    shown = [line.strip() for line in example[0].splitlines()[1:] if line.strip() not in ("", "…")]
    printed = iter([line.strip() for line in done.stdout.splitlines()])
    assert [line for line in shown if line not in printed] == []


def test_the_decoded_example_is_what_the_page_shows(tmp_path: Path) -> None:
    copy_examples(tmp_path)
    subprocess.run(
        [sys.executable, "bulletin.py"], cwd=tmp_path, check=True, env={**os.environ, "PYTHONPATH": str(REPO)}
    )
    answer = subprocess.run(
        [
            sys.executable,
            "-m",
            "topicshark.main",
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


@pytest.mark.tshark
def test_the_display_filters_of_the_guide_are_right(tmp_path: Path) -> None:
    """All in one filter: one that has a wrong name or form makes tshark refuse."""
    section = (REPO / "docs" / "wireshark.md").read_text().partition("## Display filters\n")[2].partition("\n\n")[0]
    rows = [line.replace("\\|", "\0").split("|")[2].replace("\0", "|") for line in section.splitlines()[2:]]
    filters = [one for row in rows for one in re.findall(r"`([^`]+)`", row)]
    assert len(filters) >= 10
    with CaptureWriter(tmp_path / "empty.pcap"):
        pass
    together = " || ".join(f"({one})" for one in filters)
    assert run_tshark(tmp_path / "empty.pcap", "-2", "-Y", together, home=tmp_path / "home") == ""


def test_the_index_leads_to_every_page() -> None:
    docs = REPO / "docs"
    index = (docs / "README.md").read_text()
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"README.md"}
    assert sorted(page for page in pages if f"]({page})" not in index) == []


@pytest.mark.parametrize("page", DOCS, ids=named)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target

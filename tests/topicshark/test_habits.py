"""What users of a shell expect of every command: completion in bash and zsh, and no colour where none is wanted."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPO, Command
from topicshark.main import COMMANDS

COLOUR = re.compile(rb"\x1b\[[0-9;]*[0-9]m")
COMPLETE = """
source completion.bash
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
[[ "$(complete -p topicshark)" == *-F\\ _topicshark_completion* ]]
_topicshark_completion topicshark
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(topicshark: Command, folder: Path, words: str) -> list[str]:
    """What a real bash offers, with the script that `--install-completion` would install."""
    (folder / "completion.bash").write_text(topicshark(env={"_TOPICSHARK_COMPLETE": "source_bash"}).stdout)
    command = folder / "topicshark"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m topicshark.main "$@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(REPO)}
    script = COMPLETE.format(words=words)
    done = subprocess.run(
        ["bash", "-euc", script], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("topicshark che", ["check"]),
        ("topicshark d", ["decode", "demo", "dialects", "dissector", "doctor"]),
        ("topicshark dialects s", ["show"]),
        ("topicshark check --for", ["--format"]),
        ("topicshark check --format sa", ["sarif"]),
    ],
)
def test_bash_completes(topicshark: Command, tmp_path: Path, words: str, offered: list[str]) -> None:
    assert completed(topicshark, tmp_path, words) == offered


def test_zsh_is_told_every_command_with_its_summary(topicshark: Command) -> None:
    """There may be no zsh here; what its script evaluates is looked at."""
    script = topicshark(env={"_TOPICSHARK_COMPLETE": "source_zsh"}).stdout
    assert script.lstrip().startswith("#compdef topicshark")
    assert "_TOPICSHARK_COMPLETE=complete_zsh" in script
    asked = {"_TOPICSHARK_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "topicshark "}
    offered = topicshark(env=asked).stdout
    assert set(re.findall(r'"([a-z]+)":"', offered)) == set(COMMANDS)


def test_completion_is_offered_by_the_help(topicshark: Command) -> None:
    text = topicshark("--help").stdout
    assert "--install-completion" in text
    assert "--show-completion" in text


def on_a_terminal(*arguments: str, **variables: str) -> bytes:
    """What the command prints when its output is a terminal."""
    ours, theirs = pty.openpty()
    wanted = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    environment = {**wanted, "TERM": "xterm-256color", "COLUMNS": "200", **variables}
    command = [sys.executable, "-m", "topicshark.main", *arguments]
    process = subprocess.Popen(command, cwd=REPO, env=environment, stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    printed = b""
    try:
        while chunk := os.read(ours, 65536):
            printed += chunk
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    process.wait(timeout=60)
    return printed


def test_no_color_is_honoured() -> None:
    coloured, plain = on_a_terminal("doctor"), on_a_terminal("doctor", NO_COLOR="1")
    assert COLOUR.search(coloured), "on a terminal there is colour"
    assert b"Python" in plain
    foreground = [code for code in COLOUR.findall(plain) if re.search(rb"[\[;](3[0-9]|4[0-9]|9[0-9])", code)]
    assert foreground == []


def test_a_usage_error_has_no_colour_with_no_color() -> None:
    printed = on_a_terminal("check", "--nope", NO_COLOR="1")
    assert b"--nope" in printed
    assert not COLOUR.search(printed)

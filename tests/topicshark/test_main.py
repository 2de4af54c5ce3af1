"""The main command: what it lists, and which exit code stands for which error."""

import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from types import SimpleNamespace

import pytest

from pcap_tools.errors import TopicsharkError, UsageError
from tests.conftest import REPO, Command
from topicshark import main
from topicshark.app import new_app
from topicshark.exit_codes import ExitCode


def test_help_lists_every_command_with_its_summary(topicshark: Command) -> None:
    answer = topicshark("--help")
    assert answer.returncode == ExitCode.CLEAN
    text = " ".join(answer.stdout.split())
    for name, (_, summary) in main.COMMANDS.items():
        assert f"{name} {summary}" in text


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_has_help_with_an_example(topicshark: Command, name: str) -> None:
    answer = topicshark(name, "--help")
    assert answer.returncode == ExitCode.CLEAN
    assert f"Usage: topicshark {name}" in answer.stdout
    assert f"topicshark {name}" in answer.stdout.split("Example", 1)[1]


def test_help_imports_no_command_and_no_heavy_package() -> None:
    heavy = {"pyspark", "numba", "numpy", "pandas", "pyarrow", "scapy", "pyshark", "matplotlib", "pydantic"}
    heavy |= {f"topicshark.commands.{one.entry.partition(':')[0]}" for one in main.COMMANDS.values()}
    script = (
        "import sys; from topicshark.main import exit_code_of; exit_code_of(['--help']);"
        f"print(sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=REPO, check=True, timeout=60
    )
    assert answer.stderr.strip() == "[]"


def test_unknown_command_is_a_usage_error_with_a_suggestion(topicshark: Command) -> None:
    answer = topicshark("docter")
    assert answer.returncode == ExitCode.USAGE
    assert answer.stdout == ""
    assert "Did you mean 'doctor'?" in answer.stderr


def test_unknown_option_and_no_command_are_usage_errors(topicshark: Command) -> None:
    assert topicshark("--no-such-option").returncode == ExitCode.USAGE
    assert topicshark("doctor", "--no-such-option").returncode == ExitCode.USAGE
    assert topicshark().returncode == ExitCode.USAGE


def test_version(topicshark: Command) -> None:
    answer = topicshark("--version")
    assert answer.returncode == ExitCode.CLEAN
    assert answer.stdout == f"topicshark {version('topicshark')}\n"


def test_completion_offers_the_commands(topicshark: Command) -> None:
    answer = topicshark(env={"_TOPICSHARK_COMPLETE": "complete_bash", "COMP_WORDS": "topicshark do", "COMP_CWORD": "1"})
    assert "doctor" in answer.stdout.split()


def command_that_raises(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts a command `boom` in place of the real ones."""
    boom = new_app()

    @boom.command()
    def _boom() -> None:
        raise error

    def import_boom(name: str) -> object:
        return SimpleNamespace(app=boom) if name == "topicshark.commands.boom" else import_module(name)

    monkeypatch.setattr(main, "COMMANDS", {"boom": main.Command("boom:app", "Fails.")})
    monkeypatch.setattr(main, "import_module", import_boom)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (TopicsharkError("a.pcap: not a \x1b capture"), ExitCode.UNREADABLE, "a.pcap: not a \\x1b capture"),
        (UsageError("no such rule: Q"), ExitCode.USAGE, "no such rule: Q"),
        (TopicsharkError("line 1: x\nline 2: y"), ExitCode.UNREADABLE, "line 1: x\ntopicshark: line 2: y"),
    ],
)
def test_an_error_is_a_safe_message_on_stderr(
    error: Exception,
    code: ExitCode,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command_that_raises(error, monkeypatch)
    assert main.exit_code_of(["boom"]) == code
    assert capsys.readouterr() == ("", f"topicshark: {message}\n")


@pytest.mark.parametrize("error", [RuntimeError("oops"), EOFError("oops")])
def test_a_bug_shows_its_traceback_and_does_not_look_like_findings(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command_that_raises(error, monkeypatch)
    assert main.exit_code_of(["boom"]) == ExitCode.BUG
    assert f"{type(error).__name__}: oops" in capsys.readouterr().err


def test_an_interrupt_is_silent(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    command_that_raises(KeyboardInterrupt(), monkeypatch)
    assert main.exit_code_of(["boom"]) == ExitCode.INTERRUPTED
    assert capsys.readouterr() == ("", "")


def test_a_closed_pipe_is_silent() -> None:
    """The reader has gone before the first byte is written."""
    process = subprocess.Popen(
        [sys.executable, "-m", "topicshark.main", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=REPO
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr as stderr:
        assert stderr.read() == b""
    assert process.wait(timeout=60) == ExitCode.PIPE_CLOSED

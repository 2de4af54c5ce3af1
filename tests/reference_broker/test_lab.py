"""The lab: runs in namespaces where that is allowed, cleans up after itself, and says what went wrong."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pcap_tools.capture import read_datagrams
from reference_broker.lab import SCENARIOS, LabError, Mode, open_network, run, runner
from reference_broker.lab.network import why_no_namespaces
from reference_broker.lab.scenarios import BROKER, Step
from tests.conftest import REPO, Command
from tests.reference_broker.labs import loopback_to_ourselves, run_lab
from tests.waiting import PATIENCE_S

TOPICSHARK = [sys.executable, "-m", "topicshark.main"]
in_namespaces = pytest.mark.skipif(why_no_namespaces() is not None, reason=f"no namespaces: {why_no_namespaces()}")


def namespaces_of(process: int) -> list[str]:
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    return [line.split()[0] for line in listed.splitlines() if line.startswith(f"tslab-{process}-")]


def is_of_lab(process: Path, capture: bytes) -> bool:
    """Whether a process was started by this lab: tcpdump names the capture, nodes have inherited our mark."""
    try:
        return capture in (process / "cmdline").read_bytes() or capture in (process / "environ").read_bytes()
    except OSError:
        return False


def test_the_scenarios_are_listed(topicshark: Command) -> None:
    answer = topicshark("lab", "--list")
    assert answer.returncode == 0
    assert [line.split()[0] for line in answer.stdout.splitlines()] == list(SCENARIOS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_player_of_a_script_is_there_and_has_an_address_of_its_own(name: str) -> None:
    scenario = SCENARIOS[name]
    assert {step.player for step in scenario.script} == set(scenario.players)
    started: set[str] = set()
    for step in scenario.script:
        assert (step.types is None) != (step.player in started)
        started.add(step.player)
        assert {player for player, _ in step.then} <= started | {BROKER}
    assert all(player.host != 10 for player in scenario.players.values())


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ([], "no scenario given"),
        (["report-x", "-o", "x.pcap"], "report-colon"),
        (["report-colon"], "-o FILE.pcap"),
        (["report-colon", "-o", "x.pcap", "--mode", "moon"], "auto, netns, loopback"),
    ],
)
def test_a_wrong_command_line_says_what_is_right(topicshark: Command, words: list[str], what: str) -> None:
    answer = topicshark("lab", *words)
    assert answer.returncode == 2
    assert what in answer.stderr


@pytest.mark.net
def test_a_scenario_that_goes_wrong_ends_in_time_and_tells_what_was_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of this lab stands still until it waits in vain: it is as patient as it must be on a busy machine."""
    now = 0.0

    def let_time_pass(told: str) -> None:
        nonlocal now
        now += 100.0 if "types" in told else 0.0

    monkeypatch.setattr(runner, "time", SimpleNamespace(monotonic=lambda: now, sleep=time.sleep))
    starts = Step("subscriber", None, (("subscriber", "or exit"),))
    in_vain = Step("subscriber", "sub:home/*", (("subscriber", "a word never said"),))
    hopeless = replace(SCENARIOS["report-colon"], script=(starts, in_vain))
    with (
        loopback_to_ourselves(),
        open_network(hopeless, tmp_path / "x.pcap", Mode.LOOPBACK) as network,
        pytest.raises(LabError, match=r"subscriber never said 'a word never said'.*\n.*sub:<topic>"),
    ):
        run(hopeless, network, TOPICSHARK, timeout_s=99, tell=let_time_pass)


@pytest.mark.net
@pytest.mark.netns
@in_namespaces
def test_each_node_has_a_namespace_and_the_bridge_is_recorded(topicshark: Command, tmp_path: Path) -> None:
    """Datagrams of 1500 bytes go in two fragments here, as in the running system."""
    capture = tmp_path / "portdigits.pcap"
    answer = run_lab(topicshark, "report-portdigits", capture, "--mode", "netns")
    assert answer.returncode == 0, answer.stderr
    datagrams = list(read_datagrams(capture))
    assert [one.src.rpartition(".")[2] for one in datagrams] == ["20", "30", "40", "10", "50", "10", "20", "60", "10"]
    assert {len(one.frames) for one in datagrams} == {2}
    assert {len(one.payload) for one in datagrams} == {1500}


@pytest.mark.net
@pytest.mark.netns
@in_namespaces
def test_a_capture_on_any_sees_each_frame_more_than_once(topicshark: Command, tmp_path: Path) -> None:
    """As in the report's own capture; the copies are recognised."""
    capture = tmp_path / "rolebyte.pcap"
    answer = run_lab(topicshark, "report-rolebyte", capture, "--mode", "netns", "--capture-on", "any")
    assert answer.returncode == 0, answer.stderr
    datagrams = list(read_datagrams(capture))
    first = [len(one.payload) for one in datagrams if one.copy_of is None]
    assert first == [19, 2, 31, 2, 22, 2, 22, 2, 49, 2, 49, 2, 69, 2, 57, 2]
    assert len(datagrams) >= 2 * len(first)


@pytest.mark.net
@pytest.mark.netns
@in_namespaces
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["(netns)", "dashboard starts", "actuator starts"])
def test_an_interrupted_lab_leaves_nothing_behind(moment: str, number: signal.Signals, tmp_path: Path) -> None:
    words = [*TOPICSHARK, "lab", "report-rolebyte", "-o", str(tmp_path / "x.pcap"), "--mode", "netns"]
    marked = {**os.environ, "TSLAB_TEST": str(tmp_path / "x.pcap")}
    lab = subprocess.Popen(words, cwd=REPO, env=marked, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert lab.stderr is not None
        for line in lab.stderr:
            if moment in line:
                break
        assert namespaces_of(lab.pid)
        lab.send_signal(number)
        lab.communicate(timeout=PATIENCE_S)
        assert lab.returncode == 130
        assert namespaces_of(lab.pid) == []
        capture = str(tmp_path / "x.pcap").encode()
        assert not [entry for entry in Path("/proc").glob("[0-9]*") if is_of_lab(entry, capture)]
    finally:
        lab.kill()
        lab.wait()

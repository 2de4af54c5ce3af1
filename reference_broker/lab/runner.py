"""Runs a scenario: starts the nodes, types their lines, waits for what must be seen, and ends them all."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from pcap_tools.errors import TopicsharkError
from reference_broker.lab.network import BROKER_HOST, LINGER_SECONDS, Network
from reference_broker.lab.scenarios import BROKER, Scenario

STOP_SECONDS = 5
LOOK_SECONDS = 0.1
LAST_LINES = 8


class LabError(TopicsharkError):
    """A scenario that did not go as it should."""


class Process:
    """A node: its process, and what it has printed so far."""

    def __init__(self, words: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self._lines: list[str] = []
        self._read = 0
        self._news = threading.Condition()
        self._is_over = False
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()

    def _follow(self) -> None:
        for line in self._process.stdout or ():
            with self._news:
                self._lines.append(line.decode(errors="replace").rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._is_over = True
            self._news.notify_all()

    def wait_for(self, text: str, deadline: float, interrupted: Callable[[], bool]) -> bool:
        """Until a line with this text comes that has not been waited for before; false if none does."""
        with self._news:
            while True:
                for at in range(self._read, len(self._lines)):
                    if text in self._lines[at]:
                        self._read = at + 1
                        return True
                left = deadline - time.monotonic()
                if self._is_over or left <= 0 or interrupted():
                    return False
                self._news.wait(min(left, LOOK_SECONDS))

    def type(self, line: str) -> None:
        with suppress(OSError):  # it has ended; what is waited for will tell
            if self._process.stdin is not None:
                self._process.stdin.write(line.encode() + b"\n")
                self._process.stdin.flush()

    def last_lines(self) -> list[str]:
        return self._lines[-LAST_LINES:]

    def stop(self) -> None:
        """Ask it to end, then make it."""
        for end in (self._process.terminate, self._process.kill):
            if self._process.poll() is None:
                end()
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(STOP_SECONDS)
        self._reader.join(STOP_SECONDS)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


class Cast:
    """The processes of a lab; leaving the block ends them, the broker last."""

    def __init__(self, scenario: Scenario, network: Network, topicshark: Sequence[str]) -> None:
        self._scenario, self._network, self._topicshark = scenario, network, list(topicshark)
        self.processes: dict[str, Process] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in sorted(self.processes, key=lambda name: name == BROKER):
            self.processes[name].stop()

    def start_broker(self) -> None:
        scenario = self._scenario
        where = ["--host", self._network.address(BROKER_HOST), "--port", str(scenario.port)]
        options = ["--dialect", scenario.dialect, *where, "--trust-silent", *self._network.broker_options()]
        self._start(BROKER, ["broker", *options])

    def start(self, name: str) -> None:
        player = self._scenario.players[name]
        words = {
            "{to}": f"{self._network.address(BROKER_HOST)}:{self._scenario.port}",
            "{bind}": f"{self._network.address(player.host)}:{player.port}",
        }
        self._start(name, [words.get(word, word) for word in player.command])

    def _start(self, name: str, words: list[str]) -> None:
        self.processes[name] = Process(self._network.command(name, [*self._topicshark, *words]))


def run(
    scenario: Scenario,
    network: Network,
    topicshark: Sequence[str],
    timeout_s: float = 60.0,
    tell: Callable[[str], None] = lambda line: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> None:
    """Run a scenario to its end, or raise ``LabError`` with what was not seen in time.

    ``topicshark`` is the command that the nodes run. ``interrupted`` is asked often: an interrupt that is an exception
    could come between the start of a node and our knowing of it.
    """
    deadline = time.monotonic() + timeout_s
    with Cast(scenario, network, topicshark) as cast:
        cast.start_broker()
        _expect(cast, BROKER, "listening on", deadline, interrupted)
        for step in scenario.script:
            if step.types is None:
                tell(f"{step.player} starts")
                cast.start(step.player)
            else:
                tell(f"{step.player} types {step.types}")
                cast.processes[step.player].type(step.types)
            for player, text in step.then:
                _expect(cast, player, text, deadline, interrupted)
        time.sleep(LINGER_SECONDS)  # the last ACKs are on their way


def _expect(cast: Cast, player: str, text: str, deadline: float, interrupted: Callable[[], bool]) -> None:
    process = cast.processes[player]
    if process.wait_for(text, deadline, interrupted):
        return
    if interrupted():
        raise KeyboardInterrupt
    said = "\n".join(f"  {line}" for line in process.last_lines()) or "  (nothing)"
    raise LabError(f"{player} never said {text!r}; the last it said:\n{said}")

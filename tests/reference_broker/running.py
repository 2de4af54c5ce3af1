"""A real broker process on a loopback address, and bare sockets to talk to it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import REPO
from tests.waiting import PATIENCE_S, wait_until


class Running:
    """A broker that has said where it listens."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path, err: Path) -> None:
        self.process, self._out, self._err = process, out, err
        first = self._wait_for_first_line().split()
        assert first[:2] == ["listening", "on"]
        self.host, self.port = first[2], int(first[4])

    def _wait_for_first_line(self) -> str:
        wait_until(lambda: "\n" in self.out or self.process.poll() is not None, "the broker listens")
        assert "\n" in self.out, self.err
        return self.out.split("\n", 1)[0]

    @property
    def out(self) -> str:
        return self._out.read_bytes().decode()

    @property
    def err(self) -> str:
        return self._err.read_bytes().decode()

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port

    def receive_signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE_S)

    def wait_for_err(self, text: str) -> None:
        wait_until(lambda: text in self.err, f"the broker says {text!r}")

    def counters(self) -> dict[str, int]:
        """What it has counted so far. It handles what waits in its socket before it answers the next call."""
        last = "\n  now retained "
        reports = self.err.count(last)
        self.receive_signal(signal.SIGUSR1)
        wait_until(
            lambda: self.err.count(last) > reports and self.err.endswith("\n"), "the broker has said its counters"
        )
        return counters_in(self.err)

    def wait_for_count(self, name: str, number: int) -> None:
        wait_until(lambda: self.counters().get(name, 0) >= number, f"the broker has counted {name} {number} times")

    def peer(self) -> Peer:
        return Peer(self.address)


def counters_in(said: str) -> dict[str, int]:
    """The last counters that a broker said."""
    lines = said.rpartition("counters after")[2].splitlines()[1:]
    return {name: int(number) for name, number in (line.strip().rsplit(" ", 1) for line in lines if line[:2] == "  ")}


class Peer:
    """A bare UDP socket that talks to one broker; nothing of the code under test is in it.

    A broker answers in the order of the requests: that one gets no answer shows in the next answer, that of a later
    request. No need to wait for nothing to come.
    """

    def __init__(self, broker: tuple[str, int]) -> None:
        family = socket.AF_INET6 if ":" in broker[0] else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.bind((broker[0], 0))
        self.socket.settimeout(PATIENCE_S)
        self.port: int = self.socket.getsockname()[1]
        self._broker = broker

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, datagram: bytes) -> None:
        self.socket.sendto(datagram, self._broker)

    def receive(self) -> bytes:
        return self.socket.recv(65_535)

    def ask(self, datagram: bytes) -> bytes:
        self.send(datagram)
        return self.receive()


@contextmanager
def running_broker(folder: Path, *options: str, port: int = 0, quiet: bool = True) -> Iterator[Running]:
    """A broker on loopback, ended with the block however that ends."""
    number = len(list(folder.glob("broker-*.out")))
    out, err = folder / f"broker-{number}.out", folder / f"broker-{number}.err"
    command = [sys.executable, "-m", "topicshark.main", "broker", "--port", str(port), *options]
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            [*command, "--quiet"] if quiet else command,
            cwd=REPO,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    try:
        yield Running(process, out, err)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(timeout=PATIENCE_S)

"""A real broker process on a loopback address, and bare sockets to talk to it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import REPO

PATIENCE_S = 10.0


class Running:
    """A broker that has said where it listens."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path, err: Path) -> None:
        self.process, self._out, self._err = process, out, err
        first = self._wait_for_first_line().split()
        assert first[:2] == ["listening", "on"]
        self.host, self.port = first[2], int(first[4])

    def _wait_for_first_line(self) -> str:
        end = time.monotonic() + PATIENCE_S
        while "\n" not in self.out:
            assert self.process.poll() is None, self.err
            assert time.monotonic() < end
            time.sleep(0.01)
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
        end = time.monotonic() + PATIENCE_S
        while text not in self.err:
            assert time.monotonic() < end, self.err
            time.sleep(0.01)

    def peer(self, timeout: float = 2.0) -> Peer:
        return Peer(self.address, timeout)


class Peer:
    """A bare UDP socket that talks to one broker; nothing of the code under test is in it."""

    def __init__(self, broker: tuple[str, int], timeout: float) -> None:
        family = socket.AF_INET6 if ":" in broker[0] else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.bind((broker[0], 0))
        self.socket.settimeout(timeout)
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

    def gets_nothing(self, within: float = 0.3) -> bool:
        self.socket.settimeout(within)
        try:
            self.receive()
        except TimeoutError:
            return True
        return False


@contextmanager
def running_broker(folder: Path, *options: str, port: int = 0, quiet: bool = True) -> Iterator[Running]:
    """A broker on loopback, ended with the block however that ends."""
    number = len(list(folder.glob("broker-*.out")))
    out, err = folder / f"broker-{number}.out", folder / f"broker-{number}.err"
    command = [sys.executable, "-m", "cli.main", "broker", "--port", str(port), *options]
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

"""The Java programs and the commands of the toolkit as processes, and a recording of what they say to each other."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pcap_tools.capture import CaptureWriter
from tests.conftest import REPO
from tests.waiting import PATIENCE_S, wait_until

SOURCES = sorted(Path(__file__).parent.glob("*.java"))
ETHERNET = 1
LARGEST = 1 << 17


def compile_programs(folder: Path) -> Path:
    compiler = shutil.which("javac")
    assert compiler, "javac is missing: sudo apt-get install openjdk-17-jdk-headless"
    subprocess.run([compiler, "-d", str(folder), *map(str, SOURCES)], check=True)
    return folder


class Program:
    """A process whose lines are read as they come."""

    def __init__(self, words: list[str], typed: str = "") -> None:
        self.process = subprocess.Popen(
            words,
            cwd=REPO,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        if typed and self.process.stdin is not None:
            self.process.stdin.write(typed)
            self.process.stdin.flush()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self.lines.append(line.rstrip("\n"))

    def wait_for(self, text: str) -> str:
        def found() -> str | None:
            return next((line for line in self.lines if text in line), None)

        wait_until(lambda: found() or self.process.poll() is not None, f"{self.process.args!r} says {text!r}")
        wait_until(lambda: found() or not self._reader.is_alive(), "its output is read")
        line = found()
        assert line is not None, (self.process.args, text, self.lines)
        return line

    def end(self) -> int:
        """Wait for its own end."""
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=PATIENCE_S)
        self._reader.join(PATIENCE_S)


@contextmanager
def running(*words: str, typed: str = "") -> Iterator[Program]:
    program = Program(list(words), typed)
    try:
        yield program
    finally:
        program.stop()


def java(classes: Path, *words: str) -> list[str]:
    return ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", str(classes), *words]


def ours(*words: str) -> list[str]:
    return [sys.executable, "-m", "topicshark.main", *words]


def may_record() -> bool:
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except (OSError, AttributeError):
        return False
    return True


@contextmanager
def recorded(path: Path, hosts: set[str]) -> Iterator[None]:
    """Everything on the loopback interface between these addresses, fragments included, in one capture."""
    addresses = {socket.inet_aton(host) for host in hosts}
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))  # IP as it arrives: each frame once
    wire.bind(("lo", 0))
    wire.settimeout(0.1)
    is_over = threading.Event()

    def record() -> None:
        with path.open("wb") as stream:
            writer = CaptureWriter(stream, "pcap", ETHERNET)
            while True:
                try:
                    frame = wire.recv(LARGEST)
                except TimeoutError:
                    if is_over.is_set():
                        return
                    continue
                if frame[26:30] in addresses and frame[30:34] in addresses:
                    writer.write(frame, time.time_ns())

    thread = threading.Thread(target=record)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(PATIENCE_S)
        wire.close()

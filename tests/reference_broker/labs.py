"""Labs for tests: one on the loopback addresses at a time, since their addresses and ports are fixed."""

import fcntl
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.conftest import Command


@contextmanager
def loopback_to_ourselves() -> Iterator[None]:
    """Wait until no other test process runs a lab on loopback."""
    path = Path(tempfile.gettempdir()) / "tslab-loopback.lock"
    with suppress(FileExistsError):
        path.touch(mode=0o444, exist_ok=False)
    with path.open() as lock:  # for reading: another user may have made it
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run_lab(topicshark: Command, scenario: str, capture: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    with loopback_to_ourselves():
        return topicshark("lab", scenario, "-o", str(capture), "--timeout", "300", *more)

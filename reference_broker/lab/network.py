"""Where the nodes of a lab live: a network namespace each, or else a loopback address each.

Namespaces hang on a bridge in a namespace of its own, where tcpdump listens; nothing of the machine's own network is
touched. Their names begin with `tslab-` and the process id, and they are removed in the end, come what may.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from pcap_tools.errors import TopicsharkError
from reference_broker.lab.scenarios import BROKER, Scenario

BROKER_HOST = 10
SNAP_LENGTH = 4096  # more than any frame here: the links have an MTU of 1500
BUFFER_KIB = 8192
TOOL_SECONDS = 20
LINGER_SECONDS = 0.3


class Mode(StrEnum):
    AUTO = "auto"
    NETNS = "netns"
    LOOPBACK = "loopback"


class Network:
    """One loopback address each; the broker records what it sends and receives, which is everything."""

    mode = Mode.LOOPBACK
    prefix = "127.0.10."

    def __init__(self, capture: Path) -> None:
        self._capture = capture

    def address(self, host: int) -> str:
        return f"{self.prefix}{host}"

    def command(self, player: str, words: Sequence[str]) -> list[str]:
        """What runs these words where the player lives."""
        return list(words)

    def broker_options(self) -> list[str]:
        return ["--pcap", str(self._capture)]


class Namespaces(Network):
    """A namespace each, recorded by tcpdump on the bridge (each frame once) or on `any` (as often as it passes)."""

    mode = Mode.NETNS
    prefix = "192.168.10."

    def __init__(self, capture: Path, hosts: dict[str, int], interface: str) -> None:
        super().__init__(capture)
        self._hosts, self._interface = hosts, interface
        self._tag = f"tslab-{os.getpid()}"
        self._made: list[str] = []
        self._tcpdump: subprocess.Popen[bytes] | None = None

    def command(self, player: str, words: Sequence[str]) -> list[str]:
        return ["ip", "netns", "exec", self._name(self._hosts[player]), *words]

    def broker_options(self) -> list[str]:
        return []

    def open(self) -> None:
        hub = self._add("hub")
        _ip("-n", hub, "link", "add", "br0", "type", "bridge")
        _ip("-n", hub, "link", "set", "br0", "up")
        for host in dict.fromkeys(self._hosts.values()):
            name, port = self._add(host), f"p{host}"
            _ip("-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("-n", hub, "link", "set", port, "master", "br0", "up")
            _ip("-n", name, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
        self._listen(hub)

    def _name(self, host: int | str) -> str:
        return f"{self._tag}-{host}"

    def _add(self, host: int | str) -> str:
        name = self._name(host)
        self._made.append(name)  # first, so that an interrupt in between leaves nothing behind
        _ip("netns", "add", name)
        return name

    def _listen(self, hub: str) -> None:
        interface = "br0" if self._interface == "bridge" else "any"
        # In immediate mode the kernel keeps a slot of the snap length for each frame: with tcpdump's own 262,144 bytes
        # there are seven, and a busy machine loses frames.
        words = ["tcpdump", "-i", interface, "--immediate-mode", "-U", "-n", "-Z", "root"]
        words += ["-s", str(SNAP_LENGTH), "-B", str(BUFFER_KIB), "-w", str(self._capture)]
        with tempfile.TemporaryFile() as said:
            self._tcpdump = subprocess.Popen(
                ["ip", "netns", "exec", hub, *words, "ip and udp"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )
            end = time.monotonic() + TOOL_SECONDS
            while time.monotonic() < end and self._tcpdump.poll() is None:
                if b"listening on" in os.pread(said.fileno(), 4096, 0):
                    return
                time.sleep(0.02)
            told = os.pread(said.fileno(), 4096, 0).decode(errors="replace").strip()
        raise TopicsharkError(f"tcpdump does not record: {told or 'it says nothing'}")

    def close(self) -> None:
        """Stop recording and remove what was made, in this order; what fails does not keep the rest from going."""
        if self._tcpdump is not None:
            time.sleep(LINGER_SECONDS)
            self._tcpdump.send_signal(signal.SIGINT)
            try:
                self._tcpdump.wait(TOOL_SECONDS)
            except subprocess.TimeoutExpired:
                self._tcpdump.kill()
                self._tcpdump.wait()
            self._tcpdump = None
        while self._made:
            name = self._made.pop()
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=TOOL_SECONDS, check=False)


@contextmanager
def open_network(scenario: Scenario, capture: Path, mode: Mode, interface: str = "bridge") -> Iterator[Network]:
    """The network of a scenario, for as long as the block runs."""
    if mode is Mode.AUTO:
        mode = Mode.NETNS if why_no_namespaces() is None else Mode.LOOPBACK
    if mode is Mode.LOOPBACK:
        yield Network(capture)
        return
    why = why_no_namespaces()
    if why is not None:
        raise TopicsharkError(f"no network namespaces here: {why}; try --mode loopback")
    hosts = {name: player.host for name, player in scenario.players.items()}
    network = Namespaces(capture, {BROKER: BROKER_HOST, **hosts}, interface)
    try:
        network.open()
        yield network
    finally:
        network.close()


def why_no_namespaces() -> str | None:
    """What keeps us from namespaces; None if nothing does."""
    if os.geteuid() != 0:
        return "it takes root"
    for tool in ("ip", "tcpdump"):
        if shutil.which(tool) is None:
            return f"there is no {tool}"
    probe = f"tslab-{os.getpid()}-try"
    try:
        _ip("netns", "add", probe)
        try:  # a container or chroot may allow the namespace and nothing inside it
            _ip("-n", probe, "link", "add", "br0", "type", "bridge")
            _ip("-n", probe, "link", "add", "one", "type", "veth", "peer", "name", "other")
        finally:
            _ip("netns", "del", probe)
    except TopicsharkError as error:
        return str(error)
    return None


def _ip(*words: str) -> None:
    answer = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=TOOL_SECONDS, check=False)
    if answer.returncode:
        raise TopicsharkError(f"ip {' '.join(words)}: {answer.stderr.strip()}")

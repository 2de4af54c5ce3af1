"""How many publishes a second the reference broker takes without losing one, beside mosquitto at QoS 1.

    python -m benchmarks.broker --seconds 60

Both get the same: one publisher with a window of unacknowledged publishes, the same subscribers, the same payload. The
rounds are interleaved. Every subscriber checks that it has got every number. Loopback only.
"""

import argparse
import multiprocessing
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

TOPIC = b"home/room1/temperature"
STOP = b"stop"
BUFFER = 4 << 20


@dataclass
class Outcome:
    rate: float
    received: list[int]
    published: int
    memory_mb: tuple[int, int]


def payload(number: int) -> bytes:
    return b"21.5 C, reading %012d" % number


# -- the reference broker, dialect colon ----------------------------------------------------------------------------


def udp_socket(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    made.bind(("127.0.0.1", 0))
    made.connect(("127.0.0.1", port))
    made.settimeout(5)
    return made


def colon_subscriber(port: int, done: Connection) -> None:
    sock = udp_socket(port)
    sock.send(b"\x03\x00home/*")
    assert sock.recv(10) == b"\x04"
    done.send("ready")
    numbers = set()
    while not (datagram := sock.recv(200)).endswith(STOP):
        numbers.add(int(datagram[-12:]))
    done.send(len(numbers))


def colon_publisher(port: int, seconds: float, window: int) -> tuple[int, float]:
    sock = udp_socket(port)
    start, sent, acked = time.monotonic(), 0, 0
    head = b"\x01\x00" + TOPIC + b":"
    while time.monotonic() - start < seconds:
        for _ in range(window - (sent - acked)):
            sock.send(head + payload(sent))
            sent += 1
        assert sock.recv(10) == b"\x02"
        acked += 1
        try:
            while acked < sent:
                sock.recv(10, socket.MSG_DONTWAIT)
                acked += 1
        except BlockingIOError:
            pass
    while acked < sent:
        sock.recv(10)
        acked += 1
    elapsed = time.monotonic() - start
    sock.send(head + STOP)
    return acked, elapsed


@contextmanager
def reference_broker() -> Iterator[tuple[int, int]]:
    command = [
        sys.executable,
        "-m",
        "topicshark.main",
        "broker",
        "--port",
        "0",
        "--quiet",
        "--requests-by-second",
        "10000000",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline().split()[4]), process.pid
        process.send_signal(signal.SIGTERM)


# -- mosquitto, MQTT 3.1.1 --------------------------------------------------------------------------------------------


def packet(kind: int, body: bytes) -> bytes:
    length, size = b"", len(body)
    while True:
        size, digit = divmod(size, 128)
        length += bytes([digit | (128 if size else 0)])
        if not size:
            return bytes([kind]) + length + body


def text(value: bytes) -> bytes:
    return struct.pack(">H", len(value)) + value


class MqttStream:
    """The packets of a TCP stream, many a read."""

    def __init__(self, port: int, name: bytes) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = b""
        self.sock.sendall(packet(0x10, text(b"MQTT") + b"\x04\x02\x00\x00" + text(name)))
        assert self.packets()[0][0] == 0x20

    def packets(self) -> list[tuple[int, bytes]]:
        """At least one packet (of less than 128 bytes, as all are here)."""
        found: list[tuple[int, bytes]] = []
        while not found:
            self.data += self.sock.recv(1 << 18)
            at = 0
            while at + 2 <= len(self.data) and at + 2 + self.data[at + 1] <= len(self.data):
                end = at + 2 + self.data[at + 1]
                found.append((self.data[at], self.data[at + 2 : end]))
                at = end
            self.data = self.data[at:]
        return found


def mqtt_subscriber(port: int, done: Connection) -> None:
    stream = MqttStream(port, b"s%d" % os.getpid())
    stream.sock.sendall(packet(0x82, b"\x00\x01" + text(b"home/#") + b"\x01"))
    assert stream.packets()[0][0] == 0x90
    done.send("ready")
    numbers: set[int] = set()
    skip = 2 + len(TOPIC)
    while True:
        acks = b""
        for _, body in stream.packets():
            acks += b"\x40\x02" + body[skip : skip + 2]
            if body.endswith(STOP):
                stream.sock.sendall(acks)
                done.send(len(numbers))
                return
            numbers.add(int(body[-12:]))
        stream.sock.sendall(acks)


def mqtt_publisher(port: int, seconds: float, window: int) -> tuple[int, float]:
    stream = MqttStream(port, b"publisher")
    start, sent, acked = time.monotonic(), 0, 0
    head = text(TOPIC)
    while time.monotonic() - start < seconds or acked < sent:
        if time.monotonic() - start < seconds:
            more = range(sent, sent + window - (sent - acked))
            batch = (packet(0x32, head + struct.pack(">H", n % 65535 + 1) + payload(n)) for n in more)
            stream.sock.sendall(b"".join(batch))
            sent = more.stop
        acked += len(stream.packets())
    elapsed = time.monotonic() - start
    stream.sock.sendall(packet(0x32, head + b"\xff\xff" + STOP))
    stream.packets()
    return acked, elapsed


@contextmanager
def mosquitto() -> Iterator[tuple[int, int]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "mosquitto.conf"
        settings.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_inflight_messages 1000\nmax_queued_messages 0\n"
        )
        path = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
        assert path, "mosquitto is missing: sudo apt-get install mosquitto"
        with subprocess.Popen([path, "-c", str(settings)], stderr=subprocess.DEVNULL) as process:
            time.sleep(0.5)
            yield port, process.pid
            process.send_signal(signal.SIGTERM)


# -- measuring ----------------------------------------------------------------------------------------------------


def memory_mb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) // 1024
    return 0


def measure(
    port: int,
    pid: int,
    subscriber: Callable[[int, Connection], None],
    publisher: Callable[[int, float, int], tuple[int, float]],
    options: argparse.Namespace,
) -> Outcome:
    pipes = []
    for _ in range(options.subscribers):
        ours, theirs = multiprocessing.Pipe()
        multiprocessing.Process(target=subscriber, args=(port, theirs), daemon=True).start()
        assert ours.recv() == "ready"
        pipes.append(ours)
    before = memory_mb(pid)
    published, elapsed = publisher(port, options.seconds / options.rounds, options.window)
    received = [pipe.recv() for pipe in pipes]
    return Outcome(published / elapsed, received, published, (before, memory_mb(pid)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each broker, over all rounds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--subscribers", type=int, default=1)
    parser.add_argument("--window", type=int, default=20, help="unacknowledged publishes; mosquitto's default is 20")
    options = parser.parse_args()
    rates: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for name, running, subscriber, publisher in (
            ("topicshark broker (colon)", reference_broker, colon_subscriber, colon_publisher),
            ("mosquitto (QoS 1)", mosquitto, mqtt_subscriber, mqtt_publisher),
        ):
            with running() as (port, pid):
                outcome = measure(port, pid, subscriber, publisher, options)
            rates.setdefault(name, []).append(outcome.rate)
            lost = [outcome.published - received for received in outcome.received]
            memory = f"{outcome.memory_mb[0]} -> {outcome.memory_mb[1]} MB"
            print(f"{name:<26} {outcome.rate:9,.0f} publishes/s  lost {lost}  memory {memory}", flush=True)
    ours, theirs = (sum(values) / len(values) for values in rates.values())
    print(f"ratio: {ours / theirs:.2f} of mosquitto's rate, {options.subscribers} subscribers, window {options.window}")


if __name__ == "__main__":
    main()

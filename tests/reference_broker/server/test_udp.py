"""`topicshark broker` as a process on real sockets."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pcap_tools.dialect import load_dialect
from reference_broker import Broker, Endpoint, Mistake, Send
from reference_broker.server.nearby import Nearby, attached_networks
from reference_broker.server.udp import Server
from tests.conftest import REPO, Command
from tests.pcap_tools.capture.tshark import needs_tshark, run_tshark
from tests.reference_broker.running import Peer, running_broker
from tests.vectors import DIALECTS
from tests.waiting import PATIENCE_S
from topicshark.exit_codes import ExitCode

pytestmark = pytest.mark.net

SUBSCRIBE, SUBACK, PUBACK = b"\x03\x00home/*", b"\x04", b"\x02"
PUBLISH = b"\x01\x00home/fan:ON"


# -- every dialect answers, with hand-typed bytes -------------------------------------------------------------------


def test_colon_live(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker, broker.peer() as publisher, broker.peer() as subscriber:
        assert subscriber.ask(SUBSCRIBE) == SUBACK
        assert publisher.ask(PUBLISH) == PUBACK
        assert subscriber.receive() == PUBLISH


def test_topicbyte_live(tmp_path: Path) -> None:
    message = bytes.fromhex("aced00057711030a000d54656d70657261747572653a30")
    ack = bytes.fromhex("aced00057716010000124f4b202d2052656365697665642074686973")
    with running_broker(tmp_path, "--dialect", "topicbyte") as broker, broker.peer() as one, broker.peer() as other:
        assert one.ask(bytes.fromhex("aced00057702020a")) == ack
        assert other.ask(message) == ack
        assert one.receive() == message


def test_portdigits_live_forwards_leave_from_another_port(tmp_path: Path) -> None:
    with running_broker(tmp_path, "--dialect", "portdigits") as broker, broker.peer() as one, broker.peer() as other:
        other.send(f"{one.port:05}001subscribing".encode())
        published = "1234510114C°".encode()
        other.send(published)
        forward, source = one.socket.recvfrom(2000)
        assert forward == published
        assert source[0] == broker.host
        assert source[1] != broker.port
        other.send(f"{other.port:05}002subscribing".encode())
        assert other.ask(b"12345102calm") == b"12345102calm", "the first that it gets: nothing is acknowledged"


def test_topicnumber_live(tmp_path: Path) -> None:
    creation = (b"\x04\x00\x00\x00\x00\x07news").ljust(1400, b"\0")
    with running_broker(tmp_path, "--dialect", "topicnumber") as broker, broker.peer() as publisher:
        assert publisher.ask(creation) == b"\x00" + creation[1:]
        status = publisher.receive()
        assert status[0] == 8
        assert len(status) == 1400
        assert b"news" in status


def test_rolebyte_live(tmp_path: Path) -> None:
    with running_broker(tmp_path, "--dialect", "rolebyte") as broker, broker.peer() as one, broker.peer() as other:
        assert one.ask(b"\x01\x11temperature/room1") == b"\x07\x0a"
        assert other.ask(b"\x03\x14temperature/room1 20") == b"\x07\x0a"
        assert one.receive() == b"\x02\x14temperature/room1 20"


def test_mqttsn_live(tmp_path: Path) -> None:
    with running_broker(tmp_path, "--dialect", "mqttsn") as broker, broker.peer() as client:
        assert client.ask(bytes.fromhex("080404 01 003c 6331")) == bytes.fromhex("03 05 00")
        assert client.ask(bytes.fromhex("02 16")) == bytes.fromhex("02 17")


def test_a_dialect_of_ones_own_live(tmp_path: Path) -> None:
    with running_broker(tmp_path, "--dialect", str(DIALECTS / "keywords.toml")) as broker:
        assert "(keywords)" in broker.out
        assert broker.stop() == ExitCode.CLEAN


# -- addresses ------------------------------------------------------------------------------------------------------


def test_ipv6(tmp_path: Path) -> None:
    with running_broker(tmp_path, "--host", "::1") as broker, broker.peer() as client:
        assert broker.host == "::1"
        assert client.ask(SUBSCRIBE) == SUBACK
        assert client.ask(PUBLISH) == PUBLISH
        assert client.receive() == PUBACK


def test_it_listens_on_loopback_and_the_port_of_the_dialect(topicshark: Command) -> None:
    text = topicshark("broker", "--help").stdout
    assert "127.0.0.1" in text
    from topicshark.commands.traffic.broker import _port

    assert _port(load_dialect("portdigits")) == 12345


def test_addresses_of_this_machine_and_of_attached_networks_are_nearby(tmp_path: Path) -> None:
    """The tables of the system, written by hand: a default route, a network of its own, and an IPv6 address."""
    routes, addresses = tmp_path / "route", tmp_path / "if_inet6"
    routes.write_text(
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
        "eth0\t00000000\t010AA8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        "eth0\t000AA8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    )
    addresses.write_text("fd000000000000000000000000000001 02 40 00 80     eth0\n")
    assert list(map(str, attached_networks(routes, addresses))) == ["192.168.10.0/24", "fd00::/64"]
    nearby = Nearby()
    assert [nearby(host) for host in ("127.9.9.9", "::1", "::ffff:127.0.0.1", "203.0.113.1")] == [True] * 3 + [False]


def test_a_port_in_use_is_a_usage_error_and_costs_no_capture(tmp_path: Path, topicshark: Command) -> None:
    capture = tmp_path / "kept.pcap"
    capture.write_bytes(b"precious")
    with running_broker(tmp_path) as broker:
        answer = topicshark("broker", "--port", str(broker.port), "--pcap", str(capture))
    assert answer.returncode == ExitCode.USAGE
    assert f"port {broker.port}" in answer.stderr
    assert capture.read_bytes() == b"precious"


# -- signals and counters -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_cleanly_and_says_its_counters(tmp_path: Path, number: int) -> None:
    with running_broker(tmp_path) as broker, broker.peer() as client:
        client.ask(SUBSCRIBE)
        assert broker.stop(number) == ExitCode.CLEAN
        assert "SUBSCRIBE 1" in broker.err
        assert "now subscriptions 1" in broker.err


def test_sigusr1_says_the_counters_and_goes_on(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker, broker.peer() as client:
        client.ask(SUBSCRIBE)
        broker.receive_signal(signal.SIGUSR1)
        broker.wait_for_err("SUBSCRIBE 1")
        assert client.ask(SUBSCRIBE) == SUBACK


# -- the log --------------------------------------------------------------------------------------------------------


def test_one_safe_line_a_message(tmp_path: Path) -> None:
    with running_broker(tmp_path, quiet=False) as broker, broker.peer() as client:
        client.ask(b"\x01\x01a\x1b[31m\n\xe2\x80\xae/b:x\x07")
        client.send(b"\x63")
        client.ask(SUBSCRIBE)
        broker.stop()
        lines = broker.out.splitlines()
    assert len(lines) == 4
    assert r'PUBLISH a\x1b[31m\x0a\xe2\x80\xae/b "x\x07" retained -> 1' in lines[1]
    assert "malformed: unknown-type at byte 0 -> 0" in lines[2].replace("_", "-")
    assert "SUBSCRIBE home/* -> 1" in lines[3]


def test_quiet_prints_the_address_only(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker, broker.peer() as client:
        client.ask(SUBSCRIBE)
        broker.stop()
        assert broker.out == f"listening on 127.0.0.1 port {broker.port} (colon)\n"


def test_a_log_that_nobody_reads_holds_nothing_up() -> None:
    command = [sys.executable, "-m", "topicshark.main", "broker", "--port", "0"]
    process = subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()
        with Peer(("127.0.0.1", int(address[4]))) as client:
            for number in range(3000):
                assert client.ask(b"\x01\x00" + b"t" * 90 + b":%d" % number) == PUBACK
        process.terminate()
        assert process.wait(timeout=PATIENCE_S) == ExitCode.CLEAN
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


# -- the recording --------------------------------------------------------------------------------------------------


@needs_tshark
@pytest.mark.tshark
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("suffix", ["pcap", "pcapng"])
def test_the_recording_is_sound(tmp_path: Path, topicshark: Command, host: str, suffix: str) -> None:
    capture = tmp_path / f"broker.{suffix}"
    long = b"\x01\x00home/long:" + b"x" * (65_507 - 12)
    with running_broker(tmp_path, "--host", host, "--pcap", str(capture)) as broker, broker.peer() as client:
        client.ask(SUBSCRIBE)
        for datagram in (PUBLISH, PUBLISH + b"!", long):
            assert client.ask(datagram) == datagram
            assert client.receive() == PUBACK
        broker.stop()
        ports = {broker.port, client.port}
    fields = ["udp.checksum.status", "udp.length", "udp.srcport", "ip.checksum.status", "ip.id"]
    chosen = [part for field in fields for part in ("-e", field)]
    strict = ["-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    rows = [line.split("\t") for line in run_tshark(capture, *strict, "-T", "fields", *chosen).splitlines()]
    assert len(rows) == 2 + 3 * 3
    assert {row[0] for row in rows} == {"1"}
    assert {int(row[2]) for row in rows} == ports
    assert [int(row[1]) - 8 for row in rows[-3:]] == [65_507, 65_507, 1]
    if host == "127.0.0.1":
        assert {row[3] for row in rows} == {"1"}
        assert [int(row[4], 16) for row in rows] == list(range(1, len(rows) + 1))

    decoded = topicshark("decode", str(capture), "--dialect", "colon", "--format", "jsonl", "--port", str(broker.port))
    assert decoded.returncode == ExitCode.CLEAN
    messages = [json.loads(line)["message"] for line in decoded.stdout.splitlines()]
    assert messages == ["SUBSCRIBE", "SUBACK"] + 3 * ["PUBLISH", "PUBLISH", "PUBACK"]


def test_a_recording_that_cannot_be_written_is_said_and_the_broker_goes_on(tmp_path: Path) -> None:
    with running_broker(tmp_path, "--pcap", "/dev/full") as broker, broker.peer() as client:
        for _ in range(3):
            assert client.ask(SUBSCRIBE) == SUBACK
        broker.wait_for_err("no more from now on")
        assert client.ask(SUBSCRIBE) == SUBACK
        assert broker.stop() == ExitCode.CLEAN


# -- what must not stop it ------------------------------------------------------------------------------------------


class Troubled(Broker):
    """Does as it is told by the datagram."""

    def handle(self, datagram: bytes, source: Endpoint, now: int) -> list[Send]:
        if datagram == b"bug":
            raise ZeroDivisionError
        bad = {
            b"size": Send(bytes(70_000), source),
            b"port": Send(b"", (source[0], 0)),
            b"family": Send(b"", ("::1", 9)),
        }
        return [bad[datagram]] if datagram in bad else [Send(datagram, source)]


@contextmanager
def serving(server: Server) -> Iterator[None]:
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield
    finally:
        server.stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    ("trouble", "counted"),
    [
        ("bug", "bug: ZeroDivisionError"),
        ("size", "send failed: EMSGSIZE"),
        ("port", "send failed: EINVAL"),
        ("family", ""),
    ],
)
def test_an_error_is_counted_and_the_next_datagram_handled(trouble: str, counted: str) -> None:
    said: list[str] = []
    server = Server(Troubled(load_dialect("colon")), say=said.append)
    with serving(server), Peer(server.address) as client:
        for _ in range(5):
            client.send(trouble.encode())
        assert client.ask(b"still there?") == b"still there?"
    counts = {name: count for name, count in server.broker.counters.items() if name.startswith(("bug", "send failed"))}
    assert list(counts.values()) == [5]
    assert counted in next(iter(counts))
    assert sum("ZeroDivisionError" in text and "while handling" in text for text in said) == 3 * (trouble == "bug")


def test_peers_that_have_gone_do_no_harm(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker, broker.peer() as client:
        for _ in range(20):
            with broker.peer() as gone:
                assert gone.ask(SUBSCRIBE) == SUBACK
        for _ in range(20):
            assert client.ask(PUBLISH) == PUBACK
        assert broker.stop() == ExitCode.CLEAN
        assert "bug" not in broker.err


def test_it_never_sends_to_itself(tmp_path: Path) -> None:
    """A header that names the broker's own port would have each forward come back and be forwarded again."""
    with running_broker(tmp_path, "--dialect", "portdigits") as broker, broker.peer() as client:
        client.send(f"{broker.port:05}001subscribing".encode())
        client.send(b"12345101hello")
        client.send(f"{client.port:05}002subscribing".encode())
        for _ in range(2):  # before the second, the broker would have got its own forward
            assert client.ask(b"12345102calm") == b"12345102calm"
        assert broker.stop() == ExitCode.CLEAN
        assert "PUBLISH 3\n" in broker.err
        assert "refused: to itself 1" in broker.err


# -- mistakes -------------------------------------------------------------------------------------------------------


def test_every_mistake_is_listed(topicshark: Command) -> None:
    listed = topicshark("broker", "--list-mistakes")
    assert [line.split(maxsplit=1) for line in listed.stdout.splitlines()] == [
        [str(mistake), mistake.about] for mistake in Mistake
    ]
    assert listed.returncode == ExitCode.CLEAN


def test_a_mistake_is_made_only_when_asked_for(tmp_path: Path) -> None:
    unknown = b"\x05\x00nobody/asked"
    with running_broker(tmp_path) as broker, broker.peer() as client:
        assert client.ask(unknown) == b"\x06"
    with running_broker(tmp_path, "--mistake", "silent-unsubscribe") as broker, broker.peer() as client:
        client.send(unknown)
        assert client.ask(SUBSCRIBE) == SUBACK


@pytest.mark.parametrize(
    "options",
    [
        ["--mistake", "none-such"],
        ["--state-sync", "sometimes"],
        ["--port", "70000"],
        ["--host", "192.0.2.1"],
        ["--pcap", "-", "--port", "0"],
    ],
)
def test_wrong_options_are_usage_errors(topicshark: Command, options: list[str]) -> None:
    answer = topicshark("broker", *options)
    assert answer.returncode == ExitCode.USAGE
    assert answer.stderr
    assert "Traceback" not in answer.stderr


def test_the_clock_of_the_machine_may_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker is given a time that goes forward as the steady clock does, whatever the other one shows."""
    times: list[int] = []

    class Watching(Broker):
        def handle(self, datagram: bytes, source: Endpoint, now: int) -> list[Send]:
            times.append(now)
            return [Send(datagram, source)]

    monkeypatch.setattr("time.monotonic_ns", lambda: 0)
    server = Server(Watching(load_dialect("colon")))
    with serving(server), Peer(server.address) as client:
        for steady, wall_clock in enumerate((10**18, 0, 2 * 10**18)):
            monkeypatch.setattr("time.monotonic_ns", lambda now=steady: now)
            monkeypatch.setattr("time.time_ns", lambda now=wall_clock: now)
            client.ask(b"x")
    assert [now - times[0] for now in times] == [0, 1, 2]

"""A real broker process under attack, on loopback: it keeps its limits and still serves."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from reference_broker.broker.limits import MAX_PASSES
from tests.conftest import REPO
from tests.reference_broker.running import Peer, Running, counters_in, running_broker
from tests.waiting import PATIENCE_S, wait_until
from topicshark.exit_codes import ExitCode

pytestmark = pytest.mark.net

PUBACK, SUBACK, UNSUBACK = b"\x02", b"\x04", b"\x06"
UNSUBSCRIBE_UNKNOWN = b"\x05\x00never/subscribed"  # changes nothing, and its answer is like no other
VICTIM = "127.99.0.7"


@contextmanager
def bound(host: str, port: int = 0) -> Iterator[socket.socket]:
    """A socket at any loopback address: on this interface every source can be made up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind((host, port))
        yield one


def served(broker: Running) -> bool:
    with broker.peer() as subscriber, broker.peer() as publisher:
        assert subscriber.ask(b"\x03\x00still/there") == SUBACK
        return publisher.ask(b"\x01\x00still/there:x") == PUBACK and subscriber.receive() == b"\x01\x00still/there:x"


def last_counters(broker: Running) -> dict[str, int]:
    """Stop it and read what it counted."""
    assert broker.stop() == ExitCode.CLEAN
    assert "bug:" not in broker.err
    return counters_in(broker.err)


def waiting_bytes(one: socket.socket) -> int:
    one.setblocking(False)
    total = 0
    with suppress(BlockingIOError):
        while True:
            total += len(one.recv(65_535))
    return total


def test_reflection_from_spoofed_sources_is_kept_within_the_limit(tmp_path: Path) -> None:
    options = ("--host", "0.0.0.0", "--no-trust-silent")  # noqa: S104 - every loopback address reaches it
    with running_broker(tmp_path, *options) as broker, bound(VICTIM) as victim, bound("127.99.0.8") as attacker:
        at = ("127.0.0.1", broker.port)
        for _ in range(10):  # sent from the victim's own address, as a spoofer would
            victim.sendto(b"\x03\x00a", at)
            attacker.sendto(b"\x01\x01a:" + b"x" * 1_000, at)
        with Peer(at) as client:
            assert client.ask(b"\x01\x00other:x") == PUBACK
        assert 0 < waiting_bytes(victim) <= 3 * 10 * len(b"\x03\x00a")
        assert last_counters(broker)["refused: amplification"] > 0


def test_a_subscription_flood_and_a_retained_flood_leave_it_serving(tmp_path: Path) -> None:
    """From a thousand ports and some addresses, with a state file that must not grow without end."""
    state = tmp_path / "state"
    options = ("--state", str(state), "--state-sync", "never", "--retained-bytes", "100000", "--subscriptions", "700")
    with running_broker(tmp_path, *options) as broker, broker.peer() as pace:
        for number in range(3_000):
            with bound(f"127.99.1.{number % 10}") as flooding:
                flooding.sendto(b"\x03\x00flood/%d" % number, broker.address)
                flooding.sendto(b"\x01\x01flood/%d:" % (number % 400) + b"x" * 900, broker.address)
            if number % 50 == 49:
                pace.ask(b"\x01\x00pace:x")
        assert state.stat().st_size < 6 << 20
        with broker.peer() as client:
            assert client.ask(b"\x01\x00still/there:x") == PUBACK
        found = last_counters(broker)
    assert 600 < found["now subscriptions"] < 650, "ten addresses take 63 or 64 each and leave one such share"
    assert found["now retained"] * 900 <= 100_000
    assert found["refused: retained bytes"] > 1_000


def test_hostile_filters_and_deep_topics_leave_it_serving(tmp_path: Path) -> None:
    texts = [b"*" * 60_000, b"*a" * 30_000, b"/".join([b"a"] * 30_000), b"a(" * 500, b"(a+)+" * 200, b"\0" * 1_024]
    with running_broker(tmp_path) as broker, broker.peer() as attacker:
        for text in texts:
            for kind in (b"\x03\x00", b"\x05\x00", b"\x01\x01"):
                attacker.send(kind + text + b":1")
        assert served(broker)


def test_portdigits_cannot_redirect_the_broker_to_itself_by_another_of_its_addresses(tmp_path: Path) -> None:
    """Bound to all addresses, it is reached at each: a forward to one of them would come back, and be forwarded."""
    options = ("--dialect", "portdigits", "--host", "0.0.0.0", "--trust-silent")  # noqa: S104
    with running_broker(tmp_path, *options) as broker, bound("127.0.0.2") as attacker:
        attacker.sendto(f"{broker.port:05}001subscribing".encode(), ("127.0.0.1", broker.port))
        attacker.sendto(b"12345101hello", ("127.0.0.1", broker.port))
        broker.wait_for_count("PUBLISH", 1)
        broker.counters()  # by now a forward to itself would have been counted
        found = last_counters(broker)
    assert (found["PUBLISH"], found["refused: to itself"]) == (1, 1)


def loops_ended(*found: dict[str, int]) -> int:
    return sum(one.get("refused: loop", 0) for one in found)


def test_two_real_brokers_subscribed_to_each_other_fall_silent(tmp_path: Path) -> None:
    """Port redirection aims each at the other: neither forwards nor ACKs go to and fro for ever."""
    option = ("--dialect", "portdigits")
    with running_broker(tmp_path, *option) as one, running_broker(tmp_path, *option) as other:
        with one.peer() as attacker, other.peer() as accomplice:
            attacker.send(f"{other.port:05}001subscribing".encode())
            accomplice.send(f"{one.port:05}001subscribing".encode())
            for broker in (one, other):
                broker.wait_for_count("SUBSCRIBE", 1)
            attacker.send(b"12345101hello")
            wait_until(lambda: loops_ended(one.counters(), other.counters()), "one of them ends the loop")
        before = [broker.counters()["PUBLISH"] for broker in (one, other)]
        for broker in (one, other, one, other):  # whatever was on its way would be counted now
            broker.counters()
        found = [last_counters(one), last_counters(other)]
    assert [one["PUBLISH"] for one in found] == before
    assert sum(before) > MAX_PASSES
    assert loops_ended(*found) == 1


def test_acks_of_two_real_brokers_do_not_loop(tmp_path: Path) -> None:
    """Whoever had the port before the second broker subscribed it: each forward is acknowledged, and no ACK is."""
    with running_broker(tmp_path) as one:
        with one.peer() as before:
            assert before.ask(b"\x03\x00a") == SUBACK
            port = before.port
        with running_broker(tmp_path, port=port) as other, one.peer() as client:
            assert client.ask(b"\x01\x00a:x") == PUBACK
            one.wait_for_count("PUBACK", 1)
            other.counters()  # by now an ACK of the ACK would have been counted
            found = last_counters(other)
            assert (found["PUBLISH"], found["received"]) == (1, 1)
        assert last_counters(one)["PUBACK"] == 1


# -- kill -9 and a full disk ------------------------------------------------------------------------------------------


def test_kill_9_during_load_loses_nothing_acknowledged_as_retained_and_it_serves_again(tmp_path: Path) -> None:
    options = ("--state", str(tmp_path / "state"))
    acknowledged: list[bytes] = []
    for turn in range(2):
        with running_broker(tmp_path, *options) as broker, broker.peer() as client:
            for number in range(100):
                topic = b"%d/%d" % (turn, number)
                assert client.ask(b"\x01\x01" + topic + b":kept") == PUBACK
                acknowledged.append(topic)
            for number in range(50):  # on their way when it dies
                client.send(b"\x01\x01late/%d:x" % number)
            assert broker.stop(signal.SIGKILL) == -signal.SIGKILL
    with running_broker(tmp_path, *options) as broker:
        for topic in acknowledged[::5]:
            with broker.peer() as late:
                assert late.ask(b"\x03\x00" + topic) == b"\x01\x01" + topic + b":kept"
        assert served(broker)


@contextmanager
def broker_on_a_small_disk(folder: Path, disk: Path) -> Iterator[Running]:
    """A broker whose state lies on a file system of 64 kB that only it can see, with a filler beside it."""
    out, err = folder / "small.out", folder / "small.err"
    words = [
        sys.executable,
        "-m",
        "topicshark.main",
        "broker",
        "--port",
        "0",
        "--quiet",
        "--state",
        str(disk / "state"),
    ]
    script = f'mount -t tmpfs -o size=64k none {disk} && head -c 20000 /dev/zero > {disk}/filler && exec "$@"'
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", script, "sh", *words], cwd=REPO, stdout=stdout, stderr=stderr
        )
    try:
        yield Running(process, out, err)
    finally:
        process.kill()
        process.wait(PATIENCE_S)


def may_mount() -> bool:
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(os.geteuid() != 0 or not may_mount(), reason="needs the right to mount")
def test_a_disk_that_is_really_full_loses_nothing_acknowledged(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    acknowledged: list[bytes] = []
    with broker_on_a_small_disk(tmp_path, disk) as broker, broker.peer() as client:
        inside = Path(f"/proc/{broker.process.pid}/root{disk}")
        for number in range(200):
            client.send(b"\x01\x01t/%d:" % number + b"x" * 500)
            if client.ask(UNSUBSCRIBE_UNKNOWN) == UNSUBACK:
                break  # the answer to the second request came first: the first one was refused
            assert client.receive() == UNSUBACK
            acknowledged.append(b"t/%d" % number)
        assert 10 < len(acknowledged) < 200, "the disk was never full"
        assert client.ask(b"\x01\x00plain:x") == PUBACK, "what needs no disk is served"
        broker.wait_for_err("refused until that is mended")
        (inside / "filler").unlink()
        assert client.ask(b"\x01\x01after:x") == PUBACK
        broker.wait_for_err("can be written again")
        (tmp_path / "state").write_bytes((inside / "state").read_bytes())
        broker.stop(signal.SIGKILL)
    with running_broker(tmp_path, "--state", str(tmp_path / "state")) as broker:
        for topic in [*acknowledged, b"after"]:
            with broker.peer() as late:
                assert late.ask(b"\x03\x00" + topic).startswith(b"\x01\x01" + topic + b":x")

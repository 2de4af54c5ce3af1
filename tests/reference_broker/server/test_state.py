"""What a broker keeps over a restart, a kill, a damaged file and a full disk."""

from __future__ import annotations

import errno
import os
import resource
import signal
import threading
from functools import partial
from pathlib import Path

import pytest

from pcap_tools.dialect import load_dialect
from reference_broker import Broker, Limits, broker_for
from reference_broker.server import journal
from reference_broker.server.journal import JournalError
from reference_broker.server.state import State, changes_of
from reference_broker.server.udp import Server
from tests.conftest import Command
from tests.reference_broker.running import Peer, Running, running_broker
from tests.waiting import PATIENCE_S, wait_until
from topicshark.exit_codes import ExitCode

SUBACK, PUBACK, UNSUBACK = b"\x04", b"\x02", b"\x06"
UNSUBSCRIBE_UNKNOWN = b"\x05\x00never/subscribed"  # changes nothing, and its answer is like no other
HERE = ("127.0.0.1", 40_000)
Items = list[tuple[bytes, bytes]]


def colon_broker(limits: Limits | None = None) -> Broker:
    return broker_for(load_dialect("colon"), limits)


def reopened(path: Path, said: list[str] | None = None, limits: Limits | None = None) -> Broker:
    broker = colon_broker(limits)
    State(str(path), broker, say=(said if said is not None else []).append).close()
    return broker


def written(path: Path, datagrams: list[bytes]) -> list[Items]:
    """Have a broker keep what these datagrams change; what it then holds, after each change."""
    broker = colon_broker()
    state = State(str(path), broker, say=print)
    held = [everything(broker)]
    for datagram in datagrams:
        assert broker.handle(datagram, HERE, 0)
        state.commit()
        if state.changes == len(held):
            held.append(everything(broker))
    state.close()
    return held


def everything(broker: Broker) -> Items:
    subscriptions = [(text, f"{host} {port}".encode()) for text, (host, port) in broker.subscriptions]
    return sorted([*broker.retained, *subscriptions])


SOME = [
    b"\x03\x00home/*",
    b"\x01\x01home/fan:ON",
    b"\x01\x00home/fan:not retained",
    b"\x01\x01home/\xc3\xa9\n:\xff\n",
    b"\x03\x00garage",
    b"\x05\x00garage",
    b"\x01\x01home/fan:OFF",
]


# -- restart --------------------------------------------------------------------------------------------------------


def test_a_restart_keeps_the_last_of_everything(tmp_path: Path) -> None:
    held = written(tmp_path / "state", SOME)
    broker = reopened(tmp_path / "state")
    assert everything(broker) == held[-1]
    assert dict(broker.retained)[b"home/fan"] == b"\x01\x01home/fan:OFF"
    assert list(broker.subscriptions) == [(b"home/*", HERE)]


@pytest.mark.net
def test_a_restart_live(tmp_path: Path) -> None:
    options = ("--state", str(tmp_path / "state"))
    with running_broker(tmp_path, *options) as broker, broker.peer() as client, broker.peer() as late:
        assert client.ask(b"\x03\x00home/*") == SUBACK
        assert client.ask(b"\x01\x01garage:open") == PUBACK
        assert broker.stop() == ExitCode.CLEAN
        with running_broker(tmp_path, *options, port=broker.port) as again:
            assert late.ask(b"\x03\x00gar*") == b"\x01\x01garage:open"
            assert late.receive() == SUBACK
            assert late.ask(b"\x01\x00home/fan:ON") == PUBACK
            assert client.receive() == b"\x01\x00home/fan:ON"
            assert again.err == ""


def test_a_repeated_subscription_is_kept_as_often_as_it_counts(tmp_path: Path) -> None:
    def topicbyte() -> tuple[Broker, State]:
        broker = broker_for(load_dialect("topicbyte"))
        return broker, State(str(tmp_path / "state"), broker, say=print)

    broker, state = topicbyte()
    for _ in range(2):
        broker.handle(b"\x02\x0a", HERE, 0)
    state.close()
    for _ in range(2):  # read from the changes, then from a rewritten file
        broker, state = topicbyte()
        assert list(broker.subscriptions) == [(b"temperature", HERE)] * 2
        state._rewrite()
        state.close()


def test_mqttsn_keeps_retained_messages_and_no_sessions(tmp_path: Path) -> None:
    def mqttsn() -> tuple[Broker, State]:
        broker = broker_for(load_dialect("mqttsn"))
        return broker, State(str(tmp_path / "state"), broker, say=print)

    broker, state = mqttsn()
    for datagram in ("080404 01 003c 6331", "07 12 02 0001 6162", "08 0c 12 6162 0000 31", "08 0c 12 6364 0000 32"):
        broker.handle(bytes.fromhex(datagram), HERE, 0)
    broker.handle(bytes.fromhex("07 0c 12 6162 0000"), HERE, 0)
    state._rewrite()
    state.close()
    broker, state = mqttsn()
    state.close()
    assert [topic for topic, _ in broker.retained] == [b"cd"]
    assert len(broker.subscriptions) == 0
    broker.handle(bytes.fromhex("08 0c 62 6162 0000 31"), HERE, 0)


def test_what_is_over_a_lower_limit_is_left_out_and_said(tmp_path: Path) -> None:
    written(tmp_path / "state", SOME)
    said: list[str] = []
    broker = reopened(tmp_path / "state", said, Limits(subscriptions=0, retained_bytes=0))
    assert everything(broker) == []
    assert "over the limits" in said[0]


# -- kill -9 --------------------------------------------------------------------------------------------------------


class Load(threading.Thread):
    """Publishes retained messages until somebody says stop; remembers the last number acknowledged by topic."""

    def __init__(self, broker: Running, name: bytes) -> None:
        super().__init__()
        self._peer = broker.peer()
        self._name = name
        self.acknowledged: dict[bytes, int] = {}
        self.acks = 0

    def run(self) -> None:
        with self._peer:
            while self._peer.ask(b"\x01\x01%s:%d" % (self._topic, self.acks)) == PUBACK:
                self.acknowledged[self._topic] = self.acks
                self.acks += 1

    @property
    def _topic(self) -> bytes:
        return b"load/%s/%d" % (self._name, self.acks % 50)

    def stop(self) -> None:
        """Once the broker is dead, and its answer never comes."""
        self._peer.socket.sendto(b"stop", self._peer.socket.getsockname())
        self.join(PATIENCE_S)
        assert not self.is_alive()


def all_came_round(loads: list[Load]) -> bool:
    return min(load.acks for load in loads) >= 70


@pytest.mark.net
@pytest.mark.parametrize("sync", ["always", "never"])
def test_nothing_acknowledged_is_lost_by_a_kill(tmp_path: Path, sync: str) -> None:
    options = ("--state", str(tmp_path / "state"), "--state-sync", sync)
    acknowledged: dict[bytes, int] = {}
    for round_number in range(2):
        with running_broker(tmp_path, *options) as broker:
            loads = [Load(broker, b"%d-%d" % (round_number, number)) for number in range(4)]
            for load in loads:
                load.start()
            wait_until(partial(all_came_round, loads), "each load has come to its topics again")
            broker.stop(signal.SIGKILL)
            for load in loads:
                load.stop()
                acknowledged |= load.acknowledged
    assert len(acknowledged) == 2 * 4 * 50
    said: list[str] = []
    kept = {topic: int(datagram.rpartition(b":")[2]) for topic, datagram in reopened(tmp_path / "state", said).retained}
    # The kill may come in the middle of a line, of which nothing was acknowledged then.
    assert all("the line was not finished" in one for one in said), said
    assert [topic for topic, number in acknowledged.items() if kept.get(topic, -1) < number] == []


# -- damage ---------------------------------------------------------------------------------------------------------


def damaged_copies(whole: bytes) -> dict[str, bytes]:
    """Every byte changed in turn, and the file cut before every byte."""
    copies = {}
    for offset in range(len(whole)):
        copies[f"changed-{offset}"] = whole[:offset] + bytes([whole[offset] ^ 0x01]) + whole[offset + 1 :]
        copies[f"cut-{offset}"] = whole[:offset]
    return copies


def test_damage_anywhere_keeps_what_precedes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for slow in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, slow, lambda fd: None)
    file = tmp_path / "state"
    held = written(file, SOME)
    whole = file.read_bytes()
    ends = [index + 1 for index, byte in enumerate(whole) if byte == 0x0A]
    for name, copy in damaged_copies(whole).items():
        folder = tmp_path / name
        folder.mkdir()
        path, said = folder / "state", list[str]()
        path.write_bytes(copy)
        broker = reopened(path, said)
        offset = int(name.partition("-")[2])
        if name.startswith("cut") and offset in (0, *ends):
            assert said == []
            assert everything(broker) in held
            continue
        assert "damaged at byte" in said[0], name
        assert (folder / "state.damaged-1").read_bytes() == copy
        before = sum(end <= offset for end in ends) - 1  # whole changes in front, the header left out
        assert everything(broker) == held[max(0, before)]
        assert everything(reopened(path, said)) == everything(broker)
        assert len(said) == 1


def test_lines_that_were_taken_out_or_moved_are_noticed(tmp_path: Path) -> None:
    written(tmp_path / "state", SOME)
    lines = (tmp_path / "state").read_bytes().splitlines(keepends=True)
    for number, altered in enumerate(([*lines[:2], *lines[3:]], [lines[0], lines[2], lines[1], *lines[3:]])):
        path = tmp_path / f"state-{number}"
        path.write_bytes(b"".join(altered))
        said: list[str] = []
        reopened(path, said)
        assert "checksum" in said[0]


def test_every_damaged_file_is_kept_apart(tmp_path: Path) -> None:
    for content in (b"rubbish", b"\0" * 100, b"\n\n"):
        (tmp_path / "state").write_bytes(content)
        reopened(tmp_path / "state")
    kept = [(tmp_path / f"state.damaged-{number}").read_bytes() for number in (1, 2, 3)]
    assert kept == [b"rubbish", b"\0" * 100, b"\n\n"]


def test_hosts_in_the_file_are_addresses_only(tmp_path: Path) -> None:
    """A name would be looked up at each send."""
    broker = colon_broker()
    state = State(str(tmp_path / "state"), broker, say=print)
    broker.on_change({"subscribe": "00", "host": "example.test", "port": "5"})
    state.close()
    said: list[str] = []
    assert everything(reopened(tmp_path / "state", said)) == []
    assert "does not know" in said[0]


@pytest.mark.net
def test_a_damaged_file_live(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"\x00\x1b[31m rubbish")
    with running_broker(tmp_path, "--state", str(tmp_path / "state")) as broker, broker.peer() as client:
        assert "damaged at byte 0" in broker.err
        assert client.ask(b"\x03\x00home/*") == SUBACK


# -- a disk that takes no more --------------------------------------------------------------------------------------


def test_a_write_that_fails_half_way_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "state", SOME)
    broker, said = colon_broker(), list[str]()
    state = State(str(tmp_path / "state"), broker, say=said.append)
    before = (tmp_path / "state").read_bytes()
    real = os.write
    room = 20

    def nearly_full(fd: int, data: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = real(fd, data[:room])
        room -= count
        return count

    monkeypatch.setattr(os, "write", nearly_full)
    with pytest.raises(JournalError, match="No space left"):
        broker.handle(b"\x01\x01home/new:1", HERE, 0)
    assert (tmp_path / "state").read_bytes() == before
    assert "refused until" in said[0]
    monkeypatch.undo()
    broker.handle(b"\x01\x01home/new:2", HERE, 0)
    state.close()
    assert dict(reopened(tmp_path / "state").retained)[b"home/new"] == b"\x01\x01home/new:2"


@pytest.mark.net
def test_a_full_disk_live(tmp_path: Path) -> None:
    path = tmp_path / "state"
    big = b"\x01\x01big:" + b"x" * 5000
    with running_broker(tmp_path, "--state", str(path)) as broker, broker.peer() as client:
        assert client.ask(big) == PUBACK
        full = path.stat().st_size + 10
        resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (full, resource.RLIM_INFINITY))
        client.send(b"\x01\x01home/fan:ON")
        client.send(b"\x03\x00garage")
        assert client.ask(UNSUBSCRIBE_UNKNOWN) == UNSUBACK, "neither of the two was acknowledged"
        assert client.ask(b"\x01\x00home/fan:not retained") == PUBACK
        broker.wait_for_err("cannot be kept are refused")
        resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert client.ask(b"\x01\x01home/fan:ON") == PUBACK
        broker.wait_for_err("can be written again")
        broker.stop()
        assert "refused: cannot be kept 2" in broker.err
    assert {b"big", b"home/fan"} <= set(dict(reopened(path).retained))


@pytest.mark.net
def test_no_ack_leaves_before_the_disk_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sync that fails holds back what promises a change, and nothing else; a rewrite mends it."""
    is_failing = True
    syncs = 0
    real = os.fdatasync

    def failing(fd: int) -> None:
        nonlocal syncs
        syncs += 1
        if is_failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(fd)

    broker, said = colon_broker(), list[str]()
    server = Server(broker)
    server.state = State(str(tmp_path / "state"), broker, say=said.append)
    monkeypatch.setattr(os, "fdatasync", failing)
    with Peer(server.address) as client:
        client.send(b"\x01\x01home/fan:ON")
        client.send(b"\x01\x00home/fan:not retained")
        client.send(UNSUBSCRIBE_UNKNOWN)
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            assert [client.receive(), client.receive()] == [PUBACK, UNSUBACK], "one of the two was acknowledged"
            is_failing = False
            wait_until(lambda: any("written again" in text for text in said), "the file can be written again")
            assert client.ask(b"\x01\x01home/fan:ON") == PUBACK
            assert syncs == 2
        finally:
            server.stop()
            thread.join(PATIENCE_S)
    assert dict(reopened(tmp_path / "state").retained) == {b"home/fan": b"\x01\x01home/fan:ON"}


@pytest.mark.net
def test_datagrams_taken_together_share_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = 0

    def counting(fd: int) -> None:
        nonlocal syncs
        syncs += 1

    monkeypatch.setattr(os, "fdatasync", counting)
    broker = colon_broker()
    server = Server(broker)
    server.state = State(str(tmp_path / "state"), broker, say=print)
    with Peer(server.address) as client:
        for number in range(200):
            client.send(b"\x01\x01home/%d:ON" % number)
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            assert [client.receive() for _ in range(200)] == [PUBACK] * 200
        finally:
            server.stop()
            thread.join(PATIENCE_S)
    assert syncs == 1


# -- the size of the file, and whose it is --------------------------------------------------------------------------


def test_the_file_is_rewritten_before_it_grows_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "REWRITE_BYTES", 10_000)
    path = tmp_path / "state"
    broker = colon_broker()
    state = State(str(path), broker, say=print)
    largest = 0
    for number in range(5_000):
        broker.handle(b"\x01\x01home/%d:%d" % (number % 10, number), HERE, 0)
        if number % 20 == 0:
            state.commit()
        largest = max(largest, path.stat().st_size)
    state.close()
    assert largest < 20_000
    assert everything(reopened(path)) == everything(broker)
    assert [name.name for name in tmp_path.iterdir()] == ["state"]


def test_a_rewrite_that_fails_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "state", SOME)
    broker = colon_broker()
    state = State(str(tmp_path / "state"), broker, say=print)
    before = (tmp_path / "state").read_bytes()

    def refused(source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", refused)
    state._rewrite()
    assert (tmp_path / "state").read_bytes() == before
    broker.handle(b"\x01\x01home/new:1", HERE, 0)
    state.close()
    assert everything(reopened(tmp_path / "state")) == everything(broker)


def test_changes_make_an_empty_broker_into_this_one(tmp_path: Path) -> None:
    written(tmp_path / "state", SOME)
    kinds = sorted(next(iter(change)) for change in changes_of(reopened(tmp_path / "state")))
    assert kinds == ["retain", "retain", "subscribe"]


@pytest.mark.net
def test_two_brokers_do_not_share_a_file(tmp_path: Path, topicshark: Command) -> None:
    options = ("--state", str(tmp_path / "state"))
    with running_broker(tmp_path, *options):
        answer = topicshark("broker", "--port", "0", *options)
    assert answer.returncode == ExitCode.UNREADABLE
    assert "another broker is using it" in answer.stderr


def test_the_state_of_another_dialect_is_left_alone(tmp_path: Path, topicshark: Command) -> None:
    path = tmp_path / "state"
    written(path, SOME)
    before = path.read_bytes()
    answer = topicshark("broker", "--port", "0", "--dialect", "mqttsn", "--state", str(path))
    assert answer.returncode == ExitCode.UNREADABLE
    assert "colon" in answer.stderr
    assert path.read_bytes() == before


@pytest.mark.parametrize("place", ["", "no/such/folder/state"])
def test_a_place_that_cannot_hold_a_file_is_said(tmp_path: Path, topicshark: Command, place: str) -> None:
    answer = topicshark("broker", "--port", "0", "--state", str(tmp_path / place))
    assert answer.returncode == ExitCode.UNREADABLE
    assert "cannot be used to keep the state" in answer.stderr

"""`topicshark decode` on what is still being written: a pipe, an interface."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import IO, Any

import pytest

from pcap_tools.codec.detect import Dialects
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.decode.learning import MOST_HELD, follow
from pcap_tools.columnar.read.reading import read_file
from pcap_tools.dialect import load_dialect
from tests.conftest import REPO
from tests.pcap_tools.capture import packets as p
from topicshark.commands.captures import live_capture

HEAD = 24  # of a pcap
UNUSUAL = 7777  # no dialect's port


def datagram(payload: bytes, sport: int, dport: int) -> bytes:
    """A record of a pcap."""
    return p.pcap([p.ethernet(p.ipv4(p.udp(payload, sport, dport)))])[HEAD:]


@contextlib.contextmanager
def decoding(*args: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Where to write a capture to, and where its lines come out."""
    command = [sys.executable, "-m", "topicshark.main", "decode", "-", *args]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPO) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdin, process.stdout


@pytest.mark.parametrize("output", ["table", "jsonl"])
def test_each_line_is_there_before_the_next_datagram_is_sent(output: str) -> None:
    with decoding("--format", output) as (source, lines):
        source.write(p.pcap([]))
        for number in range(20):
            source.write(datagram(b"\x01\x00home/%d:on" % number, 40_000 + number, 50_000))
            source.flush()
            assert f"home/{number}" in lines.readline().decode()


class Pipe:
    """Batches as they come out of a pipe: as large as what is written at once."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = iter([p.pcap([]), *pieces])

    def read1(self, size: int) -> bytes:
        return next(self._pieces, b"")

    read = read1


def followed(pieces: list[bytes], **options: Any) -> list[tuple[int, str | None, bool]]:
    """Frame and dialect of each row in the order in which they come, and whether they come late."""
    rows: list[tuple[int, str | None, bool]] = []
    pipe: Any = Pipe(pieces)

    def make(dialects: Any, routes: Any) -> Decoder:
        return Decoder(dialects, routes, ["frame", "dialect"], **options)

    for decoder, batch, is_late in follow(read_file(pipe), Dialects.of([load_dialect("colon")]), make):
        table = decoder.decode(batch)
        rows += [(frame, dialect, is_late) for frame, dialect in zip(*table.to_pydict().values(), strict=True)]
    return rows


def test_a_dialect_on_another_port_is_found_from_its_datagrams_and_they_follow_in_order() -> None:
    texts = [b"\x03\x00home/lamp", b"\x01\x00home/lamp:on", b"\x02", b"\x03\x01home/fan", b"\x01\x01home/fan:off"]
    pieces = [datagram(text, 40_000, UNUSUAL) for text in texts * 4]
    rows = followed(pieces)
    assert [frame for frame, *_ in rows] == list(range(1, len(pieces) + 1))
    assert {dialect for _, dialect, _ in rows} == {"colon"}
    late = [frame for frame, _, is_late in rows if is_late]
    assert late
    assert late == list(range(1, len(late) + 1))


def test_a_broker_that_starts_long_after_the_capture_is_found() -> None:
    noise = b"".join(datagram(b"\xffnoise %d" % number, 40_000, UNUSUAL) for number in range(5_500))
    rows = followed([noise, datagram(b"\x01\x00a:b", 40_001, 50_000)])
    assert rows == [(5_501, "colon", False)]


def test_only_some_datagrams_of_unknown_dialects_are_held() -> None:
    noise = [datagram(b"\xff" * 4, 40_000, UNUSUAL)] * (MOST_HELD + 50)
    talk = [datagram(b"\x03\x00home/lamp", 40_001, UNUSUAL + 1), datagram(b"\x01\x01home/fan:off", 40_001, UNUSUAL + 1)]
    rows = followed([b"".join(noise), *talk * 20])
    assert [frame for frame, *_ in rows][-1] == MOST_HELD + 50 + 40


@pytest.mark.net
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("dumpcap"), reason="captures on the loopback interface")
def test_an_interface_is_decoded_until_ctrl_c() -> None:
    command = [sys.executable, "-m", "topicshark.main", "decode", "-i", "lo", "--dialect", "colon", "--format", "jsonl"]
    with (
        # A shell starts its background jobs with SIGINT ignored, tests among them.
        subprocess.Popen(
            command, stdout=subprocess.PIPE, cwd=REPO, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        ) as process,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        assert process.stdout is not None
        client.bind(("127.0.0.1", 0))
        own = client.getsockname()[1]
        os.set_blocking(process.stdout.fileno(), False)
        for _ in lines_until(process.stdout, own):
            client.sendto(b"\x01\x00live/topic:on", ("127.0.0.1", 50_000))
        process.send_signal(signal.SIGINT)
        os.set_blocking(process.stdout.fileno(), True)
        process.communicate(timeout=60)  # other datagrams on the loopback interface are lines, too
        assert process.returncode == 0


def lines_until(stream: IO[bytes], sport: int) -> Iterator[None]:
    """Goes on until a line of a datagram from this port came."""
    from tests.waiting import LOOK_S, PATIENCE_S, wait_until

    read = b""

    def has_come() -> bool:
        nonlocal read
        read += stream.read() or b""
        return any(
            json.loads(line)["sport"] == sport for line in read.splitlines(keepends=True) if line.endswith(b"\n")
        )

    for _ in range(int(PATIENCE_S / LOOK_S / 20)):
        yield
        with contextlib.suppress(TimeoutError):
            wait_until(has_come, "a line comes", LOOK_S * 20)
            return
    raise TimeoutError("no line came")


def test_what_dumpcap_refuses_is_explained() -> None:
    said = live_capture._refusal("eth0", "dumpcap", "Capturing on 'eth0'\ndumpcap: You do not have permission to …")
    assert "sudo tcpdump -i eth0 -U -w - udp | topicshark decode -" in said
    assert live_capture._refusal("x", "dumpcap", "a\ndumpcap: There is no device named x.\nb") == (
        "cannot capture on x: dumpcap: There is no device named x."
    )


def test_captures_or_an_interface() -> None:
    for words in ([], ["-i", "lo", "a.pcap"], ["-i", "-w"]):
        done = subprocess.run(
            [sys.executable, "-m", "topicshark.main", "decode", *words], capture_output=True, cwd=REPO, check=False
        )
        assert done.returncode == 2

"""Which message answers which, on paper and on a real socket."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from scapy.config import conf
from scapy.layers.inet import IP, UDP
from scapy.sendrecv import sr1
from scapy.supersocket import L3RawSocket

from tests.pcap_tools.layers.loaded import layers_of
from tests.waiting import PATIENCE_S

PAIRS = [
    # dialect, request, answer, does it answer
    ("colon", "01 00 61 3a", "02", True),
    ("colon", "03 00 61", "04", True),
    ("colon", "01 00 61 3a", "04", False),
    ("colon", "02", "01 00 61 3a", False),
    ("colon", "01 00 61 3a", "09", False),
    ("topicbyte", "aced0005770202 0a", "01 00 4f4b", True),
    ("topicbyte", "09", "01 00", True),  # the broker acknowledges everything
    ("rolebyte", "03 03 61 20 62", "07 0a", True),
    ("rolebyte", "07 0a", "03 03 61 20 62", False),
    ("portdigits", "3132333435 31 3031 78", "3132333435 30 3031", False),  # nothing is acknowledged
    ("topicnumber", "05 07 00000001 6869 0000", "00 07 00000001 6869", True),
    ("topicnumber", "05 07 00000001 6869", "00 08 00000001 6869", False),
    ("topicnumber", "05 07 00000001 6869", "00 07 00000001 6868", False),
    ("mqttsn", "08 0c 00 0005 0007 78", "07 0d 0005 0007 00", True),
    ("mqttsn", "08 0c 00 0005 0007 78", "07 0d 0005 0008 00", False),
    ("mqttsn", "08 0c 00 0005 0007 78", "04 0f 0007", True),
    ("mqttsn", "04 10 0007", "04 0e 0007", True),
    ("mqttsn", "08 0c 00 0005 0007 78", "04 0e 0007", False),
    ("nibbles", "25 61 3d 62", "f5", True),
    ("nibbles", "25 61 3d 62", "e5", True),
    ("nibbles", "25 61 3d 62", "f6", False),
    ("nestedack", "50 30303031 3031 61 62", "41434b 50 30303031 3031 61 62", True),
    ("nestedack", "50 30303031 3031 61 62", "41434b 50 30303032 3031 61 62", False),
    ("javaints", "aced0005770b 00000001 00000007 000161", "aced00057708 ffffffff 00000007", True),
    ("javaints", "aced0005770b 00000001 00000007 000161", "aced00057708 ffffffff 00000008", False),
    ("keywords", "7375623a610a", "61636b", True),
]


@pytest.mark.parametrize(("dialect", "request_hex", "answer_hex", "answers"), PAIRS)
def test_answers(dialect: str, request_hex: str, answer_hex: str, answers: bool) -> None:
    layers = layers_of(dialect)
    asked = layers.base(bytes.fromhex(request_hex))
    answer = layers.base(bytes.fromhex(answer_hex))
    assert bool(answer.answers(asked)) is answers
    assert answer.hashret() == asked.hashret()


def test_another_dialect_answers_nothing() -> None:
    assert not layers_of("topicbyte").ACK().answers(layers_of("colon").PUBLISH())


def test_the_whole_packet_answers() -> None:
    colon = layers_of("colon")
    asked = IP(src="10.0.0.1", dst="10.0.0.2") / UDP() / colon.PUBLISH(topic="a")
    answer = IP(src="10.0.0.2", dst="10.0.0.1") / UDP() / colon.PUBACK()
    assert answer.answers(asked)
    assert answer.hashret() == asked.hashret()


@contextmanager
def _answering(reply: bytes) -> Iterator[int]:
    """A socket on the loopback that first sends something else and then the reply to whoever asks."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(PATIENCE_S)

        def answer() -> None:
            _, sender = server.recvfrom(2000)
            server.sendto(b"\x01\x00other:thing", sender)
            server.sendto(reply, sender)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(PATIENCE_S)


def may_open_raw_sockets() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP).close()
    except PermissionError:
        return False
    return True


@pytest.mark.net
@pytest.mark.skipif(not may_open_raw_sockets(), reason="raw sockets need CAP_NET_RAW")
def test_sr1_over_the_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    colon = layers_of("colon")
    monkeypatch.setattr(conf, "L3socket", L3RawSocket)
    with _answering(b"\x02") as port, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))  # so that the kernel sends no ICMP error for the answer
        monkeypatch.setattr(UDP, "payload_guess", [({"sport": port}, colon.base), *UDP.payload_guess])
        ports = UDP(sport=own.getsockname()[1], dport=port)
        request = IP(dst="127.0.0.1") / ports / colon.PUBLISH(topic="home/fan", body="ON")
        answer = sr1(request, timeout=PATIENCE_S, verbose=0, iface="lo")
    assert answer is not None
    assert colon.PUBACK in answer

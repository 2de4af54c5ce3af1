"""Which dialect an endpoint speaks: what convinces, and what must not."""

import random
from dataclasses import dataclass

import pytest

from pcap_tools.codec import Codec
from pcap_tools.codec.detect import Detector
from pcap_tools.dialect import builtin_names, load_dialect

BROKER, CLIENT = "10.0.0.1", "10.0.0.2"
DNS = bytes.fromhex("1a2b01000001000000000000076578616d706c6503636f6d0000010001")
MDNS = bytes.fromhex("000000000001000000000000045f697070045f746370056c6f63616c00000c0001")
NTP = bytes.fromhex("e30006ec000000000000000031000000") + bytes(32)
SSDP = b"M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: ssdp:discover\r\n\r\n"
QUIC = bytes.fromhex("c00000000108") + bytes(range(200, 256)) * 20


@dataclass
class Sent:
    payload: bytes
    sport: int
    dport: int
    src: str = CLIENT
    dst: str = BROKER

    @property
    def length(self) -> int:
        return len(self.payload)


def detector(*names: str) -> Detector:
    return Detector([load_dialect(name) for name in names or builtin_names()])


def learned(*sent: Sent, of: Detector | None = None) -> Detector:
    found = of or detector()
    for datagram in sent:
        found.learn(datagram)
    found.decide()
    return found


def name_for(found: Detector, datagram: Sent) -> str | None:
    codec = found.codec_for(datagram)
    return codec.dialect.name if codec else None


DIALOGUES = {
    "colon": [b"\x03\x00home/*", b"\x04", b"\x01\x00home/fan:ON", b"\x02"],
    "topicbyte": [
        bytes.fromhex("aced00057702020a"),
        bytes.fromhex("aced00057711030a000d54656d70657261747572653a30"),
    ],
    "portdigits": [b"12346001subscribing", b"1234510114C"],
    "topicnumber": [b"\x04\0\0\0\0\x07news".ljust(1400, b"\0"), b"\0\0\0\0\0\x07news".ljust(1400, b"\0")],
    "rolebyte": [b"\x01\x11temperature/room1", b"\x07\x0a", b"\x03\x14temperature/room1 20"],
    "mqttsn": [bytes.fromhex("0804000100 1e6964".replace(" ", "")), bytes.fromhex("030500")],
}


@pytest.mark.parametrize("name", DIALOGUES)
def test_each_dialect_is_found_on_its_own_port(name: str) -> None:
    port = min(load_dialect(name).ports)
    sent = [Sent(payload, port, port) for payload in DIALOGUES[name]]
    found = learned(*sent)
    assert {name_for(found, datagram) for datagram in sent} == {name}


@pytest.mark.parametrize("name", sorted(set(DIALOGUES) - {"topicbyte"}))
def test_and_elsewhere_when_it_says_enough(name: str) -> None:
    sent = [Sent(payload, 31000, 31001) for payload in DIALOGUES[name] * 2]
    assert name_for(learned(*sent), sent[0]) == name


def test_a_shared_port_goes_to_the_dialect_that_explains_more() -> None:
    one = [Sent(payload, 50000, 50000) for payload in DIALOGUES["colon"]]
    other = [Sent(payload, 50002, 50000, "10.1.0.2", "10.1.0.1") for payload in DIALOGUES["topicbyte"]]
    found = learned(*one, *other)
    assert name_for(found, one[1]) == "colon"
    assert name_for(found, other[0]) == "topicbyte"


def test_acks_alone_convince_nobody() -> None:
    sent = [Sent(bytes([kind]), 31000, 31001) for kind in (2, 4, 6) * 10]
    assert name_for(learned(*sent), sent[0]) is None


@pytest.mark.parametrize(("payload", "port"), [(DNS, 53), (MDNS, 5353), (NTP, 123), (SSDP, 1900), (QUIC, 443)], ids=str)
def test_everyday_traffic_is_not_claimed(payload: bytes, port: int) -> None:
    for other in (50000, 50003, 40123, port):
        sent = [Sent(payload, other, port)] * 5
        assert name_for(learned(*sent), sent[0]) is None


def test_random_bytes_are_not_claimed() -> None:
    chance = random.Random(1)
    sent = [Sent(chance.randbytes(chance.randint(1, 60)), 31000, 31001) for _ in range(2000)]
    found = learned(*sent)
    assert not any(name_for(found, datagram) for datagram in sent)


def test_damaged_datagrams_of_a_known_endpoint_belong_to_it() -> None:
    sent = [Sent(payload, 50000, 50000) for payload in [*DIALOGUES["colon"], b"\x09", b"\x01\x00oops"]]
    found = learned(*sent)
    assert name_for(found, sent[-1]) == "colon"


def test_a_client_that_comes_later_is_known_by_its_broker() -> None:
    found = learned(*[Sent(payload, 31000, 31001) for payload in DIALOGUES["rolebyte"]])
    assert name_for(found, Sent(b"\x07\x0a", 40000, 31001, "10.0.0.9")) == "rolebyte"


def test_evidence_reads_as_a_sentence() -> None:
    found = detector("colon")
    for payload in DIALOGUES["colon"]:
        found.learn(Sent(payload, 50000, 50000))
    assert str(found.decide()[0]) in (
        "colon at 10.0.0.1 port 50000 (one of its ports): 4 of 4 datagrams decode",
        "colon at 10.0.0.2 port 50000 (one of its ports): 4 of 4 datagrams decode",
    )
    assert isinstance(found.codec_for(Sent(b"\x02", 50000, 50000)), Codec)

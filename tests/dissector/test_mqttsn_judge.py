"""Wireshark's own MQTT-SN dissector as an independent judge: both must read the same out of generated packets."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pcap_tools.codec import Codec
from pcap_tools.dialect import load_dialect
from tests.dissector.tshark import fields_of, pdml, run_tshark, udp_packet, write_pcap

pytestmark = pytest.mark.tshark

PORT = 31883
PER_MESSAGE = 40
# Ours and Wireshark's own. It reads a topic id in SUBSCRIBE as text and a short topic as a number, under other names.
SAME = {
    "type": "mqttsn.msg.type",
    "dup": "mqttsn.dup",
    "qos": "mqttsn.qos",
    "retain": "mqttsn.retain",
    "will": "mqttsn.will",
    "clean_session": "mqttsn.clean.session",
    "topic_id_type": "mqttsn.topic.id.type",
    "topic_id": "mqttsn.topic.id",
    "message_id": "mqttsn.msg.id",
    "client_id": "mqttsn.client.id",
    "data": "mqttsn.pub.msg",
    "return_code": "mqttsn.return.code",
    "gateway_id": "mqttsn.gw.id",
    "radius": "mqttsn.radius",
    "will_topic": "mqttsn.will.topic",
    "will_message": "mqttsn.will.msg",
    "protocol_id": "mqttsn.protocol.id",
}
ENCAPSULATED = "FORWARDED"  # the judge reads the inner message as well, so its fields come twice


def packets() -> list[bytes]:
    """Every message in both length forms, with random fields."""
    dialect = load_dialect("mqttsn")
    codec, rng = Codec(dialect), random.Random(7)
    built = []
    for form in dialect.forms:
        for layout in form.layouts:
            if layout.message == ENCAPSULATED:
                continue
            for _ in range(PER_MESSAGE):
                fields = {
                    step.name: _value(step.name, rng)
                    for step in layout.steps
                    if step.name not in ("mark", "length", "type")
                }
                for step in layout.steps:
                    if step.guard is not None:
                        fields[step.name] = int(step.guard[0])
                built.append(codec.build(codec.message(layout.message, fields, form=form.name)))
    return built


def _value(name: str, rng: random.Random) -> int | bytes:
    small = {"dup": 2, "qos": 4, "retain": 2, "will": 2, "clean_session": 2, "topic_id_type": 2, "return_code": 4}
    if name in small:
        return rng.randrange(small[name]) if name != "topic_id_type" else 0
    if name == "protocol_id":
        return 1
    if name in ("topic_id", "message_id", "duration"):
        return rng.randrange(65536)
    if name in ("gateway_id", "radius"):
        return rng.randrange(256)
    if name == "short_topic":
        return bytes(rng.choices(b"abcxyz", k=2))
    return bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz/0123456789 ", k=rng.randint(1, 23)))


def test_the_same_fields_as_wiresharks_own_dissector(tmp_path: Path) -> None:
    datagrams = packets()
    frames = [(n * 0.01, udp_packet(raw, ("10.0.0.1", 9), ("10.0.0.2", PORT))) for n, raw in enumerate(datagrams)]
    capture = write_pcap(tmp_path / "mqttsn.pcap", frames)
    home = tmp_path / "home"
    judged = list(pdml(capture, "-d", f"udp.port=={PORT},mqttsn", home=home, script=None, prefix="mqttsn"))
    ours = list(pdml(capture, "-d", f"udp.port=={PORT},pubsub_mqttsn", home=home))
    compared = dict.fromkeys(SAME, 0)
    for datagram, judge, mine in zip(datagrams, judged, ours, strict=True):
        assert mine.one("pubsub.error") is None
        for name, theirs in SAME.items():
            own = f"pubsub.mqttsn.{name}"
            if theirs not in judge.show or own not in mine.show:
                continue
            where = f"{mine.one('pubsub.message')} {name}: {datagram.hex()}"
            if not judge.masked[theirs]:
                assert mine.at[own] == judge.at[theirs], where
                assert mine.raw[own] == judge.raw[theirs], where
            else:
                assert int(mine.show[own][0]) == judge.number(theirs), where
            compared[name] += 1
    assert all(compared.values()), f"never compared: {[name for name, count in compared.items() if not count]}"


def test_the_same_message_names(tmp_path: Path) -> None:
    frames = [(n * 0.01, udp_packet(raw, ("10.0.0.1", 9), ("10.0.0.2", PORT))) for n, raw in enumerate(packets())]
    capture = write_pcap(tmp_path / "mqttsn.pcap", frames)
    home = tmp_path / "home"
    info = run_tshark(
        capture, "-d", f"udp.port=={PORT},mqttsn", "-o", 'gui.column.format:"Info","%i"', home=home, script=None
    )
    theirs = [line.strip() for line in info.splitlines()]
    ours = fields_of(capture, "pubsub.message", home=home, options=["-d", f"udp.port=={PORT},pubsub_mqttsn"])
    assert [JUDGES_WORD[mine] for (mine,) in ours] == theirs
    assert {mine for (mine,) in ours} == set(JUDGES_WORD)


JUDGES_WORD = {
    "ADVERTISE": "Advertise Gateway",
    "SEARCHGW": "Search Gateway",
    "GWINFO": "Gateway Info",
    "CONNECT": "Connect Command",
    "CONNACK": "Connect Ack",
    "WILLTOPICREQ": "Will Topic Request",
    "WILLTOPIC": "Will Topic",
    "WILLMSGREQ": "Will Message Request",
    "WILLMSG": "Will Message",
    "REGISTER": "Register",
    "REGACK": "Register Ack",
    "PUBLISH": "Publish Message",
    "PUBACK": "Publish Ack",
    "PUBCOMP": "Publish Complete",
    "PUBREC": "Publish Received",
    "PUBREL": "Publish Release",
    "SUBSCRIBE": "Subscribe Request",
    "SUBACK": "Subscribe Ack",
    "UNSUBSCRIBE": "Unsubscribe Request",
    "UNSUBACK": "Unsubscribe Ack",
    "PINGREQ": "Ping Request",
    "PINGRESP": "Ping Response",
    "DISCONNECT": "Disconnect Req",
    "WILLTOPICUPD": "Will Topic Update",
    "WILLTOPICRESP": "Will Topic Response",
    "WILLMSGUPD": "Will Message Update",
    "WILLMSGRESP": "Will Message Response",
}

"""MQTT-SN clients and the broker without sockets: QoS 2, wills, sleep, predefined topics, sessions that are kept."""

from __future__ import annotations

from typing import Any

import pytest

from pcap_tools import Codec, load_dialect
from reference_broker.broker.mqttsn import MqttsnBroker
from reference_broker.client import client_for
from reference_broker.messages.sending import SECOND
from tests.reference_broker.virtual import ALICE, BOB, BROKER, Bench

DIALECT = load_dialect("mqttsn")
CODEC = Codec(DIALECT)
PREDEFINED = {7: b"home/alarm"}


def bench(alice: dict[str, Any] | None = None, bob: dict[str, Any] | None = None) -> Bench:
    settings = {ALICE: {"client_id": b"alice", **(alice or {})}, BOB: {"client_id": b"bob", **(bob or {})}}
    clients = {end: client_for(DIALECT, BROKER, **own) for end, own in settings.items()}
    return Bench(DIALECT, clients, MqttsnBroker(DIALECT, predefined=PREDEFINED))


def subscribe(on: Bench, text: bytes) -> None:
    on.carry(BOB, on.clients[BOB].subscribe(text, on.now))


def publish(on: Bench, topic: bytes, payload: bytes) -> None:
    on.carry(ALICE, on.clients[ALICE].publish(topic, payload, on.now))


def names(on: Bench, start: int = 0) -> list[str]:
    """What went over the wire, by its name alone."""
    return [CODEC.decode(datagram).message or "?" for _, _, datagram in on.wire[start:]]


@pytest.mark.parametrize("topic", [b"home/fan", b"ab", b"home/alarm"])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_each_qos_with_each_kind_of_topic_id(qos: int, topic: bytes) -> None:
    own = {"qos": qos, "predefined": PREDEFINED}
    on = bench(own, own)
    subscribe(on, topic)
    publish(on, topic, b"x")
    publish(on, topic, b"y")
    assert on.received(BOB) == [(topic, b"x"), (topic, b"y")]
    assert all(client.is_idle for client in on.clients.values())
    assert ("REGISTER" in names(on)) is (topic == b"home/fan")
    forwards = [CODEC.decode(datagram) for source, to, datagram in on.wire if (source, to) == (BROKER, BOB)]
    assert {message.fields["qos"] for message in forwards if message.message == "PUBLISH"} == {qos}


@pytest.mark.parametrize("lost", ["PUBLISH", "PUBREC", "PUBREL", "PUBCOMP"])
@pytest.mark.parametrize("to", [BROKER, ALICE, BOB], ids=["broker", "publisher", "subscriber"])
def test_at_qos_2_a_message_arrives_once_whatever_is_lost_first(lost: str, to: tuple[str, int]) -> None:
    on = bench({"qos": 2}, {"qos": 2})
    subscribe(on, b"home/fan")
    publish(on, b"home/fan", b"first")
    left = [1]

    def loses(datagram: bytes, at: tuple[str, int]) -> bool:
        hit = at == to and CODEC.decode(datagram).message == lost and left[0] > 0
        left[0] -= hit
        return hit

    on.loses = loses
    publish(on, b"home/fan", b"second")
    on.wait(60)
    assert on.received(BOB) == [(b"home/fan", b"first"), (b"home/fan", b"second")]
    assert all(client.is_idle for client in on.clients.values())
    assert on.broker._held.used == 0  # type: ignore[attr-defined]


def test_a_subscriber_at_qos_0_gets_nothing_that_it_must_acknowledge() -> None:
    on = bench({"qos": 2}, {"qos": 0})
    subscribe(on, b"ab")
    publish(on, b"ab", b"x")
    (forward,) = [CODEC.decode(datagram) for _, to, datagram in on.wire if to == BOB and datagram[1] == 0x0C]
    assert forward.fields["qos"] == 0


def test_a_will_is_published_when_its_client_falls_silent_and_not_when_it_says_goodbye() -> None:
    on = bench({"will": (b"home/wills", b"gone"), "keep_alive_s": 10})
    subscribe(on, b"home/wills")
    publish(on, b"home/fan", b"x")
    assert [name for name in names(on) if name.startswith("WILL") or name == "CONNACK"][1:] == [
        "WILLTOPICREQ",
        "WILLTOPIC",
        "WILLMSGREQ",
        "WILLMSG",
        "CONNACK",
    ]
    silent = on.clients.pop(ALICE)
    on.wait(20)
    assert on.received(BOB) == [(b"home/wills", b"gone")]
    on.clients[ALICE] = client_for(DIALECT, BROKER, client_id=b"alice", will=(b"home/wills", b"again"), keep_alive_s=10)
    publish(on, b"home/fan", b"x")
    on.carry(ALICE, on.clients[ALICE].close(on.now))
    on.wait(60)
    assert len(on.received(BOB)) == 1
    assert silent is not on.clients[ALICE]


def test_will_updates_hold_and_are_acknowledged() -> None:
    on = bench({"will": (b"home/wills", b"gone"), "keep_alive_s": 10})
    subscribe(on, b"home/#")
    publish(on, b"home/fan", b"x")
    for name, fields in (("WILLTOPICUPD", {"will_topic": "home/last"}), ("WILLMSGUPD", {"will_message": "words"})):
        (answer,) = on.broker.handle(CODEC.build(CODEC.message(name, fields)), ALICE, on.now)
        assert CODEC.decode(answer.datagram).fields["return_code"] == 0
    del on.clients[ALICE]
    on.wait(20)
    assert on.received(BOB)[-1] == (b"home/last", b"words")


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_sleeping_client_gets_what_waited_when_it_wakes_and_nothing_before(qos: int) -> None:
    on = bench({"qos": qos}, {"qos": qos, "sleep_s": 30})
    subscribe(on, b"home/+")
    on.wait(1)
    assert names(on)[-2:] == ["DISCONNECT", "DISCONNECT"], "it has gone to sleep"
    start = len(on.wire)
    for number in range(5):
        publish(on, b"home/fan", b"%d" % number)
    assert not [to for _, to, _ in on.wire[start:] if to == BOB]
    on.wait(40)
    assert on.received(BOB) == [(b"home/fan", b"%d" % number) for number in range(5)]
    woken = names(on, start)
    ping = woken.index("PINGREQ")
    assert "PINGRESP" in woken[ping:]
    to_bob = [CODEC.decode(datagram).message for _, to, datagram in on.wire[start:] if to == BOB]
    assert to_bob.index("PINGRESP") > max(at for at, name in enumerate(to_bob[:-1]) if name == "PUBLISH")
    on.wait(600)
    assert on.broker.counters["lost: keep-alive"] == 0


def test_a_sleeper_that_does_not_come_back_is_lost() -> None:
    on = bench({}, {"sleep_s": 30})
    subscribe(on, b"home/+")
    on.wait(1)
    del on.clients[BOB]
    on.wait(60)
    assert on.broker.counters["lost: keep-alive"] == 1
    assert len(on.broker.subscriptions) == 0


def test_a_session_that_is_kept_has_its_subscriptions_and_messages_after_the_client_comes_back() -> None:
    on = bench({"qos": 1}, {"qos": 1, "clean_session": False})
    subscribe(on, b"home/+")
    publish(on, b"home/fan", b"0")
    on.carry(BOB, on.clients[BOB].close(on.now))
    for number in range(1, 4):
        publish(on, b"home/fan", b"%d" % number)
    assert len(on.received(BOB)) == 1
    moved = (BOB[0], 50_777)
    on.clients[moved] = client_for(DIALECT, BROKER, client_id=b"bob", qos=1, clean_session=False)
    on.events[moved] = []
    del on.clients[BOB]
    on.carry(moved, on.clients[moved]._connect(on.now))  # type: ignore[attr-defined]
    assert on.received(moved) == [(b"home/fan", b"%d" % number) for number in range(1, 4)], (
        "with its topic id told anew"
    )
    publish(on, b"home/fan", b"live")
    assert on.received(moved)[-1] == (b"home/fan", b"live")


def test_a_clean_session_forgets() -> None:
    on = bench({"qos": 1}, {"qos": 1, "clean_session": False})
    subscribe(on, b"home/+")
    on.carry(BOB, on.clients[BOB].close(on.now))
    publish(on, b"home/fan", b"missed")
    on.clients[BOB] = client_for(DIALECT, BROKER, client_id=b"bob", qos=1)
    on.carry(BOB, on.clients[BOB]._connect(on.now))  # type: ignore[attr-defined]
    publish(on, b"home/fan", b"missed too")
    assert on.received(BOB) == []
    assert len(on.broker.subscriptions) == 0


def test_nodes_behind_a_forwarder_have_sessions_of_their_own() -> None:
    """Two nodes, ids 0a and 0b, behind one address: each answer is encapsulated for its node. By hand."""
    broker = MqttsnBroker(DIALECT)
    forwarder = ("10.0.0.9", 7_000)

    def said(node: str, inner: str) -> list[str]:
        carried = bytes.fromhex(f"04fe00{node}" + inner)
        return [send.datagram.hex() for send in broker.handle(carried, forwarder, 0) if send.to == forwarder]

    for node in ("0a", "0b"):
        assert said(node, "0904040100006d65" + node) == [f"04fe00{node}030500"]
    assert said("0a", "0712220001" + "6162") == ["04fe000a" + "0813200000000100"]
    assert said("0b", "080c02616200" + "0078") == ["04fe000a" + "080c0261620000" + "78"]
    assert len(broker.sessions) == 2
    assert {endpoint[0] for endpoint in broker.sessions} == {forwarder[0]}
    assert said("0a", "0218") == ["04fe000a0218"]
    assert said("0a", "0216") == ["04fe000a0218"], "its session has ended"
    assert said("0c", "030100") == ["04fe000c" + "030201"], "SEARCHGW, GWINFO"
    assert len(broker.sessions) == len(broker._nodes) == 1


def test_a_gateway_advertises_itself() -> None:
    from reference_broker.broker import Gateway

    everyone = ("192.0.2.255", 1885)
    broker = MqttsnBroker(DIALECT, gateway=Gateway(5, everyone, 60))
    sent = [(second, send) for second in range(150) for send in broker.tick(second * SECOND)]
    assert [(second, send.to, send.datagram.hex()) for second, send in sent] == [
        (second, everyone, "0500" + "05" + "003c") for second in (0, 60, 120)
    ]

"""Clients against the broker's core, in virtual time: requests, ACKs, resends, duplicates, in every dialect."""

from random import Random
from typing import Any

import pytest

from pcap_tools import Codec, load_dialect
from pcap_tools.dialect import builtin_names, parse_dialect
from pcap_tools.errors import UsageError
from reference_broker.client import client_for
from reference_broker.client.core import Client
from reference_broker.client.mqttsn import MqttsnClient
from reference_broker.client.requests import ClientMistake, EventKind, Timing
from reference_broker.messages.sending import SECOND
from tests.conftest import REPO
from tests.reference_broker.virtual import ALICE, BOB, BROKER, Bench

SILENT = ("10.0.0.9", 50000)
ACKED, RESENT, GAVE_UP = EventKind.ACKNOWLEDGED, EventKind.RESENT, EventKind.GAVE_UP


def bench(name: str, **settings: Any) -> Bench:
    dialect = load_dialect(name)
    clients = {end: client_for(dialect, BROKER, listen_port=end[1], **settings) for end in (ALICE, BOB)}
    return Bench(dialect, clients)


def publish(on: Bench, topic: bytes, payload: bytes, **more: Any) -> None:
    on.carry(ALICE, on.clients[ALICE].publish(topic, payload, on.now, **more))


def subscribe(on: Bench, text: bytes) -> None:
    on.carry(BOB, on.clients[BOB].subscribe(text, on.now))


@pytest.mark.parametrize("name", builtin_names())
def test_what_one_client_publishes_another_receives(name: str) -> None:
    on = bench(name)
    if name == "topicnumber":
        on.carry(ALICE, on.clients[ALICE].create(b"temperature", 0))
    subscribe(on, b"temperature")
    publish(on, b"temperature", b"20")
    publish(on, b"temperature", b"21")
    assert on.received(BOB) == [(b"temperature", b"20"), (b"temperature", b"21")]
    assert not {kind for kind, _ in on.kinds(ALICE) + on.kinds(BOB)} & {RESENT, GAVE_UP, EventKind.UNEXPECTED}
    acknowledged = [message for kind, message in on.kinds(ALICE) if kind is ACKED]
    assert len(acknowledged) == {"portdigits": 0, "topicnumber": 3, "mqttsn": 4}.get(name, 2)
    assert all(client.is_idle for client in on.clients.values())


@pytest.mark.parametrize("name", ["colon", "topicnumber", "mqttsn"])
def test_after_unsubscribing_nothing_comes_any_more(name: str) -> None:
    on = bench(name)
    if name == "topicnumber":
        on.carry(ALICE, on.clients[ALICE].create(b"temperature", 0))
    subscribe(on, b"temperature")
    on.carry(BOB, on.clients[BOB].unsubscribe(b"temperature", on.now))
    publish(on, b"temperature", b"20")
    assert on.received(BOB) == []


def test_a_users_own_dialect_gets_a_client_too() -> None:
    dialect = parse_dialect((REPO / "docs/examples/bulletin.toml").read_text())
    on = Bench(dialect, {end: client_for(dialect, BROKER) for end in (ALICE, BOB)})
    subscribe(on, b"campus.?.menu")
    for soup in (b"leek", b"pea", b"leek"):
        publish(on, b"campus.hall.menu", soup)
    assert [payload for _, payload in on.received(BOB)] == [b"leek", b"pea", b"leek"]
    sequences = [Codec(dialect).decode(datagram).fields["sequence"] for datagram in on.sent_by(ALICE)]
    assert sequences == [1, 2, 3]  # the ACK repeats it, so each request has its own


# -- resends --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("colon", [0, 5, 12.5, 23.75, 40.625]),
        ("topicbyte", [0, 1, 2.5, 4.75, 8.125]),
        ("rolebyte", [0, 1, 2.5, 4.75, 8.125]),
        ("mqttsn", [0, 10, 25, 47.5, 81.25, 131.875]),
    ],
)
def test_a_request_is_resent_with_back_off_until_the_limit(name: str, seconds: list[float]) -> None:
    on = bench(name)
    on.loses = lambda datagram, to: True
    subscribe(on, b"temperature")
    on.wait(400)
    assert [at / SECOND for at in on.times] == seconds
    assert len(set(on.sent_by(BOB))) == 1  # byte for byte
    kinds = [kind for kind, _ in on.kinds(BOB)]
    assert kinds[: len(seconds)] == [RESENT] * (len(seconds) - 1) + [GAVE_UP]
    assert on.clients[BOB].is_idle
    assert on.clients[BOB].next_due() is None


def test_a_resend_that_gets_through_is_acknowledged_and_counted() -> None:
    on = bench("colon")
    on.loses = lambda datagram, to: on.now < 6 * SECOND
    publish(on, b"a", b"1")
    on.wait(60)
    last = on.events[ALICE][-1]
    assert (last.kind, last.sends) == (ACKED, 3)
    assert on.wire[-1][2] == b"\x02"


@pytest.mark.parametrize("message", ["PUBLISH", "SUBSCRIBE"])
def test_mqttsn_marks_a_resend_with_dup_and_changes_nothing_else(message: str) -> None:
    on = bench("mqttsn")
    codec = Codec(load_dialect("mqttsn"))
    on.loses = lambda datagram, to: codec.decode(datagram).message == message and on.now < 15 * SECOND
    subscribe(on, b"news")
    publish(on, b"news", b"hello")
    on.wait(60)
    sends = [codec.decode(data) for source, _, data in on.wire if source != BROKER]
    first, *again = [sent.fields for sent in sends if sent.message == message]
    assert len(again) == 2
    assert first["dup"] == 0
    assert all(resent == first | {"dup": 1} for resent in again)


def test_mqttsn_connect_and_register_carry_no_dup() -> None:
    on = bench("mqttsn")
    codec = Codec(load_dialect("mqttsn"))
    on.loses = lambda datagram, to: codec.decode(datagram).message in ("CONNECT", "REGISTER") and on.now % 20 < 10
    publish(on, b"news", b"hello")
    on.wait(200)
    by_name: dict[str | None, set[bytes]] = {}
    for datagram in on.sent_by(ALICE):
        by_name.setdefault(codec.decode(datagram).message, set()).add(datagram)
    assert len(by_name["CONNECT"]) == 1


def test_the_known_mistakes_are_switches() -> None:
    colon = Bench(
        dialect := load_dialect("colon"),
        {ALICE: Client(dialect, BROKER, mistakes=[ClientMistake.RETAIN_ON_RESEND])},
    )
    colon.loses = lambda datagram, to: colon.now < 6 * SECOND
    publish(colon, b"a", b"1")
    colon.wait(30)
    assert colon.sent_by(ALICE) == [b"\x01\x00a:1", b"\x01\x01a:1", b"\x01\x01a:1"]
    numbers = Bench(
        dialect := load_dialect("topicnumber"),
        {ALICE: Client(dialect, BROKER, mistakes=[ClientMistake.NUMBER_ZERO])},
    )
    publish(numbers, b"first", b"1")
    publish(numbers, b"second", b"2")
    assert {datagram[2:6] for datagram in numbers.sent_by(ALICE)} == {bytes(4)}


# -- ACKs without ids -----------------------------------------------------------------------------------------------


def test_requests_wait_for_their_turn() -> None:
    on = bench("colon")
    client = on.clients[ALICE]
    first = client.publish(b"a", b"1", 0)
    assert client.publish(b"a", b"2", 0) == []
    assert [send.datagram for send in first] == [b"\x01\x00a:1"]
    sends, events = client.handle(b"\x02", BROKER, 0)
    assert [send.datagram for send in sends] == [b"\x01\x00a:2"]
    assert events[0].message.payload == b"1"


def test_a_late_second_ack_is_not_taken_for_the_next_requests() -> None:
    """The first request was sent twice, so two ACKs may come. The second must not settle the next request."""
    client = bench("colon").clients[ALICE]
    client.publish(b"a", b"1", 0)
    client.tick(5 * SECOND)
    _, (event,) = client.handle(b"\x02", BROKER, 6 * SECOND)
    assert (event.kind, event.sends) == (ACKED, 2)
    assert client.publish(b"a", b"2", 6 * SECOND) == []  # it waits
    sends, events = client.handle(b"\x02", BROKER, 7 * SECOND)  # the late one
    assert events == []
    assert [send.datagram for send in sends] == [b"\x01\x00a:2"]
    assert not client.is_idle


def test_a_second_ack_that_never_comes_is_not_waited_for_for_ever() -> None:
    client = bench("colon").clients[ALICE]
    client.publish(b"a", b"1", 0)
    client.tick(5 * SECOND)
    client.handle(b"\x02", BROKER, 6 * SECOND)
    client.publish(b"a", b"2", 6 * SECOND)
    due = client.next_due()
    assert due == 11 * SECOND
    sends, _ = client.tick(due)
    assert [send.datagram for send in sends] == [b"\x01\x00a:2"]


def test_an_ack_of_another_kind_answers_nothing() -> None:
    client = bench("colon").clients[ALICE]
    client.subscribe(b"a", 0)
    _, (event,) = client.handle(b"\x02", BROKER, 0)
    assert event.kind is EventKind.UNEXPECTED
    _, (event,) = client.handle(b"\x04", BROKER, 0)
    assert event.kind is ACKED


def test_an_echo_answers_only_its_own_request() -> None:
    client = bench("topicnumber").clients[BOB]
    (send,) = client.subscribe(b"weather", 0)
    other = b"\0" * 6 + b"sports".ljust(1394, b"\0")
    assert client.handle(other, BROKER, 0)[1][0].kind is EventKind.UNEXPECTED
    assert client.handle(b"\0" + send.datagram[1:], BROKER, 0)[1][0].kind is ACKED


@pytest.mark.parametrize("name", builtin_names())
def test_only_the_broker_is_listened_to(name: str) -> None:
    on = bench(name)
    client = on.clients[BOB]
    (send, *_) = client.subscribe(b"temperature", 0)
    for answer in on.broker.handle(send.datagram, BOB, 0):
        assert client.handle(answer.datagram, SILENT, 0) == ([], [])


# -- what clients acknowledge ---------------------------------------------------------------------------------------


def test_rolebyte_acknowledges_a_forward() -> None:
    client = bench("rolebyte").clients[BOB]
    sends, events = client.handle(b"\x02\x06t/r 20", BROKER, 0)
    assert [send.datagram for send in sends] == [b"\x07\x0a"]
    assert (events[0].topic, events[0].message.payload) == (b"t/r", b"20")


def test_topicnumber_acknowledges_forwards_and_sentences_by_an_echo() -> None:
    client = bench("topicnumber").clients[BOB]
    for kind in (5, 8):
        datagram = bytes([kind, 0, 0, 0, 0, 7]) + b"hello".ljust(1394, b"\0")
        (send,), _ = client.handle(datagram, BROKER, 0)
        assert send.datagram == b"\0" + datagram[1:]


def test_colon_and_topicbyte_subscribers_acknowledge_nothing() -> None:
    assert bench("colon").clients[BOB].handle(b"\x01\x00a:1", BROKER, 0)[0] == []
    assert bench("topicbyte").clients[BOB].handle(b"\x03\x0aTemperature:1", BROKER, 0)[0] == []


@pytest.mark.parametrize("qos", [0, 1])
def test_mqttsn_acknowledges_qos_1_only_and_tells_resends_apart(qos: int) -> None:
    client = bench("mqttsn").clients[BOB]
    assert isinstance(client, MqttsnClient)
    (ack,), events = client.handle(bytes.fromhex("0a0a 0007 0001 6e657773"), BROKER, 0)  # REGISTER 7 is "news"
    assert (ack.datagram, events) == (bytes.fromhex("070b 0007 0001 00"), [])
    forward = bytes.fromhex("080c") + bytes([qos << 5]) + bytes.fromhex("0007 0002 41")
    sends, (event,) = client.handle(forward, BROKER, 0)
    assert [send.datagram for send in sends] == ([bytes.fromhex("070d 0007 0002 00")] if qos else [])
    assert (event.topic, event.message.payload, event.duplicate) == (b"news", b"A", False)
    marked = forward[:2] + bytes([forward[2] | 0x80]) + forward[3:]
    _, (again,) = client.handle(marked, BROKER, 0)
    assert again.duplicate == bool(qos)


def test_mqttsn_refuses_an_unregistered_topic_id() -> None:
    client = bench("mqttsn").clients[BOB]
    (ack,), (event,) = client.handle(bytes.fromhex("080c 20 0063 0002 41"), BROKER, 0)
    assert ack.datagram == bytes.fromhex("070d 0063 0002 02")
    assert event.kind is EventKind.UNEXPECTED


# -- topics by number -----------------------------------------------------------------------------------------------


def test_a_topic_is_created_once_before_it_is_published() -> None:
    on = bench("topicnumber")
    for topic, payload in [(b"weather", b"sunny"), (b"sports", b"1:0"), (b"weather", b"rain")]:
        publish(on, topic, payload)
    codec = Codec(load_dialect("topicnumber"))
    requests = [codec.decode(datagram) for datagram in on.sent_by(ALICE) if datagram[0] in (4, 5)]
    assert [(sent.message, sent.fields["topic_number"], sent.fields["text"]) for sent in requests] == [
        ("CREATION", 0, b"weather"),
        ("PUBLICATION", 0, b"sunny"),
        ("CREATION", 1, b"sports"),
        ("PUBLICATION", 1, b"1:0"),
        ("PUBLICATION", 0, b"rain"),
    ]


def test_a_publication_goes_with_its_creation() -> None:
    on = bench("topicnumber")
    on.loses = lambda datagram, to: True
    publish(on, b"weather", b"sunny")
    on.wait(60)
    assert [message for kind, message in on.kinds(ALICE) if kind is GAVE_UP] == ["CREATION", "PUBLICATION"]
    assert {datagram[0] for datagram in on.sent_by(ALICE)} == {4}
    on.loses = lambda datagram, to: False
    publish(on, b"weather", b"sunny")
    assert [message for kind, message in on.kinds(ALICE) if kind is ACKED] == ["CREATION", "PUBLICATION"]


def test_the_brokers_sentence_is_awaited_before_the_next_request() -> None:
    client = bench("topicnumber").clients[BOB]
    (send,) = client.subscribe(b"a", 0)
    client.handle(b"\0" + send.datagram[1:], BROKER, 0)
    assert client.awaits_status
    assert client.subscribe(b"b", 0) == []
    sentence = bytes([8]) + bytes(5) + b"No.".ljust(1394, b"\0")
    sends, (event,) = client.handle(sentence, BROKER, 0)
    assert (event.kind, event.message.payload) == (EventKind.STATUS, b"No.")
    assert [send.datagram[0] for send in sends] == [0, 6]  # its ACK, then the next request


# -- MQTT-SN sessions -----------------------------------------------------------------------------------------------


def test_a_session_is_kept_alive_and_ended() -> None:
    on = bench("mqttsn")
    codec = Codec(load_dialect("mqttsn"))
    subscribe(on, b"news")
    on.wait(200)
    publish(on, b"news", b"still here?")
    assert on.received(BOB) == [(b"news", b"still here?")]
    pings = [at for at, sent in zip(on.times, on.wire, strict=True) if codec.decode(sent[2]).message == "PINGREQ"]
    assert [at // SECOND for at in pings] == [48, 96, 144, 192]
    on.carry(BOB, on.clients[BOB].close(on.now))
    assert on.kinds(BOB)[-1] == (ACKED, "DISCONNECT")
    publish(on, b"news", b"anybody?")
    assert len(on.received(BOB)) == 1


def test_after_the_broker_forgot_a_client_connects_and_subscribes_again() -> None:
    on = bench("mqttsn")
    subscribe(on, b"news")
    publish(on, b"news", b"1")
    on.broker = bench("mqttsn").broker  # restarted, without a memory
    on.wait(60)  # a PINGREQ tells the subscriber
    publish(on, b"news", b"2")
    on.wait(60)
    assert on.received(BOB) == [(b"news", b"1"), (b"news", b"2")]
    assert GAVE_UP not in [kind for kind, _ in on.kinds(ALICE)]


def test_a_broker_that_ends_every_session_is_not_called_for_ever() -> None:
    on = bench("mqttsn")
    client = on.clients[ALICE]
    client.publish(b"news", b"1", 0)
    for _ in range(10):
        client.handle(bytes.fromhex("030500"), BROKER, 0)
        client.handle(bytes.fromhex("0218"), BROKER, 0)
    assert client.is_idle


def test_a_refusal_is_told_with_its_reason() -> None:
    client = bench("mqttsn").clients[ALICE]
    client.publish(b"news", b"1", 0)
    _, events = client.handle(bytes.fromhex("030501"), BROKER, 0)
    assert [(told.kind, told.message.message, told.why) for told in events] == [
        (EventKind.REFUSED, "CONNECT", "congestion"),
        (GAVE_UP, "REGISTER", ""),
        (GAVE_UP, "PUBLISH", ""),
    ]


def test_qos_minus_one_needs_neither_connection_nor_answer() -> None:
    on = bench("mqttsn", qos=-1)
    subscribe(on, b"t1")
    publish(on, b"t1", b"hot")
    assert len(on.sent_by(ALICE)) == 1
    assert on.received(BOB) == [(b"t1", b"hot")]
    with pytest.raises(UsageError, match="two characters"):
        publish(on, b"temperature", b"hot")


# -- input ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "topic", "payload", "what"),
    [
        ("colon", b"home/*", b"1", "wildcard"),
        ("colon", b"a:b", b"1", "topic"),
        ("colon", b"", b"1", "empty"),
        ("topicbyte", b"wind", b"1", "temperature, humidity"),
        ("portdigits", b"99", b"1", "bad-value"),
        ("rolebyte", b"two words", b"1", "topic"),
        ("rolebyte", b"t", b"x" * 300, "fit"),
        ("mqttsn", b"a/#", b"1", "topic"),
        ("topicnumber", b"t", b"x" * 1395, "at most 1400"),
    ],
)
def test_what_a_dialect_cannot_carry_is_refused_at_once(name: str, topic: bytes, payload: bytes, what: str) -> None:
    on = bench(name)
    with pytest.raises(UsageError, match=what):
        publish(on, topic, payload)


@pytest.mark.parametrize("name", ["topicbyte", "portdigits", "rolebyte"])
def test_there_is_no_unsubscribing_where_the_dialect_has_none(name: str) -> None:
    with pytest.raises(UsageError, match="unsubscribe"):
        bench(name).clients[BOB].unsubscribe(b"temperature", 0)


@pytest.mark.parametrize("name", ["topicnumber", "rolebyte", "portdigits"])
def test_there_is_no_retaining_where_the_dialect_has_none(name: str) -> None:
    with pytest.raises(UsageError, match="retain"):
        publish(bench(name), b"temperature", b"1", retain=True)


@pytest.mark.parametrize("name", builtin_names())
def test_no_datagram_of_a_broker_breaks_a_client(name: str) -> None:
    random = Random(7)
    on = bench(name, timing=Timing(SECOND, limit=1))
    subscribe(on, b"temperature")
    publish(on, b"temperature", b"20")
    seeds = [datagram for _, _, datagram in on.wire]
    for number in range(1000):
        datagram = bytearray(random.choice(seeds))
        for _ in range(random.randrange(4)):
            datagram[random.randrange(len(datagram))] = random.randrange(256)
        cut = bytes(datagram[: random.randrange(len(datagram) + 1)]) if random.random() < 0.2 else bytes(datagram)
        on.clients[BOB].handle(cut, BROKER, number)
        on.clients[BOB].tick(number)
    on.now = 10 * SECOND
    on.wait(60)
    assert on.clients[BOB].is_idle

"""MQTT-SN sessions: connecting, topic ids, QoS, retained messages, wills, keep-alive and resends."""

import pytest

from pcap_tools import Codec, load_dialect
from pcap_tools.codec.message import Message
from reference_broker import Endpoint
from reference_broker.broker.mqttsn import MqttsnBroker
from reference_broker.messages.sending import SECOND

ALICE, BOB = ("10.0.0.2", 5000), ("10.0.0.3", 5000)
CODEC = Codec(load_dialect("mqttsn"))


class Bench:
    def __init__(self, predefined: dict[int, bytes] | None = None) -> None:
        self.broker = MqttsnBroker(CODEC.dialect, predefined=predefined)
        self.now = 0

    def say(self, source: Endpoint, message: str, **fields: int | bytes | str) -> list[tuple[Endpoint, Message]]:
        self.now += SECOND // 100
        sends = self.broker.handle(CODEC.build(CODEC.message(message, fields)), source, self.now)
        return [(send.to, CODEC.decode(send.datagram)) for send in sends]

    def tick(self, seconds: float) -> list[tuple[Endpoint, Message]]:
        self.now += int(seconds * SECOND)
        return [(send.to, CODEC.decode(send.datagram)) for send in self.broker.tick(self.now)]

    def connect(self, *clients: Endpoint, **fields: int) -> None:
        for client in clients:
            settings = {"protocol_id": 1, "clean_session": 1, "duration": 60, **fields}
            answers = self.say(client, "CONNECT", client_id=f"c{client[0]}", **settings)
            assert [(to, answer.message) for to, answer in answers] == [(client, "CONNACK")]

    def register(self, client: Endpoint, topic: str) -> int:
        (_, answer), *_ = self.say(client, "REGISTER", message_id=9, topic_name=topic)
        assert answer.fields["return_code"] == 0
        return int(answer.fields["topic_id"])


def names(answers: list[tuple[Endpoint, Message]]) -> list[tuple[Endpoint, str | None]]:
    return [(to, answer.message) for to, answer in answers]


def test_a_stranger_is_told_to_connect_first() -> None:
    bench = Bench()
    for message in ("REGISTER", "SUBSCRIBE", "UNSUBSCRIBE", "PUBLISH", "PINGREQ"):
        assert names(bench.say(ALICE, message)) == [(ALICE, "DISCONNECT")]
    assert names(bench.say(ALICE, "SEARCHGW")) == [(ALICE, "GWINFO")]


def test_a_forward_waits_until_the_subscriber_knows_the_topic_id() -> None:
    bench = Bench()
    bench.connect(ALICE, BOB)
    bench.say(BOB, "SUBSCRIBE", topic_name="home/+/light", message_id=1, qos=1)
    topic_id = bench.register(ALICE, "home/room/light")
    answers = bench.say(ALICE, "PUBLISH", topic_id=topic_id, message_id=5, qos=1, data="ON")
    assert names(answers) == [(BOB, "REGISTER"), (ALICE, "PUBACK")]
    register = answers[0][1]
    assert register.topic == b"home/room/light"
    told = {"topic_id": int(register.fields["topic_id"]), "message_id": int(register.fields["message_id"])}
    ((to, publish),) = bench.say(BOB, "REGACK", return_code=0, **told)
    assert (to, publish.message, publish.payload, publish.fields["qos"]) == (BOB, "PUBLISH", b"ON", 1)
    assert bench.say(BOB, "PUBACK", topic_id=told["topic_id"], message_id=int(publish.fields["message_id"])) == []
    assert bench.tick(30) == []


@pytest.mark.parametrize(("published", "wanted", "got"), [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 1)])
def test_qos_is_the_lower_of_both(published: int, wanted: int, got: int) -> None:
    bench = Bench()
    bench.connect(ALICE, BOB)
    bench.say(BOB, "SUBSCRIBE", topic_name="news", message_id=1, qos=wanted)
    topic_id = bench.register(ALICE, "news")
    answers = bench.say(ALICE, "PUBLISH", topic_id=topic_id, message_id=3, qos=published, data="x")
    assert [answer.fields["qos"] for to, answer in answers if to == BOB] == [got]
    assert [answer.message for to, answer in answers if to == ALICE] == (["PUBACK"] if published else [])


def test_qos_minus_one_needs_no_connection() -> None:
    bench = Bench(predefined={7: b"alarm"})
    bench.connect(BOB)
    for text in ("alarm", "ab"):
        bench.say(BOB, "SUBSCRIBE", topic_name=text, message_id=1)
    said = bench.say(ALICE, "PUBLISH", qos=3, topic_id_type=1, topic_id=7, data="fire")
    assert [(to, answer.payload) for to, answer in said] == [(BOB, b"fire")]
    said = bench.say(ALICE, "PUBLISH", qos=3, topic_id_type=2, short_topic="ab", data="short")
    assert [(to, answer.topic, answer.payload) for to, answer in said] == [(BOB, b"ab", b"short")]
    assert bench.say(ALICE, "PUBLISH", qos=3, topic_id_type=0, topic_id=7, data="x") == []


def test_an_unknown_topic_id_is_refused_with_its_code() -> None:
    bench = Bench()
    bench.connect(ALICE)
    for qos in (1, 2):
        ((_, unknown),) = bench.say(ALICE, "PUBLISH", topic_id=99, message_id=4, qos=qos, data="x")
        assert (unknown.message, unknown.fields["return_code"]) == ("PUBACK", 2)


def test_retained_messages_reach_a_later_subscriber_until_cleared() -> None:
    bench = Bench()
    bench.connect(ALICE, BOB)
    topic_id = bench.register(ALICE, "door")
    bench.say(ALICE, "PUBLISH", topic_id=topic_id, message_id=1, qos=1, retain=1, data="open")
    suback, publish = bench.say(BOB, "SUBSCRIBE", topic_name="door", message_id=2, qos=0)
    assert (suback[1].message, publish[1].message) == ("SUBACK", "PUBLISH")
    assert (publish[1].payload, publish[1].retain) == (b"open", True)
    bench.say(ALICE, "PUBLISH", topic_id=topic_id, message_id=2, qos=1, retain=1, data="")
    assert names(bench.say(BOB, "SUBSCRIBE", topic_name="#", message_id=3)) == [(BOB, "SUBACK")]


def test_what_is_not_acknowledged_is_sent_again_with_dup_and_then_given_up() -> None:
    bench = Bench()
    bench.connect(ALICE, BOB, duration=0)
    bench.say(BOB, "SUBSCRIBE", topic_name="news", message_id=1, qos=1)
    topic_id = bench.register(ALICE, "news")
    first = [
        answer
        for to, answer in bench.say(ALICE, "PUBLISH", topic_id=topic_id, message_id=1, qos=1, data="x")
        if to == BOB
    ]
    again = [answer for _ in range(8) for _, answer in bench.tick(10)]
    assert [answer.fields["dup"] for answer in first + again] == [0, 1, 1, 1, 1, 1]
    assert {answer.fields["message_id"] for answer in first + again} == {first[0].fields["message_id"]}
    assert bench.broker.counters["given up"] == 1


def test_a_silent_client_is_let_go_and_its_will_published() -> None:
    bench = Bench()
    bench.connect(BOB, duration=0)
    bench.say(BOB, "SUBSCRIBE", topic_name="wills", message_id=1)
    assert names(bench.say(ALICE, "CONNECT", protocol_id=1, will=1, duration=10, client_id="a")) == [
        (ALICE, "WILLTOPICREQ")
    ]
    assert names(bench.say(ALICE, "WILLTOPIC", will_topic="wills")) == [(ALICE, "WILLMSGREQ")]
    assert names(bench.say(ALICE, "WILLMSG", will_message="gone")) == [(ALICE, "CONNACK")]
    assert bench.tick(14) == []
    assert [(to, answer.payload) for to, answer in bench.tick(2)] == [(BOB, b"gone")]
    assert names(bench.say(ALICE, "PINGREQ")) == [(ALICE, "DISCONNECT")]


def test_a_puback_with_the_id_of_a_register_settles_nothing() -> None:
    bench = Bench()
    bench.connect(ALICE, BOB, duration=0)
    bench.say(BOB, "SUBSCRIBE", topic_name="#", message_id=1, qos=1)
    topic_id = bench.register(ALICE, "news")
    answers = bench.say(ALICE, "PUBLISH", topic_id=topic_id, message_id=1, qos=1, data="x")
    register = next(answer for to, answer in answers if to == BOB)
    told = {"topic_id": int(register.fields["topic_id"]), "message_id": int(register.fields["message_id"])}
    assert bench.say(BOB, "PUBACK", return_code=2, **told) == []
    assert names(bench.say(BOB, "REGACK", return_code=0, **told)) == [(BOB, "PUBLISH")]


def test_a_refused_topic_id_is_registered_again_and_the_message_follows() -> None:
    bench = Bench()
    bench.connect(ALICE, BOB, duration=0)
    bench.say(BOB, "SUBSCRIBE", topic_name="news", message_id=1, qos=1)
    topic_id = bench.register(ALICE, "news")
    answers = bench.say(ALICE, "PUBLISH", topic_id=topic_id, message_id=1, qos=1, data="x")
    publish = next(answer for to, answer in answers if to == BOB)
    refused = {"topic_id": int(publish.fields["topic_id"]), "message_id": int(publish.fields["message_id"])}
    ((_, register),) = bench.say(BOB, "PUBACK", return_code=2, **refused)
    assert (register.message, register.topic) == ("REGISTER", b"news")
    assert register.fields["topic_id"] != refused["topic_id"]
    told = {"topic_id": int(register.fields["topic_id"]), "message_id": int(register.fields["message_id"])}
    ((_, again),) = bench.say(BOB, "REGACK", return_code=0, **told)
    assert (again.message, again.payload) == ("PUBLISH", b"x")


def test_unsubscribe_ping_and_disconnect() -> None:
    bench = Bench()
    bench.connect(ALICE)
    bench.say(ALICE, "SUBSCRIBE", topic_name="a/#", message_id=1)
    assert names(bench.say(ALICE, "UNSUBSCRIBE", topic_name="a/#", message_id=2)) == [(ALICE, "UNSUBACK")]
    assert len(bench.broker.subscriptions) == 0
    assert names(bench.say(ALICE, "PINGREQ")) == [(ALICE, "PINGRESP")]
    bench.say(ALICE, "SUBSCRIBE", topic_name="a/#", message_id=3)
    assert names(bench.say(ALICE, "DISCONNECT")) == [(ALICE, "DISCONNECT")]
    assert (len(bench.broker.subscriptions), len(bench.broker.sessions)) == (0, 0)

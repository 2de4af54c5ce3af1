"""The broker's behaviour, dialect by dialect, as a dialogue of datagrams in and out."""

import pytest

from pcap_tools import Codec, load_dialect
from pcap_tools.dialect import builtin_names
from reference_broker import Broker, Endpoint, Limits, Mistake, broker_for, client_for
from reference_broker.client.requests import EventKind

PUBLISHER, SUBSCRIBER, OTHER = ("10.0.0.2", 50002), ("10.0.0.3", 50003), ("10.0.0.4", 50004)
Sent = list[tuple[bytes, Endpoint]]


class Bench:
    """A broker and a way to talk to it."""

    def __init__(self, dialect: str, *mistakes: Mistake, limits: Limits | None = None) -> None:
        self.codec = Codec(load_dialect(dialect))
        self.broker: Broker = broker_for(self.codec.dialect, limits, mistakes)
        self.now = 0

    def send(self, datagram: bytes, source: Endpoint) -> Sent:
        self.now += 1_000_000
        return [(send.datagram, send.to) for send in self.broker.handle(datagram, source, self.now)]

    def say(self, source: Endpoint, message: str, form: str | None = None, **fields: int | bytes | str) -> list[str]:
        """Send a message; the answers as ``NAME topic-or-text -> port``."""
        built = self.codec.build(self.codec.message(message, fields, form=form))
        return [self.told(datagram, to) for datagram, to in self.send(built, source)]

    def told(self, datagram: bytes, to: Endpoint) -> str:
        read = self.codec.decode(datagram)
        assert read.error is None
        words = [read.message or "?"]
        words += [text.decode() for text in (read.topic, read.payload) if text is not None]
        return " ".join([*words, f"-> {to[1]}"])


# -- colon ------------------------------------------------------------------------------------------------------


def test_colon_forwards_the_same_bytes_and_then_acknowledges() -> None:
    bench = Bench("colon")
    assert bench.send(b"\x03\x00home/*", SUBSCRIBER) == [(b"\x04", SUBSCRIBER)]
    publish = b"\x01\x00home/fan:ON"
    assert bench.send(publish, PUBLISHER) == [(publish, SUBSCRIBER), (b"\x02", PUBLISHER)]
    assert bench.send(b"\x05\x00home/*", SUBSCRIBER) == [(b"\x06", SUBSCRIBER)]
    assert bench.send(publish, PUBLISHER) == [(b"\x02", PUBLISHER)]


def test_colon_a_repeat_adds_nothing_and_overlapping_filters_give_a_copy_each() -> None:
    bench = Bench("colon")
    for text in (b"home/*", b"home/*", b"*/fan"):
        bench.send(b"\x03\x00" + text, SUBSCRIBER)
    publish = b"\x01\x00home/fan:ON"
    assert bench.send(publish, PUBLISHER) == [(publish, SUBSCRIBER)] * 2 + [(b"\x02", PUBLISHER)]


def test_colon_retained_comes_before_the_suback_and_matches_wildcards() -> None:
    bench = Bench("colon")
    kept, newer = b"\x01\x01home/door:open", b"\x01\x01home/door:shut"
    bench.send(kept, PUBLISHER)
    bench.send(newer, PUBLISHER)
    bench.send(b"\x01\x00home/door:ajar", PUBLISHER)  # not retained: leaves what is kept
    assert bench.send(b"\x03\x00home/*", SUBSCRIBER) == [(newer, SUBSCRIBER), (b"\x04", SUBSCRIBER)]
    assert bench.send(b"\x03\x00home/door", OTHER) == [(newer, OTHER), (b"\x04", OTHER)]
    assert bench.send(b"\x03\x00home", OTHER) == [(b"\x04", OTHER)]


def test_colon_padding_is_not_retained() -> None:
    bench = Bench("colon")
    bench.send(b"\x01\x01door:open" + bytes(500), PUBLISHER)
    assert bench.send(b"\x03\x00door", SUBSCRIBER)[0] == (b"\x01\x01door:open", SUBSCRIBER)


def test_colon_an_unknown_filter_is_unsubscribed_with_an_answer() -> None:
    assert Bench("colon").send(b"\x05\x00never", SUBSCRIBER) == [(b"\x06", SUBSCRIBER)]
    assert Bench("colon", Mistake.SILENT_UNSUBSCRIBE).send(b"\x05\x00never", SUBSCRIBER) == []


def test_colon_what_is_refused_is_not_acknowledged() -> None:
    """PUBACK comes after the forwards and SUBACK after the retained message: they say that it was done."""
    bench = Bench("colon", limits=Limits(topic_bytes=20))
    bench.send(b"\x03\x00home/*", SUBSCRIBER)
    assert bench.send(b"\x01\x00home/*:ON", PUBLISHER) == []  # a wildcard cannot be published to
    assert bench.send(b"\x01\x00" + b"x" * 21 + b":ON", PUBLISHER) == []
    assert bench.send(b"\x03\x00" + b"x" * 21, SUBSCRIBER) == []


def test_topicbyte_acknowledges_what_it_refuses_since_its_ack_says_that_it_came() -> None:
    bench = Bench("topicbyte", limits=Limits(topic_bytes=3))
    assert bench.say(PUBLISHER, "MESSAGE", topic=10, text="T:1") == ["ACK -> 50002"]


def test_colon_regular_expressions_are_a_mistake_one_can_switch_on() -> None:
    def forwards(bench: Bench, text: bytes, topic: bytes) -> bool:
        bench.send(b"\x03\x00" + text, SUBSCRIBER)
        return any(to == SUBSCRIBER for _, to in bench.send(b"\x01\x00" + topic + b":1", PUBLISHER))

    for text, topic, right in ((b"a.b", b"axb", False), (b"room(1)", b"room(1)", True)):
        assert forwards(Bench("colon"), text, topic) is right
        assert forwards(Bench("colon", Mistake.REGEX_FILTERS), text, topic) is not right
    broken = Bench("colon", Mistake.REGEX_FILTERS)
    broken.send(b"\x03\x00a(", SUBSCRIBER)
    assert broken.send(b"\x01\x00any:1", PUBLISHER) == []  # unacknowledged, from now on
    assert Bench("colon").send(b"\x01\x00any:1", PUBLISHER) == [(b"\x02", PUBLISHER)]


def test_colon_padded_retained_copies_are_a_mistake() -> None:
    bench = Bench("colon", Mistake.PADDED_RETAINED)
    bench.send(b"\x01\x01door:open", PUBLISHER)
    assert len(bench.send(b"\x03\x00door", SUBSCRIBER)[0][0]) == 65_000


# -- topicbyte --------------------------------------------------------------------------------------------------

ACK = bytes.fromhex("aced00057716010000124f4b202d2052656365697665642074686973")


def test_topicbyte_acknowledges_first_in_the_form_that_came() -> None:
    bench = Bench("topicbyte")
    assert bench.send(bytes.fromhex("aced00057702020a"), SUBSCRIBER) == [(ACK, SUBSCRIBER)]
    assert bench.send(b"\x02\x0a", OTHER) == [(b"\x01\x00OK - Received this", OTHER)]
    message = bytes.fromhex("aced00057711030a000d54656d70657261747572653a30")
    assert bench.send(message, PUBLISHER) == [(ACK, PUBLISHER), (message, SUBSCRIBER), (message, OTHER)]


def test_topicbyte_an_ack_is_not_acknowledged() -> None:
    assert Bench("topicbyte").send(ACK, SUBSCRIBER) == []


def test_topicbyte_humidity_under_temperature_is_a_mistake() -> None:
    for mistakes, answers in (
        ((), ["ACK -> 50002"]),
        ((Mistake.ONE_TOPIC,), ["ACK -> 50002", "MESSAGE temperature T:1 -> 50003"]),
    ):
        bench = Bench("topicbyte", *mistakes)
        bench.say(SUBSCRIBER, "SUB", topic=20)
        assert bench.say(PUBLISHER, "MESSAGE", topic=10, text="T:1") == answers


# -- portdigits -------------------------------------------------------------------------------------------------


def test_portdigits_forwards_to_the_header_port_of_the_subscribers_address_from_another_port() -> None:
    bench = Bench("portdigits")
    assert bench.say(("10.0.0.3", 38166), "SUBSCRIBE", port=12346, topic=1, text="subscribing") == []
    publish = bench.codec.build(bench.codec.message("PUBLISH", port=12345, topic=1, text="14C"))
    sends = bench.broker.handle(publish, PUBLISHER, 0)
    assert [(send.datagram, send.to, send.ephemeral) for send in sends] == [(publish, ("10.0.0.3", 12346), True)]


@pytest.mark.parametrize("port", [0, 22, 53, 1023, 65536])
def test_portdigits_never_aims_at_a_privileged_or_impossible_port(port: int) -> None:
    bench = Bench("portdigits")
    bench.say(SUBSCRIBER, "SUBSCRIBE", port=port, topic=1)
    assert bench.say(PUBLISHER, "PUBLISH", port=12345, topic=1, text="x") == []


# -- topicnumber ------------------------------------------------------------------------------------------------


def test_topicnumber_echoes_tells_and_forwards() -> None:
    bench = Bench("topicnumber")
    create = bench.codec.build(bench.codec.message("CREATION", topic_number=7, text="news"))
    echo, status = bench.send(create, PUBLISHER)
    assert echo == (b"\x00" + create[1:], PUBLISHER)
    assert bench.told(*status) == "MESSAGE The topic news was created. -> 50002"
    assert bench.say(SUBSCRIBER, "SUBSCRIPTION", text="news") == [
        "ACK -> 50003",
        "MESSAGE The topic news is subscribed to. -> 50003",
    ]
    assert bench.say(PUBLISHER, "PUBLICATION", topic_number=7, text="hello") == [
        "ACK -> 50002",
        "PUBLICATION 7 hello -> 50003",
        "MESSAGE The topic news was published. -> 50002",
    ]
    assert bench.say(SUBSCRIBER, "UNSUBSCRIPTION", text="news")[-1].startswith("MESSAGE The topic news is no longer")


def test_topicnumber_says_so_when_a_request_fails() -> None:
    bench = Bench("topicnumber")
    assert "This topic does not exist." in bench.say(SUBSCRIBER, "SUBSCRIPTION", text="nothing")[-1]
    assert "was not subscribed to" in bench.say(SUBSCRIBER, "UNSUBSCRIPTION", text="nothing")[-1]
    assert "could not be published" in bench.say(PUBLISHER, "PUBLICATION", topic_number=3, text="x")[-1]


def test_topicnumber_refuses_with_a_nak_only_when_told_to() -> None:
    bench = Bench("topicnumber")
    bench.broker.naks = True
    request = bench.codec.build(bench.codec.message("SUBSCRIPTION", text="nothing"))
    refusal, _ = bench.send(request, SUBSCRIBER)
    assert refusal == (b"\x01" + request[1:], SUBSCRIBER)
    assert bench.say(PUBLISHER, "CREATION", topic_number=1, text="news")[0] == "ACK -> 50002"


def test_topicnumber_a_client_takes_a_nak_for_a_refusal() -> None:
    bench, client = Bench("topicnumber"), client_for(load_dialect("topicnumber"), ("10.0.0.1", 50003))
    bench.broker.naks = True
    (sent,) = client.subscribe(b"nothing", now=0)
    refusal, _ = bench.send(sent.datagram, SUBSCRIBER)
    _, (event, *_) = client.handle(refusal[0], ("10.0.0.1", 50003), now=1)
    assert (event.kind, event.topic) == (EventKind.REFUSED, b"nothing")


def test_topicnumber_numbers_belong_to_their_publisher() -> None:
    for mistakes, reaches in (((), 0), ((Mistake.SHARED_NUMBERS,), 1)):
        bench = Bench("topicnumber", *mistakes)
        bench.say(PUBLISHER, "CREATION", topic_number=0, text="news")
        bench.say(OTHER, "CREATION", topic_number=0, text="sport")
        bench.say(SUBSCRIBER, "SUBSCRIPTION", text="news")
        answers = bench.say(OTHER, "PUBLICATION", topic_number=0, text="goal")
        assert sum(answer.startswith("PUBLICATION") for answer in answers) == reaches


def test_topicnumber_a_repeated_subscription_is_a_second_copy() -> None:
    bench = Bench("topicnumber")
    bench.say(PUBLISHER, "CREATION", topic_number=1, text="news")
    for _ in range(2):
        bench.say(SUBSCRIBER, "SUBSCRIPTION", text="news")
    answers = bench.say(PUBLISHER, "PUBLICATION", topic_number=1, text="x")
    assert sum(answer.startswith("PUBLICATION") for answer in answers) == 2


# -- rolebyte ---------------------------------------------------------------------------------------------------


def test_rolebyte_the_loop_of_the_report() -> None:
    bench = Bench("rolebyte")
    dashboard, actuator, sensor = ("10.0.0.3", 50002), ("10.0.0.5", 50008), ("10.0.0.4", 50003)
    assert bench.say(dashboard, "DASHBOARD_SUBSCRIBE", filter="temperature/room1") == ["ACK -> 50002"]
    assert bench.say(actuator, "ACTUATOR_SUBSCRIBE", filter="temperature/room1Instructions") == ["ACK -> 50008"]
    assert bench.send(b"\x03\x14temperature/room1 20", sensor) == [
        (b"\x07\x0a", sensor),
        (b"\x02\x14temperature/room1 20", dashboard),
    ]
    assert bench.send(b"\x07\x0a", dashboard) == []
    instruct = {"topic": "temperature/room1Instructions", "value": "raise_temperature"}
    assert bench.say(dashboard, "DASHBOARD_PUBLISH", **instruct) == [
        "ACK -> 50002",
        "BROKER temperature/room1Instructions raise_temperature -> 50008",
    ]
    done = {"topic": "temperature/room1Instructions", "value": "Instructions_completed_as_per_request"}
    assert bench.say(actuator, "ACTUATOR_PUBLISH", **done) == [
        "ACK -> 50008",
        "BROKER temperature/room1 Instructions_completed_as_per_request -> 50002",
    ]


def test_rolebyte_subscribing_again_adds_no_copy() -> None:
    bench = Bench("rolebyte")
    for _ in range(2):
        bench.say(SUBSCRIBER, "DASHBOARD_SUBSCRIBE", filter="t")
    assert bench.say(PUBLISHER, "SENSOR_PUBLISH", topic="t", value="1") == ["ACK -> 50002", "BROKER t 1 -> 50003"]


def test_rolebyte_texts_above_127_bytes_break_only_by_mistake() -> None:
    value = "x" * 150
    assert Bench("rolebyte").say(PUBLISHER, "SENSOR_PUBLISH", topic="t", value=value) == ["ACK -> 50002"]
    assert Bench("rolebyte", Mistake.SIGNED_LENGTH).say(PUBLISHER, "SENSOR_PUBLISH", topic="t", value=value) == []


# -- every dialect ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", builtin_names())
def test_two_brokers_cannot_be_made_to_answer_each_other_for_ever(dialect: str) -> None:
    bench, other = Bench(dialect), Bench(dialect)
    for message in bench.codec.dialect.messages:
        datagrams = [bench.codec.build(bench.codec.message(message))]
        for _ in range(20):
            datagrams = [answer for datagram in datagrams for answer, _ in bench.send(datagram, OTHER)]
            bench, other = other, bench
        assert datagrams == []


@pytest.mark.parametrize("dialect", builtin_names())
def test_the_same_datagrams_give_the_same_answers(dialect: str) -> None:
    first, second = Bench(dialect), Bench(dialect)
    for message in first.codec.dialect.messages * 3:
        datagram = first.codec.build(first.codec.message(message))
        for source in (PUBLISHER, SUBSCRIBER):
            assert first.send(datagram, source) == second.send(datagram, source)

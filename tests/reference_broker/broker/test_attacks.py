"""A broker under attack, in a time of its own: it keeps its limits and still serves. With real sockets:
test_attacks_live.py. Damage of the state file: test_attacks_state.py.

What is tested elsewhere: kill -9 during load (test_state), every cut or altered byte of a state file (test_state), ACK
loops and privileged ports (test_core), single limits (test_limits), any bytes at all (test_core_fuzz).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from random import Random

import pytest

from pcap_tools.dialect import builtin_names, load_dialect
from reference_broker import Broker, Endpoint, Limits, Send, broker_for
from reference_broker.broker.limits import MAX_PASSES, OPTIONS
from reference_broker.broker.turns import SLICE
from reference_broker.messages.sending import SECOND
from tests.steps import steps_of
from tests.vectors import dialect_of

VICTIM, ATTACKER, CLIENT = ("198.51.100.7", 40_000), ("203.0.113.9", 40_001), ("192.0.2.5", 40_002)
PUBACK, SUBACK = b"\x02", b"\x04"
MANY = Limits(requests_by_second=10**9)
BIG = b"x" * 100

# By hand: what the victim is made to ask for, and what the attacker then says under that topic.
CONNECT = bytes.fromhex("0904040100006d6531")
REQUESTS = {
    "colon": ([b"\x03\x00a"], [b"\x01\x00a:" + BIG]),
    "mqttsn": ([CONNECT, bytes.fromhex("0712200001") + b"ab"], [CONNECT, b"\x6b\x0c\x22ab\x00\x01" + BIG]),
    "portdigits": ([b"40000001s"], [b"12345101" + BIG]),
    "rolebyte": ([b"\x01\x01t"], [b"\x03\x66t " + BIG]),
    "topicbyte": ([b"\x02\x0a"], [b"\x03\x0a" + BIG]),
    "topicnumber": (
        [b"\x06\x00\x00\x00\x00\x00t"],
        [b"\x04\x00\x00\x00\x00\x00t", b"\x05\x00\x00\x00\x00\x00" + BIG],
    ),
}


def served(broker: Broker, now: int = 10**15) -> bool:
    """Whether a plain client of colon still gets what it subscribed to, and its ACK."""
    subscriber = ("192.0.2.6", 40_003)
    answers = [Send(SUBACK, subscriber)] == broker.handle(b"\x03\x00still/there", subscriber, now)
    forwards = broker.handle(b"\x01\x00still/there:x", CLIENT, now)
    return answers and forwards == [Send(b"\x01\x00still/there:x", subscriber), Send(PUBACK, CLIENT)]


def colon(limits: Limits = MANY) -> Broker:
    return broker_for(load_dialect("colon"), limits)


# -- reflection and amplification -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", builtin_names())
def test_reflection_and_amplification_from_spoofed_sources_stay_within_the_limit(dialect: str) -> None:
    """A stranger asks in the victim's name, from many of its ports, and then publishes: the victim, who never says a
    word, gets at most three times the bytes that came in its name, at any moment."""
    broker = broker_for(load_dialect(dialect), Limits(trust_silent=False))
    asked, said = REQUESTS[dialect]
    sent_in_its_name = got = 0
    for number in range(300):
        sends: list[Send] = []
        now = number * SECOND
        if number % 30 == 0:
            for datagram in asked:
                sent_in_its_name += len(datagram)
                sends += broker.handle(datagram, (VICTIM[0], VICTIM[1] + number), now)
        for datagram in said:
            sends += broker.handle(datagram, ATTACKER, now)
        got += sum(len(send.datagram) for send in sends + broker.tick(now) if send.to[0] == VICTIM[0])
        assert got <= 3 * sent_in_its_name
    assert got > 0
    assert broker.counters["refused: amplification"] > 0


def test_a_guessed_ack_in_the_victims_name_does_not_lift_the_limit() -> None:
    """MQTT-SN: only an ACK of something on its way tells that somebody is there."""
    broker = broker_for(load_dialect("mqttsn"), Limits(trust_silent=False))
    for datagram in REQUESTS["mqttsn"][0]:
        broker.handle(datagram, VICTIM, 0)
    broker.handle(CONNECT, ATTACKER, 0)
    publish = REQUESTS["mqttsn"][1][1]
    for _ in range(20):
        broker.handle(publish, ATTACKER, 0)
    for name in ("070d0000ffff00", "070b0000ffff00"):  # PUBACK and REGACK of message 65535
        broker.handle(bytes.fromhex(name), VICTIM, 0)
    assert [send for send in broker.handle(publish, ATTACKER, 0) if send.to == VICTIM] == []


# -- floods -----------------------------------------------------------------------------------------------------------


def test_a_subscription_flood_from_all_ports_of_one_address_leaves_room_for_others() -> None:
    limits = Limits(requests_by_second=10**9, subscriptions=5_000)
    broker = colon(limits)
    for number in range(20_000):
        broker.handle(b"\x03\x00flood/%d" % (number % 7), (ATTACKER[0], 1_024 + number), 0)
    assert len(broker.subscriptions) == limits.subscriptions_by_source
    assert served(broker)


def test_a_subscription_flood_from_many_addresses_ends_at_the_limit() -> None:
    broker = colon(Limits(requests_by_second=10**9, subscriptions=2_000))
    assert broker.handle(b"\x03\x00mine", CLIENT, 0)
    for number in range(5_000):
        broker.handle(b"\x03\x00flood/%d" % number, (f"10.1.{number // 250}.{number % 250}", 4_000), 0)
    assert len(broker.subscriptions) == 2_000
    assert Send(b"\x01\x00mine:x", CLIENT) in broker.handle(b"\x01\x00mine:x", ATTACKER, 0)


def test_a_retained_flood_of_small_messages_takes_half_of_the_places_at_most() -> None:
    """One address filled all places in seconds, and honest retained publishes then got no ACK."""
    broker = colon()
    assert broker.handle(b"\x01\x01mine:first", CLIENT, 0)
    half = broker.limits.retained // 2
    answers = [broker.handle(b"\x01\x01%x:" % number, ATTACKER, 0) for number in range(broker.limits.retained)]
    assert sum(bool(sends) for sends in answers) == len(broker.retained) - 1 == half, "what is not kept gets no ACK"
    assert broker.counters["refused: retained messages"] == half
    for number in range(1_000):
        assert broker.handle(b"\x01\x01honest/%d:x" % number, CLIENT, 0)
    assert broker.handle(b"\x01\x01mine:second", CLIENT, 0), "what is there may be replaced"
    assert broker.handle(b"\x03\x00mine", CLIENT, 0)[0].datagram == b"\x01\x01mine:second"
    assert served(broker)


def test_a_retained_flood_of_large_messages_ends_at_the_limit_of_bytes() -> None:
    broker = colon()
    for number in range(400):
        broker.handle(b"\x01\x01%d:" % number + b"x" * 60_000, ATTACKER, 0)
    assert sum(len(topic) + len(datagram) for topic, datagram in broker.retained) <= broker.limits.retained_bytes
    assert broker.counters["refused: retained bytes"] > 0
    assert served(broker)


def test_a_flood_of_connections_does_not_lock_clients_out() -> None:
    """Connections that never say another word make room for new ones; those in use stay."""
    broker = broker_for(load_dialect("mqttsn"), Limits(requests_by_second=10**9, sessions=200))
    broker.handle(CONNECT, CLIENT, 0)
    broker.handle(bytes.fromhex("0712200001") + b"ab", CLIENT, 1)
    for number in range(1_000):
        broker.handle(CONNECT, (f"10.1.{number // 250}.{number % 250}", 4_000), 2)
    assert len(broker.sessions) == 200  # type: ignore[attr-defined]
    assert broker.handle(CONNECT, ATTACKER, 3) == [Send(b"\x03\x05\x00", ATTACKER)]
    forwards = broker.handle(b"\x08\x0c\x02ab\x00\x00x", ATTACKER, 3)
    assert [send.to for send in forwards] == [CLIENT]


def test_sessions_of_one_address_leave_room_for_others() -> None:
    """10,000 connections without a keep-alive time from one address locked everybody out, for ever."""
    broker = broker_for(load_dialect("mqttsn"), MANY)
    for number in range(broker.limits.sessions):
        flooding = (ATTACKER[0], 1_024 + number)
        broker.handle(CONNECT, flooding, 0)
        broker.handle(bytes.fromhex("0216"), flooding, 1)  # PINGREQ: they are in use
    assert len(broker.sessions) == broker.limits.sessions // 2  # type: ignore[attr-defined]
    assert broker.handle(CONNECT, CLIENT, 2) == [Send(b"\x03\x05\x00", CLIENT)]


def test_unacknowledged_messages_of_one_address_are_limited_in_bytes_and_resent_in_slices() -> None:
    """60 sessions of one address that never acknowledge and 60,000 publishes of 60 kB took 3.5 GB, and 6.9 GB at the
    first resend, in ticks of half a minute."""
    broker = broker_for(load_dialect("mqttsn"), MANY)
    sessions = [(ATTACKER[0], 1_024 + number) for number in range(60)]
    for one in sessions:
        broker.handle(CONNECT, one, 0)
        broker.handle(bytes.fromhex("0712200001") + b"ab", one, 0)
    publish = b"\x01" + (60_000).to_bytes(2, "big") + b"\x0c\x22ab\x00\x01"
    publish += b"x" * (60_000 - len(publish))
    forwards = 0
    for number in range(100):
        sends = broker.handle(publish, sessions[number % 60], 0)
        assert len(sends) <= 61
        forwards += sum(len(send.datagram) > 1_000 for send in sends)
    assert 0 < forwards * 60_000 <= broker.limits.unacknowledged_bytes
    sizes = [sum(len(send.datagram) for send in broker.tick((11 + number) * SECOND)) for number in range(100)]
    assert 0 < max(sizes) < 2 << 20, "bytes in one tick"


# -- work that one datagram starts ------------------------------------------------------------------------------------


def retained_by(broker: Broker, number: int, hosts: int = 10) -> None:
    for one in range(number):
        assert broker.handle(b"\x01\x01kept/%d:x" % one, (f"192.0.2.{100 + one % hosts}", 4_000), 0)


def finished(broker: Broker) -> list[Send]:
    sends: list[Send] = []
    while broker.turns:
        sends += broker.proceed(0)
    return sends


def test_retained_messages_are_replayed_in_slices_in_turn_with_other_work() -> None:
    """100 SUBSCRIBE of 3 bytes at 20,000 retained messages were 2,020,100 datagrams, before anybody else's."""
    broker = colon()
    retained_by(broker, 15_000)
    most = 0
    for number in range(100):
        request = b"\x03\x00" + b"*" * (1 + number)
        most = max(most, len(broker.handle(request, ATTACKER, 0)))
        assert steps_of(broker.handle, request, ATTACKER, 0) < 2_000, "a repeat starts nothing"
    assert most <= SLICE
    others = broker.handle(b"\x01\x00other:x", CLIENT, 0)
    assert Send(PUBACK, CLIENT) in others
    assert broker.handle(b"\x03\x00kept/7", CLIENT, 0) == [Send(b"\x01\x01kept/7:x", CLIENT), Send(SUBACK, CLIENT)]
    assert steps_of(broker.proceed, 0) < 80 * SLICE
    first = broker.handle(b"\x03\x00kept/1*", VICTIM, 0)
    turns = 0
    while Send(SUBACK, VICTIM) not in first:
        first += [send for send in broker.proceed(0) if send.to == VICTIM]
        turns += 1
    assert turns < 60, "the attacker's work gets every second slice at most"
    assert len(first) == 1 + sum(str(number).startswith("1") for number in range(15_000))


def test_a_replay_that_is_repeated_at_once_is_sent_once() -> None:
    broker = colon()
    retained_by(broker, 5_000)
    first = broker.handle(b"\x03\x00*", CLIENT, 0) + finished(broker)
    assert len(first) == 5_000 + 1
    for number in range(10):
        assert broker.handle(b"\x03\x00*", CLIENT, number) + finished(broker) == [Send(SUBACK, CLIENT)]
    again = broker.handle(b"\x03\x00*", CLIENT, 5 * SECOND) + finished(broker)
    assert len(again) == 5_000 + 1, "a resend after its time gets everything again"


def test_subscribing_anew_each_time_gets_no_more_slices_at_once_than_an_address_may_ask_for() -> None:
    broker = broker_for(load_dialect("colon"), Limits())
    retained_by(broker, 60)
    at_once = 0
    for _ in range(2_000):
        at_once += len(broker.handle(b"\x03\x00*", ATTACKER, 0)) + len(broker.handle(b"\x05\x00*", ATTACKER, 0))
    assert at_once < broker.limits.requests_by_second


def test_a_publish_to_very_many_subscribers_goes_in_slices_and_in_order() -> None:
    broker = colon()
    for number in range(3_000):
        broker.handle(b"\x03\x00a", (f"10.9.{number // 250}.{number % 250}", 4_000), 0)
    sends = broker.handle(b"\x01\x00a:1", CLIENT, 0)
    assert len(sends) == SLICE
    assert Send(PUBACK, ATTACKER) in broker.handle(b"\x01\x00b:x", ATTACKER, 0)
    sends += broker.handle(b"\x01\x00a:2", CLIENT, 0) + broker.handle(b"\x01\x00b:3", CLIENT, 0) + finished(broker)
    said = [send.datagram for send in sends]
    assert said == [b"\x01\x00a:1"] * 3_000 + [PUBACK] + [b"\x01\x00a:2"] * 3_000 + [PUBACK, PUBACK]


def test_changes_of_subscriptions_cost_the_same_however_many_there_are() -> None:
    """A new subscription took 2.7 ms at 99,000 addresses, and any change forgot the routes of all topics."""
    costs = []
    for clients in (10, 5_000):
        broker = colon()
        for number in range(clients):
            assert broker.handle(b"\x03\x00quiet/%d" % number, (f"10.9.{number // 250}.{number % 250}", 4_000), 0)
        publish = b"\x01\x00quiet/1:x"
        broker.handle(publish, CLIENT, 0)
        known = steps_of(broker.handle, publish, CLIENT, 0)
        new = steps_of(broker.handle, b"\x03\x00new/*", ATTACKER, 0)
        after = steps_of(broker.handle, publish, CLIENT, 0)
        gone = steps_of(broker.handle, b"\x05\x00new/*", ATTACKER, 0)
        assert after < 1.6 * known
        costs.append((new, after, gone))
    assert costs[0] == costs[1]


def test_routes_are_right_after_any_changes() -> None:
    """Beside a broker that has never seen the topic before, and so remembers nothing."""
    chance = Random(7)
    broker, texts = colon(), [b"a", b"a/*", b"*", b"*b", b"a*b", b"*/b", b"a/b", b"*a*b*"]
    current: set[tuple[bytes, Endpoint]] = set()
    for number in range(3_000):
        text, endpoint = chance.choice(texts), (f"192.0.2.{chance.randrange(4)}", 4_000)
        if chance.random() < 0.5:
            broker.handle(b"\x03\x00" + text, endpoint, 0)
            current.add((text, endpoint))
        else:
            broker.handle(b"\x05\x00" + text, endpoint, 0)
            current.discard((text, endpoint))
        if number % 300 < 3:  # some topics fall far behind
            topic = chance.choice([b"a", b"b", b"a/b", b"c"])
            fresh = colon()
            for text, endpoint in sorted(current):
                fresh.handle(b"\x03\x00" + text, endpoint, 0)
            publish = b"\x01\x00" + topic + b":x"
            assert sorted(broker.handle(publish, CLIENT, 0)) == sorted(fresh.handle(publish, CLIENT, 0))


def test_a_refusal_is_reported_at_once_with_its_reason() -> None:
    broker = broker_for(load_dialect("colon"), Limits(topic_bytes=3, subscriptions_by_source=1))
    said: list[tuple[str, str]] = []
    broker.on_refusal = lambda reason, host: said.append((reason, host))
    for request in (b"\x01\x00long:x", b"\x03\x00a", b"\x03\x00b", b"\x03\x00long"):
        broker.handle(request, ATTACKER, 0)
    reasons = ["topic", "too many subscriptions", "filter"]
    assert said == [(reason, ATTACKER[0]) for reason in reasons]
    assert set(reasons) <= set(OPTIONS)


# -- hostile filters and topics ---------------------------------------------------------------------------------------


def hostile_texts() -> Iterator[tuple[str, bytes]]:
    yield "64 kB", b"x" * 65_000
    yield "64 kB of wildcards", b"*" * 65_000
    yield "30,000 levels", b"/".join([b"a"] * 30_000)
    yield "65 levels", b"/".join([b"a"] * 65)
    yield "one byte too long", b"x" * 1_025


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in hostile_texts()])
def test_hostile_filters_and_deep_topics_beyond_the_limits_leave_nothing_behind(text: bytes) -> None:
    broker = colon()
    requests = [b"\x03\x00" + text, b"\x01\x01" + text.replace(b"*", b"y") + b":1"]
    for request in requests:
        assert broker.handle(request, ATTACKER, 0) == []
    cost = sum(steps_of(partial(broker.handle, request, ATTACKER, 0)) for request in requests)
    assert (len(broker.subscriptions), len(broker.retained)) == (0, 0)
    assert served(broker)
    short = [b"\x03\x00a", b"\x01\x01a:1"]
    assert cost < 2 * sum(steps_of(partial(broker.handle, request, ATTACKER, 0)) for request in short)


def star_filters() -> Iterator[bytes]:
    """`*aaa*aaa*aa…*b*`: what makes backtracking matchers hang where many an `a` and no `b` follows."""
    return (b"\x03\x00" + b"*aaa" * (150 + number % 50) + b"*aa" * (number // 50) + b"*b*" for number in count())


def level_filters() -> Iterator[bytes]:
    """64 levels of `**`, `*` and `a` in every mixture."""
    mixture = (number * 2_654_435_761 % 2**64 for number in count(1))
    for bits in mixture:
        levels = [(b"**", b"*", b"a")[(bits >> place * 2 & 3) % 3] for place in range(32)] * 2
        yield b"sub:" + b"/".join(levels) + b"\r\n"


@pytest.mark.parametrize(
    ("dialect", "filters", "publish"),
    [
        pytest.param("colon", star_filters, b"\x01\x00" + b"a" * 1_000 + b":x", id="any-run"),
        pytest.param("keywords", level_filters, b"pub:" + b"a/" * 62 + b"a1::x\r\n", id="any-levels"),
    ],
)
def test_hostile_filters_of_one_address_cost_a_publish_little(
    dialect: str, filters: Callable[[], Iterator[bytes]], publish: bytes
) -> None:
    """A thousand of them, which each publish to a new topic had to be compared with, took 130 ms."""
    broker = broker_for(dialect_of(dialect), MANY)
    taken = sum(bool(broker.handle(request, ATTACKER, 0)) for request in islice(filters(), 1_000))
    assert 0 < taken == len(broker.subscriptions)
    assert broker.counters["refused: too many wildcards"] == 1_000 - taken > 0
    assert steps_of(lambda: broker.handle(publish, CLIENT, 0)) < 15 * broker.limits.wildcards_by_source
    assert broker.counters["PUBLISH"] == 1


def test_the_deepest_topic_that_is_allowed_still_arrives() -> None:
    broker, deepest = colon(), b"/".join([b"a"] * 64)
    broker.handle(b"\x03\x00a/*", CLIENT, 0)
    assert Send(b"\x01\x00" + deepest + b":x", CLIENT) in broker.handle(b"\x01\x00" + deepest + b":x", ATTACKER, 0)


# -- loops ------------------------------------------------------------------------------------------------------------


def passes(dialect: str, one: Endpoint, other: Endpoint, datagram: bytes) -> int:
    """How often two brokers that are subscribed to each other hand something over."""
    brokers = {one: broker_for(load_dialect(dialect), MANY), other: broker_for(load_dialect(dialect), MANY)}
    for here, there in ((one, other), (other, one)):
        for request in REQUESTS[dialect][0]:
            brokers[here].handle(request.replace(b"40000", b"%05d" % there[1]), there, 0)
    on_their_way, handed = [(CLIENT, one, datagram)], 0
    while on_their_way and handed < 10_000:
        source, to, datagram = on_their_way.pop(0)
        handed += 1
        for send in brokers[to].handle(datagram, source, handed * 1_000):
            if send.to in brokers:
                on_their_way.append(((to[0], 50_123) if send.ephemeral else to, send.to, send.datagram))
    return handed


@pytest.mark.parametrize("dialect", [name for name in builtin_names() if name != "mqttsn"])
def test_two_brokers_subscribed_to_each_other_do_not_loop_for_ever(dialect: str) -> None:
    """Neither their ACKs nor their forwards. MQTT-SN brokers do not connect to each other: nobody is forwarded to."""
    publish = REQUESTS[dialect][1][-1]
    assert passes(dialect, ("192.0.2.1", 50_000), ("192.0.2.2", 50_000), publish) <= 5 * MAX_PASSES


def test_a_client_that_hears_itself_may_say_the_same_a_thousand_times() -> None:
    """Once in a while is no loop, and what was refused is taken when it is sent again."""
    broker = colon()
    broker.handle(b"\x03\x00a", CLIENT, 0)
    same = b"\x01\x00a:ON"
    assert all(broker.handle(same, CLIENT, number * SECOND // 5) for number in range(1_000))
    quick = [bool(broker.handle(same, CLIENT, 10**15 + number)) for number in range(MAX_PASSES + 2)]
    assert quick == [True] * MAX_PASSES + [False, True]


# -- clock jumps ------------------------------------------------------------------------------------------------------

JUMPS = [3_600, -3_600, 10 * 365 * 86_400, -10 * 365 * 86_400, 1]


def test_clock_jumps_back_and_forward_lose_no_subscription_and_no_retained_message() -> None:
    broker, now = colon(), 10**18
    broker.handle(b"\x03\x00a", CLIENT, now)
    broker.handle(b"\x01\x01b:kept", CLIENT, now)
    for jump in JUMPS:
        now += jump * SECOND
        broker.tick(now)
        assert Send(b"\x01\x00a:x", CLIENT) in broker.handle(b"\x01\x00a:x", ATTACKER, now)
        assert broker.handle(b"\x03\x00b", VICTIM, now)[0].datagram == b"\x01\x01b:kept"


def test_clock_jumps_end_mqttsn_sessions_at_most_and_clients_can_come_back() -> None:
    broker, now = broker_for(load_dialect("mqttsn")), 10**18
    connect = bytes.fromhex("0904040100146d6531")  # 20 s of keep-alive
    for jump in JUMPS:
        now += jump * SECOND
        broker.tick(now)
        assert broker.handle(connect, CLIENT, now)[-1].datagram == b"\x03\x05\x00"
        broker.handle(bytes.fromhex("0712200001") + b"ab", CLIENT, now)
        broker.handle(connect, ATTACKER, now)
        sends = broker.handle(b"\x08\x0c\x02ab\x00\x00x", ATTACKER, now)
        assert CLIENT in [send.to for send in sends]

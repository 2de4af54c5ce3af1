"""Each limit of a broker: its default, its option, and what happens beyond it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
import typer

from pcap_tools.dialect import load_dialect
from reference_broker import Broker, Endpoint, Limits, broker_for
from reference_broker.broker.limits import MAX_ACCOUNTS, Accounts
from reference_broker.messages.sending import SECOND
from tests.reference_broker.running import running_broker
from topicshark.commands.traffic import broker as command

ONE, OTHER = ("127.0.0.1", 40_000), ("127.0.0.2", 40_000)
PUBACK, SUBACK = b"\x02", b"\x04"
NAMES = [field.name for field in fields(Limits)]


def colon_broker(**limits: float | None) -> Broker:
    return broker_for(load_dialect("colon"), Limits(**limits))  # type: ignore[arg-type]


def sent(broker: Broker, datagram: bytes, source: Endpoint = ONE, now: int = 0) -> list[tuple[bytes, Endpoint]]:
    return [(send.datagram, send.to) for send in broker.handle(datagram, source, now)]


# -- options --------------------------------------------------------------------------------------------------------


def test_every_limit_has_a_test_and_the_defaults_are_these() -> None:
    assert {f"test_{name}" for name in NAMES} <= globals().keys()
    by_address = (1_000, 100_000, 4_000, 50_000, 20_000, 16 << 20, 10_000, 64 << 20)
    assert Limits() == Limits(*by_address, 1_024, 64, 65_507, 20_000, 3.0, True)


@pytest.mark.parametrize("name", NAMES)
def test_every_limit_has_an_option_with_its_default(name: str) -> None:
    options = {option.name: option for option in typer.main.get_command(command.app).params}
    assert f"--{name.replace('_', '-')}" in options[name].opts
    wanted = None if name == "trust_silent" else getattr(Limits(), name)  # that one depends on the address
    assert options[name].default == wanted


BEYOND = {
    "subscriptions_by_source": ("1", [b"\x03\x00a", b"\x03\x00b"], "refused: too many subscriptions 1"),
    "subscriptions": ("1", [b"\x03\x00a", b"\x03\x00b"], "refused: too many subscriptions 1"),
    "wildcards_by_source": ("1", [b"\x03\x00*a*b*"], "refused: too many wildcards 1"),
    "wildcards": ("1", [b"\x03\x00*a*b*"], "refused: too many wildcards 1"),
    "retained": ("1", [b"\x01\x01a:1", b"\x01\x01b:1"], "refused: retained messages 1"),
    "retained_bytes": ("5", [b"\x01\x01a:12345"], "refused: retained bytes 1"),
    "topic_bytes": ("3", [b"\x01\x00four:x"], "refused: topic 1"),
    "topic_depth": ("2", [b"\x01\x00a/b/c:x"], "refused: topic 1"),
    "datagram_bytes": ("10", [b"\x01\x00a:1234567"], "refused: too large 1"),
    "requests_by_second": ("1", [b"\x03\x00a"] * 100, "refused: too quick "),
    "amplification": ("0.1", [b"\x03\x00a"], "refused: amplification 1"),
}


@pytest.mark.net
@pytest.mark.parametrize("name", BEYOND)
def test_the_option_reaches_the_broker(tmp_path: Path, name: str) -> None:
    value, datagrams, counted = BEYOND[name]
    options = [f"--{name.replace('_', '-')}", value]
    if name == "amplification":
        options.append("--no-trust-silent")
    with running_broker(tmp_path, *options) as broker, broker.peer() as client:
        for datagram in datagrams:
            client.send(datagram)
        broker.wait_for_count("received", len(datagrams))
        broker.stop()
        assert counted in broker.err


# -- behaviour ------------------------------------------------------------------------------------------------------


def test_subscriptions_by_source() -> None:
    broker = colon_broker(subscriptions_by_source=2)
    answers = [sent(broker, b"\x03\x00" + text) for text in (b"a", b"b", b"c", b"b")]
    assert answers == [[(SUBACK, ONE)], [(SUBACK, ONE)], [], [(SUBACK, ONE)]]
    assert sent(broker, b"\x03\x00c", OTHER) == [(SUBACK, OTHER)]
    assert sent(broker, b"\x05\x00a") == [(b"\x06", ONE)]
    assert sent(broker, b"\x03\x00c") == [(SUBACK, ONE)]


def test_subscriptions() -> None:
    broker = colon_broker(subscriptions=1)
    assert sent(broker, b"\x03\x00a") == [(SUBACK, ONE)]
    assert sent(broker, b"\x03\x00a", OTHER) == []
    assert sent(broker, b"\x01\x00a:x", OTHER) == [(b"\x01\x00a:x", ONE), (PUBACK, OTHER)]


def test_retained_bytes() -> None:
    broker = colon_broker(retained_bytes=30)
    sent(broker, b"\x01\x01a:12345")  # a topic of 1 and a datagram of 9
    sent(broker, b"\x01\x01b:12345")
    sent(broker, b"\x01\x01c:12345", OTHER)
    sent(broker, b"\x01\x01d:1", OTHER)
    kept = [b"\x01\x01a:12345", b"\x01\x01b:12345", b"\x01\x01c:12345"]
    assert [datagram for datagram, _ in sent(broker, b"\x03\x00*")] == [*kept, SUBACK]
    sent(broker, b"\x01\x01a:54321")  # replacing needs no more room
    assert dict(broker.retained)[b"a"] == b"\x01\x01a:54321"


def test_retained() -> None:
    """An address may hold as many as remain free; so one alone gets half, and the rest is for others."""
    broker = colon_broker(retained=10)
    answers = [sent(broker, b"\x01\x01%d:x" % number) for number in range(10)]
    assert [bool(answer) for answer in answers] == [True] * 5 + [False] * 5
    others = [(f"127.0.1.{number}", 40_000) for number in range(7)]
    assert [bool(sent(broker, b"\x01\x01of %d:x" % number, one)) for number, one in enumerate(others)] == (
        [True] * 5 + [False] * 2
    )


def test_wildcards_by_source() -> None:
    broker = colon_broker(wildcards_by_source=2)
    assert sent(broker, b"\x03\x00home/*"), "a wildcard at an end costs nothing"
    assert sent(broker, b"\x03\x00*a*b*")
    assert not sent(broker, b"\x03\x00*c*")
    assert sent(broker, b"\x03\x00*c*", OTHER)
    assert sent(broker, b"\x05\x00*a*b*")
    assert sent(broker, b"\x03\x00*d*")


def test_wildcards() -> None:
    broker = colon_broker(wildcards=1)
    assert sent(broker, b"\x03\x00*a*")
    assert not sent(broker, b"\x03\x00*b*", OTHER)
    assert sent(broker, b"\x03\x00*a*", OTHER), "a filter counts once"


def test_sessions() -> None:
    broker = broker_for(load_dialect("mqttsn"), Limits(sessions=4))
    connect, ping = bytes.fromhex("0904040100006d6531"), bytes.fromhex("0216")
    ports = [("127.0.0.1", 40_000 + number) for number in range(4)]
    codes = [sent(broker, connect, one)[0][0] for one in ports if sent(broker, ping, one)]
    assert codes == [b"\x03\x05\x00"] * 2 + [b"\x03\x05\x01"] * 2, "the third and fourth of one address"
    assert sent(broker, connect, OTHER) == [(b"\x03\x05\x00", OTHER)]


def test_unacknowledged_bytes() -> None:
    """What waits for one address may take half of the bytes; another address still gets its messages."""
    broker = broker_for(load_dialect("mqttsn"), Limits(unacknowledged_bytes=5_000))
    connect, subscribe = bytes.fromhex("0904040100006d6531"), bytes.fromhex("0712200001") + b"ab"
    sent(broker, connect)
    sent(broker, subscribe)
    publish = b"\xfc\x0c\x22ab\x00\x01" + b"x" * 245
    got = [[to for datagram, to in sent(broker, publish) if datagram[1] == 0x0C] for _ in range(20)]
    assert sum(to == [ONE] for to in got) == 6, "of 445 bytes each"
    assert broker.counters["refused: unacknowledged bytes"] == 14
    sent(broker, connect, OTHER)
    sent(broker, subscribe, OTHER)
    assert [to for datagram, to in sent(broker, publish) if datagram[1] == 0x0C] == [OTHER]


def test_topic_bytes() -> None:
    broker = colon_broker(topic_bytes=3)
    sent(broker, b"\x03\x00*")
    assert (b"\x01\x00abc:x", ONE) in sent(broker, b"\x01\x00abc:x")
    assert (b"\x01\x00abcd:x", ONE) not in sent(broker, b"\x01\x00abcd:x")
    sent(broker, b"\x03\x00long")
    assert [text for text, _ in broker.subscriptions] == [b"*"]


def test_topic_depth() -> None:
    broker = colon_broker(topic_depth=2)
    sent(broker, b"\x03\x00*")
    assert (b"\x01\x00a/b:x", ONE) in sent(broker, b"\x01\x00a/b:x")
    assert (b"\x01\x00a/b/c:x", ONE) not in sent(broker, b"\x01\x00a/b/c:x")
    sent(broker, b"\x03\x00a/b/c")
    assert [text for text, _ in broker.subscriptions] == [b"*"]


def test_datagram_bytes() -> None:
    broker = colon_broker(datagram_bytes=10)
    assert sent(broker, b"\x01\x00a:123456") == [(PUBACK, ONE)]
    assert sent(broker, b"\x01\x00a:1234567") == []
    assert sent(broker, b"\x01\x00a:".ljust(65_507, b"\0")) == []


def test_requests_by_second() -> None:
    broker = colon_broker(requests_by_second=10)
    answered = [bool(sent(broker, b"\x03\x00a", now=0)) for _ in range(12)]
    assert answered == [True] * 10 + [False] * 2
    assert sent(broker, b"\x03\x00a", OTHER, 0), "one address does not use up what another may"
    assert sent(broker, b"\x03\x00a", ONE, SECOND // 10)
    assert not sent(broker, b"\x03\x00a", ONE, SECOND // 10)
    answered = [bool(sent(broker, b"\x03\x00a", now=100 * SECOND)) for _ in range(12)]
    assert answered == [True] * 10 + [False] * 2, "waiting longer saves up no more"


def test_a_clock_that_jumps_shuts_nobody_out() -> None:
    broker = colon_broker(requests_by_second=10)
    for now in (100 * SECOND, 0, 10**19, -(10**19), SECOND, 2 * SECOND):
        assert sent(broker, b"\x03\x00a", ONE, now)


def test_amplification() -> None:
    """An address that never acknowledges gets at most three times the bytes that it sent."""
    broker = broker_for(load_dialect("rolebyte"), Limits(trust_silent=False))
    subscribe = b"\x01\x01t"
    received = len(subscribe)
    got = sum(len(datagram) for datagram, _ in sent(broker, subscribe, ONE))
    for number in range(20):
        publish = b"\x03" + bytes([2 + 1]) + b"t %d" % (number % 10)
        got += sum(len(datagram) for datagram, to in sent(broker, publish, OTHER) if to == ONE)
    assert 0 < got <= 3 * received
    assert broker.counters["refused: amplification"] > 0
    sent(broker, b"\x07\x0a", ONE)
    assert (b"\x02\x03t x", ONE) in sent(broker, b"\x03\x03t x", OTHER), "it has acknowledged, so it is there"


def test_trust_silent() -> None:
    """Some dialects have no ACKs of clients: those are served without that limit once they have come back."""
    publish = b"\x01\x00a:" + b"x" * 100
    for trust, at_once, later in ((True, True, True), (None, False, True), (False, False, False)):
        broker = colon_broker(trust_silent=trust)
        assert sent(broker, b"\x03\x00a") == [(SUBACK, ONE)]
        assert ((publish, ONE) in sent(broker, publish, OTHER)) is at_once
        sent(broker, b"\x03\x00a", now=SECOND - 1)
        assert ((publish, ONE) in sent(broker, publish, OTHER, SECOND - 1)) is at_once
        sent(broker, b"\x03\x00a", now=SECOND)
        assert ((publish, ONE) in sent(broker, publish, OTHER, SECOND)) is later


def test_an_address_nearby_is_trusted_unless_that_is_switched_off() -> None:
    publish = b"\x01\x00a:" + b"x" * 100
    for trust, served in ((None, True), (False, False)):
        broker = colon_broker(trust_silent=trust)
        broker.accounts.is_near = lambda host: host == ONE[0]
        sent(broker, b"\x03\x00a")
        assert ((publish, ONE) in sent(broker, publish, OTHER)) is served


def test_an_answer_is_never_larger_than_a_spoofed_request_allows() -> None:
    """The retained message of another must not be aimed at a third party."""
    broker = colon_broker(trust_silent=False)
    sent(broker, b"\x01\x01a:" + b"x" * 60_000, OTHER)
    got = sum(len(datagram) for datagram, _ in sent(broker, b"\x03\x00a", ONE))
    assert got <= 3 * len(b"\x03\x00a")


def test_accounts_of_the_longest_unseen_are_forgotten() -> None:
    accounts = Accounts(Limits())
    for number in range(MAX_ACCOUNTS + 10):
        accounts.admit((f"host {number}", 1), 1, number)
    assert len(accounts) == MAX_ACCOUNTS

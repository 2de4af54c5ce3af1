"""What the simulator found in clients: copies that come late, and requests that were given up and yet arrived."""

from __future__ import annotations

from pcap_tools.dialect import load_dialect
from reference_broker import Client, Endpoint
from reference_broker.client.requests import Timing
from reference_broker.messages.sending import SECOND
from tests.reference_broker.virtual import ALICE, BOB, BROKER, Bench

SETTLE_NS = SECOND // 2


def test_a_late_copy_of_an_unsubscription_cannot_undo_the_next_subscription() -> None:
    """The network doubles and delays: who subscribes again at once waits until no copy can be on its way."""
    client = Client(load_dialect("colon"), BROKER, timing=Timing(SECOND, settle_ns=SETTLE_NS))
    assert client.unsubscribe(b"a", 0)
    assert client.subscribe(b"a", 0) == []
    assert client.handle(b"\x06", BROKER, 1)[0] == []
    assert client.next_due() == 1 + SETTLE_NS
    assert client.tick(SETTLE_NS)[0] == []
    assert [send.datagram for send in client.tick(1 + SETTLE_NS)[0]] == [b"\x03\x00a"]


def test_a_subscription_to_something_else_need_not_wait() -> None:
    client = Client(load_dialect("colon"), BROKER, timing=Timing(SECOND, settle_ns=SETTLE_NS))
    client.unsubscribe(b"a", 0)
    client.subscribe(b"b", 0)
    assert [send.datagram for send in client.handle(b"\x06", BROKER, 1)[0]] == [b"\x03\x00b"]


def test_the_number_of_a_creation_that_was_given_up_is_not_used_for_another_topic() -> None:
    """The broker got the creation of the first topic and bound its number; only the ACKs were lost."""
    dialect = load_dialect("topicnumber")
    bench = Bench(dialect, {ALICE: Client(dialect, BROKER), BOB: Client(dialect, BROKER)})

    def loses_what_alice_gets(datagram: bytes, to: Endpoint) -> bool:
        return to == ALICE

    bench.loses = loses_what_alice_gets
    bench.carry(ALICE, bench.clients[ALICE].publish(b"secret", b"never sent", bench.now))
    bench.wait(60)
    bench.loses = lambda datagram, to: False
    bench.carry(BOB, bench.clients[BOB].subscribe(b"secret", bench.now))
    bench.wait(10)
    bench.carry(ALICE, bench.clients[ALICE].publish(b"public", b"for others", bench.now))
    bench.wait(10)
    assert bench.received(BOB) == [], "this was published under another topic"

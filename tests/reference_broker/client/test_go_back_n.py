"""Messages longer than one packet: cut, sent in sequence, put together again, whatever is lost on the way."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcap_tools import Codec, load_dialect
from pcap_tools.errors import UsageError
from reference_broker.client import client_for
from reference_broker.client.go_back_n import MAX_PACKETS, MAX_UNFINISHED, ROOM, Packet, Reassembly, Window, split
from reference_broker.client.requests import EventKind, Timing
from reference_broker.messages.sending import SECOND
from tests.reference_broker.virtual import ALICE, BOB, BROKER, Bench

DIALECT = load_dialect("topicnumber")
TEXT = "".join(f"{number} grün, " for number in range(1000)).encode()  # in eight packets


@given(st.text(max_size=200), st.integers(8, 40))
def test_what_is_cut_can_be_put_together(text: str, room: int) -> None:
    parts = split(text.encode(), room)
    assert b"".join(parts) == text.encode()
    for number, part in enumerate(parts):
        part.decode()  # cut between characters
        assert len(part) <= room
        assert (room - len(part) >= ROOM) == (number == len(parts) - 1)
    reassembly = Reassembly()
    outcomes = [reassembly.take("t", number, part, room - len(part)) for number, part in enumerate(parts)]
    assert outcomes == [None] * (len(parts) - 1) + [text.encode()]


def test_a_receiver_keeps_what_comes_early_and_drops_what_came_before() -> None:
    reassembly = Reassembly()
    taken = [reassembly.take("t", *packet) for packet in [(0, b"a", 0), (2, b"c", 9), (0, b"a", 0)]]
    assert taken == [None] * 3
    assert reassembly.take("u", 1, b"x", 9) is None  # a stream of which we missed the beginning
    assert reassembly.take("t", 1, b"b", 0) == b"abc"


def test_unfinished_messages_are_bounded() -> None:
    reassembly = Reassembly()
    for stream in range(10 * MAX_UNFINISHED):
        reassembly.take(stream, 0, b"x", 0)
    assert reassembly.take(0, 1, b"y", 9) is None
    assert reassembly.take(10 * MAX_UNFINISHED - 1, 1, b"y", 9) == b"xy"


def test_a_new_message_takes_the_place_of_one_that_was_cut_short() -> None:
    reassembly = Reassembly()
    reassembly.take("t", 0, b"lost", 0)
    assert reassembly.take("t", 0, b"whole", 9) == b"whole"


def test_a_sender_goes_back_to_the_oldest_packet_without_an_ack() -> None:
    window = Window([Packet(b"%d" % number, ("ACK", number)) for number in range(6)], size=3)
    assert window.open() == [b"0", b"1", b"2"]
    assert window.acknowledge(("ACK", 0))
    assert window.open() == [b"3"]
    assert window.acknowledge(("ACK", 2))  # 1 was lost
    assert window.open() == []
    assert window.again() == [b"1", b"2", b"3"]
    assert not window.acknowledge(("ACK", 2))
    for number in (1, 3):
        assert window.acknowledge(("ACK", number))
    assert window.open() == [b"4", b"5"]
    assert window.acknowledge(("ACK", 5))
    assert window.acknowledge(("ACK", 4))
    assert window.is_done


def bench(publisher_window: int, subscriber_window: int) -> Bench:
    timing = Timing(SECOND, limit=30)
    return Bench(
        DIALECT,
        {
            ALICE: client_for(DIALECT, BROKER, timing=timing, window=publisher_window),
            BOB: client_for(DIALECT, BROKER, timing=timing, window=subscriber_window),
        },
    )


def subscribe_and_publish(on: Bench, text: bytes) -> None:
    on.carry(ALICE, on.clients[ALICE].create(b"news", on.now))
    on.carry(BOB, on.clients[BOB].subscribe(b"news", on.now))
    on.carry(ALICE, on.clients[ALICE].publish(b"news", text, on.now))


def test_a_long_message_arrives_whole_with_no_more_packets_on_their_way_than_the_window() -> None:
    on = bench(4, 4)
    subscribe_and_publish(on, TEXT)
    assert [payload for _, payload in on.received(BOB)] == [TEXT]
    codec = Codec(DIALECT)
    publications = [codec.decode(data) for source, _, data in on.wire if source == ALICE and data[0] == 5]
    assert [sent.fields["sequence"] for sent in publications] == list(range(8))
    on_their_way = [0]
    for source, to, data in on.wire[8:]:  # after creation and subscription
        if source == ALICE and data[0] == 5:
            on_their_way.append(on_their_way[-1] + 1)
        elif to == ALICE and data[0] == 0:
            on_their_way.append(on_their_way[-1] - 1)
    assert (max(on_their_way), on_their_way[-1]) == (4, 0)
    assert on.kinds(ALICE).count((EventKind.ACKNOWLEDGED, "PUBLICATION")) == 1


@pytest.mark.parametrize("seed", range(5))
def test_it_arrives_whole_though_packets_and_acks_are_lost_on_the_publishers_way(seed: int) -> None:
    on = bench(4, 4)
    subscribe_and_publish(on, b"short")
    random = Random(seed)
    lossy = {"on": True}
    on.loses = lambda datagram, to: to != BOB and lossy["on"] and random.random() < 0.2
    for number in range(3):
        on.carry(ALICE, on.clients[ALICE].publish(b"news", b"%d " % number + TEXT, on.now))
        on.wait(200)
    assert on.clients[ALICE].is_idle
    whole = {payload for _, payload in on.received(BOB)}
    assert whole == {b"short", *(b"%d " % number + TEXT for number in range(3))}
    assert EventKind.RESENT in [kind for kind, _ in on.kinds(ALICE)]


def test_it_is_off_unless_asked_for() -> None:
    on = bench(0, 0)
    with pytest.raises(UsageError, match="at most 1400"):
        subscribe_and_publish(on, TEXT)
    with pytest.raises(UsageError, match="no sequence numbers"):
        client_for(load_dialect("colon"), BROKER, window=4)


def test_there_are_only_so_many_sequence_numbers() -> None:
    with pytest.raises(UsageError, match="sequence numbers"):
        subscribe_and_publish(bench(4, 4), b"x" * 1394 * MAX_PACKETS)

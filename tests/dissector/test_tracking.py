"""What tshark says about messages that belong together: ACKs, resends, copies, forwards, subscriptions."""

from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest

from tests.dissector.tshark import Address, fields_of, run_tshark, udp_packet, write_pcap

pytestmark = pytest.mark.tshark

A, B, C, D = (("10.0.0.1", 50000), ("10.0.0.2", 50000), ("10.0.0.3", 50000), ("10.0.0.4", 50000))
BROKER = ("10.0.0.9", 50000)
COOKED = 113
Talk = list[tuple[float, Address, Address, bytes]]


class Tracked:
    """The tracking fields of a capture: ``tracked["ack_in", 3]`` is what frame 3 says."""

    def __init__(self, capture: Path, folder: Path, names: tuple[str, ...], options: tuple[str, ...]) -> None:
        wanted = [name if name.startswith("_ws") else f"pubsub.{name}" for name in names]
        rows = fields_of(capture, *wanted, home=folder / "home", options=list(options))
        self.values = {
            (name, number): row[place] for number, row in enumerate(rows, 1) for place, name in enumerate(names)
        }

    def __getitem__(self, key: tuple[str, int]) -> str:
        return self.values[key]


NAMES = [
    "ack_in",
    "ack_to",
    "ack_candidate",
    "ack_time",
    "ack_quality",
    "resend_of",
    "copy_of",
    "forward_of",
    "forwarded_in",
    "fanout",
    "subscribed_in",
    "topic_name",
]
EXPERTS = [
    "resend",
    "resend_differs",
    "unsolicited_ack",
    "unexpected_forward",
    "unknown_subscriber",
    "no_ack",
    "open_ack",
    "wildcard_in_topic",
]


def track(talk: Talk, folder: Path, *, passes: int = 2) -> Tracked:
    frames = [(at, udp_packet(raw, source, target, n)) for n, (at, source, target, raw) in enumerate(talk, 1)]
    capture = write_pcap(folder / "talk.pcap", frames)
    names = (*NAMES, *(f"expert.{name}" for name in EXPERTS))
    return Tracked(capture, folder, names, ("-2",) if passes == 2 else ())


def experts_of(tracked: Tracked, frame: int) -> set[str]:
    return {name for name in EXPERTS if tracked[f"expert.{name}", frame]}


def test_an_ack_and_its_request_point_at_each_other(tmp_path: Path) -> None:
    seen = track([(0, A, BROKER, b"\x01\x00t:1"), (0.0125, BROKER, A, b"\x02")], tmp_path)
    assert seen["ack_in", 1] == "2"
    assert seen["ack_to", 2] == "1"
    assert (seen["ack_time", 1], seen["ack_time", 2]) == ("", "0.012500000")  # once, for graphs of it
    assert seen["ack_quality", 2] == "exact"
    assert experts_of(seen, 1) == experts_of(seen, 2) == set()


def test_one_pass_knows_the_past(tmp_path: Path) -> None:
    seen = track([(0, A, BROKER, b"\x01\x00t:1"), (0.0125, BROKER, A, b"\x02")], tmp_path, passes=1)
    assert seen["ack_in", 1] == ""
    assert seen["ack_to", 2] == "1"


def test_an_ack_that_nobody_asked_for(tmp_path: Path) -> None:
    seen = track([(0, A, BROKER, b"\x03\x00t"), (0.1, BROKER, A, b"\x02"), (0.2, BROKER, A, b"\x04")], tmp_path)
    assert seen["ack_quality", 2] == "none"
    assert experts_of(seen, 2) == {"unsolicited_ack"}
    assert seen["ack_to", 3] == "1"


def test_expert_information_counts_where_no_details_are_shown(tmp_path: Path) -> None:
    capture = write_pcap(tmp_path / "ack.pcap", [(0.0, udp_packet(b"\x02", BROKER, A))])
    counted = run_tshark(capture, "-q", "-z", "expert", home=tmp_path / "home")
    assert "No outstanding request was seen for this ACK" in counted


def test_no_ack_seen(tmp_path: Path) -> None:
    seen = track([(0, A, BROKER, b"\x01\x00t:1")], tmp_path)
    assert experts_of(seen, 1) == {"no_ack"}


def test_a_resend_is_not_a_new_request(tmp_path: Path) -> None:
    talk = [
        (0.0, A, BROKER, b"\x01\x00t:1"),
        (5.0, A, BROKER, b"\x01\x01t:1"),  # observed: the retain byte of a resend becomes 1
        (10.0, A, BROKER, b"\x01\x00t:1"),
        (10.1, BROKER, A, b"\x02"),
        (10.2, BROKER, A, b"\x02"),
        (11.0, A, BROKER, b"\x01\x00t:1"),
    ]
    seen = track(talk, tmp_path)
    assert [seen["resend_of", n] for n in range(1, 7)] == ["", "1", "1", "", "", ""]
    assert experts_of(seen, 2) == {"resend", "resend_differs"}
    assert experts_of(seen, 3) == {"resend"}
    assert seen["ack_in", 1] == "4"
    assert seen["ack_quality", 4] == seen["ack_quality", 5] == "resent"
    assert [seen["ack_to", 4], seen["ack_to", 5]] == ["1", "3"]  # one more ACK: to the last send


def test_several_outstanding_and_nothing_to_tell_them_apart(tmp_path: Path) -> None:
    talk = [
        (0.0, A, BROKER, b"\x01\x00t:1"),
        (0.1, A, BROKER, b"\x01\x00t:2"),
        (0.2, BROKER, A, b"\x02"),
        (0.3, BROKER, A, b"\x02"),
    ]
    seen = track(talk, tmp_path)
    assert [seen["ack_to", 3], seen["ack_to", 4]] == ["", ""]
    assert [seen["ack_candidate", 3], seen["ack_candidate", 4]] == ["1,2", "2,1"]
    assert [seen["ack_quality", 3], seen["ack_quality", 4]] == ["queued", "queued"]
    assert all(experts_of(seen, n) == {"open_ack"} for n in range(1, 5))


def test_forwards_before_the_ack_say_whose_it_is(tmp_path: Path) -> None:
    talk = [
        (0.0, C, BROKER, b"\x03\x00t"),
        (0.1, BROKER, C, b"\x04"),
        (1.0, A, BROKER, b"\x01\x00t:1"),  # never reaches the broker
        (1.1, A, BROKER, b"\x01\x00t:2"),
        (1.2, BROKER, C, b"\x01\x00t:2"),
        (1.3, BROKER, A, b"\x02"),
    ]
    seen = track(talk, tmp_path)
    assert seen["ack_to", 6] == "4"
    assert seen["ack_quality", 6] == "anchored"
    assert experts_of(seen, 3) == {"no_ack"}


def test_forwards_after_the_ack_say_whose_it_was(tmp_path: Path) -> None:
    sensor, dashboard, broker = ("10.0.0.1", 50003), ("10.0.0.2", 50002), ("10.0.0.9", 50001)
    talk = [
        (0.0, dashboard, broker, b"\x01\x01t"),
        (0.1, broker, dashboard, b"\x07\x0a"),
        (1.0, sensor, broker, b"\x03\x03t 1"),  # never reaches the broker
        (1.1, sensor, broker, b"\x03\x03t 2"),
        (1.2, broker, sensor, b"\x07\x0a"),
        (1.3, broker, dashboard, b"\x02\x03t 2"),
        (1.4, dashboard, broker, b"\x07\x0a"),
    ]
    seen = track(talk, tmp_path)
    assert seen["ack_to", 5] == "4"
    assert seen["ack_quality", 5] == "anchored"
    assert seen["forward_of", 6] == "4"
    assert seen["ack_to", 7] == "6"
    assert experts_of(seen, 3) == {"no_ack"}


def test_forwards_and_the_subscriptions_that_made_them_due(tmp_path: Path) -> None:
    talk = [
        (0.0, B, BROKER, b"\x03\x00home/*"),
        (0.1, BROKER, B, b"\x04"),
        (0.2, C, BROKER, b"\x03\x00*/light"),
        (0.3, BROKER, C, b"\x04"),
        (0.4, C, BROKER, b"\x03\x00home/room/light"),
        (0.5, BROKER, C, b"\x04"),
        (1.0, A, BROKER, b"\x01\x00home/room/light:ON"),
        (1.1, BROKER, B, b"\x01\x00home/room/light:ON"),
        (1.2, BROKER, C, b"\x01\x00home/room/light:ON"),
        (1.3, BROKER, C, b"\x01\x00home/room/light:ON"),
        (1.4, BROKER, A, b"\x02"),
    ]
    seen = track(talk, tmp_path)
    assert seen["fanout", 7] == "3"
    assert seen["forwarded_in", 7] == "8,9,10"
    assert [seen["forward_of", n] for n in (8, 9, 10)] == ["7", "7", "7"]
    assert [seen["subscribed_in", n] for n in (8, 9, 10)] == ["1", "3", "5"]
    assert all(not experts_of(seen, n) for n in range(1, 12))


def test_forwards_that_nobody_subscribed_to(tmp_path: Path) -> None:
    talk = [
        (0.0, B, BROKER, b"\x03\x00t"),
        (0.1, BROKER, B, b"\x04"),
        (0.2, B, BROKER, b"\x05\x00t"),
        (0.3, BROKER, B, b"\x06"),
        (1.0, A, BROKER, b"\x01\x00t:1"),
        (1.1, BROKER, B, b"\x01\x00t:1"),
        (1.2, BROKER, C, b"\x01\x00t:1"),
        (1.3, BROKER, A, b"\x02"),
    ]
    seen = track(talk, tmp_path)
    assert experts_of(seen, 6) == {"unexpected_forward"}
    assert experts_of(seen, 7) == {"unknown_subscriber"}
    assert seen["forward_of", 6] == "5"


def test_a_retained_message_belongs_to_its_publish_and_the_new_subscription(tmp_path: Path) -> None:
    talk = [
        (0.0, A, BROKER, b"\x01\x01temp:12"),
        (0.1, BROKER, A, b"\x02"),
        (1.0, B, BROKER, b"\x03\x00te*"),
        (1.1, BROKER, B, b"\x01\x01temp:12".ljust(1400, b"\0")),
        (1.2, BROKER, B, b"\x04"),
    ]
    seen = track(talk, tmp_path)
    assert seen["forward_of", 4] == "1"
    assert seen["subscribed_in", 4] == "3"
    assert experts_of(seen, 4) == set()


def test_a_wildcard_in_a_published_topic(tmp_path: Path) -> None:
    seen = track([(0, A, BROKER, b"\x01\x00home/*:1"), (0.1, BROKER, A, b"\x02")], tmp_path)
    assert experts_of(seen, 1) == {"wildcard_in_topic"}


def test_forwards_under_another_type_and_topic(tmp_path: Path) -> None:
    actuator, dashboard, broker = ("10.0.0.1", 50007), ("10.0.0.2", 50002), ("10.0.0.9", 50001)
    talk = [
        (0.0, dashboard, broker, b"\x01\x06room/1"),
        (0.1, broker, dashboard, b"\x07\x0a"),
        (1.0, actuator, broker, b"\x05\x17room/1Instructions done"),
        (1.1, broker, actuator, b"\x07\x0a"),
        (1.2, broker, dashboard, b"\x02\x0broom/1 done"),
        (1.3, dashboard, broker, b"\x07\x0a"),
    ]
    seen = track(talk, tmp_path)
    assert seen["forward_of", 5] == "3"
    assert seen["subscribed_in", 5] == "1"
    assert [seen["ack_to", n] for n in (2, 4, 6)] == ["1", "3", "5"]


def test_a_subscriber_that_listens_on_the_port_in_its_message(tmp_path: Path) -> None:
    broker = ("10.0.0.9", 12345)
    subscribe, publish = b"12346001", b"1234510120"
    talk = [
        (0.0, ("10.0.0.2", 40000), broker, subscribe),
        (1.0, ("10.0.0.1", 40001), broker, publish),
        (1.1, ("10.0.0.9", 41000), ("10.0.0.2", 12346), publish),
        (2.0, ("10.0.0.9", 41001), ("10.0.0.3", 12349), publish),
    ]
    seen = track(talk, tmp_path)
    assert seen["forward_of", 3] == "2"
    assert seen["subscribed_in", 3] == "1"
    assert experts_of(seen, 4) == {"unknown_subscriber"}


def test_echoed_acks_and_topics_by_number(tmp_path: Path) -> None:
    publisher, subscriber, broker = ("10.0.0.1", 50002), ("10.0.0.2", 50004), ("10.0.0.9", 50003)

    def message(kind: int, number: int, text: bytes) -> bytes:
        return (pack(">BBI", kind, 0, number) + text).ljust(1400, b"\0")

    talk = [
        (0.0, publisher, broker, message(4, 7, b"weather")),
        (0.1, broker, publisher, message(0, 7, b"weather")),
        (0.2, subscriber, broker, message(6, 0, b"weather")),
        (0.3, broker, subscriber, message(0, 0, b"weather")),
        (1.0, publisher, broker, message(5, 7, b"rain")),
        (1.1, publisher, broker, message(5, 7, b"sun")),
        (1.2, broker, publisher, message(0, 7, b"sun")),
        (1.3, broker, subscriber, message(5, 7, b"sun")),
        (1.4, subscriber, broker, message(0, 7, b"sun")),
    ]
    seen = track(talk, tmp_path)
    assert [seen["ack_to", n] for n in (2, 4, 7, 9)] == ["1", "3", "6", "8"]
    assert seen["ack_quality", 7] == "exact"
    assert seen["topic_name", 5] == "weather"
    assert seen["forward_of", 8] == "6"
    assert seen["subscribed_in", 8] == "3"


def test_acks_by_message_id(tmp_path: Path) -> None:
    client, gateway = ("10.0.0.1", 40000), ("10.0.0.9", 1883)

    def publish(message_id: int, flags: int = 0x20) -> bytes:
        return pack(">BBBHH", 9, 0x0C, flags, 5, message_id) + b"on"

    def puback(message_id: int) -> bytes:
        return pack(">BBHHB", 7, 0x0D, 5, message_id, 0)

    talk = [
        (0.0, client, gateway, publish(1)),
        (0.1, client, gateway, publish(2)),
        (0.2, gateway, client, puback(2)),
        (0.3, client, gateway, publish(1, 0xA0)),  # DUP
        (0.4, gateway, client, puback(1)),
        (0.5, client, gateway, publish(0, 0x00)),  # QoS 0: no ACK is due
    ]
    seen = track(talk, tmp_path)
    assert [seen["ack_to", n] for n in (3, 5)] == ["2", "1"]
    assert [seen["ack_quality", n] for n in (3, 5)] == ["exact", "resent"]
    assert seen["resend_of", 4] == "1"
    assert experts_of(seen, 6) == set()


def test_a_topic_number_keeps_its_name_behind_an_ack_that_repeats_the_number(tmp_path: Path) -> None:
    publisher, subscriber, gateway = ("10.0.0.1", 40000), ("10.0.0.3", 40001), ("10.0.0.2", 1883)

    def message(kind: int, body: bytes) -> bytes:
        return pack("BB", len(body) + 2, kind) + body

    def publish(topic_id: int, message_id: int) -> bytes:
        return message(0x0C, pack(">BHH", 0x20, topic_id, message_id) + b"on%d" % (message_id % 10))

    def puback(topic_id: int, message_id: int) -> bytes:
        return message(0x0D, pack(">HHB", topic_id, message_id, 0))

    talk = [
        (0.0, subscriber, gateway, message(0x12, b"\0" + pack(">H", 1) + b"home/x")),
        (0.1, gateway, subscriber, message(0x13, b"\0" + pack(">HHB", 9, 1, 0))),
        (0.2, publisher, gateway, message(0x0A, pack(">HH", 0, 2) + b"home/x")),
        (0.3, gateway, publisher, message(0x0B, pack(">HHB", 5, 2, 0))),
    ]
    for start, number in ((1.0, 3), (2.0, 4), (3.0, 5)):
        talk += [
            (start, publisher, gateway, publish(5, number)),
            (start + 0.1, gateway, publisher, puback(5, number)),
            (start + 0.2, gateway, subscriber, publish(9, 10 + number)),
            (start + 0.3, subscriber, gateway, puback(9, 10 + number)),
        ]
    seen = track(talk, tmp_path)
    assert [seen["topic_name", n] for n in (5, 7, 9, 11, 13, 15)] == ["home/x"] * 6
    assert [seen["forward_of", n] for n in (7, 11, 15)] == ["5", "9", "13"]


@pytest.mark.parametrize("passes", [1, 2])
def test_copies_of_a_cooked_capture_are_no_resends(tmp_path: Path, passes: int) -> None:
    def cooked(kind: int, packet: bytes) -> bytes:
        return pack(">HHH", kind, 1, 6) + bytes(8) + b"\x08\x00" + packet

    publish, ack = udp_packet(b"\x01\x00t:1", A, BROKER, 7), udp_packet(b"\x02", BROKER, A, 8)
    resend = udp_packet(b"\x01\x00t:1", A, BROKER, 9)
    frames = [
        (0.0, cooked(3, publish)),
        (0.00002, cooked(4, publish)),
        (5.0, cooked(3, resend)),
        (5.00006, cooked(4, resend)),
        (5.1, cooked(3, ack)),
        (5.10001, cooked(4, ack)),
    ]
    capture = write_pcap(tmp_path / "cooked.pcap", frames, link_type=COOKED)
    names = ("copy_of", "resend_of", "ack_to")
    seen = Tracked(capture, tmp_path, names, ("-2",) if passes == 2 else ())
    assert [seen["copy_of", n] for n in range(1, 7)] == ["", "1", "", "3", "", "5"]
    assert [seen["resend_of", n] for n in range(1, 7)] == ["", "", "1", "", "", ""]
    assert [seen["ack_to", n] for n in range(1, 7)] == ["", "", "", "", "1", ""]


def test_a_quoted_datagram_in_an_icmp_error_is_not_tracked(tmp_path: Path) -> None:
    publish = udp_packet(b"\x01\x00t:1", A, BROKER, 7)
    error = bytes([3, 3, 0, 0, 0, 0, 0, 0]) + publish
    icmp = pack(">BBHHHBBH", 0x45, 0, 20 + len(error), 9, 0, 64, 1, 0) + bytes([10, 0, 0, 9, 10, 0, 0, 1]) + error
    capture = write_pcap(tmp_path / "icmp.pcap", [(0.0, publish), (0.1, icmp)])
    seen = Tracked(capture, tmp_path, ("resend_of",), ())
    assert seen["resend_of", 2] == ""


def test_a_quoted_datagram_in_an_icmpv6_error_is_not_tracked(tmp_path: Path) -> None:
    """A control shows that the same datagram, sent again, would be called a resend."""
    a, b = bytes(15) + b"\x0a", bytes(15) + b"\x0b"
    body = b"\x01\x00t:1"
    udp = pack(">HHHH", 50000, 50000, 8 + len(body), 0) + body
    publish = pack(">IHBB", 6 << 28, len(udp), 17, 64) + a + b + udp
    error = bytes([1, 4, 0, 0, 0, 0, 0, 0]) + publish
    icmp = pack(">IHBB", 6 << 28, len(error), 58, 64) + b + a + error
    capture = write_pcap(tmp_path / "icmp.pcap", [(0.0, publish), (0.1, icmp), (0.2, publish)])
    seen = Tracked(capture, tmp_path, ("resend_of",), ())
    assert [seen["resend_of", n] for n in (2, 3)] == ["", "1"]

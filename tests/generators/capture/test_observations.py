"""Who sees what, when and in which place, at each point where a capture can be taken."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from generators.capture.capture_point import Capture
from generators.capture.options import CaptureOptions, LinkType, Point
from tests.generators.transits import (
    BROKER,
    CLIENTS,
    DELAY_NS,
    DOUBLE_NS,
    LONG,
    PUBACK,
    PUBLISH,
    STEP_NS,
    T0,
    both_families,
    captured,
    dialogue,
    rows_of,
    transit,
    with_mishaps,
)

HOST = BROKER[0]
AT_BROKER = CaptureOptions(host=HOST)


def seen_at(capture: Capture, number: int) -> list[int]:
    return [capture.frames[frame - 1].time_ns for frame in capture.frames_of(number)]


def test_a_host_sees_what_it_sends_and_what_arrives() -> None:
    sent, lost, doubled, foreign = (
        transit(0, BROKER, CLIENTS[0], PUBACK),
        transit(1, CLIENTS[0], BROKER, PUBLISH),
        transit(2, CLIENTS[0], BROKER, PUBLISH),
        transit(3, CLIENTS[0], CLIENTS[1], PUBLISH),
    )
    sent.arrived_ns = lost.arrived_ns = ()
    doubled.arrived_ns += (doubled.sent_ns + DOUBLE_NS,)
    capture = captured([sent, lost, doubled, foreign], AT_BROKER)
    assert seen_at(capture, 0) == [sent.sent_ns]
    assert seen_at(capture, 1) == []
    assert seen_at(capture, 2) == [doubled.sent_ns + DELAY_NS, doubled.sent_ns + DOUBLE_NS]
    assert seen_at(capture, 3) == []
    assert [capture.frame_of(number) for number in range(4)] == [1, None, 2, None]
    assert capture.copies == {}
    assert capture.dropped == []


def test_the_last_fragment_arrives_when_the_datagram_does_and_the_first_leaves_when_it_is_sent() -> None:
    transits = [transit(0, CLIENTS[0], BROKER, LONG), transit(1, BROKER, CLIENTS[1], LONG)]
    capture = captured(transits, AT_BROKER)
    assert seen_at(capture, 0)[-1] == T0 + DELAY_NS
    assert seen_at(capture, 1)[0] == T0 + STEP_NS
    for number in (0, 1):
        times = seen_at(capture, number)
        assert all(1_000 <= later - sooner <= 2_000 for sooner, later in pairwise(times))
    assert [capture.frame_of(number) for number in (0, 1)] == [3, 6]


def test_any_sees_everything_even_what_gets_lost_later() -> None:
    lost, doubled = transit(0, CLIENTS[0], BROKER, PUBLISH), transit(1, CLIENTS[0], CLIENTS[1], PUBLISH)
    lost.arrived_ns = ()
    doubled.arrived_ns += (doubled.sent_ns + DOUBLE_NS,)
    capture = captured([lost, doubled], CaptureOptions(Point.ANY, copies=4))
    starts = [seen_at(capture, 0), seen_at(capture, 1)[:4], seen_at(capture, 1)[4:]]
    assert [times[0] for times in starts] == [T0, T0 + STEP_NS, T0 + STEP_NS + DOUBLE_NS]
    for times in starts:
        assert all(10_000 <= later - sooner <= 60_000 for sooner, later in pairwise(times))
    assert capture.copies == {2: 1, 3: 1, 4: 1, 6: 5, 7: 5, 8: 5, 10: 9, 11: 9, 12: 9}


def test_an_any_capture_looks_like_those_of_a_bridge() -> None:
    """Packet types as in real captures: in for somebody else, then out."""
    rows = rows_of(captured([transit(0, CLIENTS[0], BROKER, PUBLISH)], CaptureOptions(Point.ANY)))
    assert [row.packet_type for row in rows.values()] == [3, 4]
    assert len({row.ip_id for row in rows.values()}) == 1
    two = CaptureOptions(Point.ANY, link=LinkType.COOKED2, copies=6)
    rows = rows_of(captured([transit(0, CLIENTS[0], BROKER, PUBLISH)], two))
    assert len({row.interface for row in rows.values()}) == 6


def test_a_cooked_capture_of_one_host_tells_the_direction() -> None:
    transits = [transit(0, CLIENTS[0], BROKER, PUBLISH), transit(1, BROKER, CLIENTS[0], PUBACK)]
    rows = rows_of(captured(transits, replace(AT_BROKER, link=LinkType.COOKED1)))
    assert [row.packet_type for row in rows.values()] == [0, 4]


def test_passes_of_a_fragmented_datagram_do_not_mix() -> None:
    """Even if the network's double comes in between."""
    one = transit(0, CLIENTS[0], BROKER, LONG)
    one.arrived_ns = (T0 + 1000, T0 + 1500)
    for options in (AT_BROKER, CaptureOptions(Point.ANY)):
        frames = captured([one], options).frames
        assert [frame.fragment for frame in frames] == [0, 1, 2] * (len(frames) // 3)
        assert [frame.observation for frame in frames] == sorted(frame.observation for frame in frames)


def test_times_never_decrease() -> None:
    transits = with_mishaps(both_families())
    for one in transits:  # all at once
        one.sent_ns, one.arrived_ns = T0, tuple(T0 + 100 for _ in one.arrived_ns)
    times = [frame.time_ns for frame in captured(transits, CaptureOptions(Point.ANY, noise=1.0)).frames]
    assert times == sorted(times)


def test_captures_at_several_points_agree_on_the_packets() -> None:
    transits = dialogue()
    broker, client = (captured(transits, CaptureOptions(host=host)) for host in (HOST, CLIENTS[1][0]))
    shared = [one.number for one in transits if broker.frame_of(one.number) and client.frame_of(one.number)]
    assert len(shared) > 5
    for number in shared:
        for mine, yours in zip(broker.frames_of(number), client.frames_of(number), strict=True):
            assert broker.frames[mine - 1].data == client.frames[yours - 1].data

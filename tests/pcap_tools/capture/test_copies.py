"""Copies of an `any` capture: recognised by place and id, and never mixed up with resends."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pcap_tools.capture import CopyFinder, Datagram, read_datagrams
from pcap_tools.capture.copies import WINDOW_NS
from tests.pcap_tools.capture import packets as p

FIRST = Datagram(
    frame=1,
    time_ns=p.T0,
    src=p.A4,
    sport=p.SPORT,
    dst=p.B4,
    dport=p.DPORT,
    payload=b"07",
    length=2,
    frames=(1,),
    ip_id=77,
    packet_type=4,
    interface=0,
)


def originals(*changes: Mapping[str, object]) -> list[int | None]:
    """copy_of of FIRST and of changed copies of it, which come 10 us apart unless they say otherwise."""
    finder = CopyFinder()
    found = [finder.copy_of(FIRST)]
    for n, change in enumerate(changes, 1):
        defaults: dict[str, object] = {"frame": n + 1, "time_ns": FIRST.time_ns + n * 10_000}
        found.append(finder.copy_of(replace(FIRST, **{**defaults, **change})))  # type: ignore[arg-type]
    return found


def test_another_packet_type_or_interface_is_a_copy() -> None:
    assert originals({"packet_type": 0}) == [None, 1]
    assert originals({"interface": 5}) == [None, 1]


def test_the_same_place_is_no_copy() -> None:
    """The application sent it twice."""
    assert originals({}) == [None, None]


def test_six_copies() -> None:
    """Two places are enough to know that ids repeat; then the same place counts as well."""
    places = [{"packet_type": kind} for kind in (0, 4, 0, 3, 4)]
    assert originals(*places) == [None, 1, 1, 1, 1, 1]


def test_without_an_id_the_same_place_is_a_new_datagram() -> None:
    for ident in (0, None):
        finder = CopyFinder()
        kinds = [4, 0, 4, 0]
        frames = [
            replace(FIRST, ip_id=ident, packet_type=kind, frame=n, time_ns=p.T0 + n * 1000)
            for n, kind in enumerate(kinds, 1)
        ]
        assert [finder.copy_of(frame) for frame in frames] == [None, 1, None, 3]


def test_what_makes_another_datagram() -> None:
    changes = {"src": "10.9.9.9", "sport": 1, "dst": "10.9.9.9", "dport": 1, "ip_id": 78, "payload": b"08"}
    for name, value in changes.items():
        assert originals({"packet_type": 0, name: value}) == [None, None]


def test_one_millisecond() -> None:
    assert originals({"packet_type": 0, "time_ns": p.T0 + WINDOW_NS}) == [None, 1]
    assert originals({"packet_type": 0, "time_ns": p.T0 + WINDOW_NS + 1}) == [None, None]


def test_times_may_go_back() -> None:
    assert originals({"packet_type": 0, "time_ns": p.T0 - WINDOW_NS}) == [None, 1]
    assert originals({"packet_type": 0, "time_ns": p.T0 - WINDOW_NS - 1}) == [None, None]


def test_a_group_that_is_out_of_reach_but_not_the_oldest() -> None:
    """Time goes back to within reach of the first group only, so the second one is still remembered."""
    other = {"payload": b"08", "time_ns": p.T0 + 900_000}
    back = {"payload": b"08", "time_ns": p.T0 - 200_000, "packet_type": 0}
    assert originals(other, back) == [None, None, None]


def test_the_window_is_that_of_the_first() -> None:
    """Copies do not carry the window on."""
    late = {"packet_type": 0, "time_ns": p.T0 + WINDOW_NS + 1}
    assert originals({"packet_type": 0, "time_ns": p.T0 + 900_000}, late) == [None, 1, None]


def test_memory_is_bounded() -> None:
    """Also if every frame has the same time."""
    finder = CopyFinder()
    for n in range(40_000):
        finder.copy_of(replace(FIRST, frame=n, ip_id=n, time_ns=p.T0))
    assert len(finder._groups) <= 16384
    for n in range(4_000):
        finder.copy_of(replace(FIRST, frame=n, ip_id=n, payload=bytes(60_000), time_ns=p.T0))
    assert sum(len(key[-1]) for key in finder._groups) <= 65 << 20


def test_only_the_last_millisecond_is_kept() -> None:
    finder = CopyFinder()
    for n in range(1000):
        finder.copy_of(replace(FIRST, frame=n, time_ns=p.T0 + n * 100_000, ip_id=n))
    assert len(finder._groups) <= 12


def test_places_come_from_the_link_layer_and_the_file() -> None:
    packet = p.ipv4(p.udp(b"x"))
    cooked = [p.cooked2(packet, 0, 2), p.cooked2(packet, 0, 3), p.cooked2(packet, 4, 3)]
    found = list(read_datagrams(io.BytesIO(p.pcap(cooked, 276, step=1000))))
    assert [(d.packet_type, d.interface, d.copy_of) for d in found] == [(0, 2, None), (0, 3, 1), (4, 3, 1)]
    frame = p.ethernet(packet)
    records = [p.pcap_record(frame, p.T0, p.MODIFIED, ifindex=7, packet_type=kind) for kind in (0, 4)]
    found = list(read_datagrams(io.BytesIO(p.pcap_header(1, p.MODIFIED) + b"".join(records))))
    assert [(d.packet_type, d.interface, d.copy_of) for d in found] == [(0, 7, None), (4, 7, 1)]
    blocks = [p.section(), p.interface(), p.interface()]
    blocks += [p.enhanced(p.ethernet(packet), 1, interface_id=n) for n in (0, 1)]
    found = list(read_datagrams(io.BytesIO(b"".join(blocks))))
    assert [(d.packet_type, d.interface, d.copy_of) for d in found] == [(None, 0, None), (None, 1, 1)]


def test_a_real_capture_of_any_has_every_frame_twice(shared_captures: Path) -> None:
    found = list(read_datagrams(shared_captures / "colon-clean.pcap"))
    assert found
    assert all(d.copy_of == (d.frame - 1 if d.frame % 2 == 0 else None) for d in found)
